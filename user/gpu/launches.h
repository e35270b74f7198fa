/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Launches: how long they take and how long they wait. Pure.
 *
 * A launch is a call with all work of its correlation id; its first work stands for it. It is in
 * the queue from the end of the call to the start of its last work (of a graph: its last node).
 */
#ifndef FBT_GPU_LAUNCHES_H
#define FBT_GPU_LAUNCHES_H

#include "gpu/item.h"
#include "model/gpu.h"

/*
 * Fills in launches, the medians, tklqt_ns and graph_launches of the step's launches, and
 * queue_depth of all launches. items are by start. Medians are of rank round((n - 1) / 2), 0
 * without launches. 0 or -ENOMEM.
 */
int gpu_launches_compute(const struct gpu_item *items, size_t count, struct gpu_interval step,
			 struct gpu_figures *figures);

#endif
