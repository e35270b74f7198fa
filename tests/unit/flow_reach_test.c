/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "flow_reach.h"

static bool is_all_reached(const flow_vec *first, const flow_vec *second)
{
	const flow_vec *pieces[] = {first, second};
	bool all = false;

	assert_int_equal(flow_reach(pieces, second ? 2 : 1, &all), 0);
	return all;
}

#define FLOWS(list)                                                                                \
	{                                                                                          \
		.items = list, .count = sizeof(list) / sizeof(*list)                               \
	}

static void reach_misses_code_behind_a_jump(void **state)
{
	struct flow list[] = {{.address = 0, .target = 4, .size = 2, .kind = FLOW_JUMP},
			      {.address = 2, .size = 2, .kind = FLOW_NEXT},
			      {.address = 4, .size = 1, .kind = FLOW_RETURN}};
	flow_vec flows = FLOWS(list);

	assert_false(is_all_reached(&flows, NULL));
}

static void reach_does_not_ask_for_padding(void **state)
{
	struct flow list[] = {{.address = 0, .size = 1, .kind = FLOW_RETURN},
			      {.address = 1, .size = 2, .kind = FLOW_NOP}};
	flow_vec flows = FLOWS(list);

	assert_true(is_all_reached(&flows, NULL));
}

static void reach_follows_both_ways_of_a_branch(void **state)
{
	struct flow list[] = {{.address = 0, .target = 3, .size = 2, .kind = FLOW_BRANCH},
			      {.address = 2, .size = 1, .kind = FLOW_RETURN},
			      {.address = 3, .size = 1, .kind = FLOW_INDIRECT}};
	flow_vec flows = FLOWS(list);

	assert_true(is_all_reached(&flows, NULL));
}

static void reach_goes_on_in_another_piece(void **state)
{
	struct flow list[] = {{.address = 0, .target = 100, .size = 2, .kind = FLOW_BRANCH},
			      {.address = 2, .size = 1, .kind = FLOW_RETURN}};
	struct flow other[] = {{.address = 100, .size = 5, .kind = FLOW_CALL},
			       {.address = 105, .size = 2, .kind = FLOW_STOP}};
	flow_vec flows = FLOWS(list), cold = FLOWS(other);

	assert_true(is_all_reached(&flows, &cold));
	list[0].target = 2;
	assert_false(is_all_reached(&flows, &cold));
}

static void reach_does_not_know_where_a_switch_goes(void **state)
{
	struct flow list[] = {{.address = 0, .size = 2, .kind = FLOW_SWITCH},
			      {.address = 2, .size = 1, .kind = FLOW_RETURN}};
	flow_vec flows = FLOWS(list);

	assert_false(is_all_reached(&flows, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reach_misses_code_behind_a_jump),
		cmocka_unit_test(reach_does_not_ask_for_padding),
		cmocka_unit_test(reach_follows_both_ways_of_a_branch),
		cmocka_unit_test(reach_goes_on_in_another_piece),
		cmocka_unit_test(reach_does_not_know_where_a_switch_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
