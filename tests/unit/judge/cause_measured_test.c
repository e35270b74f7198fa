/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Causes that the kernel measures: cgroup limits, waits for a CPU within calls, sleeps and stops.
 */
#include "judged_fixture.h"

#include "judge/cause.h"
#include "judge/text.h"

static struct cause find(const struct window *window, const struct step *step,
			 const struct cause_times *usual)
{
	struct cause_times times;
	struct cause cause;

	cause_split(window, step, &times);
	cause_find(window, step, &times, usual, &cause);
	return cause;
}

static void a_wait_belongs_to_a_cpu_limit_that_explains_half_of_its_growth(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 10 * MS, [CAUSE_RUN_QUEUE] = 4 * MS}};
	struct step step = make_step(30 * MS);
	struct fbt_step_limits *limits = &step.record.limits;

	step.record.run_delay_ns = 20 * MS;
	limits->throttled_ns = 8 * MS;
	limits->throttled_periods = 1;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_CPU_LIMIT);
	assert_int_equal(find(*state, &step, &usual).time_ns, 20 * MS);
	assert_int_equal(find(*state, &step, &usual).usual_ns, 4 * MS);
	assert_int_equal(find(*state, &step, &usual).limits.throttled_periods, 1);
	limits->throttled_ns = 8 * MS - 1;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_RUN_QUEUE);
	assert_int_equal(find(*state, &step, NULL).kind, CAUSE_RUN_QUEUE);
	limits->throttled_ns = 0;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_RUN_QUEUE);
	/* Other threads of the cgroup were throttled; the step did not wait. */
	step.record.run_delay_ns = 0;
	limits->throttled_ns = 20 * MS;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_COMPUTE);
}

static void a_wait_is_no_longer_than_the_periods_of_its_cpu_limit(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 100 * MS}};
	struct step step = make_step(1000 * MS);
	struct fbt_step_limits *limits = &step.record.limits;

	step.record.run_delay_ns = 500 * MS;
	/* Within one period 16 CPUs were throttled for 50 ms each. */
	limits->throttled_ns = 800 * MS;
	limits->throttled_periods = 1;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_CPU_LIMIT);
	limits->quota_ns = 200 * MS;
	limits->period_ns = 100 * MS;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_RUN_QUEUE);
	limits->throttled_periods = 2;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_CPU_LIMIT);
	limits->period_ns = UINT64_MAX;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_CPU_LIMIT);
}

static void faults_belong_to_a_memory_limit_that_is_reached_as_often(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 20 * MS}};
	struct step step = make_step(30 * MS);
	struct window *window = *state;
	struct cause cause;

	window->record.fault_ps = 500000;
	step.record.minor_faults = 20000;
	step.record.limits.memory_hits = 20000 / 128 + 1;
	cause = find(window, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_MEMORY_LIMIT);
	assert_int_equal(cause.time_ns, 10 * MS);
	assert_true(cause.estimated);
	step.record.limits.memory_hits--;
	assert_int_equal(find(window, &step, &usual).kind, CAUSE_PAGE_FAULTS);
	/* The estimate does not include waits for a disk; they are in the rest of the step. */
	step.record.minor_faults = 100;
	assert_int_equal(find(window, &step, NULL).kind, CAUSE_COMPUTE);
	step.record.major_faults = 3;
	cause = find(window, &step, NULL);
	assert_int_equal(cause.kind, CAUSE_MEMORY_LIMIT);
	assert_true(cause.estimated);
	step.record.limits.memory_hits = 0;
	assert_int_equal(find(window, &step, NULL).kind, CAUSE_COMPUTE);
}

/* The usual state of a cgroup whose page cache fills its limit, whatever the step does. */
static void few_faults_are_no_reason_to_compute_for_long(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 90 * MS}}, times;
	struct step step = make_step(300 * MS);
	struct window *window = *state;
	struct cause cause;

	step.record.minor_faults = 11;
	step.record.major_faults = 1;
	step.record.fault_wait_ns = 100 * US;
	step.record.limits.memory_hits = 1;
	assert_int_equal(find(window, &step, &usual).kind, CAUSE_COMPUTE);
	/* The same where it is not what has grown that counts. */
	cause_split(window, &step, &times);
	cause_find_largest(window, &step, &times, &usual, 200 * MS, &cause);
	assert_int_equal(cause.kind, CAUSE_COMPUTE);
	step.record.minor_faults = 4000;
	step.record.limits.memory_hits = 100;
	assert_int_equal(find(window, &step, &usual).kind, CAUSE_MEMORY_LIMIT);
	cause_find_largest(window, &step, &times, &usual, 200 * MS, &cause);
	assert_int_equal(cause.kind, CAUSE_MEMORY_LIMIT);
}

