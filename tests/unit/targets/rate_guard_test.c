/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "targets/rate_guard.h"

#define MS 1000000ull
#define S  (1000 * MS)

static const struct rate_limits limits = {.share = 0.05, .period_ns = S};

/* A function whose enabled probes take the given share of a CPU, and a tool that looks at it. */
struct play {
	struct rate_guard guard;
	int64_t credit_ns; /* of the function's CPU */
	struct rate_limits limits;
	uint64_t now_ns;
	uint64_t turn_ns;   /* between two looks */
	uint64_t switch_ns; /* duration of a switch; the probes are hit until its end */
	double share;
	double runs;	     /* share of time that its thread runs; below 1 the thread has excess */
	double beside;	     /* share that other watched functions take */
	unsigned int others; /* number of sampled functions */
	uint64_t spent_ns;
	uint64_t on_ns;
	uint64_t off_at_ns; /* when it was first switched off; 0: not yet */
	int switches;
	int kept_on;
};

static struct play begin(double share)
{
	struct play play = {
		.limits = limits, .turn_ns = 10 * MS, .share = share, .runs = 1, .now_ns = 5 * S};

	rate_guard_begin(&play.guard, play.now_ns);
	play.credit_ns = RATE_BURST_NS;
	return play;
}

/* As step_guard does: watched functions share the budget, sampled ones have slices. */
static enum rate_verdict look(struct play *play, const struct rate_cost *cost, uint64_t time_ns)
{
	bool is_watched = play->guard.state == RATE_WATCHED;

	play->limits.sampled = play->others + !is_watched;
	if (!is_watched)
		return rate_guard_look(&play->guard, &play->limits, play->now_ns, cost);
	rate_guard_spend(&play->guard, time_ns, cost);
	if (!rate_budget_look(&play->credit_ns, &play->limits, time_ns,
			      cost->beside_ns + cost->spent_ns) &&
	    !rate_guard_is_over(&play->guard))
		return RATE_STAY;
	rate_guard_let_go(&play->guard, play->now_ns);
	return RATE_SWITCH_OFF;
}

/* The excess of a thread that owes the maximum: see struct fbt_hits. */
static uint64_t excess(const struct play *play, uint64_t spent_ns)
{
	double paid_ns = (double)play->turn_ns * play->runs * play->limits.share;

	return (double)spent_ns > paid_ns && play->runs < 1 ? spent_ns - (uint64_t)paid_ns : 0;
}

static uint64_t pass(struct play *play, uint64_t ns, double *left)
{
	uint64_t spent_ns = 0;

	play->now_ns += ns;
	if (play->guard.state == RATE_OFF)
		return 0;
	*left += (double)ns * play->share;
	spent_ns = (uint64_t)*left;
	*left -= (double)spent_ns;
	play->spent_ns += spent_ns;
	play->on_ns += ns;
	return spent_ns;
}

static void run(struct play *play, uint64_t ns)
{
	uint64_t end_ns = play->now_ns + ns, late_ns = 0;
	double left = 0;

	while (play->now_ns < end_ns) {
		uint64_t spent_ns = pass(play, play->turn_ns, &left) + late_ns;
		enum rate_state before = play->guard.state;
		struct rate_cost cost = {.spent_ns = spent_ns,
					 .excess_ns = excess(play, spent_ns),
					 .beside_ns =
						 (uint64_t)((double)play->turn_ns * play->beside)};
		enum rate_verdict verdict = look(play, &cost, play->turn_ns);

		late_ns = 0;
		if (verdict == RATE_STAY) {
			assert_int_equal(play->guard.state, before);
			continue;
		}
		play->switches += verdict != RATE_KEEP_ON;
		play->kept_on += verdict == RATE_KEEP_ON;
		if (verdict == RATE_SWITCH_OFF && !play->off_at_ns)
			play->off_at_ns = play->now_ns;
		if (verdict == RATE_SWITCH_OFF) {
			late_ns = (uint64_t)((double)play->switch_ns * play->share);
			play->spent_ns += late_ns;
			play->on_ns += play->switch_ns;
			play->now_ns += play->switch_ns;
		}
	}
}

static void what_an_engine_does_is_let_be(void **state)
{
	/* 5,000 steps a second, with two probes of 10 us each. */
	struct play play = begin(0.0499);

	(void)state;
	run(&play, 3600 * S);
	assert_int_equal(play.switches, 0);
	assert_int_equal(play.guard.state, RATE_WATCHED);
}

