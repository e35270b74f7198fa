/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The figures of a set of work, of one device or of all, in a step. Pure. */
#ifndef FBT_GPU_FIGURES_H
#define FBT_GPU_FIGURES_H

#include "gpu_host_wait.h"
#include "gpu_item.h"
#include "gpu_step.h"

/*
 * A shorter piece of queue_ns is what a device takes to begin, a longer one waits for something.
 * After HolisticTraceAnalysis' consecutive_kernel_delay (30, in the unit of its time stamps), but
 * nearer to what launches take: some microseconds, less from node to node of a graph, where the
 * device itself goes on.
 */
#define GPU_KERNEL_WAIT_NS 5000
#define GPU_NODE_WAIT_NS   2000

struct gpu_figures_input {
	const struct gpu_item *items; /* by start */
	size_t count;
	struct gpu_interval step;  /* H */
	const gpu_span_vec *spans; /* calls of the step thread; NULL: not known */
	uint32_t tid;		   /* the step thread */
};

/* Fills all of figures, zero before, but device. 0 or -ENOMEM. */
int gpu_figures_compute(const struct gpu_figures_input *input, struct gpu_figures *figures);

#endif
