/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "base/clock.h"
#include "merge/rounds.h"

#define RANKS 4
#define TURNS 10

/* Process groups: two of tensor parallelism, and two of pipeline parallelism across them. */
enum { LEFT = 11, RIGHT, FIRST, SECOND };

struct fixture {
	struct gather_file files[RANKS];
	struct rounds rounds;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	for (uint32_t i = 0; i < RANKS; i++) {
		struct gather_process process = {.pid = 100 + i};

		fixture->files[i].path = "trace.json";
		fixture->files[i].facts.has_rank = true;
		fixture->files[i].facts.rank = i;
		assert_int_equal(vec_push(&fixture->files[i].processes, process), 0);
	}
	fixture->rounds.error_known = true;
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < RANKS; i++) {
		vec_for_each (process, &fixture->files[i].processes) {
			vec_free(&process->collectives);
			vec_free(&process->steps);
		}
		vec_free(&fixture->files[i].processes);
	}
	rounds_clear(&fixture->rounds);
	free(fixture);
	return 0;
}

static void add_named(span_vec *spans, uint32_t name, uint32_t number, int64_t begin_us,
		      int64_t end_us)
{
	const struct collective span = {.begin_ns = begin_us * (int64_t)NS_PER_US,
					.end_ns = end_us * (int64_t)NS_PER_US,
					.name = name,
					.number = number};

	assert_int_equal(vec_push(spans, span), 0);
}

static void add(span_vec *spans, uint32_t number, int64_t begin_us, int64_t end_us)
{
	add_named(spans, 1, number, begin_us, end_us);
}

static struct gather_process *process_of(struct fixture *fixture, int rank)
{
	return &fixture->files[rank].processes.items[0];
}

/* A collective of two ranks, to which b comes late_us after a. */
static void meet(struct fixture *fixture, uint32_t group, int a, int b, int64_t us, int64_t late_us)
{
	add(&process_of(fixture, a)->collectives, group, us, us + late_us + 20);
	add(&process_of(fixture, b)->collectives, group, us + late_us, us + late_us + 20);
}

/* In each turn the ranks of both halves meet, and then those of both ends. */
static void meet_in_groups(struct fixture *fixture, int64_t late_us)
{
	for (int64_t us = 1000; us < 1000 + 1000 * TURNS; us += 1000) {
		meet(fixture, LEFT, 0, 1, us, 5);
		meet(fixture, RIGHT, 2, 3, us, late_us);
		meet(fixture, FIRST, 0, 2, us + 500, 5);
		meet(fixture, SECOND, 1, 3, us + 500, 5);
	}
}

static size_t count_late(const struct fixture *fixture, size_t rank)
{
	return fixture->rounds.by_rank.items[rank + 1] - fixture->rounds.by_rank.items[rank];
}

static void ranks_are_compared_within_their_groups(void **state)
{
	struct fixture *fixture = *state;

	meet_in_groups(fixture, 300);
	assert_int_equal(rounds_find(&fixture->rounds, fixture->files, RANKS), 0);
	assert_true(fixture->rounds.of_collectives);
	assert_int_equal(fixture->rounds.rounds.count, 4 * TURNS);
	assert_int_equal(fixture->rounds.unmatched, 0);
	assert_int_equal(count_late(fixture, 3), TURNS);
	assert_int_equal(fixture->rounds.order.count, TURNS);
	for (size_t i = 1; i < fixture->rounds.rounds.count; i++)
		assert_true(fixture->rounds.rounds.items[i - 1].last_ns <=
			    fixture->rounds.rounds.items[i].last_ns);
}

static void a_group_of_which_one_rank_was_traced_is_left_out(void **state)
{
	struct fixture *fixture = *state;

	meet_in_groups(fixture, 300);
	assert_int_equal(rounds_find(&fixture->rounds, fixture->files, 3), 0);
	assert_int_equal(fixture->rounds.rounds.count, 2 * TURNS);
	assert_int_equal(fixture->rounds.unmatched, 2 * TURNS);
}

static void what_a_rank_of_the_group_lacks_is_left_out(void **state)
{
	struct fixture *fixture = *state;

	meet_in_groups(fixture, 300);
	add(&process_of(fixture, 2)->collectives, RIGHT, 20000, 20100);
	assert_int_equal(rounds_find(&fixture->rounds, fixture->files, RANKS), 0);
	assert_int_equal(fixture->rounds.rounds.count, 4 * TURNS);
	assert_int_equal(fixture->rounds.unmatched, 1);
}

