/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "targets/site_counts.h"

static bool sites(uint64_t steps, uint64_t strangers, uint64_t time_ns)
{
	return sites_are_too_busy(&(struct passed){steps, strangers}, time_ns);
}

static bool exits(uint64_t steps, uint64_t strangers, uint64_t time_ns)
{
	return exits_are_too_busy(&(struct passed){steps, strangers}, time_ns);
}

static bool proved(uint64_t steps, uint64_t strangers)
{
	return sites_have_proved(&(struct passed){steps, strangers});
}

static void sites_are_for_steps_of_which_others_are_a_tenth(void **state)
{
	assert_false(sites(10000, 1000, SITE_LOOK_NS));
	assert_true(sites(10000, 1001, SITE_LOOK_NS));
	assert_false(sites(1000, 100, SITE_TURN_NS));
	assert_true(sites(1000, 101, SITE_TURN_NS));
}

static void few_others_cost_nothing(void **state)
{
	assert_false(sites(0, 999, SITE_LOOK_NS));
	assert_true(sites(0, 1000, SITE_LOOK_NS));
	assert_false(sites(0, 99, SITE_TURN_NS));
	assert_true(sites(0, 100, SITE_TURN_NS));
	assert_false(sites(0, 0, 0));
}

static void sites_prove_themselves_by_a_hundred_steps(void **state)
{
	assert_false(proved(99, 0));
	assert_true(proved(100, 10));
	assert_false(proved(100, 11));
	assert_false(proved(0, 0));
}

static void exits_may_be_passed_as_often_as_there_are_steps(void **state)
{
	assert_false(exits(6000, 6000, SITE_LOOK_NS));
	assert_true(exits(6000, 6001, SITE_LOOK_NS));
	assert_false(exits(0, 4999, SITE_LOOK_NS));
	assert_true(exits(0, 5000, SITE_LOOK_NS));
	assert_false(exits(0, 9999, 2 * SITE_LOOK_NS));
}

/* On a busy machine a turn may be late. */
static void what_exits_may_cost_in_a_turn_grows_with_it(void **state)
{
	assert_false(exits(0, 99, 0));
	assert_true(exits(0, 100, 0));
	assert_false(exits(0, 199, SITE_TURN_NS));
	assert_true(exits(0, 200, SITE_TURN_NS));
	assert_false(exits(0, 1000, 10 * SITE_TURN_NS));
	assert_true(exits(0, 1100, 10 * SITE_TURN_NS));
	assert_false(exits(200, 200, SITE_TURN_NS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sites_are_for_steps_of_which_others_are_a_tenth),
		cmocka_unit_test(few_others_cost_nothing),
		cmocka_unit_test(sites_prove_themselves_by_a_hundred_steps),
		cmocka_unit_test(exits_may_be_passed_as_often_as_there_are_steps),
		cmocka_unit_test(what_exits_may_cost_in_a_turn_grows_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
