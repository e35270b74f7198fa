/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "left_out.h"

static int setup(void **state)
{
	*state = left_out__new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	left_out__free(*state);
	return 0;
}

/* Adds processes from tgid on until one more is not remembered; its number. */
static uint32_t fill(struct left_out *left_out, uint32_t tgid)
{
	while (left_out__add(left_out, tgid, 0))
		tgid++;
	return tgid;
}

static void free_accepts_null(void **state)
{
	left_out__free(NULL);
}

static void a_process_that_was_not_added_is_not_known(void **state)
{
	assert_true(left_out__add(*state, 7, 1));
	assert_false(left_out__has(*state, 6));
	assert_false(left_out__has(*state, 8));
	assert_false(left_out__has_ended(*state, 8));
}

static void the_end_of_an_unknown_process_is_no_news(void **state)
{
	left_out__end(*state, 7, 5);
	assert_false(left_out__has(*state, 7));
	assert_false(left_out__has_ended(*state, 7));
}

static void beyond_what_is_remembered_only_announcements_count(void **state)
{
	uint32_t next = fill(*state, 1);

	assert_true(next > 10000);
	assert_false(left_out__add(*state, next, 0));
	assert_true(left_out__add(*state, next, 1));
	assert_false(left_out__has(*state, next));
}

static void processes_that_have_ended_make_room(void **state)
{
	uint32_t next = fill(*state, 1);

	left_out__end(*state, 9, 5);
	assert_true(left_out__add(*state, next, 0));
	assert_true(left_out__has(*state, next));
	assert_false(left_out__has(*state, 9));
	assert_true(left_out__has(*state, 8));
}

static void a_process_is_one_more_only_once(void **state)
{
	assert_true(left_out__add(*state, 7, 0));
	assert_false(left_out__add(*state, 7, 0));
	assert_false(left_out__add(*state, 7, 1));
}

static void processes_are_found_in_any_order_of_arrival(void **state)
{
	static const uint32_t tgids[] = {50, 3, 99, 7, 1};

	for (size_t i = 0; i < 5; i++)
		assert_true(left_out__add(*state, tgids[i], 1));
	for (size_t i = 0; i < 5; i++)
		assert_true(left_out__has(*state, tgids[i]));
	assert_false(left_out__has(*state, 8));
}

static void a_late_record_of_a_process_that_has_ended_is_not_one_more(void **state)
{
	assert_true(left_out__add(*state, 7, 1));
	left_out__end(*state, 7, 5);
	assert_true(left_out__has_ended(*state, 7));
	assert_false(left_out__add(*state, 7, 0));
	assert_false(left_out__add(*state, 7, 4));
	assert_true(left_out__has_ended(*state, 7));
}

static void a_number_that_is_used_again_is_one_more(void **state)
{
	assert_true(left_out__add(*state, 7, 1));
	left_out__end(*state, 7, 5);
	assert_true(left_out__add(*state, 7, 6));
	assert_false(left_out__has_ended(*state, 7));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(free_accepts_null),
		TEST(a_process_that_was_not_added_is_not_known),
		TEST(the_end_of_an_unknown_process_is_no_news),
		TEST(beyond_what_is_remembered_only_announcements_count),
		TEST(processes_that_have_ended_make_room),
		TEST(a_process_is_one_more_only_once),
		TEST(processes_are_found_in_any_order_of_arrival),
		TEST(a_late_record_of_a_process_that_has_ended_is_not_one_more),
		TEST(a_number_that_is_used_again_is_one_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