/* Each rank's own process has a few collectives on the CPU, whose group is not known. */
static void a_process_without_groups_is_compared_with_its_like(void **state)
{
	struct fixture *fixture = *state;

	meet_in_groups(fixture, 300);
	for (uint32_t i = 0; i < RANKS; i++) {
		struct gather_process host = {.pid = 200 + i};

		for (int64_t us = 5800; us < 5800 + 4 * 1000; us += 1000)
			add(&host.collectives, 0, us + 50 * i, us + 180);
		assert_int_equal(vec_push(&fixture->files[i].processes, host), 0);
	}
	assert_int_equal(rounds_find(&fixture->rounds, fixture->files, RANKS), 0);
	assert_true(fixture->rounds.of_collectives);
	assert_int_equal(fixture->rounds.rounds.count, 4 * TURNS + 4);
	assert_int_equal(fixture->rounds.unmatched, 0);
	assert_int_equal(count_late(fixture, 6), TURNS);
	assert_int_equal(count_late(fixture, 7), 4);
	assert_int_equal(fixture->rounds.order.count, TURNS + 4);
}

/* One trace of PyTorch's profiler, others in a format without groups. */
static void where_a_rank_names_no_groups_all_ranks_take_part(void **state)
{
	struct fixture *fixture = *state;

	for (int64_t us = 1000; us < 1000 + 1000 * TURNS; us += 1000) {
		for (int i = 0; i < RANKS; i++)
			add(&process_of(fixture, i)->collectives, i == 1 || i == 2 ? LEFT : 0,
			    us + 100 * i, us + 400);
	}
	assert_int_equal(rounds_find(&fixture->rounds, fixture->files, RANKS), 0);
	assert_true(fixture->rounds.of_collectives);
	assert_int_equal(fixture->rounds.rounds.count, TURNS);
	assert_int_equal(fixture->rounds.unmatched, 0);
	assert_int_equal(count_late(fixture, 3), TURNS);
}

static void without_groups_all_ranks_take_part(void **state)
{
	struct fixture *fixture = *state;

	for (int64_t us = 1000; us < 1000 + 1000 * TURNS; us += 1000) {
		for (int i = 0; i < RANKS; i++)
			add(&process_of(fixture, i)->collectives, 0, us + 100 * i, us + 400);
	}
	assert_int_equal(rounds_find(&fixture->rounds, fixture->files, RANKS), 0);
	assert_int_equal(fixture->rounds.rounds.count, TURNS);
	assert_int_equal(count_late(fixture, 3), TURNS);
	assert_int_equal(round_spread(&fixture->rounds.rounds.items[0]), 300 * NS_PER_US);
}

static void steps_are_compared_where_no_collective_is_common(void **state)
{
	struct fixture *fixture = *state;

	for (int64_t us = 1000; us < 1000 + 1000 * TURNS; us += 1000) {
		for (int i = 0; i < RANKS; i++) {
			add(&process_of(fixture, i)->collectives, (uint32_t)(21 + i), us, us + 10);
			/* Tracing of the last ones began earlier: they have counted more steps. */
			add(&process_of(fixture, i)->steps, (uint32_t)(us + 7 * i), us,
			    us + 500 + 50 * i);
		}
	}
	assert_int_equal(rounds_find(&fixture->rounds, fixture->files, RANKS), 0);
	assert_false(fixture->rounds.of_collectives);
	assert_int_equal(fixture->rounds.rounds.count, TURNS);
	assert_int_equal(fixture->rounds.unmatched, 0);
	assert_int_equal(fixture->rounds.rounds.items[0].step, 1000);
	assert_int_equal(count_late(fixture, 3), TURNS);
}

/* The windows of the ranks end 300 ms apart, in a step of each that hangs. */
static void where_a_step_was_cut_off_only_its_begin_tells(void **state)
{
	struct fixture *fixture = *state;
	const struct round *last;

	for (int i = 0; i < 2; i++) {
		span_vec *steps = &process_of(fixture, i)->steps;

		for (int64_t us = 1000; us < 1000 + 1000 * TURNS; us += 1000)
			add(steps, (uint32_t)us, us + 20 * i, us + 500 + 20 * i);
		add(steps, 77, 20000 + 20 * i, 1000000 + 300000 * i);
		steps->items[steps->count - 1].is_cut = true;
	}
	assert_int_equal(rounds_find(&fixture->rounds, fixture->files, 2), 0);
	assert_int_equal(fixture->rounds.rounds.count, TURNS + 1);
	last = &fixture->rounds.rounds.items[TURNS];
	assert_int_equal(last->step, 77);
	assert_false(last->is_end);
	assert_int_equal(round_spread(last), 20 * NS_PER_US);
}

