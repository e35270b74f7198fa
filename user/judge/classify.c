/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/classify.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "judge/calls.h"
#include "judge/class.h"
#include "judge/peers.h"
#include "judge/slow_functions.h"
#include "model/gpu.h"
#include "model/syscalls.h"

/* A step that is longer than usual by less than this part takes about as long as is usual. */
#define USUAL_PART 10
#define BIT(n)	   (1u << (n))

struct classifier {
	struct classify_options options;
	struct classify_counts counts;
	struct class_table *classes;
	struct slow_functions *profiles;
	struct rate_limiter limiter;
	struct escalation escalation;			       /* the latest */
	struct step_class class;			       /* of the latest step */
	uint64_t slowest_ns[FBT_KIND_COUNT][CLASSIFY_SLOWEST]; /* slowest first */
	bool begun;
	bool manual;
};

/* The classes of a step. */
struct place {
	bool gpu_lost; /* its GPU records are missing: is_gpu_lost */
	uint64_t key;
	struct class_history *own;	/* of key; NULL: none yet */
	struct class_history *standard; /* that the step is held against; NULL: none */
	uint64_t memory_key;
	struct class_history *memory; /* in which it is remembered, of memory_key; NULL: none yet */
};

/* A step held against its class. */
struct verdict {
	bool judged;
	bool gpu_lost;
	bool nearest; /* by a class that is not its own */
	bool budget_given;
	uint64_t actual_ns;
	uint64_t budget_ns;
	double cv_percent;
	double drop_percent;
	uint32_t fired; /* bit per enum escalation_reason */
};

struct classify_options classify_default_options(void)
{
	return (struct classify_options){.thresholds = escalation_default_thresholds(),
					 .window_steps = CLASSIFY_WINDOW_DEFAULT};
}

struct classifier *classifier__new(const struct classify_options *options)
{
	struct classifier *classifier = calloc(1, sizeof(*classifier));

	if (!classifier)
		return NULL;
	classifier->options = *options;
	classifier->classes = class_table__new(options->window_steps);
	classifier->profiles = slow_functions__new();
	if (!classifier->classes || !classifier->profiles) {
		classifier__free(classifier);
		return NULL;
	}
	return classifier;
}

void classifier__free(struct classifier *classifier)
{
	if (!classifier)
		return;
	class_table__free(classifier->classes);
	slow_functions__free(classifier->profiles);
	free(classifier);
}

void classifier__request_manual(struct classifier *classifier)
{
	classifier->manual = true;
}

bool classifier__is_manual(const struct classifier *classifier)
{
	return classifier->manual;
}

const struct classify_counts *classifier__counts(const struct classifier *classifier)
{
	return &classifier->counts;
}

const struct escalation_thresholds *classifier__thresholds(const struct classifier *classifier)
{
	return &classifier->options.thresholds;
}

const struct step_class *classifier__class(const struct classifier *classifier)
{
	return &classifier->class;
}

const char *classifier__class_by(const struct classifier *classifier, const struct window *window,
				 uint32_t kind)
{
	return class_argument(window, kind, classifier->options.class_by);
}

/* A step that was cut off, or left, is not remembered: how long it takes is not known. */
static bool is_memorable(const struct step *step)
{
	const struct fbt_step *record = &step->record;

	return record->kind && record->end != FBT_END_TRUNCATED && record->end != FBT_END_EXITED &&
	       !step_end_is_late(step);
}

static double percent_of_ns(uint64_t part_ns, uint64_t whole_ns)
{
	return whole_ns ? (double)part_ns / (double)whole_ns * 100.0 : 100.0;
}

/* The share of throughput that a step lost against what its class takes. */
static double drop_of(uint64_t base_ns, uint64_t actual_ns)
{
	if (!base_ns || actual_ns <= base_ns)
		return 0;
	return (double)(actual_ns - base_ns) / (double)actual_ns * 100.0;
}

/*
 * A smaller excess is noise: in a step of some microseconds a cold cache, an interrupt or the
 * tool's own two probes take as long.
 */
