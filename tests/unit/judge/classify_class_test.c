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

/* Rounds of steps, each of usual ones in three classes and of two slow ones in a fourth. */
static uint64_t push_rounds(struct fixture *fixture, int rounds, int usual_each)
{
	uint64_t escalated = 0;

	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < usual_each; i++) {
			assert_false(push_lock(fixture, 5 * MS, 100 * US));
			assert_false(push_lock(fixture, 10 * MS, 100 * US));
			assert_false(push_lock(fixture, 20 * MS, 100 * US));
		}
		escalated += push_lock(fixture, 40 * MS, 600 * MS);
		escalated += push_lock(fixture, 40 * MS, 600 * MS);
	}
	return escalated;
}

/* No class is twice as common as the slow steps, but all three are together. */
static void usual_steps_may_lie_in_several_classes(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.thresholds.rate_limit = UINT32_MAX;
	begin(fixture);
	push_rounds(fixture, 10, 3);
	assert_int_equal(push_rounds(fixture, 100, 3), 200);
	/* Half as many are not enough. */
	begin(fixture);
	push_rounds(fixture, 30, 1);
	assert_int_equal(push_rounds(fixture, 100, 1), 0);
}

static void an_unsteady_neighbour_is_not_charged_to_a_step(void **state)
{
	struct fixture *fixture = *state;

	push_uneven(fixture, 105);
	assert_false(push_lock(fixture, 70 * MS, 60 * MS));
	assert_true(push_lock(fixture, 20 * MS, 16 * MS));
	assert_int_equal(fixture->last.fired, bit(ESCALATION_CV_EXCEEDED));
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
	push_end(fixture, FBT_END_RETURN, 0);
	assert_true(push_end(fixture, FBT_END_TRUNCATED, 300 * MS));
	assert_true(push_end(fixture, FBT_END_EXITED, 300 * MS));
	assert_int_equal(fixture->last.class_steps, 10);
}

/* What came after the exception is in it: 30 s of waiting for the next request, perhaps. */
static void steps_that_an_exception_left_are_not_judged(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 10; i++) {
		push_end(fixture, FBT_END_UNWOUND, 0);
		push_end(fixture, FBT_END_RETURN, 0);
	}
	assert_false(push_end(fixture, FBT_END_UNWOUND, 300 * MS));
	assert_int_equal(classifier__counts(fixture->classifier)->late_ends, 11);
	assert_int_equal(classifier__counts(fixture->classifier)->unjudged, 21);
	assert_int_equal(classifier__counts(fixture->classifier)->judged, 0);
	assert_true(push_end(fixture, FBT_END_RETURN, 300 * MS));
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
		TEST(usual_steps_may_lie_in_several_classes),
		TEST(an_unsteady_neighbour_is_not_charged_to_a_step),
		TEST(classes_do_not_see_each_other),
		TEST(thousands_of_classes_are_bounded),
		TEST(steps_that_were_cut_off_are_judged_not_remembered),
		TEST(steps_that_an_exception_left_are_not_judged),
		TEST(steps_that_lost_calls_are_remembered),
		TEST(intervals_are_never_judged),
		TEST(a_step_that_spins_for_a_starved_thread_does_not_become_usual),
		TEST(an_engine_whose_threads_always_wait_is_not_told_at_every_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
