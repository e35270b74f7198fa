/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Steps to verdicts: is this step wrong, why, and what caused it.
 *
 * A step is compared with the steps before it in its class (judge/class.h): same process, same
 * kind, same power-of-two bucket of its work or of an argument (class_argument). Work is what
 * remains without syscalls, run queue and page faults; waiting for a busy GPU is work
 * (judge/cause.h). Over the last window_steps steps of the class, without those that were cut off:
 *
 *   budget      --budget-us, else the step's own work + the median of what is not work
 *   efficiency  budget / actual * 100, of the microseconds that are shown and of the nanoseconds,
 *               so that rounding alone makes no short step inefficient
 *   cv          robust CV (judge/class.h). It is charged to a step only if that step is over its
 *               budget by more than the CV threshold: only steps that make the class unsteady
 *   drop        (1 - (work + median) / actual) * 100: loss of throughput. A memory cliff is a drop
 *               above the threshold in a step whose dominant category is mmap, if most of the
 *               excess is growth of allocation calls and page faults
 *   transfer    time in which the GPU copied between host and device, or between devices, whoever
 *               launched the copies, / actual * 100: named above the threshold, whatever the class.
 *               Without GPU records it never fires. Its cause is the copies, except for a cliff
 *
 * That a class is unsteady is told for one in window_steps of its steps; further steps with nothing
 * else wrong are counted (repeated).
 *
 * Precedence: manual > memory_cliff > gpu_transfer_overhead > ferrum's escalation_reason.
 * A step that is slow only because another process, for which it waited, computed in a step of its
 * own is not escalated: what that computed is work, too.
 * An excess below 0.1 ms over the budget is never named, nor are copies of less: noise takes as
 * long, and an engine that runs ahead of its GPU has short steps while the GPU copies.
 *
 * While a class has fewer than CLASS_KNOWN_STEPS steps, or if it is an anomaly beside its
 * neighbours, the standard nearest by work stands in (class_table__find_standard), except for its
 * CV; the budget then has class_history__rest_for_ns. Without one a step is not judged; intervals
 * are never judged; both can be escalated manually. A step that was cut off is judged by what is
 * known of it.
 *
 * Where a process had GPU records in the window, and those of a step are missing, it is not known
 * how much of the time of its calls is work. Such a step is held against the class that it would
 * have if all of that were work. Its budget is at least the usual length of that class, and of the
 * class of such steps, in which it is remembered. The CV is not charged to it.
 *
 * By design these are not named:
 * - more work, whatever the reason: work is part of the budget (--budget-us names it);
 * - with the defaults, a step that waited for less than 3 times its budget in a class that seldom
 *   waits: its efficiency is above 25 %, and the IQR filter keeps a rare wait out of the CV;
 * - the first steps of a class, and steps of a size that comes too seldom to have a class;
 * - time in calls that were not traced (--detail probes): it cannot be told from work.
 */
#ifndef FBT_JUDGE_CLASSIFY_H
#define FBT_JUDGE_CLASSIFY_H

#include <stdbool.h>
#include <stdint.h>
#include "judge/cause.h"
#include "judge/escalation.h"
#include "judge/class.h"
#include "model/step.h"
#include "model/window.h"

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
	uint64_t number;   /* 1, 2, …, including those that are not shown */
	bool suppressed;   /* over the rate limit: counted and in the profile, not shown */
	bool repeated;	   /* its class was reported as unsteady before: the same */
	bool as_usual;	   /* only its class is unsteady: it took about as long as is usual there */
	bool judged;	   /* false: escalated by hand, in a class that is not known yet */
	bool nearest;	   /* judged by the nearest standard: its own class is none */
	uint32_t fired;	   /* bit per enum escalation_reason; BOTH is two bits */
	double cv_percent; /* of the class, charged or not; NaN if not judged */
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

/* It is neither suppressed nor repeated nor as usual. */
bool escalation_is_shown(const struct escalation *escalation);

/* Totals so far. */
struct classify_counts {
	uint64_t judged;
	uint64_t unjudged;   /* too few steps in their class yet, intervals, and late_ends */
	uint64_t late_ends;  /* step_end_is_late: how long they took is not known */
	uint64_t profiled;   /* not judged either: step_is_profiled */
	uint64_t escalated;  /* including those that are not shown */
	uint64_t suppressed; /* by the rate limit */
	uint64_t repeated;
	uint64_t as_usual;
	uint64_t by_reason[ESCALATION_REASON_COUNT]; /* sum: escalated */
};

struct classifier;

/* options are copied, class_by stays borrowed. NULL: -ENOMEM. */
struct classifier *classifier__new(const struct classify_options *options);
void classifier__free(struct classifier *classifier);

/* Escalates the next step, whatever it is; the rate limit may suppress it. */
void classifier__request_manual(struct classifier *classifier);

/* A manual escalation was requested, and no step has come since. */
bool classifier__is_manual(const struct classifier *classifier);

/*
 * Judges a step and adds it to its class. *escalation is set to the verdict, valid until the next
 * call, or NULL. The rate limit goes by the ends of steps; it begins with the window of the first
 * one. 0, or -ENOMEM: the step was judged, not added.
 */
int classifier__judge(struct classifier *classifier, const struct window *window,
		      const struct step *step, const struct escalation **escalation);

/*
 * Number of slowest steps of each kind for which the classifier knows what they should have taken.
 */
#define CLASSIFY_SLOWEST 3

/*
 * The class of the step judged last: its own or, if that is an anomaly, the class that the step was
 * held against. usual_ns is that of the latter in any case.
 */
const struct step_class *classifier__class(const struct classifier *classifier);

/* The argument by which steps of a kind have their classes; NULL: by their work. */
const char *classifier__class_by(const struct classifier *classifier, const struct window *window,
				 uint32_t kind);

const struct classify_counts *classifier__counts(const struct classifier *classifier);

const struct escalation_thresholds *classifier__thresholds(const struct classifier *classifier);

#endif
