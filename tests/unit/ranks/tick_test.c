/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "ranks_fixture.h"

#include "ranks/tick.h"

static bool add(struct ticker *ticker, struct step step, struct tick *done)
{
	return ticker_add(ticker, &step, done);
}

static void a_tick_lasts_until_the_leading_function_is_called_again(void **state)
{
	struct ticker ticker = {.tgid = 7};
	struct tick tick;

	assert_false(add(&ticker, make_tokens(7, 10 * MS, 13 * MS, 5), &tick));
	assert_false(add(&ticker, make_step(7, SAMPLE, 14 * MS, 15 * MS), &tick));
	assert_true(add(&ticker, make_tokens(7, 20 * MS, 21 * MS, 6), &tick));
	assert_int_equal(tick.tgid, 7);
	assert_int_equal(tick.kind, EXECUTE);
	assert_int_equal(tick.number, 10000);
	assert_int_equal(tick.begin_ns, 10 * MS);
	assert_int_equal(tick.end_ns, 15 * MS);
	assert_int_equal(tick.next_ns, 20 * MS);
	assert_int_equal(tick.args[0], 5);
	assert_int_equal(tick.kinds[0].kind, EXECUTE);
	assert_int_equal(tick.kinds[0].ns, 3 * MS);
	assert_int_equal(tick.kinds[1].kind, SAMPLE);
	assert_int_equal(tick.kinds[1].ns, MS);
	assert_int_equal(tick.kinds[2].kind, 0);
	assert_int_equal(tick.parts_ns[STEP_OWN], 4 * MS);
	assert_int_equal(tick.parts_ns[TICK_BETWEEN], MS);
	assert_true(tick.parts_known && tick.calls_known && tick.gap_known);
	assert_true(ticker_end(&ticker, &tick));
	assert_int_equal(tick.args[0], 6);
	assert_true(tick.next_ns == UINT64_MAX);
	assert_false(ticker_end(&ticker, &tick));
}

/* Tracing begins between the two. */
static void the_function_with_arguments_leads(void **state)
{
	struct ticker ticker = {.tgid = 7};
	struct tick tick;

	assert_false(add(&ticker, make_step(7, SAMPLE, 4 * MS, 5 * MS), &tick));
	assert_false(add(&ticker, make_tokens(7, 10 * MS, 13 * MS, 5), &tick));
	assert_false(add(&ticker, make_step(7, SAMPLE, 14 * MS, 15 * MS), &tick));
	assert_true(ticker_end(&ticker, &tick));
	assert_int_equal(tick.kind, EXECUTE);
	assert_int_equal(tick.begin_ns, 10 * MS);
	assert_int_equal(tick.end_ns, 15 * MS);
}

static void without_arguments_the_first_function_leads(void **state)
{
	struct ticker ticker = {.tgid = 7};
	struct tick tick;

	assert_false(add(&ticker, make_step(7, SAMPLE, 4 * MS, 5 * MS), &tick));
	assert_false(add(&ticker, make_step(7, EXECUTE, 10 * MS, 13 * MS), &tick));
	assert_true(add(&ticker, make_step(7, SAMPLE, 14 * MS, 15 * MS), &tick));
	assert_int_equal(tick.kind, SAMPLE);
	assert_int_equal(tick.end_ns, 13 * MS);
}

static void steps_that_were_cut_off_are_in_no_tick(void **state)
{
	struct step cut = make_tokens(7, 10 * MS, 13 * MS, 5);
	struct ticker ticker = {.tgid = 7};
	struct tick tick;

	cut.record.end = FBT_END_TRUNCATED;
	assert_false(add(&ticker, cut, &tick));
	assert_false(ticker_end(&ticker, &tick));
}

static struct step profiled(struct step step)
{
	step.record.header.flags |= FBT_STEP_PROFILED;
	return step;
}

static void steps_under_pytorchs_profiler_are_in_no_tick(void **state)
{
	struct ticker ticker = {.tgid = 7};
	struct tick tick;

	assert_false(add(&ticker, make_tokens(7, 10 * MS, 13 * MS, 5), &tick));
	assert_false(add(&ticker, make_step(7, SAMPLE, 14 * MS, 15 * MS), &tick));
	assert_true(add(&ticker, profiled(make_tokens(7, 20 * MS, 29 * MS, 6)), &tick));
	assert_int_equal(tick.begin_ns, 10 * MS);
	assert_int_equal(tick.next_ns, 20 * MS);
	assert_false(add(&ticker, profiled(make_step(7, SAMPLE, 30 * MS, 35 * MS)), &tick));
	assert_false(add(&ticker, make_step(7, SAMPLE, 36 * MS, 37 * MS), &tick));
	assert_false(ticker_end(&ticker, &tick));
	assert_false(add(&ticker, make_tokens(7, 40 * MS, 42 * MS, 7), &tick));
	assert_true(ticker_end(&ticker, &tick));
	assert_int_equal(tick.begin_ns, 40 * MS);
}

