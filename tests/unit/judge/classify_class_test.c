/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which class a step is compared with, and which steps a class remembers. */
#include "classify_fixture.h"

/* As many slow steps as it takes until they are the usual ones. */
static void a_class_that_stays_slow_becomes_usual(void **state)
{
	struct fixture *fixture = *state;
	uint64_t escalated = 0;

	push_steady(fixture, 200);
	for (int i = 0; i < 200; i++)
		escalated += push_lock(fixture, 20 * MS, 100 * MS);
	assert_int_equal(escalated, 32);
	push_steady(fixture, 200);
}

static void processes_and_functions_are_classes_of_their_own(void **state)
{
	struct fixture *fixture = *state;
	struct step step = step_of(20 * MS, "futex", 300 * MS);

	push_steady(fixture, 50);
	step.record.tgid = 8;
	assert_false(push(fixture, step));
	step = step_of(20 * MS, "futex", 300 * MS);
	step.record.kind = 2;
	assert_false(push(fixture, step));
	step = step_of(20 * MS, "futex", 300 * MS);
	step.record.tid = 99;
	assert_true(push(fixture, step));
}

static void a_process_does_not_inherit_from_one_that_had_its_number(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_target target = {.tgid = 7, .start_ns = 2 * S};

	assert_int_equal(window__add_process(fixture->window, &target, "a", "/a", "a"), 0);
	target.tgid = 6;
	assert_int_equal(window__add_process(fixture->window, &target, "c", "/c", "c"), 0);
	push_steady(fixture, 50);
	window__end_process(fixture->window, 6, 3 * S);
	target.start_ns = 3 * S;
	assert_int_equal(window__add_process(fixture->window, &target, "d", "/d", "d"), 0);
	assert_true(push_lock(fixture, 20 * MS, 300 * MS));
	window__end_process(fixture->window, 7, 3 * S);
	assert_true(push_lock(fixture, 20 * MS, 300 * MS));
	target.tgid = 7;
	assert_int_equal(window__add_process(fixture->window, &target, "b", "/b", "b"), 0);
	for (int i = 0; i < 10; i++)
		assert_false(push_lock(fixture, 20 * MS, 300 * MS));
	/* Its own usual is another. */
	assert_false(push_lock(fixture, 20 * MS, 300 * MS));
}

/* 16.78 ms … 33.55 ms of work are one bucket. */
static void work_is_bucketed_by_powers_of_two(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 20; i++)
		assert_false(push_lock(fixture, (1 << 24) + i, 0));
	assert_true(push_lock(fixture, (1 << 24), 300 * MS));
	assert_false(fixture->last.nearest);
	assert_int_equal(fixture->last.class_steps, 20);
	assert_true(push_lock(fixture, (1 << 25) - 1, 300 * MS));
	assert_false(fixture->last.nearest);
	assert_true(push_lock(fixture, (1 << 24) - 1, 300 * MS));
	assert_true(fixture->last.nearest);
	assert_true(push_lock(fixture, (1 << 25), 300 * MS));
	assert_true(fixture->last.nearest);
	assert_int_equal(fixture->last.class_steps, 22);
	for (int i = 0; i < 10; i++)
		push_lock(fixture, 0, MS);
	assert_true(push_lock(fixture, 0, 300 * MS));
	assert_false(fixture->last.nearest);
	assert_int_equal(fixture->last.class_steps, 10);
}

/* A trouble that takes work too must not hide in a class where nothing is known yet. */
static void a_step_of_an_unknown_class_is_held_against_the_nearest(void **state)
{
	struct fixture *fixture = *state;

	push_steady(fixture, 20);
	for (int i = 0; i < 12; i++)
		assert_false(push_lock(fixture, 500 * MS, 200 * MS));
	/* Of work it is nearer to 500 ms: 200 ms are usual there. */
	assert_false(push_lock(fixture, 200 * MS, 400 * MS));
	assert_true(push_lock(fixture, 50 * MS, 400 * MS));
	assert_true(fixture->last.nearest);
	assert_int_equal(fixture->last.class_steps, 20);
	/* 100 us wait for each 20 ms of work. */
	assert_int_equal(fixture->last.budget_ns, 50 * MS + 250 * US);
	assert_int_equal(fixture->last.cause.kind, CAUSE_LOCK_CONTENTION);
	/* More work is no trouble, however much. */
	assert_false(push_lock(fixture, 30000 * MS, 100 * US));
}

static void an_unsteady_neighbour_is_not_charged_to_a_step(void **state)
{
	struct fixture *fixture = *state;

	push_uneven(fixture, 105);
	assert_false(push_lock(fixture, 70 * MS, 60 * MS));
	assert_true(push_lock(fixture, 20 * MS, 16 * MS));
	assert_int_equal(fixture->last.fired, bit(ESCALATION_CV_EXCEEDED));
}

