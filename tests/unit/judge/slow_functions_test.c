/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "judge/slow_functions.h"

#define MS     1000000ull
#define KEY    77
#define USUAL  1 /* codes of functions */
#define SLOWLY 2
#define COPY   3

static struct window *window;

static int begin(void **state)
{
	*state = slow_functions__new();
	window = window__new();
	return *state && window ? 0 : -1;
}

static int end(void **state)
{
	slow_functions__free(*state);
	window__free(window);
	return 0;
}

static struct step sampled(uint32_t usual, uint32_t slowly, uint32_t copy)
{
	struct step step = {.samples = {.header.type = FBT_EVENT_SAMPLES,
					.samples = usual + slowly + copy,
					.count = 3}};

	step.samples.functions[0].code = USUAL;
	step.samples.functions[0].samples = usual;
	step.samples.functions[1].code = SLOWLY;
	step.samples.functions[1].samples = slowly;
	step.samples.functions[2].code = COPY;
	step.samples.functions[2].samples = copy;
	return step;
}

static void add_normal(struct slow_functions *profiles, int count)
{
	struct step step = sampled(1, 0, 1);

	for (int i = 0; i < count; i++)
		slow_functions__judge(profiles, window, KEY, &step, NULL);
}

static struct cause judge(struct slow_functions *profiles, const struct step *step, uint64_t ns)
{
	struct cause cause = {.kind = CAUSE_COMPUTE, .time_ns = ns, .usual_ns = 10 * MS};

	slow_functions__judge(profiles, window, KEY, step, &cause);
	return cause;
}

static void what_has_grown_is_named_with_the_difference(void **state)
{
	struct step step = sampled(5, 80, 15);
	struct cause cause;

	add_normal(*state, 10);
	cause = judge(*state, &step, 100 * MS);
	assert_true(cause.grown_usual);
	/* Of 10 ms half is in USUAL, and half in COPY. */
	assert_int_equal(cause.grown_count, 2);
	assert_int_equal(cause.grown[0].codes[0], SLOWLY);
	assert_int_equal(cause.grown[0].ns, 80 * MS);
	assert_int_equal(cause.grown[1].codes[0], COPY);
	assert_int_equal(cause.grown[1].ns, 10 * MS);
}

/* Its own samples say nothing of what another thread or the GPU did meanwhile. */
static void what_others_did_has_grown_in_no_function(void **state)
{
	struct step step = sampled(5, 80, 15);
	struct cause cause = {.kind = CAUSE_COMPUTE, .time_ns = 100 * MS, .usual_ns = 10 * MS};

	add_normal(*state, 10);
	cause.waker.tid = 8;
	cause.waker.ns = 80 * MS;
	slow_functions__judge(*state, window, KEY, &step, &cause);
	assert_int_equal(cause.grown_count, 0);
	cause.waker.ns = 20 * MS;
	slow_functions__judge(*state, window, KEY, &step, &cause);
	assert_int_equal(cause.grown_count, 2);
}

/* Several of them, of which the waker is the one with most: only the rest is in own functions. */
static void what_all_others_did_is_no_time_of_own_functions(void **state)
{
	struct step step = sampled(5, 80, 15);
	struct cause cause = {.kind = CAUSE_COMPUTE,
			      .time_ns = 160 * MS,
			      .usual_ns = 14 * MS,
			      .elsewhere_ns = 60 * MS,
			      .elsewhere_usual_ns = 4 * MS};

	add_normal(*state, 10);
	cause.waker.tid = 8;
	cause.waker.ns = 20 * MS;
	slow_functions__judge(*state, window, KEY, &step, &cause);
	assert_int_equal(cause.grown_count, 2);
	assert_int_equal(cause.grown[0].ns, 80 * MS);
	assert_int_equal(cause.grown[1].ns, 10 * MS);
	/* What grew is mostly elsewhere; or what is elsewhere is there as usual. */
	cause.grown_count = 0;
	cause.elsewhere_ns = 80 * MS;
	slow_functions__judge(*state, window, KEY, &step, &cause);
	assert_int_equal(cause.grown_count, 0);
	cause.usual_ns = 90 * MS;
	cause.elsewhere_usual_ns = 80 * MS;
	slow_functions__judge(*state, window, KEY, &step, &cause);
	assert_int_equal(cause.grown_count, 2);
}

