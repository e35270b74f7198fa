/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the machine can do, as /proc shows it. */
#ifndef FBT_PROC_MACHINE_H
#define FBT_PROC_MACHINE_H

#include <stdbool.h>

/*
 * Whether processes may have shadow stacks: the flag user_shstk of x86-64 (Linux 6.6 and newer).
 * False if /proc/cpuinfo cannot be read.
 */
bool machine_has_shadow_stacks(void);

#endif
