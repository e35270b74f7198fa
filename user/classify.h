/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Steps to verdicts: is this step wrong, why, and what caused it.
 *
 * A step is held against the steps before it in its class: same process, same kind, same
 * power-of-two bucket of its work (what remains without syscalls, run queue and page faults;
 * waiting for the GPU while it works is work, see cause.h) or of the argument that --class-by names
 * (0 and negative values are one bucket; where the argument was not read, work). Over the last
 * window_steps steps of the class, those that were cut off left out:
 *
 *   budget      --budget-us, else the step's own work + the median of what is not work
 *   efficiency  budget / actual * 100: of the microseconds that are shown, and of the nanoseconds
 *               too, so that rounding alone makes no short step inefficient
 *   cv          robust CV (class_history.h) of the steps with their work held constant: median work
 *               + what is not work. It is charged to a step only if that step is over its budget by
 *               more than the CV threshold: the steps that make a class unsteady, not its others.
 *   drop        (1 - (work + median) / actual) * 100: loss of throughput. A memory cliff is one
 *               above the threshold, with mmap the dominant category, most of which memory accounts
 *               for: growth of allocation calls and page faults against what is usual in the class
 *   transfer    time in which the GPU copied from host to device, from device to host or between
 *               devices, whoever launched it, / actual * 100: above the threshold it is named,
 *               whatever the class. Not known without GPU records: never fires. Its cause is the
 *               copies, but for a memory cliff.
 *
 * That a class is unsteady is said of one step in window_steps of them, the others of which nothing
 * else is wrong are counted (repeated).
 *
 * Precedence: manual > memory_cliff > gpu_transfer_overhead > the seed's escalation_reason.
 * An excess of less than 0.1 ms over the budget is never named, nor are copies of less: noise is as
 * long, and an engine that is ahead of its GPU has short steps while that copies.
 *
 * While a class has fewer than CLASS_KNOWN_STEPS steps, the nearest by work that has more stands
 * for it, but for its CV. Nothing is judged before there is one; intervals are never judged;
 * either may be escalated by hand. A step that was cut off is judged by what is known of it.
 *
 * By design these are not named:
 * - more work, whatever the reason: work is part of the budget (--budget-us names it);
 * - with the defaults, a step that waited for less than 3 times its budget, in a class that seldom
 *   does: its efficiency is above 25 %, and the IQR filter keeps a rare wait out of the CV;
 * - the first steps of a class, and steps of a size that comes too seldom to have a class.
 */
#ifndef FBT_CLASSIFY_H
#define FBT_CLASSIFY_H

#include <stdbool.h>
#include <stdint.h>
#include "cause.h"
#include "escalation.h"
#include "step.h"
#include "step_class.h"
#include "window.h"

#define CLASSIFY_WINDOW_DEFAULT 64
#define CLASSIFY_WINDOW_MAX	1024

struct classify_options {
	struct escalation_thresholds thresholds;
	uint32_t window_steps; /* CLASS_KNOWN_STEPS … CLASSIFY_WINDOW_MAX */
	uint64_t budget_us;    /* 0: of the class */
	const char *class_by;  /* name of a step argument, borrowed; NULL: by work */
};

struct classify_options classify_default_options(void);

/* A step that was found wrong. */
struct escalation {
	uint64_t number;      /* 1, 2, … those too that are not shown */
	bool suppressed;      /* over the rate limit: counted, not shown */
	bool repeated;	      /* its class was said to be unsteady already: the same */
	bool judged;	      /* else by hand, in a class that is not known yet */
	bool nearest;	      /* by the nearest class that is known: its own is not yet */
	uint32_t fired;	      /* bit per enum escalation_reason; BOTH is two bits */
	double cv_percent;    /* of the class, charged or not; NaN if not judged */
	double drop_percent;  /* NaN if not judged */
	uint32_t class_steps; /* in the window of its class, without this one */
	uint64_t budget_ns;   /* actual if not judged */
	uint64_t usual_ns;    /* median length of the class; 0 if not judged */
	bool budget_given;    /* by --budget-us, and judged by it */
	struct trace_result result;
	struct cause cause;
	struct fbt_call worst; /* the longest call, unfinished ones too; duration_ns: in the step,
				* 0: not known */
};

/* Neither suppressed nor repeated. */
bool escalation_is_shown(const struct escalation *escalation);

/* Totals so far. */
struct classify_counts {
	uint64_t judged;
	uint64_t unjudged;   /* too few steps in their class yet, or intervals */
	uint64_t escalated;  /* those too that are not shown */
	uint64_t suppressed; /* by the rate limit */
	uint64_t repeated;
	uint64_t by_reason[ESCALATION_REASON_COUNT]; /* sum: escalated */
};

struct classifier;

/* options are copied, class_by stays borrowed. NULL: -ENOMEM. */
struct classifier *classifier__new(const struct classify_options *options);
void classifier__free(struct classifier *classifier);

/* The next step that comes will be escalated, whatever it is; the rate limit may suppress it. */
void classifier__request_manual(struct classifier *classifier);

/* It was requested, and no step has come since. */
bool classifier__is_manual(const struct classifier *classifier);

/*
 * Judges a step and remembers it. *escalation is set to the verdict, valid until the next call, or
 * NULL. The rate limit goes by the ends of steps and begins with the window of the first one. 0, or
 * -ENOMEM: the step was judged, not remembered.
 */
int classifier__judge(struct classifier *classifier, const struct window *window,
		      const struct step *step, const struct escalation **escalation);

const struct classify_counts *classifier__counts(const struct classifier *classifier);

/* Thresholds, and the last results that were not suppressed. */
const struct escalation_manager *classifier__manager(const struct classifier *classifier);

#endif
