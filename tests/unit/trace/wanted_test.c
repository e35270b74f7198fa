/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "trace/wanted.h"

#define S 1000000000ull

/* Threads 1 to 4, which came at 1 s to 4 s. */
static struct wanted full(void)
{
	struct wanted wanted = {.count = 0};
	uint32_t dropped = 1;

	for (uint32_t tid = 1; tid <= WANTED_MAX; tid++) {
		assert_true(wanted_add(&wanted, tid, tid * S, &dropped));
		assert_int_equal(dropped, 0);
	}
	return wanted;
}

static bool lives(void *ctx, uint32_t tid)
{
	return tid != *(const uint32_t *)ctx;
}

static void a_thread_has_one_place(void **state)
{
	struct wanted wanted = full();
	uint32_t dropped;

	(void)state;
	assert_false(wanted_add(&wanted, 2, 100 * S, &dropped));
	assert_int_equal(dropped, 0);
	assert_int_equal(wanted.count, WANTED_MAX);
}

static void a_thread_keeps_its_place_for_a_while(void **state)
{
	struct wanted wanted = full();
	uint32_t dropped;

	(void)state;
	assert_false(wanted_add(&wanted, 5, 1 * S + WANTED_KEEP_NS - 1, &dropped));
	assert_false(wanted_has(&wanted, 5));
}

static void the_oldest_gives_way_then(void **state)
{
	struct wanted wanted = full();
	uint32_t dropped;

	(void)state;
	assert_true(wanted_add(&wanted, 5, 1 * S + WANTED_KEEP_NS, &dropped));
	assert_int_equal(dropped, 1);
	assert_false(wanted_has(&wanted, 1));
	assert_false(wanted_add(&wanted, 6, 2 * S + WANTED_KEEP_NS - 1, &dropped));
	assert_true(wanted_add(&wanted, 6, 2 * S + WANTED_KEEP_NS, &dropped));
	assert_int_equal(dropped, 2);
	assert_true(wanted_has(&wanted, 5));
}

static void one_that_has_ended_gives_way_first(void **state)
{
	struct wanted wanted = full();
	uint32_t ended = 3, dropped;

	(void)state;
	assert_int_equal(wanted_drop_ended(&wanted, lives, &ended), 0);
	assert_true(wanted_add(&wanted, 5, 4 * S, &dropped));
	assert_int_equal(dropped, 3);
	assert_false(wanted_add(&wanted, 6, 4 * S, &dropped));
}

static void one_that_has_ended_is_dropped_at_the_next_turn(void **state)
{
	struct wanted wanted = full();
	uint32_t ended = 1;

	(void)state;
	assert_int_equal(wanted_drop_ended(&wanted, lives, &ended), 0);
	assert_true(wanted_has(&wanted, 1));
	assert_int_equal(wanted_drop_ended(&wanted, lives, &ended), 1);
	assert_int_equal(wanted_drop_ended(&wanted, lives, &ended), 0);
	assert_int_equal(wanted.count, WANTED_MAX - 1);
	assert_int_equal(wanted_drop_ended(&wanted, lives, &ended), 0);
	assert_int_equal(wanted.count, WANTED_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_has_one_place),
		cmocka_unit_test(a_thread_keeps_its_place_for_a_while),
		cmocka_unit_test(the_oldest_gives_way_then),
		cmocka_unit_test(one_that_has_ended_gives_way_first),
		cmocka_unit_test(one_that_has_ended_is_dropped_at_the_next_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