/* --- anomalies that recur ------------------------------------------------------------------- */

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

/* --- arguments ------------------------------------------------------------------------------ */

static bool push_argument(struct fixture *fixture, uint32_t mask, int64_t value, uint64_t work_ns,
			  uint64_t lock_ns)
{
	struct step step = step_of(work_ns, "futex", lock_ns);

	step.record.arg_mask = mask;
	step.record.args[0] = 77;
	step.record.args[1] = value;
	return push(fixture, step);
}

static void classes_go_by_an_argument_where_one_is_named(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.class_by = "n_seqs";
	begin(fixture);
	for (int i = 0; i < 10; i++) {
		assert_false(push_argument(fixture, 3, 4 + i % 4, (20 + 20 * i) * MS, 0));
		assert_false(push_argument(fixture, 3, -i, 20 * MS, 0));
	}
	/* Whatever the work. */
	assert_true(push_argument(fixture, 3, 7, 50 * MS, 300 * MS));
	assert_true(push_argument(fixture, 2, 4, 5 * MS, 300 * MS));
	assert_false(push_argument(fixture, 3, 8, 50 * MS, 300 * MS));
	assert_false(push_argument(fixture, 3, 3, 50 * MS, 300 * MS));
	/* 0 and below are one class. */
	assert_true(push_argument(fixture, 3, 0, 50 * MS, 300 * MS));
	assert_true(push_argument(fixture, 3, INT64_MIN, 50 * MS, 300 * MS));
}

/* Prefills that always wait, beside decodes that never do. */
static void an_anomaly_of_an_argument_never_becomes_usual(void **state)
{
	struct fixture *fixture = *state;
	uint64_t named = 0;

	fixture->options.class_by = "n_seqs";
	fixture->options.thresholds.rate_limit = UINT32_MAX;
	begin(fixture);
	for (int i = 1; i <= 2000; i++) {
		if (i % 20 == 0)
			named += push_argument(fixture, 3, 512, 100 * MS, 900 * MS);
		else
			assert_false(push_argument(fixture, 3, 1, 30 * MS, 100 * US));
	}
	/* The first ten are not judged. */
	assert_int_equal(named, 90);
	begin(fixture);
	for (int i = 1; i <= 2000; i++)
		assert_false(i % 20 ? push_argument(fixture, 3, 1, 30 * MS, 100 * US)
				    : push_argument(fixture, 3, 512, 100 * MS, 200 * MS));
}

static void steps_without_the_argument_go_by_work(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.class_by = "n_seqs";
	begin(fixture);
	for (int i = 0; i < 10; i++)
		assert_false(push_argument(fixture, 1, 5, 20 * MS, 0));
	assert_false(push_argument(fixture, 3, 5, 20 * MS, 300 * MS));
	assert_true(push_argument(fixture, 1, 5, 50 * MS, 300 * MS));
	assert_true(fixture->last.nearest);
	assert_true(push_argument(fixture, 1, 900, 20 * MS, 300 * MS));
	/* An argument that is 25 is not a step of 20 ms of work: bucket 25 each. */
	assert_false(push_argument(fixture, 3, (1 << 24) + 1, 20 * MS, 300 * MS));
}

/* Kind 3 is a Python function with the arguments given. */
static void add_python(struct fixture *fixture, const char *first, const char *second)
{
	const char *args[] = {first, second};
	struct fbt_kind kind = {
		.header.flags = FBT_KIND_PYTHON, .kind = 3, .arg_count = second ? 2 : 1};

	assert_int_equal(window__add_kind(fixture->window, &kind, "Runner.step", "/run.py", args),
			 0);
}

static bool push_python(struct fixture *fixture, uint32_t mask, int64_t tokens, uint64_t work_ns,
			uint64_t lock_ns)
{
	struct step step = step_of(work_ns, "futex", lock_ns);

	step.record.kind = 3;
	step.record.arg_mask = mask;
	step.record.args[1] = tokens;
	return push(fixture, step);
}

static void steps_of_a_python_function_have_classes_by_tokens(void **state)
{
	struct fixture *fixture = *state;

	add_python(fixture, "n_requests", "n_tokens");
	for (int i = 0; i < 20; i++)
		assert_false(push_python(fixture, 3, 4 + i % 4, (20 + 20 * i) * MS, 0));
	assert_true(push_python(fixture, 3, 7, 50 * MS, 300 * MS));
	assert_true(classifier__class(fixture->classifier)->by_argument);
	assert_int_equal(classifier__class(fixture->classifier)->bits, 3);
	assert_string_equal(classifier__class_by(fixture->classifier, fixture->window, 3),
			    "n_tokens");
	/* Tokens of a size that has no class yet: nothing to hold the step against. */
	assert_false(push_python(fixture, 3, 8, 50 * MS, 300 * MS));
	/* Those whose tokens could not be read go by work. */
	assert_false(push_python(fixture, 1, 0, 20 * MS, 0));
	assert_false(classifier__class(fixture->classifier)->by_argument);
}

