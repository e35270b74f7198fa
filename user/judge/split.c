/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/split.h"

#include <string.h>

#include "base/arith.h"
#include "judge/between.h"
#include "judge/calls.h"
#include "model/gpu.h"

/* The most that a signal costs beside its handler, and a page fault on a CPU: see cause_blame. */
#define HANDLER_ENTRY_NS 20000
#define FAULT_MOST_NS	 100000

/* Parts take from what is left, so that they sum up to the step whatever the records say. */
static void give(struct cause_times *times, enum cause_kind kind, uint64_t ns, uint64_t *left_ns)
{
	uint64_t given = ns < *left_ns ? ns : *left_ns;

	times->ns[kind] += given;
	*left_ns -= given;
}

/* Charges what the threads did that a call waited for. */
static void give_waits(struct cause_times *times, const struct call_walk *walk, uint64_t *left_ns)
{
	uint64_t before_ns = times->ns[CAUSE_COMPUTE];

	give(times, CAUSE_COMPUTE, walk->worker_ns, left_ns);
	times->worker_ns += times->ns[CAUSE_COMPUTE] - before_ns;
	give(times, CAUSE_RUN_QUEUE, walk->delay_ns, left_ns);
	give(times, CAUSE_STOPPED, walk->stopped_ns, left_ns);
	give(times, CAUSE_PAGE_FAULTS, walk->fault_ns, left_ns);
	give(times, CAUSE_OFF_CPU, walk->off_ns, left_ns);
	times->worker_fault_ns = add_saturating(times->worker_fault_ns, walk->fault_ns);
	if (walk->fault_ns) {
		times->worker_faults += walk->wake->faults;
		times->worker_minor_faults += walk->wake->minor_faults;
	}
	times->starved_ns = sub_saturating(times->starved_ns, walk->delay_ns);
}

/* The calls of a step that have a record, by category. */
struct known_calls {
	uint64_t ns[FBT_CATEGORY_COUNT];
	uint64_t delay_ns[FBT_CATEGORY_COUNT]; /* of ns, waiting for a CPU */
	uint64_t all_delay_ns;
	uint64_t gil_ns; /* of the waits for the GIL, without those for a CPU */
	uint64_t count[FBT_CATEGORY_COUNT];
	uint64_t single_count;
	uint64_t between_ns; /* before single calls, as far as it belongs to them */
	/* Of the waits that spin: waiting for a CPU, by cause; … */
	uint64_t spun_ns[CAUSE_COUNT];
	/* … in calls that have no record, which are other calls by their category. */
	uint64_t unseen_ns;
	/* The code between their calls, by cause. */
	uint64_t spun_code_ns[CAUSE_COUNT];
};

static void know_call(struct known_calls *known, const struct call_walk *walk)
{
	enum fbt_category category = (enum fbt_category)walk->rule->category;
	uint64_t *ns = &known->ns[category], *delay_ns = &known->delay_ns[category];

	*ns = add_saturating(*ns, call_walk_ns(walk->step, walk->call));
	*delay_ns = add_saturating(*delay_ns, walk->cpu_wait_ns);
	known->all_delay_ns = add_saturating(known->all_delay_ns, walk->cpu_wait_ns);
	if (walk->is_gil)
		known->gil_ns = add_saturating(known->gil_ns, walk->ns);
	known->count[category] += call_count(walk->call);
}

/* Time that belongs to the call that follows it. In a wait that spins there is more of it. */
static void know_between(struct known_calls *known, const struct between *between,
			 const struct fbt_call *call, uint64_t ns)
{
	if (between->is_inside || call->header.flags & FBT_CALL_RUN)
		return;
	known->single_count++;
	known->between_ns = add_saturating(known->between_ns, ns);
}

static void know_spin(struct known_calls *known, const struct spin *spin,
		      const struct call_walk *walk)
{
	known->spun_ns[walk->cause] += spin->delay_ns;
	known->spun_code_ns[walk->cause] += spin_code_ns(spin);
	if (walk->rule->category == FBT_OTHER)
		known->unseen_ns += spin->unseen_ns;
}

/* A category stands for those of its calls that have no record. */
static const enum cause_kind stand_ins[FBT_CATEGORY_COUNT] = {
	[FBT_MMAP] = CAUSE_ALLOCATION_CHURN, [FBT_FUTEX] = CAUSE_LOCK_CONTENTION,
	[FBT_IOCTL] = CAUSE_DRIVER_CALLS,    [FBT_READ] = CAUSE_FILE_IO,
	[FBT_WRITE] = CAUSE_FILE_IO,	     [FBT_OTHER] = CAUSE_OTHER_CALLS,
};

/* Between calls that have no record it was like between the others: those that came before them. */
static void split_between(const struct step *step, const struct known_calls *known,
			  struct cause_times *times, uint64_t *left_ns)
{
	long double each_ns = 0;

	if (known->single_count)
		each_ns = (long double)known->between_ns / (long double)known->single_count;
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		uint64_t unknown = sub_saturating(step->record.sums[i].calls, known->count[i]);

		give(times, stand_ins[i], to_u64_saturating(each_ns * (long double)unknown),
		     left_ns);
	}
}

