/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>

#include "buffer_pool.h"

static struct buffer_pool pool;

static int setup(void **state)
{
	memset(&pool, 0, sizeof(pool));
	return buffer_pool__prepare(&pool);
}

static int teardown(void **state)
{
	munmap(pool.memory, (size_t)BUFFER_POOL_COUNT * BUFFER_POOL_BYTES);
	return 0;
}

/* Takes a buffer, and writes into it as CUPTI does. */
static uint8_t *take_and_write(uint64_t now_ns)
{
	uint8_t *buffer = buffer_pool__take(&pool, now_ns);

	assert_non_null(buffer);
	*(uint32_t *)buffer = 1;
	return buffer;
}

static void test_the_oldest_written_buffer_counts(void **state)
{
	uint8_t *first;

	assert_int_equal(buffer_pool__oldest_ns(&pool), UINT64_MAX);
	assert_non_null(buffer_pool__take(&pool, 10));
	assert_int_equal(buffer_pool__oldest_ns(&pool), UINT64_MAX);
	first = take_and_write(20);
	take_and_write(30);
	assert_int_equal(buffer_pool__oldest_ns(&pool), 20);
	buffer_pool__give_back(&pool, first);
	assert_int_equal(buffer_pool__oldest_ns(&pool), 30);
}

static void test_a_buffer_that_was_written_off_does_not_count(void **state)
{
	take_and_write(20);
	buffer_pool__write_off(&pool);
	assert_int_equal(buffer_pool__oldest_ns(&pool), UINT64_MAX);
	take_and_write(30);
	assert_int_equal(buffer_pool__oldest_ns(&pool), 30);
	buffer_pool__write_off(&pool);
	assert_int_equal(buffer_pool__oldest_ns(&pool), UINT64_MAX);
}

/* CUPTI may keep an empty buffer from one window to the next, and use it there. */
static void test_a_clear_buffer_is_not_written_off(void **state)
{
	uint8_t *buffer = buffer_pool__take(&pool, 20);

	assert_non_null(buffer);
	buffer_pool__write_off(&pool);
	*(uint32_t *)buffer = 1;
	assert_int_equal(buffer_pool__oldest_ns(&pool), 20);
}

static void test_a_buffer_that_came_back_counts_again(void **state)
{
	uint8_t *buffer = take_and_write(20);

	buffer_pool__write_off(&pool);
	buffer_pool__give_back(&pool, buffer);
	assert_int_equal(buffer_pool__oldest_ns(&pool), UINT64_MAX);
	assert_ptr_equal(take_and_write(40), buffer);
	assert_int_equal(buffer_pool__oldest_ns(&pool), 40);
}

static void test_every_buffer_is_handed_out_once(void **state)
{
	for (uint32_t i = 0; i < BUFFER_POOL_COUNT; i++)
		take_and_write(i + 1);
	assert_null(buffer_pool__take(&pool, 100));
	buffer_pool__write_off(&pool);
	assert_null(buffer_pool__take(&pool, 100));
	buffer_pool__give_back(&pool, pool.memory + BUFFER_POOL_BYTES);
	assert_ptr_equal(buffer_pool__take(&pool, 100), pool.memory + BUFFER_POOL_BYTES);
}

static void test_the_content_changes_with_each_record(void **state)
{
	uint64_t content[4];
	uint8_t *buffer;

	assert_int_equal(buffer_pool__content(&pool), 0);
	buffer = buffer_pool__take(&pool, 10);
	content[0] = buffer_pool__content(&pool);
	*(uint32_t *)buffer = 1;
	content[1] = buffer_pool__content(&pool);
	*(uint32_t *)(buffer + BUFFER_POOL_BYTES - 8) = 1;
	content[2] = buffer_pool__content(&pool);
	assert_int_equal(buffer_pool__content(&pool), content[2]);
	take_and_write(20);
	content[3] = buffer_pool__content(&pool);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < i; j++)
			assert_true(content[i] && content[i] != content[j]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_oldest_written_buffer_counts, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_buffer_that_was_written_off_does_not_count,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_clear_buffer_is_not_written_off, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_buffer_that_came_back_counts_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_the_content_changes_with_each_record, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_every_buffer_is_handed_out_once, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
