/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "look/readings.h"

static const struct stack_codes loop = {.count = 2, .codes = {11, 12}};
static const struct stack_codes helper = {.count = 3, .codes = {10, 11, 12}};
static const struct stack_codes other_helper = {.count = 3, .codes = {9, 11, 12}};
static const struct stack_codes lost = {.count = 1, .flags = FBT_STACK_LOST, .codes = {11}};
static const struct stack_codes moved = {.count = 2, .flags = FBT_STACK_MOVED, .codes = {10, 12}};
static const struct stack_codes none = {.count = 0};

static void add(struct readings *readings, const struct stack_codes *codes, int times)
{
	for (int i = 0; i < times; i++)
		readings_add(readings, codes);
}

static void assert_chosen(const struct readings *readings, const struct stack_codes *codes)
{
	const struct stack_codes *chosen = readings_choose(readings);

	assert_non_null(chosen);
	assert_memory_equal(chosen, codes, sizeof(*codes));
}

static void without_a_reading_none_is_chosen(void **state)
{
	struct readings readings = {.count = 0};

	(void)state;
	assert_null(readings_choose(&readings));
	add(&readings, &none, READINGS_MOST);
	assert_null(readings_choose(&readings));
}

static void the_shortest_is_that_of_the_loop(void **state)
{
	struct readings readings = {.count = 0};

	(void)state;
	add(&readings, &helper, 5);
	add(&readings, &loop, 3);
	assert_chosen(&readings, &loop);
}

static void the_commonest_of_the_same_length_is_chosen(void **state)
{
	struct readings readings = {.count = 0};

	(void)state;
	add(&readings, &helper, 3);
	add(&readings, &other_helper, 4);
	add(&readings, &helper, 2);
	assert_chosen(&readings, &helper);
}

static void what_was_read_twice_is_not_believed(void **state)
{
	struct readings readings = {.count = 0};

	(void)state;
	add(&readings, &helper, 2);
	add(&readings, &loop, 2);
	assert_null(readings_choose(&readings));
	add(&readings, &loop, 1);
	assert_chosen(&readings, &loop);
}

/* A part of these stacks is not known, or not true, so that they are short tells nothing. */
static void doubtful_readings_come_last(void **state)
{
	struct readings readings = {.count = 0};

	(void)state;
	add(&readings, &lost, 4);
	assert_chosen(&readings, &lost);
	add(&readings, &helper, 3);
	assert_chosen(&readings, &helper);

	readings = (struct readings){.count = 0};
	add(&readings, &lost, 4);
	add(&readings, &moved, 3);
	assert_chosen(&readings, &moved);
}

static void an_empty_reading_comes_last(void **state)
{
	struct readings readings = {.count = 0};

	(void)state;
	add(&readings, &none, 5);
	add(&readings, &loop, 3);
	assert_chosen(&readings, &loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_reading_none_is_chosen),
		cmocka_unit_test(the_shortest_is_that_of_the_loop),
		cmocka_unit_test(the_commonest_of_the_same_length_is_chosen),
		cmocka_unit_test(what_was_read_twice_is_not_believed),
		cmocka_unit_test(doubtful_readings_come_last),
		cmocka_unit_test(an_empty_reading_comes_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
