/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "ranks_fixture.h"

#include <errno.h>
#include <stdio.h>

#include "ranks/iterations.h"

enum { CORE = 5, RANK0 = 7, RANK1 = 8, KEPT = 256 };

/* What was put out. */
struct kept {
	uint64_t number;
	uint32_t team;
	uint64_t begins_ns[4]; /* by rank */
	uint32_t tgids[4];
	size_t count;
	size_t latest;
	uint64_t unmatched;
	struct engine_step engine;
};

struct fixture {
	struct window *window;
	struct iterations *iterations;
	struct kept kept[KEPT];
	size_t count;
	uint64_t left; /* unmatched, as told at the end */
	int result;    /* of on_iteration */
};

static int keep(void *ctx, const struct window *window, const struct iteration *iteration)
{
	struct fixture *fixture = ctx;
	struct kept *kept;

	if (!iteration->count) {
		fixture->left = iteration->unmatched;
		return fixture->result;
	}
	kept = &fixture->kept[fixture->count++];
	assert_true(fixture->count <= KEPT && iteration->count <= 4);
	*kept = (struct kept){.number = iteration->number,
			      .team = iteration->team,
			      .count = iteration->count,
			      .latest = iteration->latest,
			      .unmatched = iteration->unmatched,
			      .engine = iteration->engine};
	for (size_t i = 0; i < iteration->count; i++) {
		kept->begins_ns[i] = iteration->ranks[i].begin_ns;
		kept->tgids[i] = iteration->ranks[i].tgid;
	}
	return fixture->result;
}

static void add_process(struct fixture *fixture, uint32_t tgid, uint32_t parent)
{
	struct fbt_target target = {.tgid = tgid, .parent_tgid = parent, .start_ns = 1};

	assert_int_equal(window__add_process(fixture->window, &target, "python3", "", ""), 0);
}

static void add_kind(struct fixture *fixture, uint32_t number, const char *name, uint16_t flags)
{
	const char *args[] = {"n_tokens"};
	struct fbt_kind kind = {.header.flags = flags, .kind = number, .arg_count = 1};

	assert_int_equal(window__add_kind(fixture->window, &kind, name, "/run.py", args), 0);
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = window__new();
	fixture->iterations = iterations__new(keep, fixture);
	assert_non_null(fixture->window);
	assert_non_null(fixture->iterations);
	add_kind(fixture, CORE_STEP, "EngineCore.step", FBT_KIND_PYTHON);
	add_kind(fixture, EXECUTE, "Runner.execute_model", FBT_KIND_PYTHON);
	add_kind(fixture, SAMPLE, "Runner.sample_tokens", FBT_KIND_PYTHON);
	add_process(fixture, CORE, 0);
	add_process(fixture, RANK0, CORE);
	add_process(fixture, RANK1, CORE);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	iterations__free(fixture->iterations);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

static void add(struct fixture *fixture, struct step step)
{
	assert_int_equal(iterations__add(fixture->iterations, fixture->window, &step), 0);
}

static void flush(struct fixture *fixture)
{
	assert_int_equal(iterations__flush(fixture->iterations, fixture->window), 0);
}

/* The n-th step of a rank: 10 ms each, of which it computes 2. */
static void add_tick(struct fixture *fixture, uint32_t tgid, uint64_t n, int64_t tokens)
{
	add(fixture, make_tokens(tgid, n * 10 * MS + tgid, n * 10 * MS + 2 * MS, tokens));
}

/* All ticks of both ranks, of which the second one makes fewer. */
static void add_all_ticks(struct fixture *fixture, uint64_t count0, uint64_t count1)
{
	for (uint64_t n = 1; n <= count0; n++) {
		add_tick(fixture, RANK0, n, 1);
		if (n <= count1)
			add_tick(fixture, RANK1, n, 1);
	}
	flush(fixture);
}

static void assert_pairs(const struct fixture *fixture, size_t from, size_t count)
{
	for (size_t i = from; i < from + count; i++) {
		const struct kept *kept = &fixture->kept[i];

		assert_int_equal(kept->count, 2);
		assert_int_equal(kept->begins_ns[0] / (10 * MS), kept->begins_ns[1] / (10 * MS));
		assert_int_equal(kept->latest, 2);
	}
}

static void ticks_of_ranks_are_joined_in_their_order(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t n = 1; n <= 50; n++) {
		add_tick(fixture, RANK0, n, 1);
		add_tick(fixture, RANK1, n, 1);
	}
	/* But for the last ones, which may have further parts. */
	assert_int_equal(fixture->count, 49);
	flush(fixture);
	assert_int_equal(fixture->count, 50);
	assert_pairs(fixture, 0, 50);
	assert_int_equal(fixture->kept[49].number, 50);
	assert_int_equal(fixture->kept[49].unmatched, 0);
}

