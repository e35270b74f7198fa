/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "file_table.h"

static int add(struct file_table *table, uint32_t id, const char *path)
{
	const struct fbt_file record = {.id = id, .tgid = 7, .fd = (int32_t)id};

	return file_table_add(table, &record, path);
}

static void files_are_found_whatever_order_they_come_in(void **state)
{
	static const uint32_t ids[] = {5, 1, 9, 3, 2, 8};
	struct file_table table = {0};
	char path[2] = "a";

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		path[0] = (char)('a' + ids[i]);
		assert_int_equal(add(&table, ids[i], path), 0);
	}
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		const struct file *file = file_table_find(&table, ids[i]);

		assert_non_null(file);
		assert_int_equal(file->record.fd, ids[i]);
		assert_int_equal(file->path[0], 'a' + ids[i]);
	}
	assert_null(file_table_find(&table, 0));
	assert_null(file_table_find(&table, 4));
	assert_null(file_table_find(&table, 10));
	file_table_clear(&table);
}

static void a_later_record_of_an_id_replaces_the_earlier(void **state)
{
	struct file_table table = {0};

	assert_int_equal(add(&table, 3, "/old"), 0);
	assert_int_equal(add(&table, 3, "/new"), 0);
	assert_string_equal(file_table_find(&table, 3)->path, "/new");
	file_table_clear(&table);
	assert_null(file_table_find(&table, 3));
}

static void a_full_table_refuses_new_files_and_keeps_the_old(void **state)
{
	struct file_table table = {0};

	for (uint32_t id = 1; id <= FILE_TABLE_MAX; id++)
		assert_int_equal(add(&table, id, ""), 0);
	assert_int_equal(add(&table, FILE_TABLE_MAX + 1, "/one/more"), -ENOSPC);
	assert_int_equal(add(&table, 1, "/first"), 0);
	assert_string_equal(file_table_find(&table, 1)->path, "/first");
	file_table_clear(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_found_whatever_order_they_come_in),
		cmocka_unit_test(a_later_record_of_an_id_replaces_the_earlier),
		cmocka_unit_test(a_full_table_refuses_new_files_and_keeps_the_old),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