/* Steps of 1 ms, one right after the other, from a turn to another. */
static void run_steps(struct fixture *fixture, int rank, int from, int to, int64_t late_us)
{
	for (int i = from; i < to; i++)
		add(&process_of(fixture, rank)->steps, (uint32_t)(i - from + 1), 1000 * i + late_us,
		    1000 * i + 1000 + late_us);
}

/* Each trace begins where its window did, so the first step of one may be the second of another. */
static void a_trace_may_begin_a_step_later(void **state)
{
	for (int first = 0; first < 2; first++) {
		struct fixture *fixture;

		if (first) {
			teardown(state);
			setup(state);
		}
		fixture = *state;
		run_steps(fixture, 0, first, TURNS, 0);
		run_steps(fixture, 1, 1 - first, TURNS, 200);
		assert_int_equal(rounds_find(&fixture->rounds, fixture->files, 2), 0);
		assert_int_equal(fixture->rounds.rounds.count, TURNS - 1);
		assert_int_equal(count_late(fixture, 0), 0);
		assert_int_equal(count_late(fixture, 1), TURNS - 1);
		vec_for_each (round, &fixture->rounds.rounds)
			assert_int_equal(round_spread(round), 200 * NS_PER_US);
	}
}

/* One step lasts for three others, or begins so late: all wait for it, and go on together. */
static void the_late_step_is_not_taken_for_the_next_one(void **state)
{
	struct fixture *fixture = *state;
	span_vec *steps = &process_of(fixture, 0)->steps, *late = &process_of(fixture, 1)->steps;

	run_steps(fixture, 0, 0, 3, 0);
	run_steps(fixture, 1, 0, 3, 0);
	/* It ends late: the others are in their next step by then. */
	add(steps, 4, 3000, 4000);
	add(steps, 5, 4000, 8000);
	add(late, 4, 3000, 7000);
	add(late, 5, 7000, 8000);
	/* It begins late: the others are in the same one. */
	add(steps, 6, 8000, 12000);
	add(late, 6, 11500, 12000);
	run_steps(fixture, 0, 12, 15, 0);
	run_steps(fixture, 1, 12, 15, 0);
	assert_int_equal(rounds_find(&fixture->rounds, fixture->files, 2), 0);
	assert_int_equal(fixture->rounds.rounds.count, 9);
	assert_int_equal(fixture->rounds.unmatched, 0);
	assert_int_equal(count_late(fixture, 0), 0);
	assert_int_equal(count_late(fixture, 1), 3);
}

/* As above, but it was late by more than half a step before. */
static void a_rank_that_is_late_twice_keeps_its_steps(void **state)
{
	struct fixture *fixture = *state;
	span_vec *steps = &process_of(fixture, 0)->steps, *late = &process_of(fixture, 1)->steps;

	run_steps(fixture, 0, 0, 4, 0);
	run_steps(fixture, 1, 0, 2, 0);
	add(late, 3, 2000, 3600);
	add(late, 4, 3600, 7000);
	add(steps, 5, 4000, 8000);
	add(late, 5, 7000, 8000);
	run_steps(fixture, 0, 8, 10, 0);
	run_steps(fixture, 1, 8, 10, 0);
	assert_int_equal(rounds_find(&fixture->rounds, fixture->files, 2), 0);
	assert_int_equal(fixture->rounds.rounds.count, 7);
	assert_int_equal(fixture->rounds.unmatched, 0);
	assert_int_equal(count_late(fixture, 0), 0);
	assert_int_equal(count_late(fixture, 1), 3);
}

