/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * GPU records to steps: holds back each step of a process with GPU records until they are all
 * there, gives it what it launched, and computes its figures (gpu/metrics.h).
 *
 * Work belongs to the step in which the call that launched it began (gpu/join.h, gpu/claim.h). Work
 * without a call goes by its own start, unless strict: then it belongs to no step. A window with
 * FBT_WINDOW_GPU_STRICT is strict, so that a recording gives the figures of the run; one for which
 * the options say so gets the flag.
 *
 * A step is sealed by a watermark: a flush later than its end has come and no launch of the step
 * waits for its work. It is also sealed when a flush was sent timeout_ns after its end, or when too
 * much is held. Copies and memsets without work are waited for during two flushes only: they may
 * have nothing to do. So that a shim that never flushes cannot hold back the steps of others, a
 * step is also sealed when another one ended MERGE_SILENCE_NS later than that. If records of a step
 * come after its watermark, later steps of the process wait for more flushes. Steps leave in the
 * order in which they came, those of processes without a GPU too.
 *
 * A step is complete if it was sealed by a watermark, has all its work with times, began when the
 * records did or later, and no record that it may have had was lost, given to another step, or
 * passed on to make room.
 */
#ifndef FBT_GPU_MERGE_H
#define FBT_GPU_MERGE_H

#include <stdbool.h>
#include "model/gpu.h"
#include "model/step.h"
#include "model/window.h"

#define MERGE_TIMEOUT_NS 2000000000ull
/* Longer than a tool that was stopped is behind with the flushes of a shim that is armed. */
#define MERGE_SILENCE_NS 10000000000ull
/* Held at most: steps of all processes, their calls, and GPU records of each process. */
#define MERGE_STEPS_MAX	  4096
#define MERGE_CALLS_MAX	  1048576
#define MERGE_RECORDS_MAX 262144

struct merge_options {
	bool strict; /* only work that the step thread launched, whatever the window says */
	uint64_t timeout_ns;
};

/*
 * on_step is given each step once, with step->gpu set if its process had records. It may take the
 * calls; all else is freed when it returns. on_gpu is given all GPU records, each once: those of a
 * step right after it. 0 or -errno, passed up.
 */
struct merge_output {
	int (*on_step)(void *ctx, const struct window *window, struct step *step);
	int (*on_gpu)(void *ctx, const struct window *window, const struct gpu_batch *batch);
	void *ctx;
};

struct merger;

/* Both are copied. NULL: -ENOMEM. */
struct merger *merger__new(const struct merge_options *options, const struct merge_output *output);
void merger__free(struct merger *merger);

/* The next step that has ended; its calls are taken if it is held. 0 or the first -errno. */
int merger__push_step(struct merger *merger, struct window *window, struct step *step);

/*
 * A checked record of fbt_gpu.h, in any order. The window already knows names and devices; counts
 * in window->gpus are kept here. -ENOSPC: it is of one process more than GPU_PROCESSES_MAX, and not
 * taken.
 */
int merger__push_gpu(struct merger *merger, struct window *window, const struct fbt_header *event);

/* The end of the stream: seals all steps, passes all records on. */
int merger__flush(struct merger *merger, struct window *window);

#endif
