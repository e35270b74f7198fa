/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the report says of each step kind, gathered step by step in bounded memory. */
#ifndef FBT_TALLY_H
#define FBT_TALLY_H

#include <stdbool.h>
#include <stdint.h>
#include "escalation_tally.h"
#include "gpu_tally.h"
#include "stats.h"
#include "step.h"
#include "window.h"

#define TALLY_SLOWEST 3
#define TALLY_ENDS    (FBT_END_EXITED + 1)

struct tally_step {
	uint64_t number;
	uint64_t total_ns;
	uint64_t start_ns; /* since the window began */
	uint64_t compute_ns;
	struct fbt_sum sum;	    /* of the dominant category */
	enum fbt_category dominant; /* means nothing if sum.ns is 0 */
	enum fbt_step_end end;
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

struct tally_kind {
	uint64_t steps;
	uint64_t ends[TALLY_ENDS]; /* by enum fbt_step_end */
	uint64_t incomplete;
	uint64_t lost_calls;
	/* Steps that returned: of the others the true length is not known. */
	struct stats *duration;
	/* Steps whose gap is known. */
	struct stats *gap;
	uint64_t gap_syscall_ns;
	/* All steps. */
	uint64_t total_ns;
	uint64_t compute_ns;
	uint64_t compute_max_ns; /* in one step */
	struct fbt_sum sums[FBT_CATEGORY_COUNT];
	uint64_t other_steps; /* in which other_ns was measured */
	uint64_t other_ns;
	uint32_t threads_max;
	struct tally_arg args[FBT_ARG_COUNT];
	struct tally_step slowest[TALLY_SLOWEST]; /* slowest first; number 0: none */
};

struct tally {
	struct tally_kind *kinds[FBT_KIND_COUNT]; /* NULL: no step of that kind */
	struct escalation_tally escalations;
	struct gpu_tally gpu;
};

/* 0 or -ENOMEM. */
int tally_add(struct tally *tally, const struct window *window, const struct step *step);
void tally_clear(struct tally *tally);

/* The kind with the most step time, or -1 if there was no step. */
int tally_main_kind(const struct tally *tally);
uint64_t tally_syscall_ns(const struct tally_kind *kind);
uint64_t tally_calls(const struct tally_kind *kind);

/* Steps that were open when the window ended: incomplete, but nothing went wrong. */
uint64_t tally_open_steps(const struct tally *tally);

/* Categories of a kind, the most time first. */
void tally_sort_categories(const struct tally_kind *kind,
			   enum fbt_category order[FBT_CATEGORY_COUNT]);

/* What tracing added to the targets. */
struct tally_cost {
	uint64_t calls; /* of all traced processes */
	uint64_t steps;
	uint64_t call_ns;    /* added by all calls */
	uint64_t step_ns;    /* added by all steps */
	uint64_t traced_ns;  /* sum of the times the processes were traced */
	double percent;	     /* of traced_ns */
	double step_percent; /* what was added within steps, of step time */
};

/* Of a step function that is sampled, 0 of any other: the time its probes were on. */
double tally_sampled_percent(const struct window *window, uint32_t kind);

/* Calls a second of it while they were. */
uint64_t tally_sampled_calls_per_s(const struct window *window, uint32_t kind);

void tally_cost(const struct tally *tally, const struct window *window, struct tally_cost *cost);
uint64_t tally_window_ns(const struct window *window);

/* How long a process was traced. */
uint64_t tally_process_ns(const struct window *window, const struct process *process);

#endif
