/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which steps are found wrong, and which are healthy. */
#include "classify_fixture.h"

#include <math.h>

static void a_thousand_steady_steps_are_not_escalated(void **state)
{
	struct fixture *fixture = *state;
	const struct classify_counts *counts = classifier__counts(fixture->classifier);

	push_steady(fixture, 1000);
	assert_int_equal(counts->judged, 990);
	assert_int_equal(counts->unjudged, 10);
	assert_int_equal(counts->escalated + counts->suppressed, 0);
}

/* A step of one function: prefills of all lengths between decodes, system time as work grows. */
static struct step random_healthy_step(uint64_t *seed, bool prefill)
{
	uint64_t work = prefill ? 60 * MS + random_below(seed, 1500 * MS)
				: 15 * MS + random_below(seed, 10 * MS);
	uint64_t lock = work / 100 + random_below(seed, work / 50);
	struct step step = make_step(work + lock + 200 * US + random_below(seed, 300 * US));

	add_call(&step, "futex", lock);
	step.record.run_delay_ns = random_below(seed, work / 100);
	step.record.minor_faults = (uint32_t)random_below(seed, 200);
	add_call(&step, "write", random_below(seed, 30 * US))->ret = 17;
	return step;
}

static void prefills_between_decodes_are_not_escalated(void **state)
{
	struct fixture *fixture = *state;
	uint64_t seed = 1;

	fixture->window->record.fault_ps = 250000;
	for (int i = 0; i < 1000; i++) {
		if (push(fixture, random_healthy_step(&seed, i % 2)))
			fail_msg("step %d: %s, budget %llu us, actual %llu us", i,
				 escalation_otlp_value(fixture->last.result.reason),
				 (unsigned long long)fixture->last.result.budget_us,
				 (unsigned long long)fixture->last.result.actual_us);
	}
	assert_true(classifier__counts(fixture->classifier)->judged > 900);
}

static void a_profiled_step_is_neither_judged_nor_a_measure(void **state)
{
	struct fixture *fixture = *state;

	push_steady(fixture, 20);
	for (int i = 0; i < 50; i++) {
		struct step step = step_of(20 * MS, "futex", 900 * MS);

		step.record.header.flags |= FBT_STEP_PROFILED;
		assert_false(push(fixture, step));
	}
	assert_int_equal(classifier__counts(fixture->classifier)->profiled, 50);
	assert_int_equal(classifier__counts(fixture->classifier)->judged, 10);
	/* Without the mark the same step is far over what is still usual. */
	assert_true(push(fixture, step_of(20 * MS, "futex", 900 * MS)));
}

static void more_work_is_never_wrong(void **state)
{
	struct fixture *fixture = *state;

	push_steady(fixture, 20);
	for (uint64_t i = 1; i < 2000; i++)
		assert_false(push_lock(fixture, i * i % 1999 * MS, 0));
	fixture->options.class_by = "n_tokens";
	begin(fixture);
	for (uint64_t i = 1; i < 2000; i++) {
		struct step step = step_of(i * i % 1999 * MS, "futex", 0);

		step.record.arg_mask = 1;
		step.record.args[0] = 1;
		assert_false(push(fixture, step));
	}
}

static void a_frozen_step_is_named_and_its_neighbours_are_not(void **state)
{
	struct fixture *fixture = *state;
	const struct escalation *last = &fixture->last;

	push_steady(fixture, 100);
	assert_true(push_lock(fixture, 20 * MS, 300 * MS));
	assert_int_equal(last->number, 1);
	assert_int_equal(last->result.reason, ESCALATION_EFFICIENCY_LOW);
	assert_int_equal(last->fired, bit(ESCALATION_EFFICIENCY_LOW));
	assert_true(last->judged);
	assert_false(last->suppressed);
	assert_false(last->budget_given);
	assert_int_equal(last->budget_ns, 20100 * US);
	assert_int_equal(last->usual_ns, 20100 * US);
	assert_int_equal(last->class_steps, 64);
	assert_string_equal(last->result.brick_name, "llama_decode");
	assert_int_equal(last->result.budget_us, 20100);
	assert_int_equal(last->result.actual_us, 320000);
	assert_int_equal(last->result.timestamp_ns, fixture->now_ns - MS);
	assert_int_equal(last->result.breakdown.category_us[FBT_FUTEX], 300000);
	assert_int_equal(last->result.breakdown.total_us, 320000);
	assert_int_equal(last->cause.kind, CAUSE_LOCK_CONTENTION);
	assert_int_equal(last->cause.time_ns, 300 * MS);
	assert_int_equal(last->cause.usual_ns, 100 * US);
	assert_true(last->cause.usual_known);
	assert_true(last->cv_percent == 0.0);
	assert_true(fabs(last->drop_percent - (320 - 20.1) / 320 * 100) < 1e-9);
	assert_int_equal(last->worst.duration_ns, 300 * MS);
	assert_int_equal(last->worst.nr, nr_of("futex"));
	push_steady(fixture, 100);
	assert_int_equal(classifier__counts(fixture->classifier)->escalated, 1);
}