/* One rank gives no steps any more, but has not ended: what the other one does is no iteration. */
static void ticks_without_a_counterpart_are_counted_at_the_end(void **state)
{
	struct fixture *fixture = *state;

	add_all_ticks(fixture, 200, 40);
	/* Of the 40th pair one tick had no room any more. */
	assert_int_equal(fixture->count, 39);
	assert_pairs(fixture, 0, 39);
	assert_int_equal(fixture->left, 1 + 160);
}

/* The steps of one rank may come long before those of the other. */
static void a_rank_that_is_told_of_late_is_waited_for(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t n = 1; n <= 7; n++)
		add_tick(fixture, RANK0, n, 1);
	for (uint64_t n = 1; n <= 30; n++) {
		add_tick(fixture, RANK1, n, 1);
		if (n > 7)
			add_tick(fixture, RANK0, n, 1);
	}
	flush(fixture);
	assert_int_equal(fixture->count, 30);
	assert_pairs(fixture, 0, 30);
}

static void tracing_of_one_rank_may_begin_earlier(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t n = 1; n <= 40; n++) {
		add_tick(fixture, RANK0, n, 1);
		if (n > 3)
			add_tick(fixture, RANK1, n, 1);
	}
	flush(fixture);
	assert_int_equal(fixture->count, 37);
	assert_pairs(fixture, 0, 37);
	assert_int_equal(fixture->kept[36].unmatched, 3);
}

static void after_a_lost_step_the_next_ones_are_joined_again(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t n = 1; n <= 60; n++) {
		add_tick(fixture, RANK0, n, (int64_t)n % 7);
		if (n != 20)
			add_tick(fixture, RANK1, n, (int64_t)n % 7);
	}
	flush(fixture);
	assert_int_equal(fixture->count, 59);
	assert_pairs(fixture, 0, 59);
	assert_int_equal(fixture->kept[58].unmatched, 1);
}

/* Nothing but the times of the steps tells. */
static void a_lost_step_is_found_without_tokens_that_differ(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t n = 1; n <= 60; n++) {
		add_tick(fixture, RANK0, n, 1);
		if (n != 20)
			add_tick(fixture, RANK1, n, 1);
	}
	flush(fixture);
	assert_int_equal(fixture->count, 59);
	assert_pairs(fixture, 0, 59);
}

/* Rank 1 begins 300 ms late, and rank 0 waits for it: the order stays. */
static void a_late_rank_stays_in_its_iteration(void **state)
{
	struct fixture *fixture = *state;
	uint64_t at = 200 * MS;

	for (uint64_t n = 1; n <= 20; n++) {
		add_tick(fixture, RANK0, n, 1);
		add_tick(fixture, RANK1, n, 1);
	}
	for (int i = 0; i < 10; i++, at += 310 * MS) {
		struct step late = make_tokens(RANK1, at + 310 * MS, at + 312 * MS, 1);

		late.record.gap_ns = 308 * MS;
		add(fixture, make_tokens(RANK0, at + 10 * MS, at + 312 * MS, 1));
		add(fixture, late);
	}
	flush(fixture);
	assert_int_equal(fixture->count, 30);
	assert_pairs(fixture, 0, 20);
	for (int i = 20; i < 30; i++) {
		assert_int_equal(fixture->kept[i].count, 2);
		assert_int_equal(fixture->kept[i].latest, 1);
		assert_int_equal(fixture->kept[i].begins_ns[1] - fixture->kept[i].begins_ns[0],
				 300 * MS);
	}
}

