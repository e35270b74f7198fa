/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "look/group.h"

static struct fbt_look_thread thread(uint32_t tid, uint32_t nr, uint32_t code)
{
	return (struct fbt_look_thread){.header.flags = FBT_LOOK_HANG | FBT_LOOK_IN_CALL,
					.owner = tid,
					.nr = nr,
					.doing = FBT_DOING_CALL,
					.threads = 1,
					.call_ns = tid,
					.lock = 0x1000,
					.count = 2,
					.codes = {code, 9}};
}

static void threads_in_the_same_place_are_a_group(void **state)
{
	struct fbt_look_thread threads[] = {thread(1, 202, 5), thread(2, 202, 5), thread(3, 0, 5),
					    thread(4, 202, 6), thread(5, 202, 5)};

	threads[3].depth = 1;
	assert_int_equal(look_group(threads, 5), 3);
	/* That of greater depth first, then the larger ones. */
	assert_int_equal(threads[0].owner, 4);
	assert_int_equal(threads[0].threads, 1);
	assert_int_equal(threads[1].owner, 1);
	assert_int_equal(threads[1].threads, 3);
	assert_int_equal(threads[2].owner, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(threads[i].depth, i);
		assert_true(threads[i].header.flags & FBT_LOOK_GROUP);
	}
}

static void a_group_has_its_first_threads_and_its_longest_call(void **state)
{
	struct fbt_look_thread threads[20];

	for (uint32_t i = 0; i < 20; i++)
		threads[i] = thread(100 + i, 202, 5);
	threads[7].lock = 0x2000;
	assert_int_equal(look_group(threads, 20), 1);
	assert_int_equal(threads[0].threads, 20);
	assert_int_equal(threads[0].call_ns, 119);
	assert_int_equal(threads[0].lock, 0);
	for (uint32_t i = 0; i < FBT_LOOK_TIDS; i++)
		assert_int_equal(threads[0].tids[i], 100 + i);
}

static void what_differs_makes_another_group(void **state)
{
	struct fbt_look_thread threads[5];

	for (uint32_t i = 0; i < 5; i++)
		threads[i] = thread(1 + i, 202, 5);
	threads[1].doing = FBT_DOING_CPU;
	threads[2].count = 1;
	threads[3].header.flags |= FBT_STACK_CUT;
	threads[4].codes[1] = 10;
	assert_int_equal(look_group(threads, 5), 5);
	assert_int_equal(look_group(threads, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_in_the_same_place_are_a_group),
		cmocka_unit_test(a_group_has_its_first_threads_and_its_longest_call),
		cmocka_unit_test(what_differs_makes_another_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
