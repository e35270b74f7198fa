/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "stacks/shares.h"

enum { MAIN, LOOP, STEP, LAYER, KERNEL, PREFILL, WAIT, WORKER, FUNCTIONS };

#define FIRST  11
#define SECOND 12

static const uint32_t tids[] = {FIRST, SECOND};

/* Adds times samples of a thread. The functions are those of a list that ends with -1. */
static void add(struct chain_set *set, uint32_t tid, int times, const int *functions)
{
	for (int i = 0; i < times; i++) {
		struct chain chain = {.tid = tid, .first = (uint32_t)set->functions.count};

		for (; functions[chain.count] >= 0; chain.count++)
			assert_int_equal(
				vec_push(&set->functions, (uint32_t)functions[chain.count]), 0);
		assert_int_equal(vec_push(&set->items, chain), 0);
	}
	set->function_count = FUNCTIONS;
}

#define ADD(set, tid, times, ...) add(set, tid, times, (const int[]){__VA_ARGS__, -1})

/* Whether the functions of a thread are those of the list, in this order. */
static void expect(struct chain_set *set, size_t which, const int *functions)
{
	share_vec shares = {0};
	size_t count = 0;

	assert_int_equal(shares_find(&shares, set, tids, 2, which), 0);
	for (; functions[count] >= 0; count++) {
		assert_true(count < shares.count);
		assert_int_equal(shares.items[count].function, functions[count]);
	}
	assert_int_equal(shares.count, count);
	vec_free(&shares);
}

#define EXPECT(set, which, ...) expect(set, which, (const int[]){__VA_ARGS__, -1})

static void clear(struct chain_set *set)
{
	vec_free(&set->items);
	vec_free(&set->functions);
}

static void nested_loops_come_from_the_outermost_on(void **state)
{
	struct chain_set set = {.function_count = 0};

	(void)state;
	ADD(&set, FIRST, 30, MAIN, LOOP, STEP, LAYER, KERNEL);
	ADD(&set, FIRST, 60, MAIN, LOOP, STEP, LAYER);
	ADD(&set, FIRST, 6, MAIN, LOOP, STEP);
	ADD(&set, FIRST, 4, MAIN, LOOP, WAIT);
	EXPECT(&set, 0, MAIN, LOOP, STEP, LAYER);
	clear(&set);
}

/* The outermost call of each is in the chain. */
static void functions_that_call_each_other_keep_their_order(void **state)
{
	struct chain_set set = {.function_count = 0};

	(void)state;
	ADD(&set, FIRST, 40, MAIN, STEP, LAYER);
	ADD(&set, FIRST, 10, MAIN, LAYER, STEP);
	EXPECT(&set, 0, MAIN, STEP, LAYER);
	clear(&set);
}

/* Neither of two phases is what the thread does for most of the time; what calls both is. */
static void of_two_phases_there_is_what_calls_both(void **state)
{
	struct chain_set set = {.function_count = 0};

	(void)state;
	ADD(&set, FIRST, 50, MAIN, LOOP, STEP, LAYER);
	ADD(&set, FIRST, 50, MAIN, LOOP, PREFILL, KERNEL);
	EXPECT(&set, 0, MAIN, LOOP);
	clear(&set);
}

static void what_both_phases_call_is_a_part_of_them(void **state)
{
	struct chain_set set = {.function_count = 0};

	(void)state;
	ADD(&set, FIRST, 50, MAIN, LOOP, STEP, LAYER, KERNEL);
	ADD(&set, FIRST, 50, MAIN, LOOP, PREFILL, KERNEL);
	EXPECT(&set, 0, MAIN, LOOP);
	ADD(&set, FIRST, 200, MAIN, LOOP, STEP, LAYER, KERNEL);
	EXPECT(&set, 0, MAIN, LOOP, STEP, LAYER, KERNEL);
	clear(&set);
}

static void a_thread_with_few_samples_says_nothing(void **state)
{
	struct chain_set set = {.function_count = 0};

	(void)state;
	ADD(&set, FIRST, 100, MAIN, LOOP, STEP);
	ADD(&set, SECOND, SHARE_SAMPLES_MIN - 1, WORKER, WAIT);
	EXPECT(&set, 0, MAIN, LOOP, STEP);
	EXPECT(&set, 1, -1);
	ADD(&set, SECOND, 1, WORKER, WAIT);
	EXPECT(&set, 1, WORKER, WAIT);
	clear(&set);
}

static void samples_of_other_threads_and_empty_ones_are_none_of_a_function(void **state)
{
	struct chain_set set = {.function_count = 0};

	(void)state;
	ADD(&set, FIRST, 61, MAIN, STEP);
	ADD(&set, FIRST, 39, -1);
	ADD(&set, 99, 1000, WORKER);
	EXPECT(&set, 0, MAIN, STEP);
	ADD(&set, FIRST, 3, -1);
	EXPECT(&set, 0, -1);
	clear(&set);
}

static void a_half_may_look_like_more_by_chance(void **state)
{
	struct chain_set set = {.function_count = 0};

	(void)state;
	ADD(&set, FIRST, 16, MAIN, STEP);
	ADD(&set, FIRST, 9, MAIN, PREFILL);
	EXPECT(&set, 0, MAIN);
	ADD(&set, FIRST, 64, MAIN, STEP);
	ADD(&set, FIRST, 36, MAIN, PREFILL);
	EXPECT(&set, 0, MAIN, STEP);
	clear(&set);
}

static void a_function_is_at_home_on_each_thread_that_is_in_it(void **state)
{
	struct chain_set set = {.function_count = 0};
	share_vec shares = {0};

	(void)state;
	ADD(&set, FIRST, 80, MAIN, STEP, KERNEL);
	ADD(&set, FIRST, 20, MAIN, WAIT);
	ADD(&set, SECOND, 50, WORKER, KERNEL);
	ADD(&set, SECOND, 40, WORKER, WAIT);
	ADD(&set, SECOND, 10, WORKER, STEP);
	assert_int_equal(shares_find(&shares, &set, tids, 2, 0), 0);
	assert_int_equal(shares.count, 3);
	assert_int_equal(shares.items[1].function, STEP);
	assert_float_equal(shares.items[1].part, 0.8, 0.001);
	assert_float_equal(shares.items[1].parts[1], 0, 0.001);
	assert_int_equal(shares.items[2].function, KERNEL);
	assert_float_equal(shares.items[2].parts[0], 0.8, 0.001);
	assert_float_equal(shares.items[2].parts[1], 0.5, 0.001);
	vec_free(&shares);
	clear(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested_loops_come_from_the_outermost_on),
		cmocka_unit_test(functions_that_call_each_other_keep_their_order),
		cmocka_unit_test(of_two_phases_there_is_what_calls_both),
		cmocka_unit_test(what_both_phases_call_is_a_part_of_them),
		cmocka_unit_test(a_thread_with_few_samples_says_nothing),
		cmocka_unit_test(samples_of_other_threads_and_empty_ones_are_none_of_a_function),
		cmocka_unit_test(a_half_may_look_like_more_by_chance),
		cmocka_unit_test(a_function_is_at_home_on_each_thread_that_is_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
