/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which code makes many short calls. Pure. */
#ifndef FBT_JUDGE_SHORT_CALLS_H
#define FBT_JUDGE_SHORT_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include "model/step.h"

/*
 * The stack that stands for the calls of a number in a step: stacks were copied at even shares of
 * their time (bpf/stacks.bpf.h), and this is the one that was copied most often. Returns whether
 * there is one; else stack stays as it is.
 */
bool short_calls_stack(const struct step *step, uint32_t nr, struct fbt_stack *stack);

#endif