static void ticks_with_other_tokens_are_no_iteration(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t n = 1; n <= 40; n++) {
		add_tick(fixture, RANK0, n, 1);
		add_tick(fixture, RANK1, n, 2);
	}
	flush(fixture);
	assert_int_equal(fixture->count, 0);
}

static void ranks_have_one_parent(void **state)
{
	struct fixture *fixture = *state;

	add_process(fixture, 9, 6);
	add_process(fixture, 11, 0);
	add_process(fixture, 12, 0);
	for (uint64_t n = 1; n <= 20; n++) {
		add_tick(fixture, RANK0, n, 1);
		add_tick(fixture, 9, n, 1);
		add_tick(fixture, 11, n, 1);
		add_tick(fixture, 12, n, 1);
	}
	flush(fixture);
	assert_int_equal(fixture->count, 80);
	for (size_t i = 0; i < fixture->count; i++)
		assert_int_equal(fixture->kept[i].count, 1);
}

static void add_titled(struct fixture *fixture, uint32_t tgid, const char *title)
{
	struct fbt_target target = {.tgid = tgid, .parent_tgid = CORE, .start_ns = 1};
	char comm[16];

	snprintf(comm, sizeof(comm), "%s", title);
	assert_int_equal(window__add_process(fixture->window, &target, comm, "", title), 0);
}

/* A stage begins when the one before has ended, so the last one would always be late. */
static void stages_of_a_pipeline_are_not_compared(void **state)
{
	struct fixture *fixture = *state;

	add_titled(fixture, 20, "VLLM::Worker_PP0_TP0");
	add_titled(fixture, 21, "VLLM::Worker_PP0_TP1");
	add_titled(fixture, 22, "VLLM::Worker_PP1_TP0");
	add_titled(fixture, 23, "VLLM::Worker_PP1_TP1");
	for (uint64_t n = 1; n <= 20; n++) {
		uint64_t at = n * 12 * MS, then = at + 5300 * US;

		add(fixture, make_tokens(20, at, at + 5 * MS, 1));
		add(fixture, make_tokens(21, at, at + 5 * MS, 1));
		add(fixture, make_tokens(22, then, then + 5 * MS, 1));
		add(fixture, make_tokens(23, then, then + 5 * MS, 1));
	}
	flush(fixture);
	assert_int_equal(fixture->count, 40);
	for (size_t i = 0; i < fixture->count; i++) {
		const struct kept *kept = &fixture->kept[i];

		assert_int_equal(kept->count, 2);
		assert_int_equal(kept->latest, 2);
		assert_int_equal(kept->tgids[1], kept->tgids[0] + 1);
	}
}

/* Each has batches of its own, whatever their size. */
static void replicas_are_not_compared(void **state)
{
	struct fixture *fixture = *state;

	add_titled(fixture, 20, "sglang::scheduler_DP0_TP0");
	add_titled(fixture, 21, "sglang::scheduler_DP11_TP0");
	add_titled(fixture, 22, "sglang::scheduler_DP11_TP1");
	for (uint64_t n = 1; n <= 20; n++) {
		uint64_t at = n * 10 * MS;

		add(fixture, make_tokens(20, at, at + 4 * MS, 1));
		add(fixture, make_tokens(21, at + 3 * MS, at + 7 * MS, 1));
		add(fixture, make_tokens(22, at + 3 * MS, at + 7 * MS, 1));
	}
	flush(fixture);
	assert_int_equal(fixture->count, 40);
	for (size_t i = 0; i < fixture->count; i++) {
		assert_int_equal(fixture->kept[i].count, fixture->kept[i].tgids[0] == 20 ? 1 : 2);
		assert_int_equal(fixture->kept[i].latest, fixture->kept[i].count);
	}
}

static void ranks_begin_with_one_function(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t n = 1; n <= 20; n++) {
		add_tick(fixture, RANK0, n, 1);
		add(fixture, make_step(RANK1, SAMPLE, n * 10 * MS, n * 10 * MS + MS));
	}
	flush(fixture);
	assert_int_equal(fixture->count, 40);
	for (size_t i = 0; i < fixture->count; i++)
		assert_int_equal(fixture->kept[i].count, 1);
}

