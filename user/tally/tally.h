/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The figures of the report, gathered step by step in bounded memory. A new figure of durations or
 * of "time in" is a field of struct tally_kind, filled in tally.c. In json.c, write_kind has it:
 * write_stats percentiles, write_parts "time in", write_slowest the slowest steps.
 */
#ifndef FBT_TALLY_H
#define FBT_TALLY_H

#include <stdbool.h>
#include <stdint.h>
#include "base/stats.h"
#include "base/vec.h"
#include "judge/classify.h"
#include "judge/frames.h"
#include "judge/look.h"
#include "judge/text.h"
#include "model/gpu.h"
#include "model/step.h"
#include "model/window.h"
#include "tally/driver_tally.h"
#include "tally/explained_tally.h"
#include "tally/rank_tally.h"
#include "tally/shortage_tally.h"
#include "tally/tail.h"

/* Only the last escalations are listed, shown or not. */
#define ESCALATIONS_LISTED 1000

/* Stacks of a cause that are counted; further ones are not. */
#define CAUSE_STACKS 8

/* All steps with one cause, including those not shown. */
struct cause_tally {
	uint64_t steps;
	uint64_t usual_known; /* of these: how much time the cause usually takes is known */
	uint64_t is_usual;    /* of those: they are over their budget as a rule */
	/* Of those: time of the cause above the usual, or over the budget; of GPU_TRANSFER all. */
	uint64_t extra_ns;
	bool estimated; /* extra_ns is, at least in part */
	/* The step with the most extra time: */
	uint64_t worst_step; /* its number */
	uint64_t worst_extra_ns;
	uint64_t worst_total_ns;
	char worst_evidence[EVIDENCE_SIZE];
	char worst_waker[FRAMES_SIZE];	     /* what ended its wait; "": not known */
	uint64_t worst_after_ns;	     /* … and how long after its begin; 0: not known */
	char worst_holder[FRAMES_SIZE];	     /* what its lock was held in; "": not known */
	char worst_others[LOOK_OTHERS_SIZE]; /* what all were in meanwhile; "": not known */
	bool worst_is_known;		     /* it is known for which thread or process it waited */
	bool worst_is_named;	/* the evidence names who held its lock, or stopped it */
	bool worst_calls_known; /* … or can name its calls */
	struct explained_tally explained;
	struct cause_stack {
		uint64_t steps; /* 0: none */
		char text[FRAMES_SIZE];
		char unnamed[UNNAMED_SIZE]; /* of the first of them */
	} stacks[CAUSE_STACKS];
};

struct escalation_entry {
	uint64_t number;
	uint64_t step;
	uint64_t start_ns; /* since the window began */
	uint64_t total_ns;
	uint64_t budget_ns;
	uint64_t usual_ns;
	uint64_t cause_ns;
	uint64_t cause_usual_ns;
	uint32_t kind;
	uint32_t tgid;
	uint32_t tid;
	uint32_t fired;
	enum escalation_reason reason;
	enum cause_kind cause;
	const char *not_shown; /* why it was not; NULL: it was */
	bool judged;
	bool cause_usual_known;
	bool complete;
	struct fbt_stop stop; /* header.type 0: none is part of the cause */
	struct fbt_stop_sender stop_sender;
	struct step_peer peer; /* record.header.type 0: its cause is no wait for a process … */
	uint64_t peer_ns;      /* … else that wait */
	struct fbt_fault_sites faults; /* header.type 0: not counted, or no part of the cause */
};

struct escalation_tally {
	struct cause_tally causes[CAUSE_COUNT];
	VEC(struct escalation_entry) entries; /* a ring once it is full */
	uint64_t listed; /* in total, including those that the ring has dropped */
};

/* 0, or -ENOMEM: counted, but not listed. */
int escalation_tally_add(struct escalation_tally *tally, const struct window *window,
			 const struct step *step, const struct escalation *escalation);