/* The 1st, … 10th step is not judged, the 11th is. */
static void nothing_is_judged_before_ten_steps_of_its_class(void **state)
{
	struct fixture *fixture = *state;

	push_steady(fixture, 9);
	assert_false(push_lock(fixture, 20 * MS, 300 * MS));
	assert_true(push_lock(fixture, 20 * MS, 300 * MS));
	assert_int_equal(fixture->last.class_steps, 10);
	assert_int_equal(classifier__counts(fixture->classifier)->unjudged, 10);
}

/* Efficiency: 25 % is allowed, less is not. Lock time 0 is usual. */
static void efficiency_is_low_below_its_threshold_only(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 20; i++)
		assert_false(push_lock(fixture, 20 * MS, 0));
	assert_false(push_lock(fixture, 20 * MS, 60 * MS));
	assert_true(push_lock(fixture, 20 * MS, 60 * MS + 10 * US));
	assert_int_equal(fixture->last.result.reason, ESCALATION_EFFICIENCY_LOW);
}

/* By design: 28.6 % is not below 25 %, and one wait in 64 is no part of the CV. */
static void a_wait_below_three_budgets_is_not_named_but_can_be(void **state)
{
	struct fixture *fixture = *state;

	for (int round = 0; round < 3; round++) {
		begin(fixture);
		for (int i = 0; i < 100; i++)
			assert_false(push_lock(fixture, 120 * MS, 0));
		assert_int_equal(push_lock(fixture, 120 * MS, 300 * MS), round > 0);
		fixture->options.thresholds.efficiency_percent = round ? 25.0 : 30.0;
		fixture->options.budget_us = round ? 100000 : 0;
	}
	assert_true(fixture->last.budget_given);
}

/* Ten times what is usual, and nothing that anyone could tell from noise. */
static void less_than_a_tenth_of_a_millisecond_is_noise(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 20; i++)
		assert_false(push(fixture, step_of(10 * US, "mmap", 1 * US)));
	assert_false(push(fixture, step_of(10 * US, "mmap", 101 * US - 1)));
	assert_true(push(fixture, step_of(10 * US, "mmap", 101 * US)));
	assert_int_equal(fixture->last.fired,
			 bit(ESCALATION_MEMORY_CLIFF) | bit(ESCALATION_EFFICIENCY_LOW));
}

/* What is shown is whole microseconds: 25.0 % of a budget that is not below a quarter. */
static void rounding_alone_makes_no_step_inefficient(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 20; i++)
		assert_false(push_lock(fixture, 100900, 0));
	assert_false(push_lock(fixture, 100900, 302100));
	assert_true(push_lock(fixture, 100900, 305100));
	assert_int_equal(fixture->last.result.budget_us, 100);
	assert_int_equal(fixture->last.result.actual_us, 406);
}

static void a_memory_cliff_is_a_drop_with_mmap_dominant(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 20; i++)
		assert_false(push(fixture, step_of(70 * MS, "munmap", 0)));
	/* 30 % is allowed, more is not. */
	assert_false(push(fixture, step_of(70 * MS, "munmap", 30 * MS)));
	assert_true(push(fixture, step_of(70 * MS, "munmap", 30 * MS + 10 * US)));
	assert_int_equal(fixture->last.result.reason, ESCALATION_MEMORY_CLIFF);
	assert_int_equal(fixture->last.fired, bit(ESCALATION_MEMORY_CLIFF));
	assert_int_equal(fixture->last.cause.kind, CAUSE_ALLOCATION_CHURN);
	assert_false(push_lock(fixture, 70 * MS, 40 * MS));
	/* madvise is of ferrum's other calls. */
	assert_false(push(fixture, step_of(70 * MS, "madvise", 40 * MS)));
}