#define EXCESS_MIN_NS 100000

static bool is_over(const struct verdict *verdict)
{
	return verdict->actual_ns > verdict->budget_ns &&
	       verdict->actual_ns - verdict->budget_ns >= EXCESS_MIN_NS;
}

static bool is_far_over(const struct verdict *verdict, double percent)
{
	return (double)verdict->actual_ns > (double)verdict->budget_ns * (1.0 + percent / 100.0);
}

static double efficiency_of(const struct verdict *verdict)
{
	const struct trace_result result = {.budget_us = verdict->budget_ns / NS_PER_US,
					    .actual_us = verdict->actual_ns / NS_PER_US};

	return fmax(trace_result_efficiency(&result),
		    percent_of_ns(verdict->budget_ns, verdict->actual_ns));
}

static uint32_t bits_of(enum escalation_reason reason)
{
	if (reason == ESCALATION_BOTH)
		return BIT(ESCALATION_CV_EXCEEDED) | BIT(ESCALATION_EFFICIENCY_LOW);
	return reason == ESCALATION_NONE ? 0 : BIT(reason);
}

/* The most specific of those that fired. */
static enum escalation_reason precedence(uint32_t fired)
{
	static const enum escalation_reason order[] = {
		ESCALATION_MANUAL, ESCALATION_MEMORY_CLIFF, ESCALATION_GPU_TRANSFER_OVERHEAD,
		ESCALATION_BOTH,   ESCALATION_CV_EXCEEDED,  ESCALATION_EFFICIENCY_LOW,
	};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if ((fired & bits_of(order[i])) == bits_of(order[i]))
			return order[i];
	}
	return ESCALATION_NONE;
}

static uint64_t memory_ns(const struct cause_times *times)
{
	return times->ns[CAUSE_ALLOCATION_CHURN] + times->ns[CAUSE_PAGE_FAULTS];
}

/* mmap may be the largest of the six categories and still a thousandth of the excess. */
static bool is_cliff(const struct classifier *classifier, const struct class_history *history,
		     const struct step *step, const struct cause_times *times,
		     const struct verdict *verdict, uint64_t base_ns)
{
	struct breakdown breakdown;
	struct cause_times usual;
	uint64_t growth_ns;

	if (!(verdict->drop_percent > classifier->options.thresholds.memory_cliff_percent))
		return false;
	step_breakdown(step, &breakdown);
	if (strcmp(breakdown_dominant(&breakdown), category_name(FBT_MMAP)) != 0)
		return false;
	class_history__usual(history, &usual);
	growth_ns = sub_saturating(memory_ns(times), memory_ns(&usual));
	return growth_ns > (verdict->actual_ns - base_ns) / 2;
}

/*
 * NaN without GPU records, or if the copies are too short to be named. Lost records are not
 * counted.
 */
static double transfer_percent(const struct step *step)
{
	if (!step->gpu || !step_total_ns(step) || step->gpu->all.transfer_ns < EXCESS_MIN_NS)
		return (double)NAN;
	return percent_of_ns(step->gpu->all.transfer_ns, step_total_ns(step));
}

static uint64_t known_usual_ns(const struct class_history *history)
{
	return class_history__is_known(history) ? class_history__usual_ns(history) : 0;
}

/*
 * How long a step may take whose GPU records are missing: its waits may be work, as far as it is
 * not longer than others, be it those with records or those without.
 */
static uint64_t usual_without_gpu_ns(const struct place *place)
{
	return max_u64(known_usual_ns(place->standard), known_usual_ns(place->memory));
}

/* The reasons by the budget. Without a CV that is known, the class is taken to be steady. */
static uint32_t find_slow(const struct escalation_thresholds *thresholds,
			  const struct verdict *verdict)
{
	double cv_percent = verdict->cv_percent;

	if (!is_far_over(verdict, thresholds->cv_percent))
		cv_percent = (double)NAN;
	if (!is_over(verdict))
		return 0;
	return bits_of(escalation_reason(thresholds, cv_percent, efficiency_of(verdict)));
}