static void the_callers_are_those_of_most_samples(void **state)
{
	struct fbt_stack stacks[] = {
		{.header.flags = FBT_STACK_SAMPLED,
		 .samples = 20,
		 .count = 2,
		 .codes = {SLOWLY, 9}},
		{.header.flags = FBT_STACK_SAMPLED,
		 .samples = 50,
		 .count = 4,
		 .codes = {SLOWLY, 6, 7, 8}},
		{.header.flags = FBT_STACK_SAMPLED,
		 .samples = 10,
		 .count = 2,
		 .codes = {SLOWLY, 5}},
		{.header.flags = FBT_STACK_SAMPLED, .samples = 15, .count = 1, .codes = {COPY}},
		{.count = 2, .codes = {COPY, 4}}, /* of a call */
	};
	struct step step = sampled(5, 80, 15);
	struct cause cause;

	step.stacks = (stack_vec){.items = stacks, .count = 5};
	add_normal(*state, 10);
	cause = judge(*state, &step, 100 * MS);
	assert_int_equal(cause.grown_count, 2);
	assert_int_equal(cause.grown[0].codes[0], SLOWLY);
	assert_int_equal(cause.grown[0].codes[1], 6);
	assert_int_equal(cause.grown[0].codes[2], 7);
	assert_int_equal(cause.grown[1].codes[0], COPY);
	assert_int_equal(cause.grown[1].codes[1], 0);
}

/* Normal steps with count functions, from code 1000 on, each with so many samples. */
static void add_functions(struct slow_functions *profiles, uint32_t count, uint32_t samples)
{
	for (uint32_t i = 0; i < count; i++) {
		struct step step = {.samples = {.header.type = FBT_EVENT_SAMPLES,
						.samples = samples,
						.count = 1}};

		step.samples.functions[0].code = 1000 + i;
		step.samples.functions[0].samples = samples;
		slow_functions__judge(profiles, window, KEY, &step, NULL);
	}
}

/* More functions than are kept: a model may have hundreds that are seldom sampled. */
static void a_new_function_with_many_samples_is_named_beside_many_others(void **state)
{
	struct step step = sampled(5, 80, 15);
	struct cause cause;

	add_functions(*state, 300, 2);
	cause = judge(*state, &step, 100 * MS);
	assert_true(cause.grown_count > 0);
	assert_int_equal(cause.grown[0].codes[0], SLOWLY);
	assert_int_equal(cause.grown[0].ns, 80 * MS);
}

static void a_new_function_with_fewer_samples_displaces_none(void **state)
{
	struct step few = sampled(0, 3, 0),
		    many = {.samples = {
				    .header.type = FBT_EVENT_SAMPLES, .samples = 100, .count = 1}};
	struct cause cause;

	add_functions(*state, 128, 4);
	judge(*state, &few, 100 * MS);
	/* The first one still has its samples. */
	many.samples.functions[0].code = 1000;
	many.samples.functions[0].samples = 100;
	cause = judge(*state, &many, 100 * MS);
	assert_int_equal(cause.grown_count, 1);
	assert_int_equal(cause.grown[0].codes[0], 1000);
	/* 10 ms are usual, of which it has 4 of 512 samples. */
	assert_in_range(cause.grown[0].ns, 99 * MS, 100 * MS - 1);
}

/* What is no longer called makes room as soon as a new function is seen. */
static void functions_that_were_halved_to_nothing_make_room(void **state)
{
	struct step usual = sampled(1000, 0, 0), slow = sampled(5, 80, 15);
	struct cause cause;

	add_functions(*state, 128, 60);
	for (int i = 0; i < 200; i++)
		slow_functions__judge(*state, window, KEY, &usual, NULL);
	cause = judge(*state, &slow, 100 * MS);
	assert_true(cause.grown_count > 0);
	assert_int_equal(cause.grown[0].codes[0], SLOWLY);
	/* And what is called all the time is known as usual. */
	cause = judge(*state, &usual, 100 * MS);
	assert_int_equal(cause.grown[0].codes[0], USUAL);
	assert_in_range(cause.grown[0].ns, 90 * MS, 91 * MS);
}

static void few_samples_of_slow_steps_say_nothing(void **state)
{
	struct step step = sampled(0, 9, 0);

	add_normal(*state, 10);
	assert_int_equal(judge(*state, &step, 100 * MS).grown_count, 0);
}

static void samples_of_several_slow_steps_count_together(void **state)
{
	struct step step = sampled(0, 9, 0);
	struct cause cause;

	add_normal(*state, 10);
	judge(*state, &step, 100 * MS);
	cause = judge(*state, &step, 100 * MS);
	assert_int_equal(cause.grown_count, 1);
	assert_int_equal(cause.grown[0].codes[0], SLOWLY);
	assert_int_equal(cause.grown[0].ns, 100 * MS);
}

