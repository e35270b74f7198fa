/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The figures of a set of work in a step, of one device or of all: what it did, and what it waited
 * for. Pure.
 */
#ifndef FBT_GPU_FIGURES_H
#define FBT_GPU_FIGURES_H

#include <stdbool.h>
#include "gpu/item.h"
#include "model/gpu.h"
#include "model/step.h"

/* A syscall of the step thread, as far as it lies in the step. */
struct gpu_span {
	struct gpu_interval time;
	uint32_t nr;
	bool blocked; /* the thread gave up its CPU to wait */
};

typedef VEC(struct gpu_span) gpu_span_vec;

/*
 * All calls of the step thread are known: none was lost, cut off or left out (--detail steps). The
 * calls of an interval never are: it has many threads, and lacks the calls that outlast it.
 */
bool gpu_calls_known(const struct step *step);

/*
 * The calls by start, without overlaps: where records overlap, the earlier one has the time. Empty
 * if the calls are not known. 0 or -ENOMEM.
 */
int gpu_spans_make(const struct step *step, gpu_span_vec *spans);

/*
 * A shorter piece of queue_ns is the time a device takes to begin; a longer one waits for
 * something. After HolisticTraceAnalysis' consecutive_kernel_delay (30, in the unit of its time
 * stamps), but closer to what launches take: some microseconds, and less from node to node of a
 * graph, where the device itself goes on.
 */
#define GPU_KERNEL_WAIT_NS 5000
#define GPU_NODE_WAIT_NS   2000

struct gpu_figures_input {
	const struct gpu_item *items; /* by start */
	size_t count;
	struct gpu_interval step;  /* H */
	const gpu_span_vec *spans; /* calls of the step thread; NULL: not known */
	uint32_t tid;		   /* the step thread */
	uint64_t hidden_until_ns;  /* idle before is unattributed: gpu/hidden.h */
};

/* Fills all of figures, zero before, but device. 0 or -ENOMEM. */
int gpu_figures_compute(const struct gpu_figures_input *input, struct gpu_figures *figures);

#endif
