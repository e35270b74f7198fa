/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The model: what the GPU did for one step and in it. All times are nanoseconds. H is the step's
 * time [start_ns, end_ns); U(x) the union of the intervals x; |u| its length.
 */
#ifndef FBT_GPU_STEP_H
#define FBT_GPU_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "fbt_gpu.h"
#include "vec.h"

typedef VEC(struct fbt_gpu_work) gpu_work_vec;
typedef VEC(struct fbt_gpu_api) gpu_api_vec;
typedef VEC(struct fbt_gpu_sync) gpu_sync_vec;
typedef VEC(struct fbt_gpu_overhead) gpu_overhead_vec;

struct gpu_interval {
	uint64_t start_ns;
	uint64_t end_ns; /* behind it */
};

/* By start time, none touching the next. */
typedef VEC(struct gpu_interval) gpu_interval_vec;

/* What made a step's figures final. */
enum gpu_seal {
	GPU_SEAL_WATERMARK = 0, /* all that it launched has come, and a flush later than its end */
	GPU_SEAL_TIMEOUT = 1,	/* something it launched has not come in time */
	GPU_SEAL_WINDOW_END = 2,
	GPU_SEAL_ROOM = 3,  /* too much was waiting */
	GPU_SEAL_ENDED = 4, /* the records of its process ended: fbt_gpu_state */
	GPU_SEAL_COUNT = 5,
};

/* What a step is bound by (gpu-side verdict; GPU_BOUND_INPUTS says from what). */
enum gpu_bound {
	GPU_BOUND_UNKNOWN = 0, /* nothing was launched, or too little is known: it is not
				* complete, and not GPU_BOUND_GPU by what there is */
	GPU_BOUND_GPU = 1,     /* the GPU is busy, or its launch queue full */
	GPU_BOUND_COPY = 2,    /* copies that no kernel covers */
	GPU_BOUND_WAIT = 3,    /* the GPU waits for a host thread that is blocked */
	GPU_BOUND_LAUNCH = 4,  /* many short kernels: launching them takes longer than they do */
	GPU_BOUND_HOST = 5,    /* the GPU waits for a host thread that computes */
	GPU_BOUND_NONE = 6,    /* none of these */
	GPU_BOUND_COUNT = 7,
};

/* Syscalls of host_wait by name, the longest first. */
#define GPU_WAIT_CALLS_MAX 4

struct gpu_wait_call {
	uint32_t nr;
	bool blocked; /* the thread gave its CPU away to wait */
	uint64_t ns;  /* 0: no more of them */
};

/*
 * Of one device, or of all devices of the process taken as one. Everything but the counts, bytes
 * and medians, which are of the work that the step launched, is of all work in H whoever launched
 * it.
 */
struct gpu_figures {
	uint32_t device;

	/* busy_ns + idle_ns = |H|. */
	uint64_t busy_ns;   /* |U(all work) in H| */
	uint64_t kernel_ns; /* the same of kernels … */
	uint64_t memcpy_ns;
	uint64_t memset_ns;
	uint64_t h2d_ns; /* copies by kind, by the direction of their ends */
	uint64_t d2h_ns;
	uint64_t d2d_ns;
	uint64_t p2p_ns;
	uint64_t transfer_ns;	  /* |U(h2d, d2h, p2p)|: what gpu_transfer_overhead goes by */
	uint64_t exposed_copy_ns; /* |U(memcpy, memset) without U(kernel)| */
	uint64_t work_sum_ns;	  /* sum of what is in H of each: / busy_ns is the concurrency */
	uint64_t idle_ns;

	/* idle_ns is the sum of these four, to the nanosecond. */
	uint64_t host_wait_ns;	  /* the host had not begun to launch what came next */
	uint64_t launch_ns;	  /* it was in the call that did */
	uint64_t queue_ns;	  /* launched, not started */
	uint64_t unattributed_ns; /* the call that launched what came next is not known */
	/* queue_ns is the sum of these two. */
	uint64_t kernel_wait_ns; /* in pieces below 5 us (2 us between nodes of one graph) */
	uint64_t dependency_ns;	 /* longer ones: events, other streams, preemption */
	/* host_wait_ns is the sum of these four: what the launching thread did meanwhile. */
	uint64_t wait_blocked_ns; /* in syscalls that blocked */
	uint64_t wait_syscall_ns; /* in others */
	uint64_t wait_user_ns;	  /* outside of syscalls: code, run queue, page faults */
	uint64_t wait_unknown_ns; /* its calls are not known: another thread, lost calls */
	struct gpu_wait_call wait_calls[GPU_WAIT_CALLS_MAX];
	uint64_t hta_host_wait_ns; /* gaps with any host wait, whole: as HolisticTraceAnalysis */

	/* Communication (NCCL kernels, by name). */
	uint64_t comm_ns;
	uint64_t exposed_comm_ns; /* |U(comm) without U(other kernels)| */

