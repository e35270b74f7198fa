/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The figures of a step as the args of its slice in a trace. Pure. */
#ifndef FBT_STEP_ARGS_H
#define FBT_STEP_ARGS_H

#include "fbt_event.h"
#include "json.h"
#include "step.h"
#include "window.h"

#define STEP_ARG_KEY_SIZE 64

struct step_args {
	struct json_fields fields; /* points into this struct, to the step and to the window */
	char keys[FBT_ARG_COUNT][STEP_ARG_KEY_SIZE];
};

/*
 * The seed's six sums, calls, errors and numbers of the step; with GPU records the times of all
 * devices taken as one (gpu_busy_us …, floored) and gpu_bound; what is out of the ordinary (end,
 * complete: false, gpu_complete: false, lost_calls) only then; the numbers of --step-arg under
 * their names, or behind "argN." where a name is taken.
 */
void step_args_fill(struct step_args *args, const struct window *window, const struct step *step);

#endif
