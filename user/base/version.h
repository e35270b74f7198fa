/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The version of the tool, as packaging/version.sh has found it when the tool was built. */
#ifndef FBT_BASE_VERSION_H
#define FBT_BASE_VERSION_H

/* Such as "0.2.0", or "0.2.0+12.g1234abc" 12 commits later. A static string. */
const char *tool_version(void);

#endif
