/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "row_table.h"

static void set(struct row_table *table, uint32_t nr, uint64_t calls)
{
	const struct fbt_table row = {.nr = nr, .sum.calls = calls};

	assert_int_equal(row_table_set(table, &row), 0);
}

static void rows_are_found_whatever_order_they_come_in(void **state)
{
	static const uint32_t numbers[] = {5, 1, 511, 3, 0, 8};
	struct row_table table = {0};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		set(&table, numbers[i], numbers[i] + 1);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_int_equal(row_table_find(&table, numbers[i])->sum.calls, numbers[i] + 1);
	for (size_t i = 1; i < table.rows.count; i++)
		assert_true(table.rows.items[i - 1].nr < table.rows.items[i].nr);
	assert_null(row_table_find(&table, 2));
	assert_null(row_table_find(&table, 510));
	row_table_clear(&table);
}

static void a_later_row_of_a_number_replaces_the_earlier(void **state)
{
	struct row_table table = {0};

	set(&table, 3, 5);
	set(&table, 9, 1);
	set(&table, 3, 6);
	assert_int_equal(table.rows.count, 2);
	assert_int_equal(row_table_find(&table, 3)->sum.calls, 6);
	row_table_clear(&table);
	assert_null(row_table_find(&table, 3));
}

static void a_process_of_few_numbers_takes_little(void **state)
{
	struct row_table table = {0};

	for (uint32_t nr = 100; nr < 110; nr++)
		set(&table, nr, 1);
	assert_true(table.rows.capacity * sizeof(*table.rows.items) <= 1024);
	row_table_clear(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_found_whatever_order_they_come_in),
		cmocka_unit_test(a_later_row_of_a_number_replaces_the_earlier),
		cmocka_unit_test(a_process_of_few_numbers_takes_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
