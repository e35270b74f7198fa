/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Who ended a wait of which the records of system calls do not say it. Pure. */
#ifndef FBT_JUDGE_WOKEN_H
#define FBT_JUDGE_WOKEN_H

#include <stdint.h>
#include "judge/calls.h"
#include "judge/cause.h"
#include "model/step.h"

/* Sets cause->wants_waker and cause->woken for the current call of a walk, which took ns. */
void cause_set_woken(const struct step *step, const struct call_walk *walk, uint64_t ns,
		     struct cause *cause);

#endif