static void steps_of_a_python_function_without_tokens_have_classes_by_work(void **state)
{
	struct fixture *fixture = *state;

	add_python(fixture, "n_requests", NULL);
	for (int i = 0; i < 20; i++)
		assert_false(push_python(fixture, 3, 4, 20 * MS, 0));
	assert_true(push_python(fixture, 3, 900, 20 * MS, 300 * MS));
	assert_false(classifier__class(fixture->classifier)->by_argument);
	assert_null(classifier__class_by(fixture->classifier, fixture->window, 3));
}

static void native_functions_with_tokens_have_classes_by_work(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 20; i++)
		assert_false(push_argument(fixture, 3, 4, 20 * MS, 0));
	assert_false(classifier__class(fixture->classifier)->by_argument);
	assert_null(classifier__class_by(fixture->classifier, fixture->window, 1));
}

static void class_by_stands_above_tokens(void **state)
{
	struct fixture *fixture = *state;

	add_python(fixture, "n_requests", "n_tokens");
	fixture->options.class_by = "n_requests";
	begin(fixture);
	assert_false(push_python(fixture, 3, 900, 20 * MS, 0));
	assert_true(classifier__class(fixture->classifier)->by_argument);
	assert_int_equal(classifier__class(fixture->classifier)->bits, 0);
}

static void an_argument_of_no_function_leaves_classes_by_work(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.class_by = "no_such";
	begin(fixture);
	push_steady(fixture, 20);
	assert_true(push_argument(fixture, 3, 5, 20 * MS, 300 * MS));
}

/* Both streams get the verdicts that each would get alone. */
static void classes_do_not_see_each_other(void **state)
{
	enum { COUNT = 3000 };
	static bool alone[2][COUNT];
	static double cv[2][COUNT];
	struct fixture *fixture = *state;
	uint64_t seeds[2], next[2] = {0}, order = 99, escalated = 0;

	fixture->options.thresholds.rate_limit = UINT32_MAX;
	for (int run = 0; run < 3; run++) {
		begin(fixture);
		seeds[0] = 10;
		seeds[1] = 20;
		for (int i = 0; i < (run == 2 ? 2 * COUNT : COUNT); i++) {
			int which = run < 2 ? run : (int)random_below(&order, 2);
			uint64_t *seed = &seeds[which], at;
			bool found;

			if (run == 2 && next[which] == COUNT)
				which = !which, seed = &seeds[which];
			found = push_lock(fixture,
					  (which ? 10 : 20) * MS + random_below(seed, 5 * MS),
					  random_below(seed, 5) ? random_below(seed, 8 * MS)
								: random_below(seed, 90 * MS));
			escalated += found;
			if (run < 2) {
				alone[which][i] = found;
				cv[which][i] = found ? fixture->last.cv_percent : 0;
				continue;
			}
			at = next[which]++;
			assert_int_equal(found, alone[which][at]);
			assert_true(!found || fixture->last.cv_percent == cv[which][at]);
		}
	}
	assert_true(escalated > 200 && escalated % 2 == 0);
}

static void thousands_of_classes_are_bounded(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t i = 0; i < 5000; i++) {
		struct step step = step_of(20 * MS, "futex", 0);

		step.record.tgid = 100 + i;
		assert_false(push(fixture, step));
	}
	push_steady(fixture, 20);
	assert_true(push_lock(fixture, 20 * MS, 300 * MS));
}

/* --- what is remembered --------------------------------------------------------------------- */

static bool push_end(struct fixture *fixture, enum fbt_step_end end, uint64_t lock_ns)
{
	struct step step = step_of(20 * MS, "futex", lock_ns);

	step.record.end = end;
	step.complete = end == FBT_END_RETURN;
	return push(fixture, step);
}

static void steps_that_were_cut_off_are_judged_not_remembered(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 9; i++) {
		push_end(fixture, FBT_END_RETURN, 0);
		push_end(fixture, FBT_END_TRUNCATED, 0);
		push_end(fixture, FBT_END_EXITED, 0);
	}
	assert_int_equal(classifier__counts(fixture->classifier)->judged, 0);
	push_end(fixture, FBT_END_UNWOUND, 0);
	assert_true(push_end(fixture, FBT_END_TRUNCATED, 300 * MS));
	assert_true(push_end(fixture, FBT_END_EXITED, 300 * MS));
	assert_int_equal(fixture->last.class_steps, 10);
}