static void hold_against(const struct classifier *classifier, const struct place *place,
			 const struct step *step, const struct cause_times *times,
			 struct verdict *verdict)
{
	const struct class_history *history = place->standard;
	const struct escalation_thresholds *thresholds = &classifier->options.thresholds;
	uint64_t work_ns = cause_work_ns(times), rest_ns, base_ns;
	bool over, far_over;

	rest_ns = verdict->nearest ? class_history__rest_for_ns(history, place->key, work_ns)
				   : class_history__usual_rest_ns(history);
	base_ns = add_saturating(work_ns, rest_ns);
	if (place->gpu_lost && verdict->actual_ns > base_ns)
		base_ns = max_u64(base_ns, usual_without_gpu_ns(place));
	verdict->judged = true;
	verdict->budget_given = classifier->options.budget_us != 0;
	verdict->budget_ns =
		verdict->budget_given ? classifier->options.budget_us * NS_PER_US : base_ns;
	verdict->drop_percent = drop_of(base_ns, verdict->actual_ns);
	over = is_over(verdict);
	/*
	 * The CV takes as long as all the rest, so only the few steps that are far over get one.
	 * That another class is unsteady says nothing of this step, nor that its own is if the
	 * step's work is not known.
	 */
	far_over = over && !verdict->nearest && !place->gpu_lost &&
		   is_far_over(verdict, thresholds->cv_percent);
	if (far_over)
		verdict->cv_percent = class_history__cv_percent(history);
	verdict->fired = find_slow(thresholds, verdict);
	if (over && is_cliff(classifier, history, step, times, verdict, base_ns))
		verdict->fired |= BIT(ESCALATION_MEMORY_CLIFF);
	if (escalation_gpu_transfer_fires(thresholds, transfer_percent(step)))
		verdict->fired |= BIT(ESCALATION_GPU_TRANSFER_OVERHEAD);
	if (verdict->fired && !far_over && !verdict->nearest)
		verdict->cv_percent = class_history__cv_percent(history);
}

static struct verdict judge(struct classifier *classifier, const struct place *place,
			    const struct step *step, const struct cause_times *times)
{
	const struct class_history *history = place->standard;
	bool nearest = history != place->own;
	struct verdict verdict = {.gpu_lost = place->gpu_lost,
				  .nearest = nearest,
				  .actual_ns = step_total_ns(step),
				  .budget_ns = step_total_ns(step),
				  .cv_percent = (double)NAN,
				  .drop_percent = (double)NAN};

	if (class_history__is_known(history) && !step_end_is_late(step))
		hold_against(classifier, place, step, times, &verdict);
	if (classifier->manual) {
		if (verdict.judged && !nearest && isnan(verdict.cv_percent))
			verdict.cv_percent = class_history__cv_percent(history);
		verdict.fired |= BIT(ESCALATION_MANUAL);
		classifier->manual = false;
	}
	return verdict;
}

static struct fbt_call longest_call(const struct step *step)
{
	struct fbt_call longest = {0};

	vec_for_each (call, &step->calls) {
		uint64_t ns = min_u64(call_walk_ns(step, call), call_longest_ns(call));

		if (ns <= longest.duration_ns)
			continue;
		longest = *call;
		longest.header.flags &= (uint16_t)~FBT_CALL_RUN;
		longest.duration_ns = ns;
	}
	return longest;
}

/*
 * By how much a step is over a budget that was given although it takes about as long as is usual:
 * its class is the problem, and what has grown by little explains nothing. Else 0.
 */
static uint64_t usually_over_ns(const struct class_history *history, const struct verdict *verdict)
{
	uint64_t over_ns = sub_saturating(verdict->actual_ns, verdict->budget_ns);
	uint64_t usual_ns = class_history__usual_ns(history);
	uint64_t grown_ns = sub_saturating(verdict->actual_ns, usual_ns);

	/* Of another class it is not known what is usual here. */
	return verdict->budget_given && !verdict->nearest && grown_ns < usual_ns / USUAL_PART &&
			       grown_ns < over_ns / 2
		       ? over_ns
		       : 0;
}

