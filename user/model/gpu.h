/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The GPU side of the model: what the GPU did for a step and during it, and the processes with GPU
 * records. All times are nanoseconds. H is the time of the step, [start_ns, end_ns). U(x) is the
 * union of the intervals x, and |u| is the length of u.
 */
#ifndef FBT_MODEL_GPU_H
#define FBT_MODEL_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arith.h"
#include "base/vec.h"
#include "fbt_gpu.h"

typedef VEC(struct fbt_gpu_work) gpu_work_vec;
typedef VEC(struct fbt_gpu_api) gpu_api_vec;
typedef VEC(struct fbt_gpu_sync) gpu_sync_vec;
typedef VEC(struct fbt_gpu_overhead) gpu_overhead_vec;

/* GPU records by kind. */
struct gpu_records {
	gpu_work_vec works;
	gpu_api_vec apis;
	gpu_sync_vec syncs;
	gpu_overhead_vec overheads;
};

size_t gpu_records_count(const struct gpu_records *records);
void gpu_records_free(struct gpu_records *records);

struct gpu_interval {
	uint64_t start_ns;
	uint64_t end_ns; /* exclusive */
};

/* Sorted by start time; no two intervals touch. */
typedef VEC(struct gpu_interval) gpu_interval_vec;

/* Why the figures of a step became final. */
enum gpu_seal {
	GPU_SEAL_WATERMARK = 0,	 /* all work it launched has arrived, and a flush after its end */
	GPU_SEAL_TIMEOUT = 1,	 /* some work it launched did not arrive in time */
	GPU_SEAL_WINDOW_END = 2, /* the window ended */
	GPU_SEAL_ROOM = 3,	 /* too many records were waiting */
	GPU_SEAL_ENDED = 4,	 /* no more records of its process will come: fbt_gpu_state */
	GPU_SEAL_COUNT = 5,
};

/* What limits a step, as seen from the GPU (gpu/metrics.h has the rules). */
enum gpu_bound {
	/* It launched nothing; or it is not complete, and what is known is not GPU_BOUND_GPU. */
	GPU_BOUND_UNKNOWN = 0,
	GPU_BOUND_GPU = 1,    /* the GPU is busy, or its launch queue is full */
	GPU_BOUND_COPY = 2,   /* copies during which no kernel runs */
	GPU_BOUND_WAIT = 3,   /* the GPU waits for a host thread that is blocked */
	GPU_BOUND_LAUNCH = 4, /* many short kernels, which take longer to launch than to run */
	GPU_BOUND_HOST = 5,   /* the GPU waits for a host thread that computes */
	GPU_BOUND_NONE = 6,   /* none of these */
	GPU_BOUND_COUNT = 7,
};

/* The syscalls of host_wait_ns by number, the longest first. */
#define GPU_WAIT_CALLS_MAX 4

struct gpu_wait_call {
	uint32_t nr;
	bool blocked; /* the thread gave up its CPU to wait */
	uint64_t ns;  /* 0: no more entries */
};

/*
 * Figures of one device, or of all devices of the process taken as one. The times cover all work in
 * H, whoever launched it. The counts, bytes and medians cover the work that the step launched.
 */
struct gpu_figures {
	uint32_t device;

	/* busy_ns + idle_ns = |H|. */
	uint64_t busy_ns;   /* |U(all work) in H| */
	uint64_t kernel_ns; /* the same of kernels, and so on */
	uint64_t memcpy_ns;
	uint64_t memset_ns;
	uint64_t h2d_ns; /* copies, by direction */
	uint64_t d2h_ns;
	uint64_t d2d_ns;
	uint64_t p2p_ns;
	uint64_t transfer_ns;	  /* |U(h2d, d2h, p2p)|; decides about gpu_transfer_overhead */
	uint64_t exposed_copy_ns; /* |U(memcpy, memset) without U(kernel)| */
	uint64_t work_sum_ns;	  /* sum over all work in H; work_sum_ns / busy_ns: concurrency */
	uint64_t idle_ns;

