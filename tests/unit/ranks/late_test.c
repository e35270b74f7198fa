/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "ranks_fixture.h"

#include "ranks/late.h"

enum { RANKS = 3 };

/* All ranks from 100 to 110 ms, of which they compute all. */
static int setup(void **state)
{
	struct tick *ranks = calloc(RANKS, sizeof(*ranks));

	assert_non_null(ranks);
	for (int i = 0; i < RANKS; i++)
		ranks[i] = (struct tick){.begin_ns = 100 * MS,
					 .end_ns = 110 * MS,
					 .parts_ns = {[STEP_OWN] = 10 * MS},
					 .parts_known = true,
					 .calls_known = true,
					 .gap_known = true,
					 .gap_ns = 50 * MS};
	*state = ranks;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static struct late lates[RANKS];

/* The late rank. */
static size_t find(const struct tick *ranks)
{
	late_find(ranks, RANKS, lates);
	return late_choose(lates, RANKS, 10 * MS);
}

/* Moves ns from one part to another one. */
static void move(struct tick *tick, int from, int to, uint64_t ns)
{
	tick->parts_ns[from] -= ns;
	tick->parts_ns[to] += ns;
}

static void ranks_that_are_alike_are_not_late(void **state)
{
	assert_int_equal(find(*state), RANKS);
	for (int i = 0; i < RANKS; i++)
		assert_int_equal(lates[i].total_ns, 0);
}

static void one_rank_is_never_late(void **state)
{
	struct tick *ranks = *state;

	ranks[0].parts_ns[STEP_STOPPED] = 9 * MS;
	late_find(ranks, 1, lates);
	assert_int_equal(late_choose(lates, 1, 10 * MS), 1);
	assert_int_equal(lates[0].total_ns, 0);
}

static void a_rank_is_late_that_was_held_while_the_others_spun(void **state)
{
	static const enum tick_part parts[] = {(enum tick_part)STEP_STOPPED,
					       (enum tick_part)STEP_CPU_WAIT,
					       (enum tick_part)STEP_DISK_WAIT,
					       (enum tick_part)STEP_OFF_CPU,
					       (enum tick_part)STEP_FAULTS,
					       TICK_GC,
					       TICK_GIL,
					       TICK_CPU_LIMIT};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct tick *ranks = *state;

		move(&ranks[1], STEP_OWN, parts[i], 6 * MS);
		assert_int_equal(find(ranks), 1);
		assert_int_equal(lates[1].where, LATE_WITHIN);
		assert_int_equal(lates[1].total_ns, 6 * MS);
		assert_int_equal(lates[1].cause, parts[i]);
		assert_int_equal(lates[1].cause_ns, 6 * MS);
		assert_int_equal(lates[0].total_ns, 0);
		move(&ranks[1], parts[i], STEP_OWN, 6 * MS);
	}
}

static void what_all_ranks_have_holds_none(void **state)
{
	struct tick *ranks = *state;

	for (int i = 0; i < RANKS; i++)
		move(&ranks[i], STEP_OWN, STEP_CPU_WAIT, 6 * MS);
	assert_int_equal(find(ranks), RANKS);
	move(&ranks[2], STEP_OWN, STEP_CPU_WAIT, 2 * MS);
	assert_int_equal(find(ranks), 2);
	assert_int_equal(lates[2].total_ns, 2 * MS);
}

static void a_rank_that_computes_is_late_if_the_others_wait_in_calls(void **state)
{
	struct tick *ranks = *state;

	move(&ranks[0], STEP_OWN, STEP_CALLS + FBT_FUTEX, 7 * MS);
	move(&ranks[2], STEP_OWN, STEP_CALLS + FBT_OTHER, 6 * MS);
	assert_int_equal(find(ranks), 1);
	assert_int_equal(lates[1].where, LATE_WITHIN);
	assert_int_equal(lates[1].cause, STEP_OWN);
	assert_int_equal(lates[1].total_ns, 6 * MS);
}

/* They may have waited for either of the two that compute. */
static void of_two_that_compute_none_is_late(void **state)
{
	struct tick *ranks = *state;

	move(&ranks[0], STEP_OWN, STEP_CALLS + FBT_FUTEX, 7 * MS);
	assert_int_equal(find(ranks), RANKS);
}

static void a_rank_begins_late_by_what_it_did_before(void **state)
{
	struct tick *ranks = *state;

	ranks[1].begin_ns = 108 * MS;
	ranks[1].parts_ns[STEP_OWN] = 2 * MS;
	ranks[1].gap = (struct step_gap){
		.known = true,
		.delay_ns = MS,
		.stopped_ns = 6 * MS,
		.stop = {.header.type = FBT_EVENT_STOP, .time_ns = 106 * MS, .tid = 9}};
	assert_int_equal(find(ranks), 1);
	assert_int_equal(lates[1].where, LATE_BEGINS);
	assert_int_equal(lates[1].total_ns, 8 * MS);
	assert_int_equal(lates[1].cause, STEP_STOPPED);
	assert_int_equal(lates[1].cause_ns, 6 * MS);
	assert_int_equal(lates[1].stop.tid, 9);
	/* In a call, or on a CPU. */
	ranks[1].gap = (struct step_gap){.known = true, .delay_ns = MS};
	assert_int_equal(find(ranks), 1);
	assert_int_equal(lates[1].cause, TICK_BETWEEN);
	assert_int_equal(lates[1].cause_ns, 8 * MS);
}

