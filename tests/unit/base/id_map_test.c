/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "base/id_map.h"

/* Multiplied by this, numbers collide in the map. Dense numbers hardly ever do. */
#define SPREAD 2654435761u

static int open_map(void **state)
{
	*state = tid_map__new();
	return *state ? 0 : -1;
}

static int close_map(void **state)
{
	tid_map__free(*state);
	return 0;
}

static void map_free_takes_null(void **state)
{
	tid_map__free(NULL);
}

static void map_has_nothing_at_first(void **state)
{
	assert_null(tid_map__get(*state, 0));
	assert_int_equal(tid_map__count(*state), 0);
}

static void map_removes_what_is_absent_in_silence(void **state)
{
	tid_map__remove(*state, 7);
	assert_int_equal(tid_map__count(*state), 0);
}

static void map_holds_thread_zero(void **state)
{
	int value;

	assert_int_equal(tid_map__set(*state, 0, &value), 0);
	assert_ptr_equal(tid_map__get(*state, 0), &value);
}

static void map_replaces_a_value(void **state)
{
	int first, second;

	assert_int_equal(tid_map__set(*state, 7, &first), 0);
	assert_int_equal(tid_map__set(*state, 7, &second), 0);
	assert_ptr_equal(tid_map__get(*state, 7), &second);
	assert_int_equal(tid_map__count(*state), 1);
}

/*
 * Compares the map with a plain array, with numbers that collide and that are removed among others.
 */
static void map_agrees_with_an_array_after_many_changes(void **state)
{
	enum { TIDS = 300 };
	static int marks[TIDS];
	void *expected[TIDS] = {NULL};
	uint32_t random = 1;
	size_t count = 0;

	for (int round = 0; round < 20000; round++) {
		random = random * 1103515245 + 12345;
		uint32_t i = (random >> 8) % TIDS;

		if (random >> 30 == 0) {
			count -= expected[i] != NULL;
			expected[i] = NULL;
			tid_map__remove(*state, i * SPREAD);
		} else {
			count += expected[i] == NULL;
			expected[i] = &marks[i];
			assert_int_equal(tid_map__set(*state, i * SPREAD, &marks[i]), 0);
		}
		if (round % 500)
			continue;
		for (i = 0; i < TIDS; i++)
			assert_ptr_equal(tid_map__get(*state, i * SPREAD), expected[i]);
		assert_int_equal(tid_map__count(*state), count);
	}
}

#define MAP_TEST(test) cmocka_unit_test_setup_teardown(test, open_map, close_map)

static void numbers_have_no_marks_at_first(void **state)
{
	struct id_set *set = id_set__new();
	uint64_t id;

	assert_int_equal(id_set__marks(set, 0), 0);
	assert_int_equal(id_set__marks(set, UINT64_MAX), 0);
	assert_false(id_set__find(set, 15, 0, &id));
	id_set__free(set);
	id_set__free(NULL);
}

static void marks_add_up_and_stay_with_their_number(void **state)
{
	struct id_set *set = id_set__new();

	assert_int_equal(id_set__mark(set, 7, 1), 0);
	assert_int_equal(id_set__mark(set, 7, 8), 0);
	assert_int_equal(id_set__mark(set, 6, 2), 0);
	assert_int_equal(id_set__marks(set, 7), 9);
	assert_int_equal(id_set__marks(set, 6), 2);
	assert_int_equal(id_set__marks(set, 5), 0);
	assert_int_equal(id_set__marks(set, 8), 0);
	id_set__free(set);
}

static void marks_beyond_the_four_touch_no_neighbour(void **state)
{
	struct id_set *set = id_set__new();

	assert_int_equal(id_set__mark(set, 6, 0xf1), 0);
	assert_int_equal(id_set__marks(set, 6), 1);
	assert_int_equal(id_set__marks(set, 7), 0);
	id_set__free(set);
}

/* Numbers that are close together, far apart, and at both ends of the range. */
static void many_numbers_keep_apart(void **state)
{
	struct id_set *set = id_set__new();

	for (uint64_t i = 0; i < 10000; i++) {
		assert_int_equal(id_set__mark(set, i, (unsigned int)(1 + i % 15)), 0);
		assert_int_equal(id_set__mark(set, UINT64_MAX - (i << 40), 4), 0);
	}
	for (uint64_t i = 0; i < 10000; i++) {
		assert_int_equal(id_set__marks(set, i), 1 + i % 15);
		assert_int_equal(id_set__marks(set, UINT64_MAX - (i << 40)), 4);
	}
	assert_int_equal(id_set__marks(set, 10000), 0);
	id_set__free(set);
}

static void find_wants_some_and_not_all_of_what_is_missing(void **state)
{
	struct id_set *set = id_set__new();
	uint64_t id = 0;

	assert_int_equal(id_set__mark(set, 300, 3), 0);
	assert_false(id_set__find(set, 1, 2, &id));
	assert_false(id_set__find(set, 4, 2, &id));
	assert_int_equal(id_set__mark(set, 1ull << 33 | 5, 1), 0);
	assert_true(id_set__find(set, 1, 2, &id));
	assert_int_equal(id, 1ull << 33 | 5);
	id_set__free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_free_takes_null),
		MAP_TEST(map_has_nothing_at_first),
		MAP_TEST(map_removes_what_is_absent_in_silence),
		MAP_TEST(map_holds_thread_zero),
		MAP_TEST(map_replaces_a_value),
		MAP_TEST(map_agrees_with_an_array_after_many_changes),
		cmocka_unit_test(numbers_have_no_marks_at_first),
		cmocka_unit_test(marks_add_up_and_stay_with_their_number),
		cmocka_unit_test(marks_beyond_the_four_touch_no_neighbour),
		cmocka_unit_test(many_numbers_keep_apart),
		cmocka_unit_test(find_wants_some_and_not_all_of_what_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
