/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What a user sets of the verdicts: a budget, an escalation by hand, a limit of their rate. */
#include "classify_fixture.h"

#include <math.h>

static void a_budget_that_is_given_is_the_budget(void **state)
{
	struct fixture *fixture = *state;
	const struct escalation *last = &fixture->last;

	fixture->options.budget_us = 4000;
	begin(fixture);
	for (int i = 0; i < 10; i++)
		assert_false(push_lock(fixture, 20 * MS, 100 * US));
	assert_true(push_lock(fixture, 20 * MS, 100 * US));
	assert_int_equal(last->result.reason, ESCALATION_EFFICIENCY_LOW);
	assert_true(last->budget_given);
	assert_int_equal(last->budget_ns, 4 * MS);
	assert_int_equal(last->result.budget_us, 4000);
	assert_int_equal(last->usual_ns, 20100 * US);
	/* A drop is one against the class all the same. */
	assert_true(last->drop_percent == 0.0);
	assert_int_equal(last->cause.kind, CAUSE_COMPUTE);
	assert_true(last->cause.is_usual);
	assert_int_equal(last->cause.over_ns, 16100 * US);
	/* A lock that has grown by little is not why it is over the budget. */
	assert_true(push_lock(fixture, 20 * MS, 1900 * US));
	assert_int_equal(last->cause.kind, CAUSE_COMPUTE);
	assert_true(last->cause.is_usual);
	assert_int_equal(cause_extra_ns(&last->cause), 17900 * US);
	/* A lock that has grown by more is what is new. */
	assert_true(push_lock(fixture, 20 * MS, 3 * MS));
	assert_int_equal(last->cause.kind, CAUSE_LOCK_CONTENTION);
	assert_false(last->cause.is_usual);
	assert_int_equal(cause_extra_ns(&last->cause), 2900 * US);
	assert_true(push_lock(fixture, 30 * MS, 2 * MS));
	assert_int_equal(last->cause.kind, CAUSE_COMPUTE);
	assert_int_equal(last->cause.time_ns, 30 * MS);
	assert_int_equal(last->cause.usual_ns, 20 * MS);
}

/* Only prefills are known; what a decode usually takes is not. */
static void of_another_class_nothing_is_usual_here(void **state)
{
	struct fixture *fixture = *state;
	const struct escalation *last = &fixture->last;

	fixture->options.budget_us = 10000;
	begin(fixture);
	for (int i = 0; i < 12; i++)
		push_lock(fixture, 100 * MS, 100 * US);
	assert_true(push_lock(fixture, 25 * MS, 20 * MS));
	assert_true(last->nearest);
	assert_int_equal(last->cause.kind, CAUSE_LOCK_CONTENTION);
	assert_false(last->cause.is_usual);
}

static void a_budget_that_is_kept_hides_no_unsteadiness_below_it(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.budget_us = 1000000;
	begin(fixture);
	push_uneven(fixture, 105);
	assert_int_equal(classifier__counts(fixture->classifier)->escalated, 0);
}

static void the_next_step_is_escalated_by_hand_whatever_its_class(void **state)
{
	struct fixture *fixture = *state;
	const struct escalation *last = &fixture->last;

	classifier__request_manual(fixture->classifier);
	classifier__request_manual(fixture->classifier);
	assert_true(push_lock(fixture, 20 * MS, 5 * MS));
	assert_int_equal(last->result.reason, ESCALATION_MANUAL);
	assert_int_equal(last->fired, bit(ESCALATION_MANUAL));
	assert_false(last->judged);
	assert_false(last->budget_given);
	assert_true(isnan(last->cv_percent) && isnan(last->drop_percent));
	assert_int_equal(last->class_steps, 0);
	assert_int_equal(last->usual_ns, 0);
	assert_int_equal(last->budget_ns, 25 * MS);
	assert_int_equal(last->result.budget_us, last->result.actual_us);
	assert_true(trace_result_efficiency(&last->result) == 100.0);
	assert_int_equal(last->cause.kind, CAUSE_COMPUTE);
	assert_false(last->cause.usual_known);
	push_steady(fixture, 1);
}

