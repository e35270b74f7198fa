/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Preloaded before an interpreter: what Py_GetVersion returns while another thread is about to
 * write the text, as it may be for a moment when an interpreter starts.
 */
const char *Py_GetVersion(void);

const char *Py_GetVersion(void)
{
	return "";
}