static void without_normal_samples_it_is_where_most_time_is(void **state)
{
	struct step step = sampled(50, 50, 0);
	struct cause cause = judge(*state, &step, 100 * MS);

	assert_false(cause.grown_usual);
	assert_int_equal(cause.grown_count, 2);
	assert_int_equal(cause.grown[0].ns, 50 * MS);
}

static void a_step_without_samples_is_not_explained(void **state)
{
	struct step step = sampled(5, 80, 15), other = {.number = 1};

	add_normal(*state, 10);
	judge(*state, &step, 100 * MS);
	assert_int_equal(judge(*state, &other, 100 * MS).grown_count, 0);
}

static void other_classes_count_for_nothing(void **state)
{
	struct step step = sampled(0, 50, 50), copies = sampled(0, 0, 100);
	struct cause cause;

	for (int i = 0; i < 10; i++)
		slow_functions__judge(*state, window, KEY + 1, &copies, NULL);
	cause = judge(*state, &step, 100 * MS);
	assert_false(cause.grown_usual);
}

static void steps_that_are_slow_for_another_reason_count_for_nothing(void **state)
{
	struct step step = sampled(0, 0, 100);
	struct cause waits = {.kind = CAUSE_RUN_QUEUE};

	for (int i = 0; i < 10; i++)
		slow_functions__judge(*state, window, KEY, &step, &waits);
	assert_int_equal(waits.grown_count, 0);
	step = sampled(0, 20, 0);
	assert_int_equal(judge(*state, &step, 100 * MS).grown[0].codes[0], SLOWLY);
}

static void samples_without_a_name_are_not_named(void **state)
{
	struct step step = sampled(0, 80, 20);
	struct cause cause;

	step.samples.functions[1].code = 0;
	cause = judge(*state, &step, 100 * MS);
	assert_int_equal(cause.grown_count, 1);
	assert_int_equal(cause.grown[0].codes[0], COPY);
	assert_int_equal(cause.grown[0].ns, 20 * MS);
}

static void old_samples_are_forgotten_by_halves(void **state)
{
	struct step copies = sampled(0, 0, 10000), usual = sampled(10000, 0, 0);
	struct step step = sampled(0, 100, 0);
	struct cause cause;

	slow_functions__judge(*state, window, KEY, &copies, NULL);
	for (int i = 0; i < 40; i++)
		slow_functions__judge(*state, window, KEY, &usual, NULL);
	cause = judge(*state, &step, 100 * MS);
	assert_int_equal(cause.grown_count, 1);
	assert_int_equal(cause.grown[0].codes[0], SLOWLY);
}

static void a_record_with_more_samples_than_possible_is_dropped(void **state)
{
	struct step step = sampled(0, UINT32_MAX / 2, UINT32_MAX / 2);

	assert_int_equal(judge(*state, &step, 100 * MS).grown_count, 0);
}

static void there_is_room_for_so_many_classes_only(void **state)
{
	struct step step = sampled(0, 100, 0);
	struct cause cause = {.kind = CAUSE_COMPUTE, .time_ns = 100 * MS};

	for (uint64_t key = 0; key < 1000; key++)
		slow_functions__judge(*state, window, key, &step, NULL);
	slow_functions__judge(*state, window, 5000, &step, &cause);
	assert_int_equal(cause.grown_count, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_has_grown_is_named_with_the_difference),
		TEST(what_others_did_has_grown_in_no_function),
		TEST(what_all_others_did_is_no_time_of_own_functions),
		TEST(the_callers_are_those_of_most_samples),
		TEST(a_new_function_with_many_samples_is_named_beside_many_others),
		TEST(a_new_function_with_fewer_samples_displaces_none),
		TEST(functions_that_were_halved_to_nothing_make_room),
		TEST(few_samples_of_slow_steps_say_nothing),
		TEST(samples_of_several_slow_steps_count_together),
		TEST(without_normal_samples_it_is_where_most_time_is),
		TEST(a_step_without_samples_is_not_explained),
		TEST(other_classes_count_for_nothing),
		TEST(steps_that_are_slow_for_another_reason_count_for_nothing),
		TEST(samples_without_a_name_are_not_named),
		TEST(old_samples_are_forgotten_by_halves),
		TEST(a_record_with_more_samples_than_possible_is_dropped),
		TEST(there_is_room_for_so_many_classes_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
