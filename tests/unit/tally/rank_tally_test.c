/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "ranks_fixture.h"

#include "tally/rank_tally.h"

struct fixture {
	struct window *window;
	struct iteration_tally tally;
	struct tick ranks[2];
	struct late lates[2];
	struct iteration iteration;
};

static void add_kind(struct fixture *fixture, uint32_t number, const char *name)
{
	struct fbt_kind kind = {.header.flags = FBT_KIND_PYTHON, .kind = number};

	assert_int_equal(window__add_kind(fixture->window, &kind, name, "/run.py", NULL), 0);
}

/* Both ranks from 10 to 14 ms: 3 ms in one function and 1 in another. */
static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = window__new();
	assert_non_null(fixture->window);
	add_kind(fixture, EXECUTE, "execute_model");
	add_kind(fixture, SAMPLE, "sample_tokens");
	for (uint32_t i = 0; i < 2; i++)
		fixture->ranks[i] = (struct tick){.tgid = 8 - i,
						  .kind = EXECUTE,
						  .begin_ns = 10 * MS,
						  .end_ns = 14 * MS + i,
						  .calls_known = true,
						  .kinds = {{EXECUTE, 1, 3 * MS}, {SAMPLE, 1, MS}}};
	fixture->iteration = (struct iteration){.parent = 5,
						.name = "execute_model",
						.begin_ns = 10 * MS,
						.end_ns = 14 * MS + 1,
						.ranks = fixture->ranks,
						.lates = fixture->lates,
						.count = 2,
						.latest = 2};
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	iteration_tally_clear(&fixture->tally);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

static const struct team_tally *add(struct fixture *fixture, int times)
{
	for (int i = 0; i < times; i++) {
		fixture->iteration.number++;
		assert_int_equal(
			iteration_tally_add(&fixture->tally, fixture->window, &fixture->iteration),
			0);
	}
	return fixture->tally.teams.items[fixture->iteration.team];
}

static void make_late(struct fixture *fixture, enum late_where where, enum tick_part cause,
		      uint64_t ns)
{
	fixture->iteration.latest = 1;
	fixture->lates[1] =
		(struct late){.total_ns = ns, .where = where, .cause = cause, .cause_ns = ns};
	fixture->lates[1].ns[where] = ns;
}

static void a_late_rank_is_summed_up_by_where_and_why(void **state)
{
	struct fixture *fixture = *state;
	const struct team_tally *team;
	const struct rank_tally *rank;

	add(fixture, 1);
	make_late(fixture, LATE_BEGINS, (enum tick_part)STEP_STOPPED, 30 * MS);
	add(fixture, 2);
	make_late(fixture, LATE_ENDS, TICK_GC, 40 * MS);
	team = add(fixture, 1);
	assert_int_equal(team->iterations, 4);
	assert_int_equal(team->late, 3);
	assert_int_equal(team->ranks.count, 2);
	/* By process: that of ranks[1] is the lower one. */
	rank = &team->ranks.items[0];
	assert_int_equal(rank->tgid, 7);
	assert_int_equal(rank->late, 3);
	assert_int_equal(rank->late_ns, 100 * MS);
	assert_int_equal(rank->where_ns[LATE_BEGINS], 60 * MS);
	assert_int_equal(rank->where_ns[LATE_ENDS], 40 * MS);
	assert_int_equal(rank->cause_ns[STEP_STOPPED], 60 * MS);
	assert_int_equal(rank->cause_count[STEP_STOPPED], 2);
	assert_int_equal(rank->cause_count[TICK_GC], 1);
	assert_int_equal(rank->worst.total_ns, 40 * MS);
	assert_int_equal(rank->worst_number, 4);
	assert_int_equal(team->ranks.items[1].late, 0);
}

static void functions_of_several_processes_are_one_by_their_names(void **state)
{
	struct fixture *fixture = *state;
	const struct team_tally *team;

	add_kind(fixture, 9, "execute_model");
	fixture->ranks[1].kind = 9;
	fixture->ranks[1].kinds[0].kind = 9;
	team = add(fixture, 10);
	assert_int_equal(team->kinds[0].steps, 20);
	assert_int_equal(team->kinds[0].ns, 60 * MS);
	assert_int_equal(team->kinds[1].steps, 20);
	assert_int_equal(team->kinds[2].kind, 0);
	assert_int_equal(team->between_ns, 10);
}

/* With asynchronous scheduling one call launches, and a later one has the results. */
static void an_iteration_may_be_in_no_single_step_of_the_engine(void **state)
{
	struct fixture *fixture = *state;
	const struct team_tally *team;

	add(fixture, 1);
	fixture->iteration.engine = (struct engine_step){1, CORE_STEP, 9 * MS, 15 * MS};
	add(fixture, 1);
	/* One rank may end after it, not both. */
	fixture->iteration.engine.end_ns = 14 * MS;
	add(fixture, 1);
	fixture->iteration.engine.end_ns = 13 * MS;
	add(fixture, 1);
	fixture->iteration.engine = (struct engine_step){2, CORE_STEP, 11 * MS, 15 * MS};
	team = add(fixture, 1);
	assert_int_equal(team->engine_seen, 4);
	assert_int_equal(team->within, 2);
}

static void few_iterations_and_many_strangers_are_not_shown(void **state)
{
	struct fixture *fixture = *state;
	const struct team_tally *team;

	assert_false(team_tally_is_shown(NULL));
	assert_false(team_tally_is_shown(add(fixture, 9)));
	assert_true(team_tally_is_shown(add(fixture, 1)));
	fixture->iteration.unmatched = 5;
	assert_true(team_tally_is_shown(add(fixture, 1)));
	/* What was left out since the last iteration comes with none. */
	fixture->iteration.count = 0;
	fixture->iteration.unmatched = 7;
	team = add(fixture, 1);
	assert_int_equal(team->iterations, 11);
	assert_false(team_tally_is_shown(team));
}

static void one_rank_is_shown_if_its_iterations_have_several_parts(void **state)
{
	struct fixture *fixture = *state;

	fixture->iteration.count = fixture->iteration.latest = 1;
	assert_true(team_tally_is_shown(add(fixture, 10)));
	fixture->iteration.team = 2;
	fixture->ranks[0].kinds[1].kind = 0;
	assert_false(team_tally_is_shown(add(fixture, 10)));
	/* Nothing has come of the second team. */
	assert_null(fixture->tally.teams.items[1]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_late_rank_is_summed_up_by_where_and_why),
		TEST(functions_of_several_processes_are_one_by_their_names),
		TEST(an_iteration_may_be_in_no_single_step_of_the_engine),
		TEST(few_iterations_and_many_strangers_are_not_shown),
		TEST(one_rank_is_shown_if_its_iterations_have_several_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