static void a_burst_is_let_be(void **state)
{
	struct play play = begin(0.9);

	(void)state;
	for (int i = 0; i < 100; i++) {
		play.share = 0.9;
		run(&play, 50 * MS);
		play.share = 0;
		run(&play, S);
	}
	assert_int_equal(play.switches, 0);
}

static void a_hot_function_is_let_go_within_200_ms(void **state)
{
	struct play play = begin(1);

	(void)state;
	run(&play, 200 * MS);
	assert_int_equal(play.switches, 1);
	assert_in_range(play.off_at_ns - 5 * S, 10 * MS, 70 * MS);
}

/* However often it is called, a sampled function costs about a hundredth. */
static void what_is_let_go_costs_little_and_is_still_seen(void **state)
{
	static const double shares[] = {0.06, 0.1, 0.3, 0.6, 1};

	(void)state;
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		struct play play = begin(shares[i]);
		uint64_t on_ns;

		run(&play, 20 * S);
		assert_int_not_equal(play.off_at_ns, 0);
		play.spent_ns = 0;
		on_ns = play.on_ns;
		run(&play, 100 * S);
		assert_in_range(play.spent_ns, 700 * MS, 2100 * MS);
		assert_true(play.on_ns - on_ns >= S);
		assert_int_equal(play.kept_on, 0);
	}
}

static void slow_switches_make_longer_periods(void **state)
{
	struct play play = begin(1);

	(void)state;
	play.switch_ns = 400 * MS;
	run(&play, 10 * S);
	play.spent_ns = 0;
	run(&play, 400 * S);
	assert_in_range(play.spent_ns, 3 * S, 5 * S);
}

static void slow_probes_are_on_once_a_minute(void **state)
{
	struct play play = begin(1);

	(void)state;
	play.limits.period_ns = 60 * S;
	play.switch_ns = 300 * MS;
	run(&play, 59 * S);
	assert_int_equal(play.switches, 1);
	run(&play, 600 * S);
	assert_in_range(play.switches, 14, 24);
	assert_in_range(play.spent_ns, 5 * S, 12 * S);
}

static void a_function_that_calms_down_is_seen_whole_again(void **state)
{
	struct play play = begin(0.8);

	(void)state;
	run(&play, 5 * S);
	play.share = 0.02;
	run(&play, 3 * S);
	assert_int_equal(play.kept_on, 1);
	assert_int_equal(play.guard.state, RATE_WATCHED);
	/* The function is let go again. */
	play.off_at_ns = 0;
	play.share = 1;
	run(&play, 100 * MS);
	assert_int_equal(play.guard.state, RATE_OFF);
}

/* On a busy machine, the share of the running thread counts, not that of the CPU. */
static void a_function_of_a_thread_that_rarely_runs_is_let_go(void **state)
{
	struct play play = begin(0.04);

	(void)state;
	play.runs = 0.05;
	run(&play, 3 * S);
	assert_int_not_equal(play.off_at_ns, 0);
	run(&play, 10 * S);
	assert_int_equal(play.kept_on, 0);
}

/* That is known after a short time. */
static void a_function_that_is_called_no_more_is_watched(void **state)
{
	struct play play = begin(1);

	(void)state;
	run(&play, S);
	play.share = 0;
	play.runs = 0;
	run(&play, 3 * S);
	assert_int_equal(play.kept_on, 1);
}

/* The tool was stopped for 10 s, and one look sees the whole cost. */
static void what_a_late_look_finds_is_paid_back(void **state)
{
	struct play play = begin(1);

	(void)state;
	run(&play, 5 * S);
	play.turn_ns = 10 * S;
	run(&play, 20 * S);
	play.turn_ns = 10 * MS;
	play.spent_ns = 0;
	run(&play, 400 * S);
	assert_in_range(play.spent_ns, 0, 5 * S);
}

static void a_small_limit_is_kept(void **state)
{
	struct play play = begin(0.5);

	(void)state;
	play.limits.share = 0.002;
	run(&play, 10 * S);
	play.spent_ns = 0;
	run(&play, 1000 * S);
	assert_in_range(play.spent_ns, S / 2, 2 * S);
}

/* Two functions at 3 % each exceed 5 %, although neither does alone. */
static void all_functions_have_one_budget(void **state)
{
	struct play play = begin(0.03);

	(void)state;
	run(&play, 100 * S);
	assert_int_equal(play.switches, 0);
	play.beside = 0.03;
	run(&play, 10 * S);
	assert_int_not_equal(play.off_at_ns, 0);
	/* It finds no room in the budget until the other function has gone. */
	run(&play, 100 * S);
	assert_int_equal(play.kept_on, 0);
	play.beside = 0;
	run(&play, 3 * S);
	assert_int_equal(play.kept_on, 1);
}

