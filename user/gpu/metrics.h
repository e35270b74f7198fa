/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The figures of a step from its GPU records, and its syscalls. Pure. */
#ifndef FBT_GPU_METRICS_H
#define FBT_GPU_METRICS_H

#include "gpu/item.h"
#include "model/gpu.h"
#include "model/step.h"

/*
 * Most pieces of work that are searched backwards for the work that a call waited for. That work is
 * among the last few unless work of several streams overlaps for long.
 */
#define GPU_AWAITED_BACK_MAX 4096

/* A kernel that communicates, by HolisticTraceAnalysis' rule: "^nccl|ncclKernel|ncclDevKernel". */
bool gpu_name_is_comm(const char *name);

/*
 * The verdict: the first of these that fits. All are shares of H except BLOCKED, WORK and EMPTY.
 *
 *   UNKNOWN  nothing was launched and nothing ran, or unattributed > UNKNOWN_SHARE
 *   GPU      busy > BUSY, or the launch queue was full for > FULL
 *   COPY     exposed_copy > COPIES
 *   NONE     B1 = host_wait + launch is not > IDLE; else
 *   WAIT     blocked > BLOCKED of host_wait
 *   UNKNOWN  what the host did in host_wait is not known for > UNKNOWN_SHARE: it may have waited
 *   LAUNCH   B2 < WORK, and B3 > EMPTY
 *   HOST     B2 >= WORK
 *   NONE     any other
 */
#define GPU_BOUND_UNKNOWN_SHARE 0.2
#define GPU_BOUND_BUSY		0.9
#define GPU_BOUND_FULL		0.01
#define GPU_BOUND_COPIES	0.2
#define GPU_BOUND_IDLE		0.2
#define GPU_BOUND_BLOCKED	0.5
#define GPU_BOUND_WORK		1.5
#define GPU_BOUND_EMPTY		0.8

struct gpu_metrics_input {
	const struct step *step; /* H, the step thread, and its calls */
	/*
	 * Work of all devices, sorted by start: what overlaps H, what the step launched and, so
	 * that the gap at the end of H can be judged, what others launched in H that starts after
	 * it.
	 */
	const struct gpu_item *items;
	size_t item_count;
	/* Calls of all threads that overlap H, sorted by start, without FBT_GPU_API_NESTED. */
	const struct fbt_gpu_api *const *apis;
	size_t api_count;
	/* Records that overlap H, in any order. */
	const struct fbt_gpu_sync *const *syncs;
	size_t sync_count;
	const struct fbt_gpu_overhead *const *overheads;
	size_t overhead_count;
	uint64_t hidden_until_ns; /* gpu/hidden.h; 0: all work has records */
};

/*
 * Fills all figures of gpu but sealed, complete, and what of "how far to trust it" only merge knows
 * (missing, unmeasured, dropped, lost, shim_ns, clock_error_ns); gpu is zero before. The record
 * vectors stay as they are. 0 or -ENOMEM.
 *
 * A gap of U(all work) in H from p to q is charged by the work that begins at q (the one launched
 * first, if several do), whose call is [a, b], both clamped into [p, q]: host_wait [p, a], launch
 * [a, b], queue [b, q]; a gap up to the end of H by the first work after it that was launched
 * before that end, all to host_wait if there is none. Where its call is not known, the gap is
 * unattributed, and so is what of a gap lies before hidden_until_ns.
 */
int gpu_metrics_compute(const struct gpu_metrics_input *input, struct step_gpu *gpu);

#endif