void escalation_tally_clear(struct escalation_tally *tally);

/* The commonest stack of a cause; NULL: none is known. */
const struct cause_stack *cause_tally_stack(const struct cause_tally *cause);

/* The causes found, most expensive first; returns how many. */
int escalation_tally_sort(const struct escalation_tally *tally, enum cause_kind order[CAUSE_COUNT]);

/* The index-th oldest entry of the list, NULL after the last. */
const struct escalation_entry *escalation_tally_entry(const struct escalation_tally *tally,
						      size_t index);

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
 * Sums saturate. steps, sealed, slowest and all from joined on cover all steps with GPU figures;
 * everything else covers complete steps only, because the idle time of others is unknown.
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
	/* Sums of gpu_times and gpu_work_counts, all else is 0. */
	struct gpu_figures sum;
	uint64_t wait_ns[FBT_NR_COUNT][2]; /* of figures' wait_calls: not blocked, blocked */
	uint64_t sync_ns;
	uint64_t sync_useful_ns;
	uint64_t sync_tail_ns;
	uint64_t calls_known_steps; /* number of steps for which the next six are known */
	uint64_t sync_spin_ns;
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

/* Adds a step with step->gpu and ignores others. 0 or -ENOMEM. */
int gpu_tally_add(struct gpu_tally *tally, const struct step *step);
void gpu_tally_clear(struct gpu_tally *tally);

/* The times of a mean complete step, and the calls with its longest host waits; no counts. */
void gpu_tally_mean(const struct gpu_tally_kind *kind, struct gpu_figures *mean);

/* The most frequent verdict other than unknown, if there is one. */
enum gpu_bound gpu_tally_bound(const struct gpu_tally_kind *kind);

#define TALLY_SLOWEST CLASSIFY_SLOWEST
#define TALLY_ENDS    (FBT_END_RAISED + 1)

struct tally_step {
	uint64_t number;
	uint64_t total_ns;
	uint64_t start_ns; /* since the window began */
	uint64_t compute_ns;
	uint64_t own_ns; /* or, if its parts are not known, what is in no other part */
	bool parts_known;
	enum step_part rest; /* the largest of the other parts … */
	uint64_t rest_ns;    /* … if this is not 0 */
	uint32_t arg_mask;
	int64_t args[FBT_ARG_COUNT];
	uint64_t usual_ns;   /* what its class usually takes; 0: not known */
	uint64_t starved_ns; /* how long another thread waited for a CPU; 0: none, or not known */
	uint32_t starved_tid;
	/* Of a step that was escalated: */
	bool is_escalated;
	enum cause_kind cause;
	struct fbt_sum sum;	    /* of the dominant category */
	enum fbt_category dominant; /* means nothing if sum.ns is 0 */
	enum fbt_step_end end;
	uint32_t kind;
	uint32_t tgid;
	uint32_t tid;
	bool complete;
};

struct tally_arg {
	uint64_t count; /* steps in which it was read */
	int64_t min;
	int64_t max;
	long double sum;
};

/* Number of classes of a kind that have a tail of their own. */
#define TALLY_CLASSES 16

struct tally_class {
	struct step_class class;
	uint64_t steps;
	uint64_t total_ns;
	struct tail *tail;
};

/* What CPython did in the steps in which that was measured. */
struct tally_stalls {
	uint64_t gil_steps;
	uint64_t gil_ns; /* of the time in futex */
	uint64_t gil_waits;
	uint64_t gc_steps;
	uint64_t gc_ns; /* of own code */
	uint64_t gc_count;
	uint64_t gc_longest_ns;
	uint32_t gc_generation; /* of the longest one */
};

