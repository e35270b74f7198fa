/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Anomalies that recur do not become usual; what steps mostly do, does. */
#include "classify_fixture.h"

/* Steps of 30 ms of work. One in so many has that much work, and waits that long: how many were
 * named. */
static uint64_t push_recurring(struct fixture *fixture, uint64_t count, uint64_t every,
			       uint64_t work_ns, uint64_t lock_ns)
{
	uint64_t named = 0;

	for (uint64_t i = 1; i <= count; i++) {
		if (i % every == 0)
			named += push_lock(fixture, work_ns, lock_ns);
		else
			assert_false(push_lock(fixture, 30 * MS, 100 * US));
	}
	return named;
}

static void an_anomaly_with_more_work_never_becomes_usual(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.thresholds.rate_limit = UINT32_MAX;
	begin(fixture);
	assert_int_equal(push_recurring(fixture, 2000, 20, 43 * MS, 400 * MS), 100);
	assert_int_equal(fixture->last.cause.kind, CAUSE_LOCK_CONTENTION);
	assert_true(fixture->last.nearest);
	assert_true(fixture->last.fired & bit(ESCALATION_EFFICIENCY_LOW));
	assert_true(fixture->last.budget_ns < 50 * MS);
}

static void an_anomaly_with_less_work_never_becomes_usual(void **state)
{
	assert_int_equal(push_recurring(*state, 2000, 20, 15 * MS, 400 * MS), 100);
}

/* No class is near: it is held against what the function does mostly. */
static void an_anomaly_with_far_less_work_never_becomes_usual(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(push_recurring(fixture, 2000, 20, MS, 400 * MS), 100);
	/* Nor does one that only waits. */
	fixture->options.thresholds.rate_limit = UINT32_MAX;
	begin(fixture);
	assert_int_equal(push_recurring(fixture, 2000, 10, 0, 400 * MS), 199);
}

static void an_anomaly_with_far_more_work_never_becomes_usual(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.thresholds.rate_limit = UINT32_MAX;
	begin(fixture);
	assert_int_equal(push_recurring(fixture, 2000, 20, 400 * MS, 4000 * MS), 100);
	assert_int_equal(fixture->last.cause.kind, CAUSE_LOCK_CONTENTION);
	/* 400 of 1,400 ms are 29 %. */
	begin(fixture);
	assert_int_equal(push_recurring(fixture, 2000, 20, 400 * MS, 1000 * MS), 0);
}

/* Every fifth step is another sort of step. */
static void far_away_what_is_not_rare_is_usual(void **state)
{
	assert_in_range(push_recurring(*state, 2000, 5, MS, 400 * MS), 0, 60);
}

/* Each is nearer to the next than to the usual steps. */
static void anomalies_of_several_sizes_vouch_for_none_of_them(void **state)
{
	struct fixture *fixture = *state;
	static const uint64_t works[] = {43 * MS, 86 * MS, 172 * MS, 15 * MS, 7 * MS};
	uint64_t named = 0, seed = 5;

	push_steady(fixture, 20);
	for (int i = 0; i < 6000; i++) {
		if (i % 20 == 0)
			named += push_lock(fixture, works[random_below(&seed, 5)], 1000 * MS);
		else
			assert_false(push_lock(fixture, 30 * MS, 100 * US));
	}
	assert_int_equal(named, 300);
}

/*
 * Usual steps on both sides of the edge at 33.55 ms: those beyond it share a class with the slow
 * ones. That class is more than half as common as its neighbours; its slow steps are not.
 */
static void usual_steps_beyond_an_edge_vouch_for_no_anomaly(void **state)
{
	static const uint64_t works[] = {30, 12, 43, 30, 12, 30, 34, 30, 12, 43,
					 30, 12, 30, 34, 30, 12, 43, 30, 12, 30};
	struct fixture *fixture = *state;
	uint64_t named = 0;

	fixture->options.thresholds.rate_limit = UINT32_MAX;
	begin(fixture);
	push_steady(fixture, 20);
	for (size_t i = 0; i < 2000; i++) {
		uint64_t work_ns = works[i % 20] * MS;

		if (work_ns == 43 * MS)
			named += push_lock(fixture, work_ns, 400 * MS);
		else
			assert_false(push_lock(fixture, work_ns, 100 * US));
	}
	assert_int_equal(named, 300);
}

static void what_every_second_step_does_is_usual(void **state)
{
	assert_in_range(push_recurring(*state, 2000, 2, 43 * MS, 400 * MS), 0, 60);
}

static void a_class_that_all_steps_move_to_becomes_usual(void **state)
{
	struct fixture *fixture = *state;
	uint64_t named = 0;

	push_steady(fixture, 200);
	for (int i = 0; i < 200; i++)
		named += push_lock(fixture, 43 * MS, 400 * MS);
	assert_in_range(named, 10, 64);
	assert_false(push_lock(fixture, 43 * MS, 400 * MS));
	push_steady(fixture, 200);
}

/* A prefill waits for the GPU for as much longer as it has more work, from the first one on. */
static void waits_that_grow_with_the_work_are_usual(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 1; i < 1000; i++)
		assert_false(i % 20 ? push_lock(fixture, MS, 8 * MS)
				    : push_lock(fixture, 7 * MS, 56 * MS));
}

/* A loop that finds nothing to do most of the time is no standard for the steps of real work. */
static void much_shorter_steps_are_no_standard(void **state)
{
	struct fixture *fixture = *state;
	uint64_t named = 0;

	for (int i = 1; i < 1000; i++)
		named += i % 20 ? push_lock(fixture, 10 * US, 0) : push_lock(fixture, MS, 9 * MS);
	assert_int_equal(named, 10);
}

static void which_class_is_an_anomaly_goes_by_the_threshold(void **state)
{
	struct fixture *fixture = *state;

	/* 43.1 of 83 ms are 52 %. */
	assert_int_equal(push_recurring(fixture, 1000, 20, 43 * MS, 40 * MS), 0);
	fixture->options.thresholds.efficiency_percent = 53;
	begin(fixture);
	assert_int_equal(push_recurring(fixture, 1000, 20, 43 * MS, 40 * MS), 50);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(an_anomaly_with_more_work_never_becomes_usual),
		TEST(an_anomaly_with_less_work_never_becomes_usual),
		TEST(an_anomaly_with_far_less_work_never_becomes_usual),
		TEST(an_anomaly_with_far_more_work_never_becomes_usual),
		TEST(far_away_what_is_not_rare_is_usual),
		TEST(anomalies_of_several_sizes_vouch_for_none_of_them),
		TEST(usual_steps_beyond_an_edge_vouch_for_no_anomaly),
		TEST(what_every_second_step_does_is_usual),
		TEST(a_class_that_all_steps_move_to_becomes_usual),
		TEST(waits_that_grow_with_the_work_are_usual),
		TEST(much_shorter_steps_are_no_standard),
		TEST(which_class_is_an_anomaly_goes_by_the_threshold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
