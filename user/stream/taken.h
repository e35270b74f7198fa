/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Who had the CPUs that steps waited for: the waits of a step, summed up until it ends. */
#ifndef FBT_STREAM_TAKEN_H
#define FBT_STREAM_TAKEN_H

#include "model/event.h"

struct taken_sums;

/* output is borrowed. NULL: no memory. */
struct taken_sums *taken_sums__new(const struct record_output *output);
void taken_sums__free(struct taken_sums *sums);

/*
 * Some waits of a step, from the kernel side, or one of a thread outside of steps. Without room
 * they are dropped.
 */
void taken_sums__add(struct taken_sums *sums, const struct fbt_taken *taken);

/*
 * Sends the sum of a step, right before the step itself, if it has waited; and the sums of other
 * threads of the process that have waited for long meanwhile. Names the cgroups of those that took
 * most of the time, as far as they can still be found.
 */
void taken_sums__send(struct taken_sums *sums, const struct fbt_step *step);

#endif