/*
 * 100 ms with 20 ms in two calls, 12 ms of which were waits for a CPU. Only one of the calls has a
 * record.
 */
static struct step measured_step(void)
{
	struct step step = make_step(100 * MS);

	step.record.header.flags |= FBT_STEP_CPU_KNOWN;
	step.record.cpu_ns = 50 * MS;
	step.record.asleep_ns = 8 * MS;
	step.record.run_delay_ns = 5 * MS;
	add_call(&step, "futex", 15 * MS)->delay_ns = 10 * MS;
	step.record.sums[FBT_FUTEX].ns = 20 * MS;
	step.record.call_delay_ns[FBT_FUTEX] = 12 * MS;
	return step;
}

static void waits_for_a_cpu_in_calls_are_no_part_of_the_calls(void **state)
{
	struct step step = measured_step();
	struct cause_times times;

	cause_split(*state, &step, &times);
	assert_int_equal(times.ns[CAUSE_RUN_QUEUE], 17 * MS);
	assert_int_equal(times.ns[CAUSE_LOCK_CONTENTION], 8 * MS);
	assert_int_equal(times.ns[CAUSE_COMPUTE], 50 * MS);
	assert_int_equal(times.ns[CAUSE_OFF_CPU], 25 * MS);
	free_step(&step);
}

static void sleep_outside_of_calls_is_a_stop_if_one_was_seen(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 50 * MS}};
	struct step step = measured_step();
	struct cause cause;

	step.record.fault_wait_ns = 4 * MS;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_OFF_CPU);
	step.stop = (struct fbt_stop){.header.type = FBT_EVENT_STOP,
				      .tid = step.record.tid,
				      .reason = FBT_STOP_TRACER,
				      .tracer = 4711,
				      .stopped_ns = 300 * MS};
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_STOPPED);
	assert_int_equal(cause.time_ns, 25 * MS);
	assert_int_equal(cause.stop.tracer, 4711);
	assert_true(cause_has_stop(&cause));
	/* A short stop explains only a part of the time off the CPU. */
	step.stop.stopped_ns = 1 * MS;
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_OFF_CPU);
	assert_int_equal(cause.time_ns, 20 * MS);
	assert_false(cause_has_stop(&cause));
	free_step(&step);
}

static void a_host_that_took_half_of_what_has_grown_is_the_cause(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 50 * MS, [CAUSE_OFF_CPU] = 5 * MS}};
	struct step step = measured_step();
	struct cause cause;

	step.record.steal_us = 9999;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_OFF_CPU);
	step.record.steal_us = 10000;
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_STEAL);
	assert_int_equal(cause.time_ns, 25 * MS);
	assert_int_equal(cause.steal_ns, 10 * MS);
	/* While the thread was asleep or had no CPU, the host took that of others. */
	step.record.steal_us = 90000;
	assert_int_equal(find(*state, &step, &usual).steal_ns, 25 * MS);
	/* It always takes some. */
	step.record.steal_us = 14999;
	usual.steal_ns = 5 * MS;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_OFF_CPU);
	step.record.steal_us = 15000;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_STEAL);
	usual.ns[CAUSE_OFF_CPU] = 25 * MS;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_RUN_QUEUE);
	free_step(&step);
}

/* What is usual is over the budget: the largest part is to be explained, all of it. */
static void of_a_part_that_has_not_grown_half_must_be_explained(void **state)
{
	struct cause_times times, usual = {.ns = {[CAUSE_OFF_CPU] = 25 * MS}, .steal_ns = 12 * MS};
	struct step step = measured_step();
	struct cause cause;

	step.record.steal_us = 12000;
	cause_split(*state, &step, &times);
	times.ns[CAUSE_COMPUTE] = 0;
	cause_find_largest(*state, &step, &times, &usual, 50 * MS, &cause);
	assert_int_equal(cause.kind, CAUSE_OFF_CPU);
	step.record.steal_us = 13000;
	cause_split(*state, &step, &times);
	times.ns[CAUSE_COMPUTE] = 0;
	cause_find_largest(*state, &step, &times, &usual, 50 * MS, &cause);
	assert_int_equal(cause.kind, CAUSE_STEAL);
	free_step(&step);
}

