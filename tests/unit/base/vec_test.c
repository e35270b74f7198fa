/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/vec.h"

typedef VEC(uint64_t) number_vec;

/* Without this, ASan ends the program where reallocarray() would return NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void vec_grow_refuses_more_than_the_address_space(void **state)
{
	void *items = NULL;
	volatile size_t huge = SIZE_MAX / 8; /* volatile, or the compiler warns */
	size_t capacity = huge;

	assert_int_equal(vec_grow(&items, capacity, &capacity, 8), -ENOMEM);
	assert_null(items);
	assert_true(capacity == SIZE_MAX / 8);
}

static void vec_free_takes_an_empty_array(void **state)
{
	number_vec numbers = {0};

	vec_free(&numbers);
	assert_null(numbers.items);
}

static void vec_for_each_does_nothing_with_an_empty_array(void **state)
{
	number_vec numbers = {0};

	vec_for_each (number, &numbers)
		fail();
}

static void vec_keeps_what_was_pushed_in_order(void **state)
{
	number_vec numbers = {0};
	uint64_t expected = 0;

	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(vec_push(&numbers, i), 0);
	assert_int_equal(numbers.count, 1000);
	vec_for_each (number, &numbers)
		assert_int_equal(*number, expected++);
	assert_int_equal(expected, 1000);
	vec_free(&numbers);
}

static void vec_is_empty_and_usable_after_free(void **state)
{
	number_vec numbers = {0};

	assert_int_equal(vec_push(&numbers, 1), 0);
	vec_free(&numbers);
	assert_int_equal(numbers.count, 0);
	assert_int_equal(vec_push(&numbers, 2), 0);
	assert_int_equal(numbers.items[0], 2);
	vec_free(&numbers);
}

static void vec_shrink_gives_back_what_is_hardly_used(void **state)
{
	number_vec numbers = {0};

	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(vec_push(&numbers, i), 0);
	numbers.count = 33;
	vec_shrink(&numbers, 64);
	assert_int_equal(numbers.capacity, 128);
	numbers.count = 32;
	vec_shrink(&numbers, 128);
	assert_int_equal(numbers.capacity, 128);
	vec_shrink(&numbers, 64);
	assert_int_equal(numbers.capacity, 32);
	for (uint64_t i = 0; i < 32; i++)
		assert_int_equal(numbers.items[i], i);
	assert_int_equal(vec_push(&numbers, 32), 0);
	assert_int_equal(numbers.items[32], 32);
	vec_free(&numbers);
}

static void vec_shrink_frees_an_empty_array(void **state)
{
	number_vec numbers = {0};

	vec_shrink(&numbers, 0);
	assert_int_equal(vec_push(&numbers, 1), 0);
	numbers.count = 0;
	vec_shrink(&numbers, 8);
	assert_non_null(numbers.items);
	vec_shrink(&numbers, 0);
	assert_null(numbers.items);
	assert_int_equal(numbers.capacity, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vec_grow_refuses_more_than_the_address_space),
		cmocka_unit_test(vec_free_takes_an_empty_array),
		cmocka_unit_test(vec_for_each_does_nothing_with_an_empty_array),
		cmocka_unit_test(vec_keeps_what_was_pushed_in_order),
		cmocka_unit_test(vec_is_empty_and_usable_after_free),
		cmocka_unit_test(vec_shrink_gives_back_what_is_hardly_used),
		cmocka_unit_test(vec_shrink_frees_an_empty_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
