/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * How long work may have run that was launched before the records began, and so has none: until the
 * first work of a device began, if that had waited since its call. Where a device seems idle before
 * that, it may have been busy. A device whose first work was launched long after the records began
 * had none.
 */
#ifndef FBT_GPU_HIDDEN_H
#define FBT_GPU_HIDDEN_H

#include <stdbool.h>
#include <stdint.h>
#include "gpu/join.h"

#define HIDDEN_DEVICES 16 /* later ones are not judged */

struct hidden_work {
	uint64_t begin_ns; /* of the records */
	struct {
		uint64_t start_ns;    /* of the first work; 0: none yet */
		uint32_t correlation; /* of its call */
		bool is_judged;	      /* its call is known */
		bool waited;	      /* it began later than its call explains */
	} devices[HIDDEN_DEVICES];
};

/* Records begin at that time, CLOCK_MONOTONIC ns. */
void hidden_work__begin(struct hidden_work *hidden, uint64_t time_ns);

/* A record of work has come. */
void hidden_work__note(struct hidden_work *hidden, const struct fbt_gpu_work *work);

/* Calls have come. */
void hidden_work__judge(struct hidden_work *hidden, const struct gpu_join *join);

/* The time until which work without records may have run, CLOCK_MONOTONIC ns; 0: none did. */
uint64_t hidden_work__until_ns(const struct hidden_work *hidden);

#endif