struct tally_kind {
	uint64_t steps;
	uint64_t ends[TALLY_ENDS]; /* by enum fbt_step_end */
	uint64_t incomplete;
	uint64_t lost_calls;
	uint64_t untraced; /* steps whose calls were not traced */
	/* Of steps that returned: the true duration of others is unknown. */
	struct stats *duration;
	/* Of steps whose gap is known. */
	struct stats *gap;
	uint64_t gap_syscall_ns;
	/* All steps. */
	uint64_t total_ns;
	uint64_t compute_ns;
	uint64_t compute_max_ns;       /* in one step */
	uint64_t parts_ns[STEP_PARTS]; /* where total_ns went: see step_split */
	struct shortage_tally shortage;
	/* The rest of steps whose parts were not measured, where those of others were. */
	uint64_t unmeasured_ns;
	uint64_t parts_known;	 /* steps whose parts were measured, … */
	uint64_t faults_untimed; /* … except page faults in this many: those are in STEP_OWN */
	uint64_t faults_timed;	 /* page faults that were timed, of all steps */
	uint64_t stops_unknown;	 /* steps whose short stops may not have been seen */
	struct tail *tail;	 /* of the steps whose parts are known, those that returned; … */
	VEC(struct tally_class) classes; /* … and by class, in the order in which they came */
	struct fbt_sum sums[FBT_CATEGORY_COUNT];
	uint64_t other_steps; /* in which other_ns was measured */
	uint64_t other_ns;
	/* Of the other threads in the steps in which that was measured: see fbt_step. */
	uint64_t team_steps;
	uint64_t team_ns;
	uint64_t team_cpu_ns;
	uint64_t team_delay_ns;
	uint32_t threads_max;
	uint64_t polls; /* 0: its steps are no futures */
	struct tally_stalls stalls;
	struct tally_arg args[FBT_ARG_COUNT];
	/* Of its escalated steps: measured time of the causes above the usual, or over budget. */
	uint64_t escalated_ns[CAUSE_COUNT];
	uint64_t escalated_part_ns[STEP_PARTS];	  /* the same, by the parts that it is in */
	struct tally_step slowest[TALLY_SLOWEST]; /* slowest first; number 0: none */
};

struct tally {
	struct tally_kind *kinds[FBT_KIND_COUNT]; /* NULL: no step of that kind */
	/* Durations of steps with PyTorch's profiler, which are in no other figure; NULL: none. */
	struct stats *profiled[FBT_KIND_COUNT];
	uint64_t profiled_open; /* of these, still open at the end of the window */
	struct escalation_tally escalations;
	struct gpu_tally gpu;
	struct driver_tally driver;
	struct iteration_tally iterations;
};

/* 0 or -ENOMEM. */
int tally_add(struct tally *tally, const struct window *window, const struct step *step);

/* An escalation, shown or not, of the step that was added last; 0 or -ENOMEM. */
int tally_escalate(struct tally *tally, const struct window *window, const struct step *step,
		   const struct escalation *escalation);
void tally_clear(struct tally *tally);

/*
 * False: the calls of at least one step were not traced. A figure that needs calls would be wrong,
 * and is not shown.
 */
bool tally_calls_known(const struct tally_kind *kind);

/* The kind with the most step time, or -1 if there was no step. */
int tally_main_kind(const struct tally *tally);
uint64_t tally_syscall_ns(const struct tally_kind *kind);
uint64_t tally_calls(const struct tally_kind *kind);

/*
 * Incomplete steps of which nothing is wrong: those that were cut off when the probes of their
 * function were switched off, of one kind and of all, and those still open when the window ended.
 */
uint64_t tally_cut_steps(const struct tally *tally, const struct window *window, uint32_t kind);
uint64_t tally_all_cut_steps(const struct tally *tally, const struct window *window);
uint64_t tally_open_steps(const struct tally *tally, const struct window *window);

/* Adds the collections of one sum to another. */
void tally_add_garbage(struct tally_stalls *to, const struct tally_stalls *from);

uint64_t tally_window_ns(const struct window *window);

/* For how long a process was traced. */
uint64_t tally_process_ns(const struct window *window, const struct process *process);

#endif
