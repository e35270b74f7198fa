/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "name_table.h"

static int setup(void **state)
{
	*state = name_table__new();
	return *state ? 0 : -1;
}

static void test_ids(void **state)
{
	struct name_table *table = *state;
	char copy[] = "second";
	uint32_t first = name_table__intern(table, "first");
	uint32_t second = name_table__intern(table, "second");

	assert_int_equal(first, 1);
	assert_int_equal(second, 2);
	assert_int_equal(name_table__intern(table, "first"), first);
	/* Names are compared by text, not by pointer. */
	assert_int_equal(name_table__intern(table, copy), second);
	assert_string_equal(name_table__text(table, first), "first");
	assert_int_equal(name_table__intern(table, NULL), 0);
	assert_int_equal(name_table__intern(table, ""), 3);
	assert_string_equal(name_table__text(table, 3), "");
}

/* After a module is unloaded, another module's name may lie at the same address. */
static void test_pointer_reused(void **state)
{
	struct name_table *table = *state;
	char name[32] = "gemm_128x64";
	uint32_t before = name_table__intern(table, name);
	uint32_t after;

	strcpy(name, "gemm_128x6"); /* NOLINT */
	after = name_table__intern(table, name);
	assert_int_not_equal(before, after);
	assert_string_equal(name_table__text(table, before), "gemm_128x64");
	assert_string_equal(name_table__text(table, after), "gemm_128x6");
	strcpy(name, "gemm_128x64"); /* NOLINT */
	assert_int_equal(name_table__intern(table, name), before);
}

static void test_long_names(void **state)
{
	struct name_table *table = *state;
	static char name[3 * FBT_GPU_NAME_BYTES_MAX];
	uint32_t id;

	memset(name, 'a', sizeof(name) - 1);
	id = name_table__intern(table, name);
	assert_int_equal(strlen(name_table__text(table, id)), FBT_GPU_NAME_BYTES_MAX - 1);
	assert_int_equal(name_table__intern(table, name), id);
	/* Names that differ only beyond the limit are one name. */
	name[FBT_GPU_NAME_BYTES_MAX] = 'b';
	assert_int_equal(name_table__intern(table, name), id);
	name[FBT_GPU_NAME_BYTES_MAX - 2] = 'b';
	assert_int_not_equal(name_table__intern(table, name), id);
}

static void test_too_many(void **state)
{
	struct name_table *table = *state;
	char name[32];

	for (uint32_t i = 0; i < 2 * FBT_GPU_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "kernel_%u", i);
		assert_int_equal(name_table__intern(table, name),
				 i < FBT_GPU_NAMES_MAX ? i + 1 : 0);
	}
	for (uint32_t i = 0; i < FBT_GPU_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "kernel_%u", i);
		assert_int_equal(name_table__intern(table, name), i + 1);
		assert_string_equal(name_table__text(table, i + 1), name);
	}
}

static void test_too_much_text(void **state)
{
	struct name_table *table = *state;
	static char name[FBT_GPU_NAME_BYTES_MAX];
	uint32_t known = 0;

	memset(name, 'x', sizeof(name) - 1);
	for (uint32_t i = 0; i < 2 * NAME_TABLE_BYTES / FBT_GPU_NAME_BYTES_MAX; i++) {
		snprintf(name, 9, "%08u", i);
		name[8] = 'x';
		known += name_table__intern(table, name) != 0;
	}
	assert_int_equal(known, NAME_TABLE_BYTES / FBT_GPU_NAME_BYTES_MAX);
	/* Names that were interned before remain. */
	snprintf(name, 9, "%08u", 3);
	name[8] = 'x';
	assert_int_equal(name_table__intern(table, name), 4);
}

static uint32_t intern_long(struct name_table *table, char letter, size_t length)
{
	char name[FBT_GPU_NAME_BYTES_MAX] = "";

	memset(name, letter, length);
	return name_table__intern(table, name);
}

