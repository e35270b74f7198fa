/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the report says of the GPU side of steps, gathered step by step in bounded memory. */
#ifndef FBT_GPU_TALLY_H
#define FBT_GPU_TALLY_H

#include <stdbool.h>
#include <stdint.h>
#include "gpu_step.h"
#include "stats.h"
#include "step.h"

#define GPU_TALLY_SLOWEST 3

struct gpu_tally_step {
	uint64_t number; /* 0: none */
	uint64_t total_ns;
	uint64_t run_delay_ns;	    /* UINT64_MAX: not known */
	struct gpu_figures figures; /* of all devices as one */
	enum gpu_bound bound;
	bool complete;
};

/*
 * Sums saturate. Only steps, sealed, what follows from joined on, and slowest are of all steps with
 * GPU figures, all else is of those that are complete: of others it is not known how idle it was.
 */
struct gpu_tally_kind {
	uint64_t steps;
	uint64_t complete;
	uint64_t sealed[GPU_SEAL_COUNT];
	uint64_t bound[GPU_BOUND_COUNT];
	uint64_t total_ns;     /* of their time */
	uint64_t run_delay_ns; /* in which their threads waited for a CPU; UINT64_MAX: not known */
	/* Per step. */
	struct stats *busy;
	struct stats *idle;
	/* Medians of steps that launched something. */
	struct stats *launch_latency;
	struct stats *launch_api;
	struct stats *work;
	/* Sums of times; all else in it is 0. The counts follow: a sum may have more bits. */
	struct gpu_figures sum;
	uint64_t kernels;
	uint64_t memcpys;
	uint64_t memsets;
	uint64_t graph_launches;
	uint64_t graph_nodes;
	uint64_t pageable;
	uint64_t launches;
	uint64_t h2d_bytes;
	uint64_t d2h_bytes;
	uint64_t d2d_bytes;
	uint64_t p2p_bytes;
	uint64_t memset_bytes;
	uint64_t wait_ns[FBT_NR_COUNT][2]; /* of figures' wait_calls: not blocked, blocked */
	uint64_t sync_ns;
	uint64_t sync_useful_ns;
	uint64_t sync_tail_ns;
	uint64_t sync_spin_ns;
	uint64_t calls_known; /* steps of which the next three are */
	uint64_t exposed_syscall_ns;
	uint64_t overlapped_syscall_ns;
	uint64_t cuda_internal_ns;
	uint64_t gpu_only_ns;
	uint64_t gpu_host_ns;
	uint64_t joined;
	uint64_t by_time;
	uint64_t unmeasured;
	uint64_t missing;
	uint64_t violations;
	uint64_t cupti_overhead_ns;
	struct gpu_tally_step slowest[GPU_TALLY_SLOWEST]; /* slowest first */
};

struct gpu_tally {
	struct gpu_tally_kind *kinds[FBT_KIND_COUNT]; /* NULL: no step with GPU figures */
};

/* A step with step->gpu; others are left alone. 0 or -ENOMEM. */
int gpu_tally_add(struct gpu_tally *tally, const struct step *step);
void gpu_tally_clear(struct gpu_tally *tally);

/* A mean complete step, 0 if there is none: its times, with the calls that its host_wait_ns was
 * longest in; no counts. */
void gpu_tally_mean(const struct gpu_tally_kind *kind, struct gpu_figures *mean);

/* The verdict of the most steps, "not known" last. */
enum gpu_bound gpu_tally_bound(const struct gpu_tally_kind *kind);

#endif