/* An injected library makes kinds of their own in each process. */
static void functions_are_the_same_by_their_names(void **state)
{
	struct fixture *fixture = *state;

	add_kind(fixture, 9, "Runner.execute_model", FBT_KIND_PYTHON);
	for (uint64_t n = 1; n <= 20; n++) {
		struct step other = make_tokens(RANK1, n * 10 * MS + 10, n * 10 * MS + 2 * MS, 1);

		other.record.kind = 9;
		add_tick(fixture, RANK0, n, 1);
		add(fixture, other);
	}
	flush(fixture);
	assert_int_equal(fixture->count, 20);
	assert_pairs(fixture, 0, 20);
}

static void steps_of_native_functions_are_in_no_iteration(void **state)
{
	struct fixture *fixture = *state;

	add_kind(fixture, EXECUTE, "llama_decode", 0);
	for (uint64_t n = 1; n <= 20; n++) {
		add_tick(fixture, RANK0, n, 1);
		add_tick(fixture, RANK1, n, 1);
	}
	flush(fixture);
	assert_int_equal(fixture->count, 0);
}

/* One rank is slowed down in the second half: it is late in none of the iterations that remain. */
static void steps_under_pytorchs_profiler_are_in_no_iteration(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t n = 1; n <= 40; n++) {
		struct step step =
			make_tokens(RANK1, n * 10 * MS + 5 * MS, n * 10 * MS + 9 * MS, 1);
		struct step engine = make_step(CORE, CORE_STEP, n * 10 * MS, n * 10 * MS + 9 * MS);

		if (n > 20) {
			step.record.header.flags |= FBT_STEP_PROFILED;
			engine.record.header.flags |= FBT_STEP_PROFILED;
		}
		add_tick(fixture, RANK0, n, 1);
		add(fixture, step);
		add(fixture, engine);
	}
	flush(fixture);
	/* Those of both ranks, and those of the engine's own process. */
	assert_int_equal(fixture->count, 40);
	for (size_t i = 0; i < fixture->count; i++)
		assert_true(fixture->kept[i].begins_ns[0] < 210 * MS);
}

static void the_step_of_the_engine_is_the_one_around(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t n = 1; n <= 20; n++) {
		add_tick(fixture, RANK0, n, 1);
		add_tick(fixture, RANK1, n, 1);
		add(fixture, make_step(CORE, CORE_STEP, n * 10 * MS - MS, n * 10 * MS + 3 * MS));
	}
	flush(fixture);
	for (size_t i = 0; i < fixture->count; i++) {
		const struct kept *kept = &fixture->kept[i];

		/* The core's own come as well; before the first tick has ended there is no team. */
		if (kept->count < 2 || kept->number == 1)
			continue;
		assert_int_equal(kept->engine.kind, CORE_STEP);
		assert_int_equal(kept->engine.start_ns + MS, kept->begins_ns[0] - RANK0);
	}
	assert_int_equal(fixture->count, 40);
}

static void others_go_on_without_a_rank_that_has_ended(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t n = 1; n <= 40; n++) {
		add_tick(fixture, RANK0, n, 1);
		if (n <= 20)
			add_tick(fixture, RANK1, n, 1);
		if (n == 20)
			window__end_process(fixture->window, RANK1, 205 * MS);
	}
	assert_int_equal(fixture->count, 39);
	assert_pairs(fixture, 0, 20);
	assert_int_equal(fixture->kept[20].count, 1);
	assert_int_equal(fixture->kept[20].tgids[0], RANK0);
	flush(fixture);
	assert_int_equal(fixture->count, 40);
	assert_int_equal(fixture->kept[39].tgids[0], RANK0);
}

/*
 * Steps are held back until their GPU records are there. That a rank has ended is then known while
 * some of its steps are still to come, and its last ticks are whole all the same.
 */
static void held_steps_of_a_rank_that_has_ended_are_in_its_ticks(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t n = 1; n <= 40; n++) {
		if (n == 15)
			window__end_process(fixture->window, RANK1, 206 * MS);
		if (n <= 20)
			add(fixture, make_tokens(RANK1, n * 10 * MS, n * 10 * MS + MS, 1));
		add(fixture, make_tokens(RANK0, n * 10 * MS, n * 10 * MS + MS, 1));
		if (n <= 20)
			add(fixture,
			    make_step(RANK1, SAMPLE, n * 10 * MS + MS, n * 10 * MS + 5 * MS));
		add(fixture, make_step(RANK0, SAMPLE, n * 10 * MS + MS, n * 10 * MS + 5 * MS));
	}
	flush(fixture);
	assert_int_equal(fixture->count, 40);
	assert_pairs(fixture, 0, 20);
	assert_int_equal(fixture->kept[20].count, 1);
}