/* The largest of six categories, and not what took the time. */
static void a_wait_for_a_cpu_with_mmap_dominant_is_no_cliff(void **state)
{
	struct fixture *fixture = *state;
	struct step step;

	for (int i = 0; i < 20; i++)
		assert_false(push(fixture, step_of(70 * MS, "munmap", 10 * US)));
	step = step_of(140 * MS, "munmap", 10 * US);
	step.record.run_delay_ns = 70 * MS;
	assert_false(push(fixture, step));
	/* Usual mmap does not make a cliff of what a lock took either. */
	begin(fixture);
	for (int i = 0; i < 70; i++)
		assert_false(push(fixture, step_of(70 * MS, "munmap", 60 * MS)));
	step = step_of(70 * MS, "munmap", 60 * MS);
	add_call(&step, "futex", 58 * MS);
	step.record.end_ns += 58 * MS;
	step.record.thread_ns += 58 * MS;
	assert_false(push(fixture, step));
}

static void a_cliff_may_be_of_page_faults(void **state)
{
	struct fixture *fixture = *state;
	struct step step;

	fixture->window->record.fault_ps = 1000000;
	for (int i = 0; i < 20; i++)
		assert_false(push(fixture, step_of(70 * MS, "munmap", 10 * US)));
	step = step_of(110 * MS, "munmap", 10 * US);
	step.record.minor_faults = 40000;
	assert_true(push(fixture, step));
	assert_int_equal(fixture->last.fired, bit(ESCALATION_MEMORY_CLIFF));
	assert_int_equal(fixture->last.cause.kind, CAUSE_PAGE_FAULTS);
}

/* Less than usual of what is dominant. */
static void a_step_that_is_faster_is_no_cliff(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 20; i++)
		assert_false(push(fixture, step_of(20 * MS, "munmap", 10 * MS)));
	assert_false(push(fixture, step_of(20 * MS, "munmap", 5 * MS)));
	/* Nothing cannot be lost of nothing. */
	for (int i = 0; i < 20; i++)
		assert_false(push(fixture, step_of(0, "munmap", 0)));
	assert_true(push(fixture, step_of(0, "munmap", 10 * MS)));
	assert_int_equal(fixture->last.fired, bit(ESCALATION_EFFICIENCY_LOW));
	assert_true(fixture->last.drop_percent == 0.0);
}

static void a_cliff_that_is_inefficient_too_says_both(void **state)
{
	struct fixture *fixture = *state;

	push_steady(fixture, 20);
	assert_true(push(fixture, step_of(20 * MS, "mmap", 300 * MS)));
	assert_int_equal(fixture->last.result.reason, ESCALATION_MEMORY_CLIFF);
	assert_int_equal(fixture->last.fired,
			 bit(ESCALATION_MEMORY_CLIFF) | bit(ESCALATION_EFFICIENCY_LOW));
}

static void an_unsteady_class_is_charged_to_the_steps_that_make_it(void **state)
{
	struct fixture *fixture = *state;
	const struct classify_counts *counts = classifier__counts(fixture->classifier);
	uint64_t seen;

	push_uneven(fixture, 105);
	seen = counts->escalated;
	assert_true(seen > 0);
	/* Budget 30 ms: 34.5 ms and less is not far over it. */
	assert_false(push_lock(fixture, 20 * MS, 0));
	assert_false(push_lock(fixture, 20 * MS, 14 * MS));
	assert_true(push_lock(fixture, 20 * MS, 16 * MS));
	assert_int_equal(fixture->last.result.reason, ESCALATION_CV_EXCEEDED);
	assert_int_equal(fixture->last.fired, bit(ESCALATION_CV_EXCEEDED));
	assert_int_equal(fixture->last.cause.kind, CAUSE_LOCK_CONTENTION);
	assert_true(fixture->last.cv_percent > 15.0 && fixture->last.cv_percent < 25.0);
	assert_int_equal(counts->by_reason[ESCALATION_CV_EXCEEDED], seen + 1);
}

