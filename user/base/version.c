/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The only file that is compiled again when the version changes: with each commit. */
#include "base/version.h"

const char *tool_version(void)
{
	return FBT_VERSION;
}