	/* idle_ns is exactly the sum of these four. The next work is the one that ends the gap. */
	uint64_t host_wait_ns;	  /* the host had not begun to launch the next work */
	uint64_t launch_ns;	  /* the host was in the call that launches the next work */
	uint64_t queue_ns;	  /* the next work was launched, but had not started */
	uint64_t unattributed_ns; /* the call that launched the next work is not known */
	/* queue_ns is the sum of these two. */
	uint64_t kernel_wait_ns; /* waits below 5 us (2 us between nodes of one graph) */
	uint64_t dependency_ns;	 /* longer waits: events, other streams, preemption */
	/* host_wait_ns is the sum of these four: what the launching thread did in that time. */
	uint64_t wait_blocked_ns; /* in syscalls that blocked */
	uint64_t wait_syscall_ns; /* in other syscalls */
	uint64_t wait_user_ns;	  /* outside of syscalls: code, run queue, page faults */
	uint64_t wait_unknown_ns; /* its calls are not known: another thread, or lost calls */
	struct gpu_wait_call wait_calls[GPU_WAIT_CALLS_MAX];
	/* Whole length of the gaps that have any host wait, as HolisticTraceAnalysis counts it. */
	uint64_t hta_host_wait_ns;

	/* Communication (NCCL kernels, by name). */
	uint64_t comm_ns;
	uint64_t exposed_comm_ns; /* |U(comm) without U(other kernels)| */

	/* The work that the step launched, which may continue after H. */
	uint64_t view_start_ns; /* first start and last end; both 0 if it launched nothing */
	uint64_t view_end_ns;
	uint64_t view_busy_ns; /* |U(all work)| between these two times */
	uint64_t kernels;
	uint64_t memcpys;
	uint64_t memsets;
	uint64_t graph_launches;
	uint64_t graph_nodes; /* kernels, memcpys and memsets that are part of a graph */
	uint64_t pageable;    /* copies from or to pageable memory */
	uint64_t h2d_bytes;
	uint64_t d2h_bytes;
	uint64_t d2d_bytes;
	uint64_t p2p_bytes;
	uint64_t memset_bytes;

	/*
	 * Medians over the step's launches. A graph launch counts once, represented by its first
	 * node. "Before" is the end of the preceding work in the same stream.
	 */
	uint64_t launches;	    /* number of launches in the medians */
	uint64_t launch_latency_ns; /* max(0, start - end of the call) */
	uint64_t launch_api_ns;	    /* length of the call */
	uint64_t queue_delay_ns;    /* max(0, start - max(end of the call, before)) */
	uint64_t wait_behind_ns;    /* max(0, min(start, before) - end of the call) */
	uint64_t work_ns;	    /* length of the work; of a graph the sum over its nodes */
	uint64_t tklqt_ns;	    /* not a median: sum of all launch calls and queue delays */
	/*
	 * The launch queue: all launches whose call is known, whoever made them. A launch is in the
	 * queue from the end of its call to the start of its last work.
	 */
	double queue_depth; /* mean over H; NaN: no launches */
	double idle_empty;  /* share of idle_ns in which the queue is empty; NaN: no idle time */
};

struct step_gpu {
	enum gpu_seal sealed;
	bool complete; /* sealed by a watermark, and no record of the process was lost until then */
	struct gpu_figures all;		 /* all devices as one; device is the one with most work */
	VEC(struct gpu_figures) devices; /* by device; those with work of the step or in H */
	gpu_interval_vec busy;		 /* U(all work) in H */
	gpu_interval_vec sync_busy;	 /* the part of busy in which the step thread awaits work */

	/*
	 * The step thread; for an interval, which has none, all threads. A sync call is a CUDA call
	 * that waits for the GPU.
	 */
	uint64_t sync_ns;	     /* |U(sync calls) in H| */
	uint64_t sync_useful_ns;     /* the part of sync_ns in which the GPU worked */
	uint64_t sync_tail_ns;	     /* … after the awaited work had ended; other work may run */
	uint64_t sync_spin_ns;	     /* … on a CPU, not in a syscall that blocked */
	uint64_t exposed_syscall_ns; /* |U(syscalls) without U(work)|, without cuda_internal */
	uint64_t overlapped_syscall_ns; /* |U(syscalls) in U(work)|, without cuda_internal */
	uint64_t cuda_internal_ns;	/* syscalls inside of sync calls */
	/* If not, these three and sync_spin_ns are 0; wait_* and gpu_*_ns mean nothing. */
	bool calls_known;

	/*
	 * H is exactly the sum of these two and all.host_wait_ns, launch_ns, queue_ns and
	 * unattributed_ns: of all devices as one, and the step thread.
	 */
	uint64_t gpu_only_ns; /* busy while the thread waits: blocked, or in a sync call */
	uint64_t gpu_host_ns; /* busy while it does not */