/* Calls without a record in a wait that spins are part of it, with their waits for a CPU. */
static void split_unseen(struct known_calls *known, struct cause_times *times, uint64_t *ns,
			 uint64_t delay_ns, uint64_t *left_ns)
{
	uint64_t unseen_ns = take_u64(known->unseen_ns, ns);

	give(times, CAUSE_SLEEP, unseen_ns, left_ns);
	known->spun_ns[CAUSE_SLEEP] += min_u64(known->unseen_ns - unseen_ns, delay_ns);
}

static void split_unknown(const struct step *step, struct known_calls *known,
			  struct cause_times *times, uint64_t *left_ns)
{
	const struct fbt_step *record = &step->record;
	uint64_t gil_ns = sub_saturating(step->stalls.record.gil_ns, known->gil_ns);

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		uint64_t ns = sub_saturating(record->sums[i].ns, known->ns[i]);
		uint64_t delay_ns = sub_saturating(record->call_delay_ns[i], known->delay_ns[i]);

		if (record->header.flags & FBT_STEP_SCHED_UNKNOWN)
			delay_ns = 0;
		ns = sub_saturating(ns, delay_ns);
		if (i == FBT_FUTEX)
			give(times, CAUSE_GIL, take_u64(gil_ns, &ns), left_ns);
		if (i == FBT_OTHER)
			split_unseen(known, times, &ns, delay_ns, left_ns);
		give(times, stand_ins[i], ns, left_ns);
	}
}

bool are_handlers_timed(const struct fbt_step *record)
{
	return record->header.flags & FBT_STEP_HANDLERS_TIMED;
}

static uint64_t handlers_ns(const struct fbt_step *record)
{
	return are_handlers_timed(record) ? record->handlers_ns : 0;
}