/* The gaps are long, because the engine was idle. */
static void what_all_ranks_had_in_the_gap_makes_none_late(void **state)
{
	struct tick *ranks = *state;

	for (int i = 0; i < RANKS; i++) {
		ranks[i].gap_ns = 2000 * MS;
		ranks[i].gap =
			(struct step_gap){.known = true, .delay_ns = 30 * MS, .off_ns = 40 * MS};
	}
	ranks[1].begin_ns = 103 * MS;
	assert_int_equal(find(ranks), 1);
	assert_int_equal(lates[1].where, LATE_BEGINS);
	assert_int_equal(lates[1].cause, TICK_BETWEEN);
	ranks[1].gap.delay_ns = 32 * MS;
	assert_int_equal(find(ranks), 1);
	assert_int_equal(lates[1].cause, STEP_CPU_WAIT);
	assert_int_equal(lates[1].cause_ns, 2 * MS);
	/* Of the others nothing is known. */
	ranks[0].gap_known = ranks[2].gap_known = false;
	assert_int_equal(find(ranks), 1);
	assert_int_equal(lates[1].cause_ns, 3 * MS);
}

static void a_stop_that_was_over_before_the_first_began_makes_none_late(void **state)
{
	struct tick *ranks = *state;

	for (int i = 0; i < RANKS; i++) {
		ranks[i].begin_ns += 1000 * MS;
		ranks[i].end_ns += 1000 * MS;
		ranks[i].gap_ns = 2000 * MS;
	}
	ranks[1].begin_ns += 3 * MS;
	ranks[1].gap = (struct step_gap){
		.known = true,
		.stopped_ns = 500 * MS,
		.stop = {.header.type = FBT_EVENT_STOP, .time_ns = 1080 * MS - 1}};
	assert_int_equal(find(ranks), 1);
	assert_int_equal(lates[1].cause, TICK_BETWEEN);
	assert_int_equal(lates[1].stop.header.type, 0);
	ranks[1].gap.stop.time_ns++;
	assert_int_equal(find(ranks), 1);
	assert_int_equal(lates[1].cause, STEP_STOPPED);
	assert_int_equal(lates[1].cause_ns, 3 * MS);
}

/* The counter of the limit is one for all: it may explain the wait of one rank only. */
static void ranks_that_wait_equally_long_for_a_cpu_are_not_late(void **state)
{
	struct tick *ranks = *state;

	move(&ranks[0], STEP_OWN, STEP_CPU_WAIT, 6 * MS);
	move(&ranks[1], STEP_OWN, TICK_CPU_LIMIT, 6 * MS);
	move(&ranks[2], STEP_OWN, STEP_CPU_WAIT, 6 * MS);
	assert_int_equal(find(ranks), RANKS);
	for (int i = 0; i < RANKS; i++)
		assert_int_equal(lates[i].total_ns, 0);
	move(&ranks[1], STEP_OWN, TICK_CPU_LIMIT, 3 * MS);
	assert_int_equal(find(ranks), 1);
	assert_int_equal(lates[1].total_ns, 3 * MS);
	assert_int_equal(lates[1].cause, TICK_CPU_LIMIT);
}

static void that_the_tick_before_ended_late_is_not_counted_again(void **state)
{
	struct tick *ranks = *state;

	ranks[1].begin_ns = 108 * MS;
	ranks[1].parts_ns[STEP_OWN] = 2 * MS;
	ranks[1].gap_ns = 50 * US;
	assert_int_equal(find(ranks), RANKS);
	assert_int_equal(lates[1].total_ns, 50 * US);
	assert_int_equal(lates[1].carried_ns, 8 * MS - 50 * US);
}

/* The others have no CPU either while they wait for it to begin. */
static void what_holds_a_rank_that_waits_for_another_makes_nobody_wait(void **state)
{
	struct tick *ranks = *state;

	ranks[1].begin_ns = 108 * MS;
	ranks[1].parts_ns[STEP_OWN] = 2 * MS;
	move(&ranks[0], STEP_OWN, STEP_CPU_WAIT, 9 * MS);
	assert_int_equal(find(ranks), 1);
	assert_int_equal(lates[0].total_ns, MS);
}

