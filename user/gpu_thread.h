/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the step thread did while the GPU worked, and how long it waited for it. Pure. */
#ifndef FBT_GPU_THREAD_H
#define FBT_GPU_THREAD_H

#include "gpu_host_wait.h"
#include "gpu_item.h"
#include "gpu_step.h"

/*
 * So far back, in pieces of work, the work that a call waited for is looked for. That it is not
 * among the last few is rare: only where work of several streams overlaps for so long.
 */
#define GPU_AWAITED_BACK_MAX 4096

struct gpu_thread_input {
	struct gpu_interval step; /* H */
	/* The step thread; of an interval, which has none, all threads stand for it (any). */
	uint32_t tid;
	bool any;
	const gpu_span_vec *spans; /* its calls; NULL: not known */
	/* As in gpu_metrics_input. */
	const struct gpu_item *items;
	size_t item_count;
	const struct fbt_gpu_api *const *apis;
	size_t api_count;
	const struct fbt_gpu_sync *const *syncs;
	size_t sync_count;
};

/*
 * Fills sync_*, exposed_syscall_ns, overlapped_syscall_ns, cuda_internal_ns, gpu_only_ns and
 * gpu_host_ns; gpu->busy is there. 0 or -ENOMEM.
 *
 * A call that waits awaits: a copy, the work of its own correlation; a synchronization, what was
 * launched before it began in the stream, or else the context, that its fbt_gpu_sync names; where
 * that is not known (an event), any work launched before it began that ended before it did. Its
 * tail is what of it lies behind the last end of that work; all of it, if there was none.
 */
int gpu_thread_compute(const struct gpu_thread_input *input, struct step_gpu *gpu);

#endif