static void find_cause(const struct window *window, const struct step *step,
		       const struct cause_times *times, const struct class_history *history,
		       const struct verdict *verdict, struct cause *cause)
{
	struct cause_times usual;
	uint64_t usual_work_ns, over_ns;

	if (precedence(verdict->fired & ~BIT(ESCALATION_MANUAL)) ==
	    ESCALATION_GPU_TRANSFER_OVERHEAD) {
		cause_set_transfer(step, cause);
		return;
	}
	if (!verdict->judged) {
		cause_find(window, step, times, NULL, cause);
		return;
	}
	class_history__usual(history, &usual);
	usual_work_ns = cause_work_ns(&usual);
	/* Its own work is part of its budget: more work is not what was found wrong. */
	if (!verdict->budget_given && verdict->fired != BIT(ESCALATION_MANUAL))
		usual.ns[CAUSE_COMPUTE] = cause_work_ns(times);
	over_ns = usually_over_ns(history, verdict);
	if (over_ns)
		cause_find_largest(window, step, times, &usual, over_ns, cause);
	else
		cause_find(window, step, times, &usual, cause);
	if (cause->kind == CAUSE_COMPUTE || cause->kind == CAUSE_UNKNOWN)
		cause->usual_ns = usual_work_ns;
}

bool escalation_is_shown(const struct escalation *escalation)
{
	return !escalation->suppressed && !escalation->repeated && !escalation->as_usual;
}

/*
 * Steps of a class have up to twice the work of others. One with little work may wait for longer
 * than is usual and still be done when others are: nobody was kept waiting.
 */
static bool is_as_usual(const struct escalation *escalation, double percent)
{
	return escalation->usual_ns && (double)escalation->result.actual_us * NS_PER_US <=
					       (double)escalation->usual_ns * (1 + percent / 100);
}

static void show(struct classifier *classifier, struct class_history *history,
		 struct escalation *escalation)
{
	double percent = classifier->options.thresholds.cv_percent;
	bool unsteady = history && escalation->fired == BIT(ESCALATION_CV_EXCEEDED);

	escalation->as_usual =
		unsteady && !escalation->budget_given && is_as_usual(escalation, percent);
	escalation->repeated = unsteady && !escalation->as_usual && class_history__is_told(history);
	if (!escalation->repeated && !escalation->as_usual)
		escalation->suppressed =
			!rate_limiter_allow(&classifier->limiter, escalation->result.timestamp_ns);
	classifier->counts.suppressed += escalation->suppressed;
	classifier->counts.repeated += escalation->repeated;
	classifier->counts.as_usual += escalation->as_usual;
	if (escalation->fired & BIT(ESCALATION_CV_EXCEEDED) && escalation_is_shown(escalation))
		class_history__mark_told(history);
}

/*
 * Whether the step is slow only because a process that is judged itself had more to do, in a step
 * of its own: that wait is work, as one for a thread that computes is.
 */
static bool is_work_of_peer(const struct classifier *classifier, const struct verdict *verdict,
			    const struct cause *cause)
{
	const uint32_t slow = BIT(ESCALATION_CV_EXCEEDED) | BIT(ESCALATION_EFFICIENCY_LOW);
	const struct fbt_peer *peer = &cause->peer.record;
	struct verdict without = *verdict;
	uint64_t computed_ns;

	if (cause->kind != CAUSE_PEER_PROCESS || !peer->kind || cause->peer.beyond.header.type ||
	    verdict->budget_given || verdict->fired & ~slow)
		return false;
	computed_ns = peer_computed_ns(peer, cause->peer_ns);
	without.budget_ns =
		add_saturating(without.budget_ns, sub_saturating(computed_ns, cause->usual_ns));
	return !find_slow(&classifier->options.thresholds, &without);
}