static void a_known_class_is_told_by_hand_too(void **state)
{
	struct fixture *fixture = *state;
	const struct escalation *last = &fixture->last;

	push_steady(fixture, 50);
	classifier__request_manual(fixture->classifier);
	assert_true(push_lock(fixture, 20 * MS, 2 * MS));
	assert_true(last->judged);
	assert_int_equal(last->fired, bit(ESCALATION_MANUAL));
	assert_true(last->cv_percent == 0.0);
	assert_int_equal(last->budget_ns, 20100 * US);
	assert_int_equal(last->cause.kind, CAUSE_LOCK_CONTENTION);
	classifier__request_manual(fixture->classifier);
	assert_true(push_lock(fixture, 25 * MS, 2 * MS));
	assert_int_equal(last->cause.kind, CAUSE_COMPUTE);
	assert_int_equal(last->cause.usual_ns, 20 * MS);
	push_steady(fixture, 50);
}

static void by_hand_comes_before_what_else_fired(void **state)
{
	struct fixture *fixture = *state;

	push_steady(fixture, 50);
	classifier__request_manual(fixture->classifier);
	assert_true(push(fixture, step_of(20 * MS, "mmap", 300 * MS)));
	assert_int_equal(fixture->last.result.reason, ESCALATION_MANUAL);
	assert_int_equal(fixture->last.fired, bit(ESCALATION_MANUAL) |
						      bit(ESCALATION_MEMORY_CLIFF) |
						      bit(ESCALATION_EFFICIENCY_LOW));
	assert_int_equal(classifier__counts(fixture->classifier)->by_reason[ESCALATION_MANUAL], 1);
}

static void an_interval_can_be_escalated_by_hand(void **state)
{
	struct fixture *fixture = *state;
	struct step step = step_of(20 * MS, "futex", 80 * MS);

	step.record.kind = 0;
	classifier__request_manual(fixture->classifier);
	assert_true(push(fixture, step));
	assert_string_equal(fixture->last.result.brick_name, "interval");
	assert_int_equal(fixture->last.cause.kind, CAUSE_LOCK_CONTENTION);
}

static void the_longest_call_of_an_interval_is_its_part_of_it(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(100 * MS);

	step.record.kind = 0;
	fixture->now_ns = step.record.end_ns;
	add_call(&step, "futex", S)->start_ns = step.record.start_ns + 60 * MS - S;
	add_call(&step, "read", 70 * MS)->start_ns = step.record.start_ns;
	classifier__request_manual(fixture->classifier);
	assert_true(push(fixture, step));
	assert_int_equal(fixture->last.worst.nr, nr_of("read"));
	assert_int_equal(fixture->last.worst.duration_ns, 70 * MS);
}

static void escalations_over_the_rate_limit_are_counted(void **state)
{
	struct fixture *fixture = *state;
	const struct classify_counts *counts;

	fixture->options.thresholds.rate_limit = 2;
	begin(fixture);
	counts = classifier__counts(fixture->classifier);
	push_steady(fixture, 50);
	for (uint64_t i = 1; i <= 5; i++) {
		assert_true(push_lock(fixture, 20 * MS, 300 * MS));
		assert_int_equal(fixture->last.number, i);
		assert_int_equal(fixture->last.suppressed, i > 2);
		assert_int_equal(fixture->last.cause.kind, CAUSE_LOCK_CONTENTION);
	}
	assert_int_equal(counts->escalated, 5);
	assert_int_equal(counts->suppressed, 3);
	assert_int_equal(counts->by_reason[ESCALATION_EFFICIENCY_LOW], 5);
	assert_int_equal(classifier__thresholds(fixture->classifier)->rate_limit, 2);
	/* The window of steps began at 1 s, and with it that of the limit. */
	fixture->now_ns = 61 * S - 1;
	push_lock(fixture, 20 * MS, 300 * MS);
	assert_true(fixture->last.suppressed);
	fixture->now_ns = 61 * S;
	push_lock(fixture, 20 * MS, 300 * MS);
	assert_false(fixture->last.suppressed);
}

static void steps_that_end_before_the_window_began_do_no_harm(void **state)
{
	struct fixture *fixture = *state;

	push_steady(fixture, 50);
	fixture->now_ns = 0;
	assert_true(push_lock(fixture, 20 * MS, 300 * MS));
	assert_false(fixture->last.suppressed);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_budget_that_is_given_is_the_budget),
		TEST(of_another_class_nothing_is_usual_here),
		TEST(a_budget_that_is_kept_hides_no_unsteadiness_below_it),
		TEST(the_next_step_is_escalated_by_hand_whatever_its_class),
		TEST(a_known_class_is_told_by_hand_too),
		TEST(by_hand_comes_before_what_else_fired),
		TEST(an_interval_can_be_escalated_by_hand),
		TEST(the_longest_call_of_an_interval_is_its_part_of_it),
		TEST(escalations_over_the_rate_limit_are_counted),
		TEST(steps_that_end_before_the_window_began_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