static void a_rank_ends_late_for_what_it_has_more_of_than_the_others(void **state)
{
	struct tick *ranks = *state;

	ranks[2].end_ns = 130 * MS;
	ranks[2].parts_ns[STEP_CALLS + FBT_WRITE] = 15 * MS;
	ranks[2].parts_ns[STEP_OWN] = 15 * MS;
	assert_int_equal(find(ranks), 2);
	assert_int_equal(lates[2].where, LATE_ENDS);
	assert_int_equal(lates[2].total_ns, 20 * MS);
	assert_int_equal(lates[2].cause, STEP_CALLS + FBT_WRITE);
	/* What held it explains its end, and is not counted twice. */
	ranks[2].parts_ns[STEP_CALLS + FBT_WRITE] = 0;
	ranks[2].parts_ns[STEP_STOPPED] = 20 * MS;
	ranks[2].parts_ns[STEP_OWN] = 10 * MS;
	assert_int_equal(find(ranks), 2);
	assert_int_equal(lates[2].where, LATE_ENDS);
	assert_int_equal(lates[2].total_ns, 20 * MS);
	assert_int_equal(lates[2].cause, STEP_STOPPED);
}

static void an_end_is_late_beyond_what_the_begin_was(void **state)
{
	struct tick *ranks = *state;

	ranks[0].begin_ns = 120 * MS;
	ranks[0].end_ns = 131 * MS;
	ranks[0].parts_ns[STEP_OWN] = 11 * MS;
	assert_int_equal(find(ranks), 0);
	assert_int_equal(lates[0].ns[LATE_BEGINS], 20 * MS);
	assert_int_equal(lates[0].ns[LATE_ENDS], MS);
	assert_int_equal(lates[0].where, LATE_BEGINS);
}

static void noise_is_not_late(void **state)
{
	struct tick *ranks = *state;

	move(&ranks[1], STEP_OWN, STEP_CPU_WAIT, LATE_MIN_NS - 1);
	late_find(ranks, RANKS, lates);
	assert_int_equal(late_choose(lates, RANKS, LATE_MIN_NS), RANKS);
	move(&ranks[1], STEP_OWN, STEP_CPU_WAIT, 1);
	late_find(ranks, RANKS, lates);
	assert_int_equal(late_choose(lates, RANKS, LATE_MIN_NS), 1);
	/* A tenth of the iteration. */
	assert_int_equal(late_choose(lates, RANKS, 10 * LATE_MIN_NS), 1);
	assert_int_equal(late_choose(lates, RANKS, 11 * LATE_MIN_NS), RANKS);
}

/* Where calls were not traced, sleep may be a wait for another rank. */
static void sleep_is_no_hold_unless_calls_are_known(void **state)
{
	struct tick *ranks = *state;

	for (int i = 0; i < RANKS; i++)
		ranks[i].calls_known = false;
	move(&ranks[1], STEP_OWN, STEP_OFF_CPU, 6 * MS);
	assert_int_equal(find(ranks), RANKS);
	ranks[1].parts_known = false;
	move(&ranks[1], STEP_OWN, STEP_CPU_WAIT, 4 * MS);
	assert_int_equal(find(ranks), RANKS);
}

static void every_cause_has_a_name(void **state)
{
	for (int i = 0; i <= TICK_PARTS; i++) {
		assert_non_null(late_cause_name((enum tick_part)i, true));
		assert_non_null(late_cause_name((enum tick_part)i, false));
		assert_non_null(late_cause_words((enum tick_part)i, true));
	}
	assert_string_equal(late_cause_name(TICK_CPU_LIMIT, true), "cpu_limit");
	assert_string_equal(late_cause_name((enum tick_part)STEP_STOPPED, true), "stopped");
	assert_string_equal(late_cause_words((enum tick_part)(STEP_CALLS + FBT_FUTEX), true),
			    "in futex calls");
	assert_string_equal(late_where_name(LATE_ENDS), "ends");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(ranks_that_are_alike_are_not_late),
		TEST(one_rank_is_never_late),
		TEST(a_rank_is_late_that_was_held_while_the_others_spun),
		TEST(what_all_ranks_have_holds_none),
		TEST(a_rank_that_computes_is_late_if_the_others_wait_in_calls),
		TEST(of_two_that_compute_none_is_late),
		TEST(a_rank_begins_late_by_what_it_did_before),
		TEST(what_all_ranks_had_in_the_gap_makes_none_late),
		TEST(a_stop_that_was_over_before_the_first_began_makes_none_late),
		TEST(ranks_that_wait_equally_long_for_a_cpu_are_not_late),
		TEST(that_the_tick_before_ended_late_is_not_counted_again),
		TEST(what_holds_a_rank_that_waits_for_another_makes_nobody_wait),
		TEST(a_rank_ends_late_for_what_it_has_more_of_than_the_others),
		TEST(an_end_is_late_beyond_what_the_begin_was),
		TEST(noise_is_not_late),
		TEST(sleep_is_no_hold_unless_calls_are_known),
		TEST(every_cause_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
