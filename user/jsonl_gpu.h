/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * gpu_prof: what the GPU did in a step. A step has one line of all its devices as one (scope
 * "step"); if there are several, one more for each (scope "device") with that device's figures
 * only, so that sums over lines of one scope count nothing twice.
 */
#ifndef FBT_JSONL_GPU_H
#define FBT_JSONL_GPU_H

#include "gpu_step.h"
#include "json.h"
#include "step.h"
#include "window.h"

#define JSONL_GPU_KEY_SIZE 48

struct jsonl_gpu {
	struct json_fields shape; /* points into this struct and the window */
	struct json_fields stage_us;
	char wait_keys[GPU_WAIT_CALLS_MAX][JSONL_GPU_KEY_SIZE];
};

/* Lines of a step with step->gpu. */
size_t jsonl_gpu_lines(const struct step_gpu *gpu);

/*
 * The index-th of them. stage_us are microseconds by floor, each from its nanoseconds, so sums may
 * fall short by one per part; the shape has the nanoseconds of what adds up: total = busy + idle,
 * idle = host_wait + launch + queue + unattributed. What is not known is left out. event must not
 * be moved.
 */
void jsonl_gpu_fill(struct jsonl_gpu *event, const struct window *window, const struct step *step,
		    size_t index);

/* What step_prof has of a step with step->gpu. */
void jsonl_gpu_add_to_step(struct json_fields *shape, struct json_fields *stage_us,
			   const struct step *step);

/* It launched a CUDA graph: the envelope's graph_enabled. */
bool jsonl_gpu_has_graph(const struct step *step);

#endif
