/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * GPU records to steps: holds each step of a process with GPU records back until they are all
 * there, gives it what it launched, and has gpu_metrics compute its figures.
 *
 * Work belongs to the step in which the call that launched it began (same correlation; of a driver
 * call inside of a runtime call, which share theirs, the runtime's): the step of that thread; if
 * there is none, unless strict, the step of the process that was open then and began last. Work
 * without a call goes by its own start, but to no step if strict. Only steps that have ended are
 * known: a thread that has steps is taken to be in one behind the last that is.
 *
 * A step is sealed once a flush later than its end has come and no launch of it waits for its work
 * (watermark), or timeout_ns after its end by when the process's flushes were said, or when too
 * much is held. Copies and memsets without work are waited for two flushes only: they may have
 * nothing to do. If records of a step come behind its watermark after all, the steps after it wait
 * for more flushes. Steps leave in the order in which they came, those of processes without a GPU
 * too.
 *
 * A step is complete if it was sealed by a watermark, has all its work with times, began when the
 * records did or later, and no record that it may have had was lost, given to another step, or
 * passed on to make room.
 */
#ifndef FBT_MERGE_H
#define FBT_MERGE_H

#include <stdbool.h>
#include "gpu_step.h"
#include "merge_limits.h"
#include "step.h"
#include "window.h"

struct merge_options {
	bool strict; /* only work that the step thread launched */
	uint64_t timeout_ns;
};

/*
 * on_step is given each step once, step->gpu set if its process had records; its calls may be
 * taken, all else is freed when it returns. on_gpu is given all GPU records, each once: those of a
 * step right behind it. 0 or -errno, passed up.
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
 * A checked record of fbt_gpu.h, in any order. Names and devices are the window's already; counts
 * in window->gpus are kept here. -ENOSPC: it is of one process more than GPU_PROCESSES_MAX, and not
 * taken.
 */
int merger__push_gpu(struct merger *merger, struct window *window, const struct fbt_header *event);

/* The end of the stream: seals all steps, passes all records on. */
int merger__flush(struct merger *merger, struct window *window);

#endif