/* As long as usual, over the budget, with a hint of throttling. */
static void a_little_throttling_does_not_explain_a_usual_wait(void **state)
{
	struct cause_times times, usual = {.ns = {0}};
	struct step step = measured_step();
	struct cause cause;

	step.record.limits.throttled_ns = MS;
	cause_split(*state, &step, &times);
	times.ns[CAUSE_COMPUTE] = times.ns[CAUSE_OFF_CPU] = 0;
	usual.ns[CAUSE_RUN_QUEUE] = times.ns[CAUSE_RUN_QUEUE];
	cause_find_largest(*state, &step, &times, &usual, 50 * MS, &cause);
	assert_int_equal(cause.kind, CAUSE_RUN_QUEUE);
	step.record.limits.throttled_ns = times.ns[CAUSE_RUN_QUEUE] / 2 + 1;
	cause_find_largest(*state, &step, &times, &usual, 50 * MS, &cause);
	assert_int_equal(cause.kind, CAUSE_CPU_LIMIT);
	free_step(&step);
}

/* Only the part of the faults that waited for no disk is estimated. */
static void faults_that_wait_for_a_disk_are_measured(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 50 * MS}};
	struct step step = measured_step();
	struct cause cause;

	step.record.fault_wait_ns = 25 * MS;
	step.record.major_faults = 20;
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_PAGE_FAULTS);
	assert_int_equal(cause.time_ns, 25 * MS);
	assert_false(cause.estimated);
	step.record.limits.memory_hits = 3;
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_MEMORY_LIMIT);
	assert_false(cause.estimated);
	free_step(&step);
}

/* 20,000 faults of 2 us. Estimated by the machine's figure, they would take 10 ms. */
static struct step faulting_step(void)
{
	struct step step = make_step(100 * MS);

	step.record.header.flags |= FBT_STEP_CPU_KNOWN;
	step.record.cpu_ns = 98 * MS;
	step.record.minor_faults = 20000;
	step.record.faults.cpu_ns = 38 * MS;
	step.record.faults.asleep_ns = 2 * MS;
	step.record.faults.ns[FBT_MAPPING_ANON] = 37 * MS;
	step.record.faults.ns[FBT_MAPPING_FILE] = 3 * MS;
	step.record.faults.file = 5;
	step.record.faults.file_ns = 3 * MS;
	return step;
}

static void timed_faults_are_no_estimate(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 60 * MS}}, times;
	struct window *window = *state;
	struct step step = faulting_step();
	struct cause cause;

	window->record.fault_ps = 500000;
	step.record.faults.cpu_ns = step.record.faults.asleep_ns = 0;
	cause_split(window, &step, &times);
	assert_int_equal(times.ns[CAUSE_PAGE_FAULTS], 10 * MS);
	/* A later step of a thread, some of whose earlier faults were timed. */
	step.record.faults.mean_ps = 1500000;
	cause_split(window, &step, &times);
	assert_int_equal(times.ns[CAUSE_PAGE_FAULTS], 30 * MS);
	/* A step during which the timing of faults began or ended. */
	step.record.faults.count[FBT_MAPPING_ANON] = 9000;
	step.record.faults.count[FBT_MAPPING_FILE] = 1000;
	step.record.faults.cpu_ns = 18 * MS;
	step.record.faults.asleep_ns = 2 * MS;
	cause_split(window, &step, &times);
	assert_int_equal(times.ns[CAUSE_PAGE_FAULTS], 35 * MS);
	step.record.faults.cpu_ns = 38 * MS;
	assert_true(find(window, &step, &usual).estimated);
	step.record.header.flags |= FBT_STEP_FAULTS_TIMED;
	cause_split(window, &step, &times);
	assert_int_equal(times.ns[CAUSE_PAGE_FAULTS], 40 * MS);
	assert_int_equal(times.ns[CAUSE_COMPUTE], 60 * MS);
	cause = find(window, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_PAGE_FAULTS);
	assert_int_equal(cause.time_ns, 40 * MS);
	assert_false(cause.estimated);
	assert_int_equal(cause.mapping, FBT_MAPPING_ANON);
	assert_true(cause.mapping_is_all);
	assert_int_equal(cause.fault_file, 0);
	step.record.limits.memory_hits = 200;
	cause = find(window, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_MEMORY_LIMIT);
	assert_false(cause.estimated);
}

