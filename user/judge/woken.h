/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Who ended a wait of which the records of system calls do not say it. Pure. */
#ifndef FBT_JUDGE_WOKEN_H
#define FBT_JUDGE_WOKEN_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_explain.h"
#include "judge/calls.h"

/*
 * Whether the current call of a walk, which took ns, has waited for somebody to wake it, whom no
 * record of the system calls names. *woken: who did; header.type 0: not known.
 */
bool woken_find(const struct call_walk *walk, uint64_t ns, struct fbt_woken *woken);

#endif