/* The one that comes last may be in the next one when the others are. */
static void collectives_keep_their_order(void **state)
{
	struct fixture *fixture = *state;
	span_vec *early = &process_of(fixture, 0)->collectives;
	span_vec *late = &process_of(fixture, 1)->collectives;

	add(early, 0, 1000, 11000);
	add(early, 0, 11050, 11700);
	add(early, 0, 11800, 12000);
	add(late, 0, 10900, 11400);
	add(late, 0, 11500, 11700);
	add(late, 0, 11800, 12000);
	assert_int_equal(rounds_find(&fixture->rounds, fixture->files, 2), 0);
	assert_int_equal(fixture->rounds.rounds.count, 3);
	assert_int_equal(fixture->rounds.unmatched, 0);
	assert_int_equal(count_late(fixture, 0), 0);
	assert_int_equal(round_spread(&fixture->rounds.rounds.items[0]), 9900 * NS_PER_US);
}

/* One function calls another at its end; tracing of the last rank, which is late, begins there. */
static void steps_of_different_functions_are_not_compared(void **state)
{
	struct fixture *fixture = *state;

	for (int64_t us = 1000; us < 1000 + 1000 * TURNS; us += 1000) {
		for (int i = 0; i < RANKS; i++) {
			span_vec *steps = &process_of(fixture, i)->steps;
			int64_t late_us = i == RANKS - 1 ? 200 : 0;

			add_named(steps, 2, 0, us + 500 + late_us, us + 600 + late_us);
			if (!late_us || us > 1000)
				add_named(steps, 1, 0, us + late_us, us + 610 + late_us);
		}
	}
	assert_int_equal(rounds_find(&fixture->rounds, fixture->files, RANKS), 0);
	/* The inner steps are not at the same time. */
	assert_int_equal(fixture->rounds.rounds.count, TURNS - 1);
	assert_int_equal(fixture->rounds.unmatched, TURNS + 1);
	assert_int_equal(count_late(fixture, RANKS - 1), TURNS - 1);
	for (size_t i = 0; i < fixture->rounds.rounds.count; i++)
		assert_int_equal(round_spread(&fixture->rounds.rounds.items[i]), 200 * NS_PER_US);
}

/* Kineto has the number of a GPU where its process would be, and here two processes have steps. */
static void gpus_of_nobody_known_are_told_apart(void **state)
{
	struct fixture *fixture = *state;
	struct gather_file *file = &fixture->files[0];
	struct gather_process gpu = {.pid = 1}, host = {.pid = 300, .is_host = true};
	char text[ROUND_TEXT];

	file->facts.format = SOURCE_KINETO;
	file->processes.items[0].pid = 0;
	assert_int_equal(vec_push(&file->processes, gpu), 0);
	for (int i = 0; i < 2; i++, host.pid++) {
		assert_int_equal(vec_push(&file->processes, host), 0);
		add(&file->processes.items[2 + i].steps, 1, 0, 100);
	}
	for (int64_t us = 1000; us < 1000 + 1000 * TURNS; us += 1000) {
		add(&file->processes.items[0].collectives, LEFT, us, us + 320);
		add(&file->processes.items[1].collectives, LEFT, us + 300, us + 320);
	}
	assert_int_equal(rounds_find(&fixture->rounds, fixture->files, 1), 0);
	assert_int_equal(fixture->rounds.ranks.count, 2);
	assert_string_equal(fixture->rounds.ranks.items[0].label, "rank 0, GPU 0");
	assert_string_equal(fixture->rounds.ranks.items[1].label, "rank 0, GPU 1");
	assert_true(fixture->rounds.rounds.count > 0);
	rounds_describe(&fixture->rounds, &fixture->rounds.rounds.items[0], text);
	assert_string_equal(text, "not known: the trace does not say whose GPU it is");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(ranks_are_compared_within_their_groups),
		TEST(a_group_of_which_one_rank_was_traced_is_left_out),
		TEST(what_a_rank_of_the_group_lacks_is_left_out),
		TEST(a_process_without_groups_is_compared_with_its_like),
		TEST(without_groups_all_ranks_take_part),
		TEST(where_a_rank_names_no_groups_all_ranks_take_part),
		TEST(steps_are_compared_where_no_collective_is_common),
		TEST(where_a_step_was_cut_off_only_its_begin_tells),
		TEST(a_trace_may_begin_a_step_later),
		TEST(the_late_step_is_not_taken_for_the_next_one),
		TEST(a_rank_that_is_late_twice_keeps_its_steps),
		TEST(collectives_keep_their_order),
		TEST(steps_of_different_functions_are_not_compared),
		TEST(gpus_of_nobody_known_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
