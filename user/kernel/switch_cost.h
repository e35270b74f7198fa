/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What a context switch and the wake-up before it cost on this machine. */
#ifndef FBT_KERNEL_SWITCH_COST_H
#define FBT_KERNEL_SWITCH_COST_H

#include <stdint.h>

/*
 * CPU time of one switch with its wake-up, in picoseconds: two threads of the tool wake each other
 * on one CPU. Takes some milliseconds. 0: it could not be measured.
 */
uint64_t switch_cost_ps(void);

#endif
