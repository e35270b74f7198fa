/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the launching thread did while the GPU waited for it. Pure. */
#ifndef FBT_GPU_HOST_WAIT_H
#define FBT_GPU_HOST_WAIT_H

#include <stdbool.h>
#include "gpu_step.h"
#include "shares.h"
#include "step.h"

/* A syscall of the step thread, as far as it lies in the step. */
struct gpu_span {
	struct gpu_interval time;
	uint32_t nr;
	bool blocked; /* the thread gave its CPU away to wait */
};

typedef VEC(struct gpu_span) gpu_span_vec;

/*
 * All calls of the step thread are at hand: none was lost, cut off or left out (--detail steps). Of
 * an interval they never are: it has many threads, and lacks the calls that outlast it.
 */
bool gpu_calls_known(const struct step *step);

/*
 * The calls by start, none overlapping the one before: where records do, the earlier one has the
 * time. Empty if they are not known. 0 or -ENOMEM.
 */
int gpu_spans_make(const struct step *step, gpu_span_vec *spans);

/* A sum over gaps of one set of work. */
struct gpu_host_wait {
	const gpu_span_vec *spans; /* borrowed; NULL: not known */
	size_t next;
	uint64_t blocked_ns;
	uint64_t syscall_ns;
	uint64_t user_ns;
	uint64_t unknown_ns;
	struct shares calls;
};

void gpu_host_wait_begin(struct gpu_host_wait *wait, const gpu_span_vec *spans);

/* Adds a wait for the step thread (step_thread), or for another. By start. */
void gpu_host_wait_add(struct gpu_host_wait *wait, struct gpu_interval interval, bool step_thread);

/* Fills in wait_*. Of calls that took the same time the lower number comes first. */
void gpu_host_wait_end(const struct gpu_host_wait *wait, struct gpu_figures *figures);

#endif