static void the_file_of_faults_is_named_if_it_took_half_of_them(void **state)
{
	struct step step = faulting_step();
	struct fbt_step_faults *faults = &step.record.faults;
	struct cause cause;

	step.record.header.flags |= FBT_STEP_FAULTS_TIMED;
	faults->ns[FBT_MAPPING_FILE] = 37 * MS;
	faults->ns[FBT_MAPPING_ANON] = 6 * MS;
	faults->file_ns = 18 * MS;
	cause = find(*state, &step, NULL);
	assert_int_equal(cause.mapping, FBT_MAPPING_FILE);
	assert_false(cause.mapping_is_all);
	assert_int_equal(cause.fault_file, 0);
	faults->file_ns = 19 * MS;
	assert_int_equal(find(*state, &step, NULL).fault_file, 5);
	/* A sum of record fields must not overflow. */
	faults->ns[FBT_MAPPING_FILE] = UINT64_MAX;
	assert_true(find(*state, &step, NULL).mapping_is_all);
}

/* The CPU time of timed faults is measured, so no estimate is added to it. */
static void timed_faults_take_no_more_than_was_measured(void **state)
{
	struct step step = faulting_step();
	struct cause_times times;

	step.record.header.flags |= FBT_STEP_FAULTS_TIMED;
	step.record.cpu_ns = 96 * MS;
	step.record.fault_wait_ns = 2 * MS;
	step.record.major_faults = 20;
	cause_split(*state, &step, &times);
	assert_int_equal(times.ns[CAUSE_PAGE_FAULTS], 42 * MS);
	cause_blame(&step, MS, &times);
	assert_int_equal(times.ns[CAUSE_PAGE_FAULTS], 42 * MS);
	assert_false(times.blamed);
}

static void handlers_are_measured(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 20 * MS}};
	struct step step = make_step(100 * MS);
	struct cause cause;

	step.record.handlers_ns = 70 * MS;
	step.record.handlers = 12;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_COMPUTE);
	step.record.header.flags |= FBT_STEP_HANDLERS_TIMED;
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_SIGNAL_STORM);
	assert_int_equal(cause.time_ns, 70 * MS);
	assert_int_equal(cause.signals, 12);
	assert_false(cause.estimated);
	/* Many handlers that took hardly any time. */
	step.record.handlers_ns = MS;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_COMPUTE);
	/* The time of handlers that did not return is unknown; only their number is known. */
	step.record.handlers_left = 1;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_SIGNAL_STORM);
	/* A record cannot make a cause longer than its step. */
	step.record.handlers_ns = UINT64_MAX;
	assert_int_equal(find(*state, &step, &usual).time_ns, 100 * MS);
}

static void more_work_may_be_a_wait_for_a_starved_thread(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 20 * MS}}, times;
	struct step step = make_step(100 * MS);
	struct cause cause;

	step.record.starved_ns = 70 * MS;
	step.record.starved_tid = 9;
	cause_split(*state, &step, &times);
	assert_int_equal(times.starved_ns, 0);
	step.record.header.flags |= FBT_STEP_TEAM_KNOWN;
	cause_split(*state, &step, &times);
	assert_int_equal(cause_work_ns(&times), 100 * MS);
	cause_blame(&step, 20 * MS, &times);
	assert_int_equal(times.ns[CAUSE_COMPUTE], 30 * MS);
	assert_int_equal(times.ns[CAUSE_RUN_QUEUE], 70 * MS);
	cause_find(*state, &step, &times, &usual, &cause);
	assert_int_equal(cause.kind, CAUSE_RUN_QUEUE);
	assert_int_equal(cause.waker.tid, 9);
	assert_int_equal(cause.waker.ns, 70 * MS);
	assert_int_equal(cause.inferred_ns, 70 * MS);
	assert_true(cause.estimated);
	/* The usual part of the time counts as work. */
	cause_split(*state, &step, &times);
	cause_blame(&step, 90 * MS, &times);
	assert_int_equal(times.ns[CAUSE_RUN_QUEUE], 10 * MS);
	cause_split(*state, &step, &times);
	cause_blame(&step, 200 * MS, &times);
	assert_int_equal(times.ns[CAUSE_RUN_QUEUE], 0);
}