/* The time of page faults without waits for a disk; an estimate if they were not timed. */
static uint64_t faults_ns(const struct window *window, const struct step *step)
{
	const struct fbt_step_faults *faults = &step->record.faults;
	uint64_t each_ps = faults->mean_ps ? faults->mean_ps : window->record.fault_ps;
	uint64_t timed = 0;
	unsigned __int128 ns;

	if (step_faults_known(step))
		return step_faults_ns(step);
	for (int i = 0; i < FBT_MAPPING_COUNT; i++)
		timed += faults->count[i];
	ns = (unsigned __int128)sub_saturating(step->record.minor_faults, timed) * each_ps / 1000;
	ns += (unsigned __int128)faults->cpu_ns + faults->asleep_ns;
	return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

/* The time outside of calls. */
static void split_hidden(const struct window *window, const struct step *step,
			 const struct known_calls *known, struct cause_times *times,
			 uint64_t *left_ns)
{
	struct step_parts parts;

	step_split(step, &parts);
	times->steal_ns = step_steal_ns(step, &parts);
	give(times, CAUSE_AWAIT, parts.ns[STEP_AWAIT], left_ns);
	if (step->record.header.flags & FBT_STEP_SCHED_UNKNOWN) {
		give(times, CAUSE_STOPPED, parts.ns[STEP_STOPPED], left_ns);
		return;
	}
	give(times, CAUSE_RUN_QUEUE, sub_saturating(parts.ns[STEP_CPU_WAIT], known->all_delay_ns),
	     left_ns);
	give(times, CAUSE_STOPPED, parts.ns[STEP_STOPPED], left_ns);
	/*
	 * A step whose calls are not known may have slept while its workers computed, which is
	 * work.
	 */
	if (step_calls_known(step))
		give(times, CAUSE_OFF_CPU, parts.ns[STEP_OFF_CPU], left_ns);
	give(times, CAUSE_PAGE_FAULTS, step_disk_wait_ns(step, &parts), left_ns);
	give(times, CAUSE_SIGNAL_STORM, handlers_ns(&step->record), left_ns);
	give(times, CAUSE_PAGE_FAULTS, faults_ns(window, step), left_ns);
	give(times, CAUSE_GARBAGE_COLLECTION, step_gc_ns(step, &parts), left_ns);
}

static uint64_t handlers_most_ns(const struct fbt_step *record)
{
	if (!are_handlers_timed(record))
		return 0;
	return ((uint64_t)record->handlers + record->handlers_left) * HANDLER_ENTRY_NS;
}

static uint64_t faults_most_ns(const struct fbt_step *record, const struct cause_times *times)
{
	uint64_t faults = (uint64_t)times->worker_faults + times->worker_minor_faults;

	if (!(record->header.flags & (FBT_STEP_SCHED_UNKNOWN | FBT_STEP_FAULTS_TIMED)) &&
	    record->fault_wait_ns)
		faults += (uint64_t)record->minor_faults + record->major_faults;
	return faults * FAULT_MOST_NS;
}

/* The longest that another thread was stopped, if no call of the step waited for it meanwhile. */
static uint64_t held_ns(const struct step *step)
{
	if (step->stop.header.type != FBT_EVENT_STOP || step->stop.tid == step->record.tid)
		return 0;
	vec_for_each (wake, &step->wakes) {
		if (wake->stopped_ns)
			return 0;
	}
	return step->stop.stopped_ns;
}

/* A thread for which a call of the step has waited is not one that the step has spun for. */
static uint64_t late_ns(const struct step *step)
{
	vec_for_each (wake, &step->wakes) {
		if (wake->waker_tid == step->record.late_tid)
			return 0;
	}
	return step->record.late_ns;
}

/* In a row of calls the thread had no CPU for so long: that is part of the wait that the row is. */
static void move_delay(struct cause_times *times, enum cause_kind to, uint64_t ns)
{
	uint64_t waited_ns = take_u64(ns, &times->ns[CAUSE_RUN_QUEUE]);

	times->ns[to] += waited_ns;
	times->ns[to] += take_u64(ns - waited_ns, &times->ns[CAUSE_OFF_CPU]);
}

/*
 * The code between calls. Within a row a host may take the CPU, for less time than is noticed in
 * one gap, but in very many: that is in the code of the row, and was time off the CPU.
 */
static void give_code(struct cause_times *times, enum cause_kind kind, uint64_t code_ns,
		      uint64_t spun_ns, uint64_t *left_ns)
{
	uint64_t missing_ns = sub_saturating(code_ns, *left_ns);

	give(times, kind, code_ns, left_ns);
	times->ns[kind] += take_u64(min_u64(missing_ns, spun_ns), &times->ns[CAUSE_OFF_CPU]);
}

void cause_split(const struct window *window, const struct step *step, struct cause_times *times)
{
	uint64_t left_ns = step_total_ns(step), code_ns[CAUSE_COUNT] = {0}, ns;
	struct between between;
	struct known_calls known = {0};
	struct call_walk walk;

	*times = (struct cause_times){0};
	if (step->record.header.flags & FBT_STEP_TEAM_KNOWN)
		times->starved_ns = step->record.starved_ns;
	between_begin(&between, window, step);
	call_walk_begin(&walk, window, step, false);
	while (call_walk_next(&walk)) {
		between_next(&between, walk.call);
		give(times, walk.cause, walk.ns, &left_ns);
		give(times, CAUSE_COMPUTE, walk.covered_ns, &left_ns);
		give(times, between_delay_part(&between, &walk), walk.cpu_wait_ns, &left_ns);
		give_waits(times, &walk, &left_ns);
		know_call(&known, &walk);
		ns = between_ns(&between, step, walk.call);
		know_between(&known, &between, walk.call, ns);
		code_ns[walk.cause] += ns;
		if (between.is_first) {
			know_spin(&known, &between.spin, &walk);
			code_ns[walk.cause] += spin_code_ns(&between.spin);
		}
		times->threads_made += call_walk_made_thread(&walk);
		times->signals += (walk.rule->traits & CALL_SIGNAL) != 0;
	}
	if (are_handlers_timed(&step->record) && step->record.handlers > times->signals)
		times->signals = step->record.handlers;
	split_unknown(step, &known, times, &left_ns);
	times->covered_ns = times->ns[CAUSE_COMPUTE] - times->worker_ns;
	split_hidden(window, step, &known, times, &left_ns);
	for (int i = 0; i < CAUSE_COUNT; i++)
		move_delay(times, (enum cause_kind)i, known.spun_ns[i]);
	for (int i = 0; i < CAUSE_COUNT; i++)
		give_code(times, (enum cause_kind)i, code_ns[i], known.spun_code_ns[i], &left_ns);
	split_between(step, &known, times, &left_ns);
	times->ns[CAUSE_COMPUTE] += left_ns;
	times->steal_ns = min_u64(times->steal_ns, times->ns[CAUSE_OFF_CPU]);
	times->held_ns = held_ns(step);
	times->late_ns = late_ns(step);
	times->blamable_ns = add_saturating(
		max_u64(max_u64(times->starved_ns, times->held_ns), times->late_ns),
		handlers_most_ns(&step->record) + faults_most_ns(&step->record, times));
}

uint64_t cause_work_ns(const struct cause_times *times)
{
	return times->ns[CAUSE_COMPUTE];
}

static uint64_t move(struct cause_times *times, enum cause_kind to, uint64_t ns,
		     uint64_t usual_work_ns)
{
	uint64_t moved = min_u64(ns, sub_saturating(times->ns[CAUSE_COMPUTE], usual_work_ns));

	times->ns[CAUSE_COMPUTE] -= moved;
	times->ns[to] += moved;
	return moved;
}

void cause_blame(const struct step *step, uint64_t usual_work_ns, struct cause_times *times)
{
	uint64_t moved =
		move(times, CAUSE_SIGNAL_STORM, handlers_most_ns(&step->record), usual_work_ns);

	moved +=
		move(times, CAUSE_PAGE_FAULTS, faults_most_ns(&step->record, times), usual_work_ns);
	times->blamed = moved != 0;
	times->held_spun_ns = move(times, CAUSE_STOPPED, times->held_ns, usual_work_ns);
	times->late_spun_ns = move(times, CAUSE_LATE_THREAD, times->late_ns, usual_work_ns);
	times->spun_ns = move(times, CAUSE_RUN_QUEUE, times->starved_ns, usual_work_ns);
}
