/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "trace/demand.h"

#define MS 1000000ull
#define S  (1000 * MS)

/* 2 CPUs, 200 ns an event: 0.2 % are 20,000 events a second. */
static const struct demand_limits limits = {
	.limit_ppm = 2000, .idle_ns = 60 * S, .event_ps = 200000, .cpus = 2};

/* A machine with so many events a second, looked at every 10 ms. */
struct play {
	struct demand demand;
	struct demand_limits limits;
	uint64_t now_ns;
	uint64_t events;
	uint64_t rate;
};

static struct play begin(uint64_t rate)
{
	return (struct play){.limits = limits, .now_ns = 5 * S, .events = 1000000, .rate = rate};
}

static bool needs_count(const struct play *play, uint64_t in_ns)
{
	return demand_needs_count(&play->demand, &play->limits, play->now_ns + in_ns);
}

/* Up to the first act, at most for that time. */
static enum demand_act play_for(struct play *play, uint64_t ns)
{
	uint64_t end_ns = play->now_ns + ns;
	enum demand_act act = DEMAND_NOTHING;

	while (!act && play->now_ns < end_ns) {
		play->now_ns += 10 * MS;
		play->events += play->rate / 100;
		act = demand_turn(&play->demand, &play->limits, play->now_ns,
				  needs_count(play, 0) ? play->events : 0);
	}
	return act;
}

static void nothing_is_counted_or_armed_while_nothing_is_slow(void **state)
{
	struct play play = begin(1000);

	assert_false(needs_count(&play, 0));
	assert_int_equal(play_for(&play, 300 * S), DEMAND_NOTHING);
	assert_int_equal(play.demand.state, FBT_EXPLAIN_UNUSED);
}

static void the_first_need_arms_once_the_price_is_known(void **state)
{
	struct play play = begin(1000);
	uint64_t start_ns = play.now_ns;

	demand_want(&play.demand, false, play.now_ns);
	assert_int_equal(play_for(&play, 10 * S), DEMAND_ARM);
	assert_in_range(play.now_ns - start_ns, DEMAND_RATE_NS, DEMAND_RATE_NS + 50 * MS);
	assert_int_equal(play.demand.state, FBT_EXPLAIN_ARMED);
	/* 1000 x 200 ns of 2 s */
	assert_in_range(play.demand.price_ppm, 99, 101);
	assert_int_equal(play.demand.missed, 1);
}

static void a_price_above_the_limit_is_refused(void **state)
{
	struct play play = begin(20200);

	demand_want(&play.demand, false, play.now_ns);
	assert_int_equal(play_for(&play, 10 * S), DEMAND_REFUSE);
	assert_int_equal(play.demand.state, FBT_EXPLAIN_REFUSED);
	assert_int_equal(play.demand.armed_ns, 0);
}

static void a_price_below_the_limit_is_paid(void **state)
{
	struct play play = begin(19800);

	demand_want(&play.demand, false, play.now_ns);
	assert_int_equal(play_for(&play, 10 * S), DEMAND_ARM);
}

static void a_refusal_is_asked_again_after_a_minute_if_it_is_needed_then(void **state)
{
	struct play play = begin(50000);

	demand_want(&play.demand, false, play.now_ns);
	assert_int_equal(play_for(&play, S), DEMAND_REFUSE);
	/* Until then nothing is counted, however much it is wanted. */
	demand_want(&play.demand, false, play.now_ns);
	assert_false(needs_count(&play, S));
	play.rate = 1000;
	demand_want(&play.demand, false, play.now_ns);
	assert_int_equal(play_for(&play, 59 * S), DEMAND_NOTHING);
	assert_int_equal(play_for(&play, 2 * S), DEMAND_ARM);
}

static void without_a_limit_any_price_is_paid(void **state)
{
	struct play play = begin(10000000);

	play.limits.limit_ppm = 0;
	demand_want(&play.demand, false, play.now_ns);
	assert_int_equal(play_for(&play, 10 * S), DEMAND_ARM);
	assert_int_equal(play_for(&play, 30 * S), DEMAND_NOTHING);
}

static void a_minute_without_need_disarms(void **state)
{
	struct play play = begin(1000);
	uint64_t armed_ns;

	demand_want(&play.demand, false, play.now_ns);
	assert_int_equal(play_for(&play, S), DEMAND_ARM);
	armed_ns = play.now_ns;
	assert_int_equal(play_for(&play, 40 * S), DEMAND_NOTHING);
	demand_want(&play.demand, true, play.now_ns);
	assert_int_equal(play_for(&play, 59 * S), DEMAND_NOTHING);
	assert_int_equal(play_for(&play, 3 * S), DEMAND_DISARM);
	assert_int_equal(play.demand.state, FBT_EXPLAIN_OFF);
	assert_int_equal(play.demand.missed, 1);
	assert_in_range(play.demand.armed_ns, play.now_ns - armed_ns - 10 * MS,
			play.now_ns - armed_ns + 10 * MS);
	assert_in_range(play.demand.events, 99000, 103000);
	/* It is not needed any more, and counts nothing. */
	assert_false(needs_count(&play, 10 * S));
	demand_want(&play.demand, false, play.now_ns);
	assert_int_equal(play_for(&play, S), DEMAND_ARM);
	assert_int_equal(play.demand.missed, 2);
}

static void a_short_burst_is_borne_and_a_long_one_is_not(void **state)
{
	struct play play = begin(1000);

	demand_want(&play.demand, false, play.now_ns);
	assert_int_equal(play_for(&play, S), DEMAND_ARM);
	play.rate = 100000;
	assert_int_equal(play_for(&play, S), DEMAND_NOTHING);
	play.rate = 1000;
	assert_int_equal(play_for(&play, 5 * S), DEMAND_NOTHING);
	play.rate = 100000;
	assert_int_equal(play_for(&play, 5 * S), DEMAND_GIVE_UP);
	assert_int_equal(play.demand.state, FBT_EXPLAIN_REFUSED);
}

static void what_has_failed_is_not_tried_again(void **state)
{
	struct play play = begin(1000);

	demand_want(&play.demand, false, play.now_ns);
	assert_int_equal(play_for(&play, S), DEMAND_ARM);
	demand_fail(&play.demand);
	demand_want(&play.demand, false, play.now_ns);
	assert_int_equal(play_for(&play, 300 * S), DEMAND_NOTHING);
	assert_int_equal(play.demand.missed, 2);
}

static void the_last_stretch_counts(void **state)
{
	struct play play = begin(1000);

	demand_arm(&play.demand, play.now_ns, play.events);
	assert_int_equal(play_for(&play, 2500 * MS), DEMAND_NOTHING);
	demand_finish(&play.demand, play.now_ns, play.events);
	assert_int_equal(play.demand.armed_ns, 2500 * MS);
	assert_int_equal(play.demand.events, 2500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_counted_or_armed_while_nothing_is_slow),
		cmocka_unit_test(the_first_need_arms_once_the_price_is_known),
		cmocka_unit_test(a_price_above_the_limit_is_refused),
		cmocka_unit_test(a_price_below_the_limit_is_paid),
		cmocka_unit_test(a_refusal_is_asked_again_after_a_minute_if_it_is_needed_then),
		cmocka_unit_test(without_a_limit_any_price_is_paid),
		cmocka_unit_test(a_minute_without_need_disarms),
		cmocka_unit_test(a_short_burst_is_borne_and_a_long_one_is_not),
		cmocka_unit_test(what_has_failed_is_not_tried_again),
		cmocka_unit_test(the_last_stretch_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