static void who_took_the_cpu_is_that_of_the_thread_without_one(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 20 * MS}}, times;
	struct step step = make_step(100 * MS);
	struct fbt_taken taken = {.header.type = FBT_EVENT_TAKEN, .waited_ns = MS, .tid = 7};
	struct cause cause;

	step.taken = taken;
	for (taken.tid = 8; taken.tid < 11; taken.tid++) {
		taken.idle_ns = taken.tid;
		assert_int_equal(vec_push(&step.takens, taken), 0);
	}
	step.record.header.flags |= FBT_STEP_TEAM_KNOWN;
	step.record.starved_ns = 70 * MS;
	step.record.starved_tid = 9;
	cause_split(*state, &step, &times);
	cause_blame(&step, 20 * MS, &times);
	cause_find(*state, &step, &times, &usual, &cause);
	assert_int_equal(cause.taken.idle_ns, 9);
	assert_int_equal(cause.taken.waited_ns, MS);
	/* Of another one nothing is known: what the step's own thread waited explains nothing. */
	step.record.starved_tid = 20;
	cause_find(*state, &step, &times, &usual, &cause);
	assert_int_equal(cause.taken.header.type, 0);
	step_clear(&step);
}

/* Of a team that spins at a barrier, one thread was in a call, and then had no CPU. */
static void more_work_may_be_a_wait_for_a_thread_in_a_call(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 20 * MS}}, times;
	struct step step = make_step(100 * MS);
	struct cause cause;

	step.record.header.flags |= FBT_STEP_TEAM_KNOWN;
	step.record.starved_ns = 90 * MS;
	step.record.starved_tid = 9;
	step.record.late_ns = 50 * MS;
	step.record.late_tid = 9;
	step.record.late_nr = 7;
	cause_split(*state, &step, &times);
	assert_true(times.blamable_ns >= 90 * MS);
	cause_blame(&step, 20 * MS, &times);
	assert_int_equal(times.ns[CAUSE_COMPUTE], 20 * MS);
	assert_int_equal(times.ns[CAUSE_LATE_THREAD], 50 * MS);
	assert_int_equal(times.ns[CAUSE_RUN_QUEUE], 30 * MS);
	cause_find(*state, &step, &times, &usual, &cause);
	assert_int_equal(cause.kind, CAUSE_LATE_THREAD);
	assert_true(cause.estimated);
	assert_int_equal(cause.waker.tid, 9);
	assert_int_equal(cause.waker.ns, 50 * MS);
	assert_int_equal(cause.waker.call_ns, 50 * MS);
	assert_int_equal(cause.waker.nr, 7);
	assert_int_equal(cause.inferred_ns, 50 * MS);
	/* The usual part of the time counts as work. */
	cause_split(*state, &step, &times);
	cause_blame(&step, 90 * MS, &times);
	assert_int_equal(times.ns[CAUSE_LATE_THREAD], 10 * MS);
}

/* A wait that is known is no spinning. */
static void a_thread_that_a_call_waited_for_is_not_spun_for(void **state)
{
	struct step step = make_step(100 * MS);
	struct fbt_wake wake = {.waker_tid = 9};
	struct cause_times times;

	step.record.late_ns = 50 * MS;
	step.record.late_tid = 9;
	assert_int_equal(vec_push(&step.wakes, wake), 0);
	cause_split(*state, &step, &times);
	assert_int_equal(times.late_ns, 0);
	step.record.late_tid = 8;
	cause_split(*state, &step, &times);
	assert_int_equal(times.late_ns, 50 * MS);
	assert_int_equal(times.blamable_ns, 50 * MS);
	vec_free(&step.wakes);
}

