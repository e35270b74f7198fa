/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "id_set.h"

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

/* Close together, far apart, and both ends of the numbers. */
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
		cmocka_unit_test(numbers_have_no_marks_at_first),
		cmocka_unit_test(marks_add_up_and_stay_with_their_number),
		cmocka_unit_test(marks_beyond_the_four_touch_no_neighbour),
		cmocka_unit_test(many_numbers_keep_apart),
		cmocka_unit_test(find_wants_some_and_not_all_of_what_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
