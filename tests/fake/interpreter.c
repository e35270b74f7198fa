/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Preloaded before an interpreter: with it, libferrum_python.so takes the interpreter for another
 * one.
 *
 *	-DEARLY     one that is just starting: another thread is about to write the text of its
 *                  version
 *	-DTHREADED  a free-threaded build
 */
#ifdef EARLY
const char *Py_GetVersion(void);

const char *Py_GetVersion(void)
{
	return "";
}
#endif

#ifdef THREADED
extern int _Py_MergeZeroLocalRefcount;

int _Py_MergeZeroLocalRefcount;
#endif