/* Of a team that spins at a barrier, one thread was held by a debugger. */
static void a_step_may_have_spun_for_a_thread_that_was_stopped(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 20 * MS}}, times;
	struct step step = make_step(100 * MS);
	struct cause cause;

	step.stop = (struct fbt_stop){.header.type = FBT_EVENT_STOP,
				      .tid = step.record.tid + 1,
				      .reason = FBT_STOP_TRACER,
				      .stopped_ns = 60 * MS};
	cause_split(*state, &step, &times);
	assert_int_equal(cause_work_ns(&times), 100 * MS);
	assert_int_equal(times.blamable_ns, 60 * MS);
	cause_blame(&step, 20 * MS, &times);
	assert_int_equal(times.ns[CAUSE_STOPPED], 60 * MS);
	assert_int_equal(times.ns[CAUSE_COMPUTE], 40 * MS);
	cause_find(*state, &step, &times, &usual, &cause);
	assert_int_equal(cause.kind, CAUSE_STOPPED);
	assert_true(cause.estimated && cause_has_stop(&cause));
	assert_int_equal(cause.waker.tid, step.record.tid + 1);
	assert_int_equal(cause.waker.ns, 60 * MS);
	assert_int_equal(cause.inferred_ns, 60 * MS);
	/* What is usual is work. */
	cause_split(*state, &step, &times);
	cause_blame(&step, 90 * MS, &times);
	assert_int_equal(times.ns[CAUSE_STOPPED], 10 * MS);
	/* Its own stop is measured. */
	step.stop.tid = step.record.tid;
	cause_split(*state, &step, &times);
	assert_int_equal(times.blamable_ns, 0);
}

static void more_work_may_be_the_way_into_handlers_and_faults(void **state)
{
	struct step step = make_step(100 * MS);
	struct cause_times times;

	step.record.header.flags |= FBT_STEP_HANDLERS_TIMED | FBT_STEP_CPU_KNOWN;
	step.record.cpu_ns = 70 * MS;
	step.record.fault_wait_ns = 30 * MS;
	step.record.handlers_ns = 10 * MS;
	step.record.handlers = 90;
	step.record.handlers_left = 10;
	step.record.minor_faults = 48;
	step.record.major_faults = 2;
	cause_split(*state, &step, &times);
	assert_int_equal(times.ns[CAUSE_SIGNAL_STORM], 10 * MS);
	assert_in_range(times.ns[CAUSE_PAGE_FAULTS], 30 * MS, 31 * MS);
	cause_blame(&step, MS, &times);
	assert_true(times.blamed);
	assert_int_equal(times.ns[CAUSE_SIGNAL_STORM], 12 * MS);
	assert_in_range(times.ns[CAUSE_PAGE_FAULTS], 35 * MS, 36 * MS);
	/* Without waits for a disk, the number of faults does not tell how long they took. */
	step.record.fault_wait_ns = 0;
	step.record.handlers = step.record.handlers_left = 0;
	step.record.cpu_ns = 100 * MS;
	cause_split(*state, &step, &times);
	cause_blame(&step, MS, &times);
	assert_false(times.blamed);
	assert_in_range(times.ns[CAUSE_PAGE_FAULTS], 0, MS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_window, teardown_window)
	const struct CMUnitTest tests[] = {
		TEST(a_wait_belongs_to_a_cpu_limit_that_explains_half_of_its_growth),
		TEST(a_wait_is_no_longer_than_the_periods_of_its_cpu_limit),
		TEST(faults_belong_to_a_memory_limit_that_is_reached_as_often),
		TEST(few_faults_are_no_reason_to_compute_for_long),
		TEST(waits_for_a_cpu_in_calls_are_no_part_of_the_calls),
		TEST(sleep_outside_of_calls_is_a_stop_if_one_was_seen),
		TEST(a_host_that_took_half_of_what_has_grown_is_the_cause),
		TEST(of_a_part_that_has_not_grown_half_must_be_explained),
		TEST(a_little_throttling_does_not_explain_a_usual_wait),
		TEST(faults_that_wait_for_a_disk_are_measured),
		TEST(timed_faults_are_no_estimate),
		TEST(the_file_of_faults_is_named_if_it_took_half_of_them),
		TEST(timed_faults_take_no_more_than_was_measured),
		TEST(handlers_are_measured),
		TEST(more_work_may_be_a_wait_for_a_starved_thread),
		TEST(who_took_the_cpu_is_that_of_the_thread_without_one),
		TEST(more_work_may_be_a_wait_for_a_thread_in_a_call),
		TEST(a_thread_that_a_call_waited_for_is_not_spun_for),
		TEST(a_step_may_have_spun_for_a_thread_that_was_stopped),
		TEST(more_work_may_be_the_way_into_handlers_and_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