/* Too few for an order that is known before the end of the window. */
static void a_rank_that_ended_early_is_not_missed_at_the_end(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t n = 1; n <= 6; n++) {
		add_tick(fixture, RANK0, n, 1);
		if (n <= 2)
			add_tick(fixture, RANK1, n, 1);
		if (n == 2)
			window__end_process(fixture->window, RANK1, 25 * MS);
	}
	flush(fixture);
	assert_int_equal(fixture->count, 6);
	assert_pairs(fixture, 0, 2);
	assert_int_equal(fixture->kept[5].count, 1);
}

/* It is there, and what it did is not known. */
static void what_a_living_rank_lacks_at_the_end_is_no_iteration(void **state)
{
	struct fixture *fixture = *state;

	add_all_ticks(fixture, 30, 20);
	assert_int_equal(fixture->count, 20);
	assert_pairs(fixture, 0, 20);
	/* The latest one may have lacked its counterpart only because the window ended. */
	assert_int_equal(fixture->left, 9);
}

/* A rank that makes no more steps. */
static void ticks_that_wait_are_bounded(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t n = 1; n <= 1000; n++) {
		add_tick(fixture, RANK0, n, 1);
		if (n <= 20 || n > 980)
			add_tick(fixture, RANK1, n, 1);
	}
	flush(fixture);
	/* The one before the pause was over too late for its counterpart. */
	assert_int_equal(fixture->count, 39);
	assert_pairs(fixture, 0, 39);
}

static void ranks_are_bounded(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t tgid = 1000; tgid < 1000 + 2 * RANKS_MAX; tgid++) {
		add_tick(fixture, tgid, 1, 1);
		add_tick(fixture, tgid, 2, 1);
	}
	fixture->count = 0;
	for (uint32_t tgid = 1000; tgid < 1000 + 2 * RANKS_MAX; tgid++) {
		if (fixture->count == KEPT)
			fixture->count = 0;
		add_tick(fixture, tgid, 3, 1);
	}
	assert_int_equal(fixture->count, 0);
}

static void an_error_is_passed_up(void **state)
{
	struct fixture *fixture = *state;

	fixture->result = -EIO;
	for (uint64_t n = 1; n <= 5; n++)
		add_tick(fixture, RANK0, n, 1);
	assert_int_equal(iterations__flush(fixture->iterations, fixture->window), -EIO);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(ticks_of_ranks_are_joined_in_their_order),
		TEST(ticks_without_a_counterpart_are_counted_at_the_end),
		TEST(a_rank_that_is_told_of_late_is_waited_for),
		TEST(tracing_of_one_rank_may_begin_earlier),
		TEST(after_a_lost_step_the_next_ones_are_joined_again),
		TEST(a_lost_step_is_found_without_tokens_that_differ),
		TEST(a_late_rank_stays_in_its_iteration),
		TEST(ticks_with_other_tokens_are_no_iteration),
		TEST(ranks_have_one_parent),
		TEST(stages_of_a_pipeline_are_not_compared),
		TEST(replicas_are_not_compared),
		TEST(ranks_begin_with_one_function),
		TEST(functions_are_the_same_by_their_names),
		TEST(steps_of_native_functions_are_in_no_iteration),
		TEST(steps_under_pytorchs_profiler_are_in_no_iteration),
		TEST(the_step_of_the_engine_is_the_one_around),
		TEST(others_go_on_without_a_rank_that_has_ended),
		TEST(held_steps_of_a_rank_that_has_ended_are_in_its_ticks),
		TEST(a_rank_that_ended_early_is_not_missed_at_the_end),
		TEST(what_a_living_rank_lacks_at_the_end_is_no_iteration),
		TEST(ticks_that_wait_are_bounded),
		TEST(ranks_are_bounded),
		TEST(an_error_is_passed_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
