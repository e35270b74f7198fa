/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which code makes many short calls. Pure. */
#ifndef FBT_JUDGE_SHORT_CALLS_H
#define FBT_JUDGE_SHORT_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include "judge/calls.h"

/*
 * The stack that stands for the calls of a cause, of which those of the number nr took most of the
 * time: some stacks were copied (bpf/stacks.bpf.h), and this is the one of that number that was
 * copied most often; without one, of all calls of the cause. claims: see call_walk_begin. Returns
 * whether there is one; else stack stays as it is.
 */
bool short_calls_stack(const struct window *window, const struct step *step, bool claims,
		       enum cause_kind cause, uint32_t nr, struct fbt_stack *stack);

#endif