/* Slices take their part of the budget, so that all functions together keep to the share. */
static void those_that_are_sampled_have_a_part_of_the_budget(void **state)
{
	struct rate_limits some = limits;
	struct play play = begin(0.045);

	(void)state;
	run(&play, 100 * S);
	assert_int_equal(play.switches, 0);
	play.others = 1;
	run(&play, 100 * S);
	assert_int_not_equal(play.off_at_ns, 0);
	for (some.sampled = 0; some.sampled < 64; some.sampled++) {
		double share = rate_watched_share(&some);

		assert_true(share >= limits.share / 2 - 1e-9 && share <= limits.share);
	}
}

/* Half of the share is for all slices together. */
static void many_that_are_sampled_share_what_there_is(void **state)
{
	struct play play = begin(1);

	(void)state;
	play.others = 24;
	run(&play, 10 * S);
	play.spent_ns = 0;
	run(&play, 1000 * S);
	/* A look comes every 10 ms, so each slice is at least that long. */
	assert_in_range(play.spent_ns, S / 2, 3 * S);
}

static void it_is_known_who_has_spent_most_lately(void **state)
{
	const struct rate_cost none = {0}, some = {.spent_ns = 3 * MS}, much = {.spent_ns = 9 * MS};
	struct rate_guard was = {0}, is = {0};

	(void)state;
	rate_guard_begin(&was, S);
	rate_guard_begin(&is, S);
	for (int i = 0; i < 100; i++)
		rate_guard_spend(&was, 10 * MS, &much);
	assert_true(was.lately_ns > is.lately_ns);
	for (int i = 0; i < 200; i++) {
		rate_guard_spend(&was, 10 * MS, &none);
		rate_guard_spend(&is, 10 * MS, &some);
	}
	assert_true(is.lately_ns > was.lately_ns);
	rate_guard_spend(&is, 100 * S, &none);
	assert_true(is.lately_ns < 1);
}

static void excess_is_let_be_where_it_is_little_or_forgiven(void **state)
{
	const struct rate_cost some = {.excess_ns = RATE_EXCESS_NS / 10};
	const struct rate_cost much = {.excess_ns = RATE_EXCESS_NS};
	struct rate_guard guard = {0};

	(void)state;
	rate_guard_begin(&guard, S);
	for (int i = 0; i < 100; i++) {
		rate_guard_spend(&guard, 200 * MS, &some);
		assert_false(rate_guard_is_over(&guard));
	}
	rate_guard_spend(&guard, 10 * MS, &much);
	assert_true(rate_guard_is_over(&guard));
	rate_guard_forgive(&guard);
	assert_false(rate_guard_is_over(&guard));
}

static void a_clock_that_stands_still_does_no_harm(void **state)
{
	struct play play = begin(1);
	const struct rate_cost none = {0}, much = {.spent_ns = UINT64_MAX / 2};

	(void)state;
	assert_int_equal(look(&play, &none, 0), RATE_STAY);
	play.now_ns--;
	assert_int_equal(look(&play, &(struct rate_cost){.spent_ns = 1}, 0), RATE_STAY);
	assert_int_equal(look(&play, &much, 0), RATE_SWITCH_OFF);
	play.now_ns--;
	assert_int_equal(look(&play, &none, 0), RATE_STAY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_an_engine_does_is_let_be),
		cmocka_unit_test(a_burst_is_let_be),
		cmocka_unit_test(a_hot_function_is_let_go_within_200_ms),
		cmocka_unit_test(what_is_let_go_costs_little_and_is_still_seen),
		cmocka_unit_test(slow_switches_make_longer_periods),
		cmocka_unit_test(slow_probes_are_on_once_a_minute),
		cmocka_unit_test(a_function_that_calms_down_is_seen_whole_again),
		cmocka_unit_test(a_function_of_a_thread_that_rarely_runs_is_let_go),
		cmocka_unit_test(a_function_that_is_called_no_more_is_watched),
		cmocka_unit_test(what_a_late_look_finds_is_paid_back),
		cmocka_unit_test(a_small_limit_is_kept),
		cmocka_unit_test(all_functions_have_one_budget),
		cmocka_unit_test(those_that_are_sampled_have_a_part_of_the_budget),
		cmocka_unit_test(many_that_are_sampled_share_what_there_is),
		cmocka_unit_test(it_is_known_who_has_spent_most_lately),
		cmocka_unit_test(excess_is_let_be_where_it_is_little_or_forgiven),
		cmocka_unit_test(a_clock_that_stands_still_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