	enum gpu_bound bound;
	double bound_idle;  /* B1: (host_wait + launch) / |H| */
	double bound_work;  /* B2: median work / median launch call; NaN: no launches */
	double bound_empty; /* B3: all.idle_empty */
	double bound_full;  /* share of H in which the launch queue was full */

	/* How far the figures can be trusted. */
	uint32_t joined;	/* work whose call is known */
	uint32_t by_time;	/* work whose call is not known, counted because it began in H */
	uint32_t unmeasured;	/* work of the step without times */
	uint32_t missing;	/* launches whose work has not arrived */
	uint32_t violations;	/* work of the step that began before its call */
	uint64_t cupti_dropped; /* by CUPTI, in the process, since the previous step was sealed */
	uint64_t ring_lost;	/* the same: no room, or in a scrap buffer */
	uint64_t cupti_overhead_ns; /* |U(overhead records) in H| */
	uint64_t shim_ns;	    /* the shim's own time in flushes since the previous step */
	uint64_t clock_error_ns;

	struct gpu_records records; /* what the step launched, by start time; for sinks */
};

void step_gpu_free(struct step_gpu *gpu); /* NULL is allowed */

/* Whether the call returns only after the GPU has finished work: a wait, or a blocking copy. */
bool gpu_api_waits(const struct fbt_gpu_api *api);

/* "watermark", "timeout", "window_end", "room", "ended". */
const char *gpu_seal_name(enum gpu_seal seal);

/* "gpu", "copy", "wait", "launch", "host", "none", "unknown". */
const char *gpu_bound_name(enum gpu_bound bound);

/* Records that go to sinks together: those of one step, or some that belong to no step. */
struct gpu_batch {
	uint32_t tgid;
	uint64_t step;			   /* number of the step; 0: none */
	const struct gpu_records *records; /* borrowed */
};

/*
 * Operations on sets of intervals (gpu_interval_vec). Nothing wraps around, whatever the input:
 * lengths saturate, and an interval that ends before it begins is empty.
 */
static inline uint64_t gpu_interval_ns(struct gpu_interval interval)
{
	return sub_saturating(interval.end_ns, interval.start_ns);
}

/* The part of an interval that is inside bounds, of length 0 if there is none. */
static inline struct gpu_interval gpu_interval_clip(struct gpu_interval interval,
						    struct gpu_interval bounds)
{
	return (struct gpu_interval){max_u64(interval.start_ns, bounds.start_ns),
				     min_u64(interval.end_ns, bounds.end_ns)};
}

/*
 * Adds an interval. It must not begin before the last interval of the set; if it does, the part
 * before the end of that one is left out. 0 or -ENOMEM.
 */
int gpu_interval_append(gpu_interval_vec *set, struct gpu_interval interval);

/* Makes a valid set of intervals in any order, which may overlap. */
void gpu_interval_sort(gpu_interval_vec *set);

uint64_t gpu_interval_length(const gpu_interval_vec *set);

/* Length of the intersection. */
uint64_t gpu_interval_common(const gpu_interval_vec *a, const gpu_interval_vec *b);

/*
 * Length of the part of the interval that is in the set. Successive calls must be sorted by the
 * start of the interval. *next, 0 at first, remembers where the next call continues.
 */
uint64_t gpu_interval_common_with(const gpu_interval_vec *set, size_t *next,
				  struct gpu_interval interval);

/* Union, intersection and difference (a without b). result must be empty. 0 or -ENOMEM. */
int gpu_interval_unite(const gpu_interval_vec *a, const gpu_interval_vec *b,
		       gpu_interval_vec *result);
int gpu_interval_intersect(const gpu_interval_vec *a, const gpu_interval_vec *b,
			   gpu_interval_vec *result);
int gpu_interval_subtract(const gpu_interval_vec *a, const gpu_interval_vec *b,
			  gpu_interval_vec *result);

/*
 * Most processes that are kept. Once there are GPU_IDLE_MAX, further processes that do not use CUDA
 * are left out and not counted: each child process sends such a state.
 */
#define GPU_PROCESSES_MAX 4096
#define GPU_IDLE_MAX	  1024

/* Most devices, and most bytes of names, kept per process. Beyond that, records have no name. */
#define GPU_DEVICES_MAX	   64
#define GPU_NAME_BYTES_MAX (4u << 20)

struct gpu_name {
	char *raw;  /* as received; NULL: not known */
	char *text; /* for display: demangled, with arguments; without "_v7000" */
	uint32_t kind;
	uint32_t id;
};

struct gpu_device {
	struct fbt_gpu_device record;
	char *name;
};

