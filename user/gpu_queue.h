/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Launches: how long they take and wait. Pure.
 *
 * A launch is a call with all work of its correlation; its first work stands for it. It is in the
 * queue from the end of the call to the start of its last work: a graph is until its last node is.
 */
#ifndef FBT_GPU_QUEUE_H
#define FBT_GPU_QUEUE_H

#include "gpu_item.h"
#include "gpu_step.h"

/*
 * Fills in launches, the medians, tklqt_ns and graph_launches, of the launches of the step, and
 * queue_depth, of all. items are by start. Medians are of rank round((n - 1) / 2), 0 if there is no
 * launch. 0 or -ENOMEM.
 */
int gpu_queue_compute(const struct gpu_item *items, size_t count, struct gpu_interval step,
		      struct gpu_figures *figures);

/* The value of that rank, 0 if there is none; values are put into another order. */
uint64_t gpu_median(uint64_t *values, size_t count);

#endif
