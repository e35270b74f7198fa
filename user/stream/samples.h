/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The samples of a step, counted by function and by the way to it until it ends. */
#ifndef FBT_STREAM_SAMPLES_H
#define FBT_STREAM_SAMPLES_H

#include "model/event.h"
#include "stacks/stacks.h"

struct sample_sums;

/* output is borrowed. NULL: no memory. */
struct sample_sums *sample_sums__new(const struct record_output *output);
void sample_sums__free(struct sample_sums *sums);

/*
 * A sample of a step, see stacks__sample(). Without room it is dropped; the way to the function is
 * dropped first.
 */
void sample_sums__add(struct sample_sums *sums, const struct fbt_samples *of,
		      const struct stack_codes *codes);

/* Sends those of a step, right before the step itself, if there are any. */
void sample_sums__send(struct sample_sums *sums, const struct fbt_step *step);

#endif