/* Counts of one process over the whole window. */
/*
 * The most that CUPTI adds to a recorded call of the CUDA API, and to a node of a CUDA graph, on
 * the thread that launches. Measured on an H100 with CUPTI 13.0 U1 (docs/gpu.md#cost): 2.6 to 6.3
 * us, and 1.0 to 1.7 us. What hides behind the GPU's work delays nobody.
 */
#define GPU_CALL_COST_NS 6300
#define GPU_NODE_COST_NS 1700

struct gpu_counts {
	uint64_t kernels;
	uint64_t memcpys;
	uint64_t memsets;
	uint64_t graph_nodes; /* of all three: part of a CUDA graph */
	uint64_t apis;
	uint64_t syncs;
	uint64_t unmeasured;  /* work whose times are zero */
	uint64_t devices;     /* bit n: there was work on device n */
	uint64_t unnamed;     /* kernels without a name: the shim had no room for it */
	uint64_t joined;      /* work whose call is known */
	uint64_t unjoined;    /* work that names a call, which is not known */
	uint64_t misnumbered; /* those of unjoined whose call is known, and cannot be the right one
			       */
	uint64_t violations;  /* work that began before its call: the clock is doubtful */
	uint64_t outside;     /* work that was launched outside of steps */
	uint64_t steps;	      /* steps with GPU figures */
	uint64_t timeouts;    /* those of them that were not sealed by a watermark */
};

struct gpu_process {
	uint32_t tgid;
	struct fbt_gpu_state state; /* the latest */
	char *detail;		    /* of the state; never NULL */
	char *library;		    /* the same */
	bool armed;		    /* the shim was armed at some time in this window */
	uint64_t arm_ns;	    /* how long arming took, the last time */
	struct fbt_gpu_flush flush; /* the latest, its totals those of the window; all 0 before */
	struct fbt_gpu_flush past;  /* totals of the times it was armed before */
	struct gpu_counts counts;   /* filled in by gpu/merge */
	VEC(struct gpu_device) devices; /* by id */
	VEC(struct gpu_name) names;	/* by id */
	size_t name_bytes;
};

struct gpu_table {
	VEC(struct gpu_process *) processes; /* by tgid */
};

/*
 * For model/assemble. Strings are copied. 0; -ENOMEM, and what was known before is kept; or -ENOSPC
 * if there is no room.
 */
int gpu_table_set_state(struct gpu_table *table, const struct fbt_gpu_state *record,
			const char *detail, const char *library);
int gpu_table_add_name(struct gpu_table *table, const struct fbt_gpu_name *record,
		       const char *name);
int gpu_table_add_device(struct gpu_table *table, const struct fbt_gpu_device *record,
			 const char *name);
int gpu_table_set_flush(struct gpu_table *table, const struct fbt_gpu_flush *record);
void gpu_table_clear(struct gpu_table *table);

/* NULL if there was no record of that process. */
struct gpu_process *gpu_table_find(const struct gpu_table *table, uint32_t tgid);

/* Never NULL: "kernel" or "cuda call" if the name is not known. */
const char *gpu_process_kernel_name(const struct gpu_process *process, uint32_t id);
const char *gpu_process_api_name(const struct gpu_process *process, uint32_t id);

/* NULL if not known. */
const struct gpu_device *gpu_process_device(const struct gpu_process *process, uint32_t id);

/* The name in JSON: "absent", "armed", … */
const char *gpu_status_name(enum fbt_gpu_status status);

/* For messages and the report: why a process has no (more) GPU records, and what to do. */
struct gpu_problem {
	const char *what;
	const char *advice;
};

/* NULL for a status that is no problem, or that has a message of its own. */
const struct gpu_problem *gpu_status_problem(enum fbt_gpu_status status);

/* "callback", "realtime", "cupti", "unknown". */
const char *gpu_clock_name(enum fbt_gpu_clock_method method);

/* "12.8", "13.0 U1", or "CUPTI 99" for a version that is not known. Written to text. */
const char *gpu_cupti_version_name(uint32_t version, char text[32]);

/*
 * What is known to be wrong with a version of CUPTI, after records have flowed for so long; NULL:
 * nothing, or it is wrong only with graphs, buffers or clocks, which is told by what was seen.
 */
const char *gpu_cupti_caution(uint32_t version, uint64_t armed_ns);

/* Whether all data of the process is doubtful: more than 0.1 % of the work are violations. */
bool gpu_process_is_clock_suspect(const struct gpu_process *process);

#endif