static void an_unsteady_class_is_told_once_a_window(void **state)
{
	struct fixture *fixture = *state;
	const struct classify_counts *counts = classifier__counts(fixture->classifier);
	uint64_t shown = 0;

	fixture->options.window_steps = 50;
	begin(fixture);
	counts = classifier__counts(fixture->classifier);
	for (uint64_t i = 0; i < 500; i++) {
		if (push_lock(fixture, 20 * MS, i * 13 % 21 * MS))
			shown += escalation_is_shown(&fixture->last);
	}
	assert_true(counts->escalated > 80);
	assert_int_equal(counts->repeated, counts->escalated - shown);
	assert_int_equal(counts->suppressed, 0);
	assert_true(shown >= 9 && shown <= 10);
	/* What else is wrong is always said. */
	for (int i = 0; i < 3; i++) {
		assert_true(push_lock(fixture, 20 * MS, 300 * MS));
		assert_true(escalation_is_shown(&fixture->last));
	}
}

/* It had less work than others of its class, and waited for longer: none has waited for it. */
static void in_an_unsteady_class_as_long_as_usual_is_not_shown(void **state)
{
	struct fixture *fixture = *state;
	const struct classify_counts *counts;

	begin(fixture);
	counts = classifier__counts(fixture->classifier);
	/* Usual: 30 ms of work and 20 ms of waiting. */
	for (uint64_t i = 0; i < 123; i++)
		push_lock(fixture, 30 * MS, i * 13 % 41 * MS);
	/* 57.5 ms and less, which is 15 % more, is as usual; its own budget is 38 ms. */
	assert_true(push_lock(fixture, 18 * MS, 39 * MS));
	assert_int_equal(fixture->last.fired, bit(ESCALATION_CV_EXCEEDED));
	assert_true(fixture->last.as_usual);
	assert_false(escalation_is_shown(&fixture->last));
	assert_false(fixture->last.repeated || fixture->last.suppressed);
	assert_int_equal(counts->as_usual, 1);
	/* It does not stand for those that took longer. */
	for (int i = 0; i < 64; i++)
		push_lock(fixture, 30 * MS, i % 5 < 2 ? 0 : 20 * MS);
	assert_true(push_lock(fixture, 18 * MS, 35 * MS));
	assert_true(fixture->last.as_usual);
	assert_true(push_lock(fixture, 30 * MS, 35 * MS));
	assert_int_equal(fixture->last.fired, bit(ESCALATION_CV_EXCEEDED));
	assert_true(escalation_is_shown(&fixture->last));
	/* What else is wrong is always shown. */
	assert_true(push_lock(fixture, 17 * MS, 300 * MS));
	assert_false(fixture->last.as_usual);
}

static void unsteady_and_inefficient_is_both(void **state)
{
	struct fixture *fixture = *state;

	push_uneven(fixture, 105);
	assert_true(push_lock(fixture, 20 * MS, 300 * MS));
	assert_int_equal(fixture->last.result.reason, ESCALATION_BOTH);
	assert_int_equal(fixture->last.fired,
			 bit(ESCALATION_CV_EXCEEDED) | bit(ESCALATION_EFFICIENCY_LOW));
}

static void a_cv_threshold_is_one_of_charging_too(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.thresholds.cv_percent = 30.0;
	begin(fixture);
	push_uneven(fixture, 105);
	assert_false(push_lock(fixture, 20 * MS, 25 * MS));
	assert_int_equal(classifier__counts(fixture->classifier)->escalated, 0);
	/* What fires for another reason tells the CV all the same. */
	fixture->options.thresholds.cv_percent = 10000.0;
	begin(fixture);
	push_uneven(fixture, 105);
	assert_true(push_lock(fixture, 20 * MS, 300 * MS));
	assert_int_equal(fixture->last.fired, bit(ESCALATION_EFFICIENCY_LOW));
	assert_true(fixture->last.cv_percent > 15.0);
}

