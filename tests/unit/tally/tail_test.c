/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "tally/tail.h"

#define US 1000u

static int make_tail(void **state)
{
	*state = tail__new();
	return *state ? 0 : -1;
}

static int free_tail(void **state)
{
	tail__free(*state);
	return 0;
}

static void add(struct tail *tail, int steps, uint64_t own_us, uint64_t futex_us)
{
	struct step_parts parts = {.known = true};

	parts.ns[STEP_OWN] = own_us * US;
	parts.ns[STEP_CALLS + FBT_FUTEX] = futex_us * US;
	while (steps--)
		tail__add(tail, &parts, (own_us + futex_us) * US);
}

static void the_slowest_are_held_against_the_median(void **state)
{
	struct tail_group slowest, median;

	add(*state, 500, 1000, 10);
	add(*state, 490, 1002, 12);
	add(*state, 10, 1100, 5000);
	assert_true(tail__find(*state, &slowest, &median));
	assert_int_equal(slowest.steps, 10);
	assert_true(slowest.total_ns == 6100.0 * US);
	assert_true(slowest.parts_ns[STEP_OWN] == 1100.0 * US);
	assert_true(slowest.parts_ns[STEP_CALLS + FBT_FUTEX] == 5000.0 * US);
	assert_true(median.total_ns >= 1010.0 * US && median.total_ns <= 1014.0 * US);
	assert_true(median.parts_ns[STEP_OWN] >= 1000.0 * US &&
		    median.parts_ns[STEP_OWN] <= 1002.0 * US);
}

static void of_a_class_across_the_border_a_share_counts(void **state)
{
	struct tail_group slowest, median;

	add(*state, 955, 1000, 0);
	add(*state, 40, 5000, 0);
	add(*state, 5, 9000, 0);
	assert_true(tail__find(*state, &slowest, &median));
	assert_int_equal(slowest.steps, 10);
	assert_float_equal(slowest.total_ns, 7000.0 * US, 0.001);
	assert_float_equal(slowest.parts_ns[STEP_OWN], 7000.0 * US, 0.001);
	assert_int_equal(median.steps, 100);
	assert_float_equal(median.total_ns, 1000.0 * US, 0.001);
}

/* The result is within one class width of the true mean, whatever the lengths. */
static void the_slowest_are_one_in_a_hundred_to_three_percent(void **state)
{
	struct tail_group slowest, median;
	double sum_us = 0;

	for (int i = 0; i < 20000; i++)
		add(*state, 1, 1000 + (uint64_t)(i * 7919 % 20000), 0);
	assert_true(tail__find(*state, &slowest, &median));
	for (int i = 19800; i < 20000; i++)
		sum_us += 1000 + i;
	assert_int_equal(slowest.steps, 200);
	assert_true(slowest.total_ns > sum_us / 200 * US * 0.97 &&
		    slowest.total_ns < sum_us / 200 * US * 1.03);
	assert_float_equal(median.total_ns, 11000.0 * US, 11000.0 * US * 0.001);
}

static void few_steps_have_no_tail(void **state)
{
	struct tail_group slowest, median;

	add(*state, 98, 1000, 0);
	add(*state, 1, 1000, 9000);
	assert_false(tail__find(*state, &slowest, &median));
	add(*state, 1, 1000, 9000);
	assert_true(tail__find(*state, &slowest, &median));
	assert_int_equal(slowest.steps, 1);
}

static void steady_steps_and_two_sorts_of_them_have_no_tail(void **state)
{
	struct tail_group slowest, median;

	add(*state, 1000, 1000, 0);
	add(*state, 20, 1090, 0);
	assert_false(tail__find(*state, &slowest, &median));
	add(*state, 300, 4000, 0);
	assert_false(tail__find(*state, &slowest, &median));
}

static void any_length_has_its_class(void **state)
{
	struct step_parts parts = {.known = true};
	struct tail_group slowest, median;

	for (int i = 0; i < 300; i++)
		tail__add(*state, &parts, i % 2 ? 0 : 1);
	tail__add(*state, &parts, UINT64_MAX);
	tail__add(*state, &parts, UINT64_MAX);
	tail__add(*state, &parts, UINT64_MAX / 2);
	tail__add(*state, &parts, UINT64_MAX / 2);
	assert_true(tail__find(*state, &slowest, &median));
	assert_int_equal(slowest.steps, 3);
	assert_true(slowest.total_ns > 9e18);
	assert_true(median.total_ns <= 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_tail, free_tail)
	const struct CMUnitTest tests[] = {
		TEST(the_slowest_are_held_against_the_median),
		TEST(of_a_class_across_the_border_a_share_counts),
		TEST(the_slowest_are_one_in_a_hundred_to_three_percent),
		TEST(few_steps_have_no_tail),
		TEST(steady_steps_and_two_sorts_of_them_have_no_tail),
		TEST(any_length_has_its_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