/* Whether the step is escalated: its cause may say that nothing is wrong with it. */
static bool escalate(struct classifier *classifier, const struct window *window,
		     const struct step *step, const struct cause_times *times,
		     struct class_history *history, const struct verdict *verdict)
{
	struct classify_counts *counts = &classifier->counts;
	struct escalation *escalation = &classifier->escalation;

	*escalation = (struct escalation){
		.number = counts->escalated + 1,
		.judged = verdict->judged,
		.nearest = verdict->judged && verdict->nearest,
		.fired = verdict->fired,
		.cv_percent = verdict->cv_percent,
		.drop_percent = verdict->drop_percent,
		.class_steps = history ? class_history__count(history) : 0,
		.budget_ns = verdict->budget_ns,
		.usual_ns = verdict->judged ? class_history__usual_ns(history) : 0,
		.budget_given = verdict->budget_given,
		.result = {.brick_name = window__kind_name(window, step->record.kind),
			   .budget_us = verdict->budget_ns / NS_PER_US,
			   .actual_us = verdict->actual_ns / NS_PER_US,
			   .reason = precedence(verdict->fired),
			   .timestamp_ns = step->record.end_ns},
		.worst = longest_call(step),
	};
	step_breakdown(step, &escalation->result.breakdown);
	find_cause(window, step, times, history, verdict, &escalation->cause);
	escalation->cause.gpu_lost = verdict->gpu_lost;
	if (is_work_of_peer(classifier, verdict, &escalation->cause))
		return false;
	counts->escalated++;
	show(classifier, history, escalation);
	counts->by_reason[escalation->result.reason]++;
	return true;
}

/* Whether the step is one of the slowest of its kind so far, and is remembered as such. */
static bool keep_slow(struct classifier *classifier, const struct step *step)
{
	uint64_t *slowest_ns = classifier->slowest_ns[step->record.kind % FBT_KIND_COUNT];
	uint64_t ns = step_total_ns(step);
	int place = CLASSIFY_SLOWEST;

	while (place && slowest_ns[place - 1] < ns)
		place--;
	if (place == CLASSIFY_SLOWEST)
		return false;
	memmove(&slowest_ns[place + 1], &slowest_ns[place],
		(size_t)(CLASSIFY_SLOWEST - 1 - place) * sizeof(*slowest_ns));
	slowest_ns[place] = ns;
	return true;
}

/* Before the step is added to its class. The median of a class takes microseconds. */
static void find_class(struct classifier *classifier, const struct step *step, uint64_t own_key,
		       const struct class_history *own, const struct class_history *known,
		       const struct verdict *verdict)
{
	/*
	 * Steps of an anomaly belong to the class that they are held against. Steps of a class that
	 * is not known yet belong to that class.
	 */
	uint64_t key = class_history__is_known(own) && verdict->judged ? class_history__key(known)
								       : own_key;

	if (!step->record.kind) {
		classifier->class = (struct step_class){.bits = 0};
		return;
	}
	classifier->class = class_of_key(key);
	if (keep_slow(classifier, step) && verdict->judged)
		classifier->class.usual_ns = class_history__usual_ns(known);
}

/*
 * Classes by work differ in their work, so slow steps are compared with all others of the function;
 * those by an argument have their own.
 */
static uint64_t profile_key(const struct fbt_step *record, uint64_t class_key)
{
	if (class_of_key(class_key).by_argument)
		return class_key;
	return ((uint64_t)record->tgid << 32 | record->kind) ^ UINT64_MAX;
}

/*
 * Records of what the GPU did for the step are missing, although its process has had some in this
 * window: where the GPU looks idle, it may have worked.
 */
static bool is_gpu_lost(const struct window *window, const struct step *step)
{
	const struct gpu_process *process;

	if (step->gpu && step->gpu->complete)
		return false;
	process = gpu_table_find(&window->gpus, step->record.tgid);
	return process && process->armed;
}