/* The work of a step is in its budget, so it is not what was found wrong. */
static void work_that_grew_is_not_the_cause_where_it_is_in_the_budget(void **state)
{
	struct fixture *fixture = *state;

	push_uneven(fixture, 105);
	assert_true(push_lock(fixture, 32 * MS, 18 * MS));
	assert_int_equal(fixture->last.cause.kind, CAUSE_LOCK_CONTENTION);
	assert_int_equal(fixture->last.cause.usual_ns, 10 * MS);
}

static void gpu_transfer_is_not_known_and_never_fires(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.thresholds.gpu_transfer_percent = 0.0;
	begin(fixture);
	push_steady(fixture, 50);
	assert_true(push_lock(fixture, 20 * MS, 300 * MS));
	assert_int_equal(fixture->last.fired, bit(ESCALATION_EFFICIENCY_LOW));
}

static void the_longest_call_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(400 * MS);

	push_steady(fixture, 50);
	add_call(&step, "futex", 100 * MS);
	add_call(&step, "read", 180 * MS)->header.flags |= FBT_CALL_UNFINISHED;
	add_call(&step, "futex", 99 * MS);
	step.record.end = FBT_END_TRUNCATED;
	assert_true(push(fixture, step));
	assert_int_equal(fixture->last.worst.nr, nr_of("read"));
	step = make_step(320 * MS);
	step.record.sums[FBT_FUTEX] = (struct fbt_sum){.ns = 300 * MS, .calls = 1};
	assert_true(push(fixture, step));
	assert_int_equal(fixture->last.worst.duration_ns, 0);
	assert_false(fixture->last.cause.calls_known);
}

static void impossible_steps_do_no_harm(void **state)
{
	struct fixture *fixture = *state;
	uint64_t seed = 5;

	fixture->window->record.fault_ps = UINT64_MAX;
	for (int i = 0; i < 20000; i++) {
		struct step step = make_step(random_below(&seed, 4) ? random_below(&seed, 100)
								    : next_random(&seed));

		step.record.tgid = (uint32_t)random_below(&seed, 3);
		step.record.kind = (uint32_t)random_below(&seed, FBT_KIND_COUNT);
		step.record.end = (uint32_t)random_below(&seed, 6);
		step.record.arg_mask = (uint32_t)next_random(&seed);
		for (int j = 0; j < FBT_CATEGORY_COUNT; j++)
			step.record.sums[j].ns = random_below(&seed, 2) ? next_random(&seed) : 0;
		step.record.run_delay_ns = next_random(&seed);
		step.record.minor_faults = (uint32_t)next_random(&seed);
		if (!random_below(&seed, 50))
			classifier__request_manual(fixture->classifier);
		push(fixture, step);
	}
	assert_true(classifier__counts(fixture->classifier)->escalated > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_thousand_steady_steps_are_not_escalated),
		TEST(prefills_between_decodes_are_not_escalated),
		TEST(a_profiled_step_is_neither_judged_nor_a_measure),
		TEST(more_work_is_never_wrong),
		TEST(a_frozen_step_is_named_and_its_neighbours_are_not),
		TEST(nothing_is_judged_before_ten_steps_of_its_class),
		TEST(efficiency_is_low_below_its_threshold_only),
		TEST(a_wait_below_three_budgets_is_not_named_but_can_be),
		TEST(less_than_a_tenth_of_a_millisecond_is_noise),
		TEST(rounding_alone_makes_no_step_inefficient),
		TEST(a_memory_cliff_is_a_drop_with_mmap_dominant),
		TEST(a_wait_for_a_cpu_with_mmap_dominant_is_no_cliff),
		TEST(a_cliff_may_be_of_page_faults),
		TEST(a_step_that_is_faster_is_no_cliff),
		TEST(a_cliff_that_is_inefficient_too_says_both),
		TEST(an_unsteady_class_is_charged_to_the_steps_that_make_it),
		TEST(an_unsteady_class_is_told_once_a_window),
		TEST(in_an_unsteady_class_as_long_as_usual_is_not_shown),
		TEST(unsteady_and_inefficient_is_both),
		TEST(a_cv_threshold_is_one_of_charging_too),
		TEST(work_that_grew_is_not_the_cause_where_it_is_in_the_budget),
		TEST(gpu_transfer_is_not_known_and_never_fires),
		TEST(the_longest_call_is_told),
		TEST(impossible_steps_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