static void parts_are_those_of_all_steps_and_of_the_gaps_between(void **state)
{
	struct step first = make_tokens(7, 10 * MS, 20 * MS, 5);
	struct step second = make_step(7, SAMPLE, 40 * MS, 45 * MS);
	struct ticker ticker = {.tgid = 7};
	struct tick tick;
	uint64_t sum_ns = 0;

	first.record.cpu_ns = 4 * MS;
	first.record.run_delay_ns = 6 * MS;
	second.record.gap_ns = 20 * MS;
	second.stalls.record.gc_own_ns = 2 * MS;
	second.stalls.record.gil_ns = MS;
	second.record.cpu_ns = 3 * MS;
	second.record.asleep_ns = 2 * MS;
	second.record.sums[FBT_FUTEX] = (struct fbt_sum){.ns = 2 * MS, .calls = 2};
	second.gap = (struct step_gap){.known = true,
				       .cpu_ns = MS,
				       .delay_ns = 3 * MS,
				       .stopped_ns = 7 * MS,
				       .off_ns = 5 * MS,
				       .stop = {.header.type = FBT_EVENT_STOP, .tid = 7}};
	assert_false(add(&ticker, first, &tick));
	assert_false(add(&ticker, second, &tick));
	assert_true(ticker_end(&ticker, &tick));
	assert_int_equal(tick.parts_ns[STEP_OWN], 4 * MS + MS);
	assert_int_equal(tick.parts_ns[STEP_CALLS + FBT_FUTEX], MS);
	assert_int_equal(tick.parts_ns[TICK_GIL], MS);
	assert_int_equal(tick.parts_ns[TICK_GC], 2 * MS);
	assert_int_equal(tick.parts_ns[STEP_CPU_WAIT], 6 * MS + 3 * MS);
	assert_int_equal(tick.parts_ns[STEP_STOPPED], 7 * MS);
	assert_int_equal(tick.parts_ns[STEP_OFF_CPU], 5 * MS);
	assert_int_equal(tick.parts_ns[TICK_BETWEEN], 5 * MS);
	assert_int_equal(tick.stop.tid, 7);
	for (int i = 0; i < TICK_PARTS; i++)
		sum_ns += tick.parts_ns[i];
	assert_int_equal(sum_ns, 35 * MS);
}

static void a_wait_for_a_cpu_is_that_of_the_limit_if_that_was_reached_so_long(void **state)
{
	struct step step = make_tokens(7, 10 * MS, 20 * MS, 5);
	struct ticker ticker = {.tgid = 7};
	struct tick tick;

	step.record.cpu_ns = 2 * MS;
	step.record.run_delay_ns = 8 * MS;
	step.record.limits.throttled_ns = 4 * MS - 1;
	add(&ticker, step, &tick);
	assert_true(ticker_end(&ticker, &tick));
	assert_int_equal(tick.parts_ns[STEP_CPU_WAIT], 8 * MS);
	step.record.limits.throttled_ns = 4 * MS;
	add(&ticker, step, &tick);
	assert_true(ticker_end(&ticker, &tick));
	assert_int_equal(tick.parts_ns[STEP_CPU_WAIT], 0);
	assert_int_equal(tick.parts_ns[TICK_CPU_LIMIT], 8 * MS);
	/* 64 CPUs were throttled for as long together, in periods much shorter than the wait. */
	step.record.limits.throttled_ns = 64 * MS;
	step.record.limits.throttled_periods = 1;
	step.record.limits.period_ns = MS;
	add(&ticker, step, &tick);
	assert_true(ticker_end(&ticker, &tick));
	assert_int_equal(tick.parts_ns[STEP_CPU_WAIT], 8 * MS);
	assert_int_equal(tick.parts_ns[TICK_CPU_LIMIT], 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test(name)
	const struct CMUnitTest tests[] = {
		TEST(a_tick_lasts_until_the_leading_function_is_called_again),
		TEST(the_function_with_arguments_leads),
		TEST(without_arguments_the_first_function_leads),
		TEST(steps_that_were_cut_off_are_in_no_tick),
		TEST(steps_under_pytorchs_profiler_are_in_no_tick),
		TEST(parts_are_those_of_all_steps_and_of_the_gaps_between),
		TEST(a_wait_for_a_cpu_is_that_of_the_limit_if_that_was_reached_so_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