/* The time of calls that is not work as far as is known, but is if the GPU worked meanwhile. */
static uint64_t doubtful_ns(const struct step *step, const struct cause_times *times)
{
	uint64_t ns = 0;

	/* Calls without records are never taken for work. */
	for (int i = 0; step->calls.count && i < CAUSE_RUN_QUEUE; i++)
		ns = add_saturating(ns, times->ns[i]);
	return ns;
}

static struct class_history *find_standard(const struct classifier *classifier,
					   struct class_history *own, uint64_t key)
{
	return class_table__find_standard(classifier->classes, own, key,
					  classifier->options.thresholds.efficiency_percent);
}

/*
 * A step whose GPU records are missing would teach its class that such waits are usual, so it is
 * remembered among its likes. It is held against the others all the same, at first as if the GPU
 * had worked during all its calls: a step that was stopped, say, loses records for that reason. Its
 * likes stand in where no others are known, and let it take what they take: if the records have
 * ended for good, nobody else shows what is usual now.
 */
static void find_place(const struct classifier *classifier, const struct window *window,
		       const struct step *step, const struct cause_times *times,
		       struct place *place)
{
	const struct fbt_step *record = &step->record;
	const char *class_by = classifier->options.class_by;
	uint64_t work_ns = cause_work_ns(times);

	*place = (struct place){.gpu_lost = is_gpu_lost(window, step)};
	place->key = place->memory_key = class_key(window, record, class_by, work_ns);
	if (place->gpu_lost) {
		place->memory_key = class_key_without_gpu(place->key);
		work_ns = add_saturating(work_ns, doubtful_ns(step, times));
		place->key = class_key(window, record, class_by, work_ns);
	}
	if (!record->kind)
		return;
	place->own = place->memory = class_table__find(classifier->classes, place->key);
	place->standard = find_standard(classifier, place->own, place->key);
	if (!place->gpu_lost)
		return;
	place->memory = class_table__find(classifier->classes, place->memory_key);
	if (class_history__is_known(place->standard))
		return;
	place->key = place->memory_key;
	place->own = place->memory;
	place->standard = find_standard(classifier, place->own, place->key);
}

int classifier__judge(struct classifier *classifier, const struct window *window,
		      const struct step *step, const struct escalation **escalation)
{
	const struct fbt_step *record = &step->record;
	struct class_history *known, *memory;
	struct cause_times times, own;
	struct verdict verdict;
	struct place place;

	if (!classifier->begun)
		rate_limiter_init(&classifier->limiter, &classifier->options.thresholds,
				  window->record.start_ns);
	classifier->begun = true;
	*escalation = NULL;
	/* It is no measure of others, nor they of it. */
	if (step_is_profiled(step)) {
		classifier->class = (struct step_class){.bits = 0};
		classifier->counts.profiled++;
		return 0;
	}
	cause_split(window, step, &times);
	own = times;
	find_place(classifier, window, step, &times, &place);
	known = place.standard;
	/* Work beyond that of the standard may be no work. */
	if (known != place.own && class_history__is_known(known))
		cause_blame(step, class_history__usual_work_ns(known), &times);
	verdict = judge(classifier, &place, step, &times);
	if (verdict.judged)
		classifier->counts.judged++;
	else
		classifier->counts.unjudged++;
	classifier->counts.late_ends += step_end_is_late(step);
	find_class(classifier, step, place.key, place.own, known, &verdict);
	if (verdict.fired && escalate(classifier, window, step, &times, known, &verdict))
		*escalation = &classifier->escalation;
	if (record->kind)
		slow_functions__judge(classifier->profiles, window, profile_key(record, place.key),
				      step, *escalation ? &classifier->escalation.cause : NULL);
	if (!is_memorable(step))
		return 0;
	memory = place.memory;
	if (!memory)
		memory = class_table__add(classifier->classes, place.memory_key);
	return memory ? class_table__add_step(classifier->classes, memory, &own) : -ENOMEM;
}