static void steps_that_lost_calls_are_remembered(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 10; i++) {
		struct step step = step_of(20 * MS, "futex", 0);

		step.record.lost_calls = 3;
		step.complete = false;
		assert_false(push(fixture, step));
	}
	assert_true(push_lock(fixture, 20 * MS, 300 * MS));
}

static void intervals_are_never_judged(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 100; i++) {
		struct step step = step_of(20 * MS, "futex", i % 2 * 300 * MS);

		step.record.kind = 0;
		assert_false(push(fixture, step));
	}
	assert_int_equal(classifier__counts(fixture->classifier)->judged, 0);
	assert_int_equal(classifier__counts(fixture->classifier)->unjudged, 100);
}

/* Its own code spins while another thread waits for a CPU. */
static struct step starved_step(uint64_t work_ns, uint64_t starved_ns)
{
	struct step step = make_step(work_ns);

	step.record.header.flags |= FBT_STEP_TEAM_KNOWN;
	step.record.starved_ns = starved_ns;
	step.record.starved_tid = 9;
	return step;
}

/* However often it comes, and however much longer it is. */
static void a_step_that_spins_for_a_starved_thread_does_not_become_usual(void **state)
{
	struct fixture *fixture = *state;

	push_steady(fixture, 50);
	for (int i = 0; i < 40; i++) {
		assert_true(push(fixture, starved_step(400 * MS, 390 * MS)));
		assert_int_equal(fixture->last.cause.kind, CAUSE_RUN_QUEUE);
		push_steady(fixture, 10);
	}
	/* The same work with a CPU for all. */
	assert_false(push(fixture, starved_step(400 * MS, 0)));
	assert_false(push(fixture, starved_step(400 * MS, 200 * MS)));
}

static void an_engine_whose_threads_always_wait_is_not_told_at_every_step(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 100; i++)
		assert_false(push(fixture, starved_step(20 * MS, 15 * MS)));
	for (int i = 0; i < 20; i++)
		assert_false(push(fixture, starved_step(25 * MS, 15 * MS)));
}

/* Asking costs microseconds, so only the slowest steps so far are asked about. */
static void the_slowest_steps_know_what_is_usual(void **state)
{
	struct fixture *fixture = *state;
	const struct step_class *class = classifier__class(fixture->classifier);

	push_steady(fixture, 50);
	assert_false(push_lock(fixture, 21 * MS, 300 * US));
	assert_true(class->is_known);
	assert_false(class->by_argument);
	assert_int_equal(class->bits, 25);
	assert_in_range(class->usual_ns, 20 * MS, 21 * MS);
	for (int i = 0; i < CLASSIFY_SLOWEST; i++)
		push_lock(fixture, 30 * MS, 300 * US);
	push_lock(fixture, 22 * MS, 300 * US);
	assert_int_equal(class->bits, 25);
	assert_int_equal(class->usual_ns, 0);
	/* Of a class that is not known, but held against one that is. */
	push_lock(fixture, 70 * MS, 300 * US);
	assert_int_equal(class->bits, 27);
	assert_in_range(class->usual_ns, 20 * MS, 31 * MS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_class_that_stays_slow_becomes_usual),
		TEST(the_slowest_steps_know_what_is_usual),
		TEST(processes_and_functions_are_classes_of_their_own),
		TEST(a_process_does_not_inherit_from_one_that_had_its_number),
		TEST(work_is_bucketed_by_powers_of_two),
		TEST(a_step_of_an_unknown_class_is_held_against_the_nearest),
		TEST(an_unsteady_neighbour_is_not_charged_to_a_step),
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
		TEST(classes_go_by_an_argument_where_one_is_named),
		TEST(an_anomaly_of_an_argument_never_becomes_usual),
		TEST(steps_without_the_argument_go_by_work),
		TEST(steps_of_a_python_function_have_classes_by_tokens),
		TEST(steps_of_a_python_function_without_tokens_have_classes_by_work),
		TEST(native_functions_with_tokens_have_classes_by_work),
		TEST(class_by_stands_above_tokens),
		TEST(an_argument_of_no_function_leaves_classes_by_work),
		TEST(classes_do_not_see_each_other),
		TEST(thousands_of_classes_are_bounded),
		TEST(steps_that_were_cut_off_are_judged_not_remembered),
		TEST(steps_that_lost_calls_are_remembered),
		TEST(intervals_are_never_judged),
		TEST(a_step_that_spins_for_a_starved_thread_does_not_become_usual),
		TEST(an_engine_whose_threads_always_wait_is_not_told_at_every_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