	/* Of the work that the step launched; it may go on behind H. */
	uint64_t view_start_ns; /* first start and last end; both 0: it launched nothing */
	uint64_t view_end_ns;
	uint64_t view_busy_ns; /* |U(all work)| in between */
	uint32_t kernels;
	uint32_t memcpys;
	uint32_t memsets;
	uint32_t graph_launches;
	uint32_t graph_nodes; /* of the kernels, memcpys and memsets */
	uint32_t pageable;    /* copies from or to pageable memory */
	uint64_t h2d_bytes;
	uint64_t d2h_bytes;
	uint64_t d2d_bytes;
	uint64_t p2p_bytes;
	uint64_t memset_bytes;

	/* Medians over its launches; a graph launch counts once, its first node stands for it. */
	uint64_t launches;	    /* so many they are of */
	uint64_t launch_latency_ns; /* max(0, start - end of the call) */
	uint64_t launch_api_ns;	    /* length of the call */
	uint64_t queue_delay_ns;    /* max(0, start - max(end of the call, end of the work before it
				     * in its stream)) */
	uint64_t wait_behind_ns;    /* max(0, min(start, that end) - end of the call) */
	uint64_t work_ns;	    /* length of the work; of a graph the sum of its nodes' */
	uint64_t tklqt_ns;	    /* sum of launch calls and queue delays */
	/*
	 * Of all launches whose call is known, whoever made them: in the queue from the end of the
	 * call to the start of its last work.
	 */
	double queue_depth; /* mean over H; NaN: no launches */
	double idle_empty;  /* share of idle_ns with nothing in that queue; NaN: no idle time */
};

struct step_gpu {
	enum gpu_seal sealed;
	bool complete; /* sealed by a watermark, and nothing of the process was lost meanwhile */
	struct gpu_figures all;		 /* all devices as one; device is that of the most work */
	VEC(struct gpu_figures) devices; /* by device; those with work of the step or in it */
	gpu_interval_vec busy;		 /* U(all work) in H */
	gpu_interval_vec sync_busy; /* … while the step thread was in a call that waits for it */

	/* The step thread; of an interval, which has none, all threads. */
	uint64_t sync_ns;		/* |U(calls that wait for the GPU) in H| */
	uint64_t sync_useful_ns;	/* … while it worked */
	uint64_t sync_tail_ns;		/* … behind the end of the last work that was awaited:
					 * other work may go on */
	uint64_t sync_spin_ns;		/* … on a CPU: not in a syscall that blocked */
	uint64_t exposed_syscall_ns;	/* |U(syscalls) without U(work)|, without cuda_internal */
	uint64_t overlapped_syscall_ns; /* |U(syscalls) in U(work)|, without cuda_internal */
	uint64_t cuda_internal_ns;	/* syscalls inside of calls that wait for the GPU */
	bool calls_known; /* else these three and sync_spin_ns are 0, and wait_* say nothing */

	/* H is the sum of these, to the nanosecond: of all devices as one, and the step thread. */
	uint64_t gpu_only_ns; /* busy, and the thread waits: blocked, or in a sync call */
	uint64_t gpu_host_ns; /* busy, and it does not */
	/* … and all.host_wait_ns, launch_ns, queue_ns, unattributed_ns */

	enum gpu_bound bound;
	double bound_idle;  /* B1: (host_wait + launch) / |H| */
	double bound_work;  /* B2: median work / median launch call; NaN: no launches */
	double bound_empty; /* B3: all.idle_empty */
	double bound_full;  /* share of H in which the launch queue was full */

	/* How far to trust it. */
	uint32_t joined;	    /* work with its call */
	uint32_t by_time;	    /* work without, taken because it began in H */
	uint32_t unmeasured;	    /* work of it that has no times */
	uint32_t missing;	    /* launches whose work has not come */
	uint32_t violations;	    /* work of it that began before its call */
	uint64_t cupti_dropped;	    /* of the process, since the step before it was sealed */
	uint64_t ring_lost;	    /* the same: records that found no room, scrap buffers too */
	uint64_t cupti_overhead_ns; /* |U(overhead records) in H| */
	uint64_t shim_ns;	    /* the shim's own time in the flushes since the step before */
	uint64_t clock_error_ns;

	/* What the step launched, by start time; sinks draw it. */
	gpu_work_vec works;
	gpu_api_vec apis;
	gpu_sync_vec syncs;
	gpu_overhead_vec overheads;
};

void step_gpu_free(struct step_gpu *gpu); /* NULL is allowed */

/* The call returns when the GPU has done something: it waits for that, or is a copy that does. */
bool gpu_api_waits(const struct fbt_gpu_api *api);

/* "watermark", "timeout", "window_end", "room", "ended". */
const char *gpu_seal_name(enum gpu_seal seal);

/* "gpu", "copy", "wait", "launch", "host", "none", "unknown". */
const char *gpu_bound_name(enum gpu_bound bound);

/* Records that go to sinks together: of a step, or of none. Borrowed vectors. */
struct gpu_batch {
	uint32_t tgid;
	uint64_t step; /* its number; 0: of none */
	const gpu_work_vec *works;
	const gpu_api_vec *apis;
	const gpu_sync_vec *syncs;
	const gpu_overhead_vec *overheads;
};

#endif
