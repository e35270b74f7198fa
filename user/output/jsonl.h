/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The profile: JSON Lines in ferrum's locked envelope (ferrum-bench-core profile.rs). */
#ifndef FBT_OUTPUT_JSONL_H
#define FBT_OUTPUT_JSONL_H

#include "base/json.h"
#include "model/gpu.h"
#include "model/metadata.h"
#include "model/step.h"
#include "model/window.h"
#include "output/sink.h"

/*
 * Writes each line with one write(2) to fd, which stays the caller's; or to stream, if that is not
 * NULL, and flushes that each second. metadata is borrowed. NULL: -ENOMEM.
 */
struct sink *sink_jsonl__new(int fd, FILE *stream, const struct metadata *metadata);

/*
 * gpu_prof: what the GPU did in a step. A step has one line for all its devices together (scope
 * "step"). If it has several devices, it also has a line for each (scope "device"). Sums over the
 * lines of one scope count nothing twice.
 */
#define JSONL_GPU_KEY_SIZE 48

struct jsonl_gpu {
	struct json_fields shape; /* points into this struct and the window */
	struct json_fields stage_us;
	char wait_keys[GPU_WAIT_CALLS_MAX][JSONL_GPU_KEY_SIZE];
};

/* The number of lines of a step with GPU records. */
size_t jsonl_gpu_lines(const struct step_gpu *gpu);

/*
 * Fills the line with that index. Each time in stage_us is rounded down to microseconds, so a sum
 * may be short by one for each part. The shape has the nanoseconds of the times that add up: total
 * = busy + idle, idle = host_wait + launch + queue + unattributed. Unknown values are left out.
 * event contains pointers into itself.
 */
void jsonl_gpu_fill(struct jsonl_gpu *event, const struct window *window, const struct step *step,
		    size_t index);

/* Adds the GPU part of step_prof, for a step with GPU records. */
void jsonl_gpu_add_to_step(struct json_fields *shape, struct json_fields *stage_us,
			   const struct step *step);

/* Whether the step launched a CUDA graph: graph_enabled of the envelope. */
bool jsonl_gpu_has_graph(const struct step *step);

#endif