/* A name needs room for its NUL too. */
static void test_full_to_the_byte(void **state)
{
	struct name_table *table = *state;
	char name[FBT_GPU_NAME_BYTES_MAX];
	uint32_t id;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (uint32_t i = 1; i < NAME_TABLE_BYTES / FBT_GPU_NAME_BYTES_MAX; i++) {
		snprintf(name, 9, "%08u", i);
		name[8] = 'x';
		assert_int_equal(name_table__intern(table, name), i);
	}
	assert_int_not_equal(intern_long(table, 'a', 1000), 0);
	assert_int_equal(intern_long(table, 'b', 2048 - 1001), 0);
	id = intern_long(table, 'c', 2048 - 1002);
	assert_int_not_equal(id, 0);
	assert_int_equal(strlen(name_table__text(table, id)), 2048 - 1002);
	assert_int_equal(name_table__intern(table, ""), 0);
}

/* Two names with the same FNV-1a hash. */
static void test_names_of_one_hash(void **state)
{
	struct name_table *table = *state;

	assert_int_equal(name_table__intern(table, "liquid"), 1);
	assert_int_equal(name_table__intern(table, "costarring"), 2);
	assert_string_equal(name_table__text(table, 1), "liquid");
	assert_string_equal(name_table__text(table, 2), "costarring");
}

static void test_sent(void **state)
{
	struct name_table *table = *state;
	uint32_t id = name_table__intern(table, "a");

	assert_false(name_table__is_sent(table, id));
	name_table__set_sent(table, id);
	assert_true(name_table__is_sent(table, id));
	assert_false(name_table__is_sent(table, name_table__intern(table, "b")));
	name_table__forget(table);
	assert_false(name_table__is_sent(table, id));
}

/* An engine that keeps loading kernels has names in the next window too. */
static void test_a_table_that_is_half_full_is_emptied_for_the_next_reader(void **state)
{
	struct name_table *table = *state;
	char name[32];

	for (uint32_t i = 0; i <= FBT_GPU_NAMES_MAX / 2; i++) {
		snprintf(name, sizeof(name), "kernel_%u", i);
		assert_int_equal(name_table__intern(table, name), i + 1);
		name_table__set_sent(table, i + 1);
	}
	name_table__forget(table);
	for (uint32_t i = 0; i < FBT_GPU_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "other_%u", i);
		assert_int_equal(name_table__intern(table, name), i + 1);
		assert_false(name_table__is_sent(table, i + 1));
		assert_string_equal(name_table__text(table, i + 1), name);
	}
}

static void test_a_table_of_long_names_is_emptied_for_the_next_reader(void **state)
{
	struct name_table *table = *state;

	for (uint32_t i = 0; i <= NAME_TABLE_BYTES / 2 / FBT_GPU_NAME_BYTES_MAX; i++) {
		char name[FBT_GPU_NAME_BYTES_MAX];

		memset(name, 'x', sizeof(name) - 1);
		name[sizeof(name) - 1] = '\0';
		snprintf(name, 9, "%08u", i);
		name[8] = 'x';
		assert_int_equal(name_table__intern(table, name), i + 1);
	}
	name_table__forget(table);
	assert_int_equal(name_table__intern(table, "a"), 1);
}

static void test_a_table_that_is_not_half_full_keeps_its_ids(void **state)
{
	struct name_table *table = *state;
	char name[32];

	for (uint32_t i = 0; i < FBT_GPU_NAMES_MAX / 2; i++) {
		snprintf(name, sizeof(name), "kernel_%u", i);
		name_table__intern(table, name);
	}
	name_table__forget(table);
	assert_int_equal(name_table__intern(table, name), FBT_GPU_NAMES_MAX / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_ids, setup),
		cmocka_unit_test_setup(test_pointer_reused, setup),
		cmocka_unit_test_setup(test_long_names, setup),
		cmocka_unit_test_setup(test_too_many, setup),
		cmocka_unit_test_setup(test_too_much_text, setup),
		cmocka_unit_test_setup(test_full_to_the_byte, setup),
		cmocka_unit_test_setup(test_names_of_one_hash, setup),
		cmocka_unit_test_setup(test_sent, setup),
		cmocka_unit_test_setup(
			test_a_table_that_is_half_full_is_emptied_for_the_next_reader, setup),
		cmocka_unit_test_setup(test_a_table_of_long_names_is_emptied_for_the_next_reader,
				       setup),
		cmocka_unit_test_setup(test_a_table_that_is_not_half_full_keeps_its_ids, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
