/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "stream/slow_calls.h"
#include "record_keeper.h"
#include "shared_fixture.h"

struct fixture {
	struct shared *shared;
	struct record_keeper keeper;
	struct record_output output;
	struct slow_calls *slow;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->shared = shared_new(16, 1, 4);
	fixture->output = keeper_output(&fixture->keeper);
	fixture->slow = slow_calls__new(fixture->shared, &fixture->output,
					&(struct symbol_files){NULL, 0}, -1);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	slow_calls__free(fixture->slow);
	shared_free(fixture->shared);
	free(fixture);
	return 0;
}

static struct fbt_stack_place *fill_place(struct fixture *fixture, uint32_t index)
{
	struct fbt_stack_place *place = &fixture->shared->stacks[index];

	place->tgid = 1u << 30;
	place->tid = place->owner = 7;
	place->bytes = 100;
	place->copy_ns = 2000;
	memset(place->registers, 0xab, sizeof(place->registers));
	memset(place->stack, 0xab, place->bytes);
	place->state = FBT_PLACE_READY;
	return place;
}

static void check_wiped(const struct fbt_stack_place *place)
{
	assert_int_equal(place->state, FBT_PLACE_FREE);
	for (size_t i = 0; i < sizeof(place->stack); i++)
		assert_int_equal(place->stack[i], 0);
	for (size_t i = 0; i < FBT_REGISTERS; i++)
		assert_int_equal(place->registers[i], 0);
}

static void a_stack_that_was_read_is_wiped(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_stack_place *place = fill_place(fixture, 1);
	const struct fbt_stack *stack;

	slow_calls__drain(fixture->slow);
	check_wiped(place);
	assert_int_equal(fixture->keeper.count, 2);
	stack = kept(&fixture->keeper, 1, FBT_EVENT_STACK);
	assert_int_equal(stack->tid, 7);
	slow_calls__drain(fixture->slow);
	assert_int_equal(fixture->keeper.count, 2);
}

static void a_place_that_is_being_filled_is_left_alone(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_stack_place *place = fill_place(fixture, 0);

	place->state = FBT_PLACE_TAKEN;
	slow_calls__drain(fixture->slow);
	assert_int_equal(place->state, FBT_PLACE_TAKEN);
	assert_int_equal(place->stack[0], 0xab);
	assert_int_equal(fixture->keeper.count, 0);
}

static void stacks_of_the_calibration_are_wiped_and_not_sent(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_stack_place *place = fill_place(fixture, 0);

	fixture->shared->control->stacks_skipped = 3;
	slow_calls__discard(fixture->slow);
	check_wiped(place);
	slow_calls__send_counts(fixture->slow);
	assert_int_equal(fixture->keeper.count, 0);
}

static void what_was_taken_and_what_was_not_is_counted(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_stacks *stacks;

	fill_place(fixture, 0);
	fill_place(fixture, 1);
	slow_calls__drain(fixture->slow);
	fixture->shared->control->stacks_skipped = 5;
	slow_calls__send_counts(fixture->slow);
	stacks = kept(&fixture->keeper, fixture->keeper.count - 1, FBT_EVENT_STACKS);
	assert_int_equal(stacks->taken, 2);
	assert_int_equal(stacks->skipped, 5);
	assert_int_equal(stacks->copy_ns, 4000);
}

static void calls_in_steps_set_the_limit(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_call call = {
		.header.flags = FBT_CALL_ARGS, .tid = 7, .nr = 5, .duration_ns = 10000000};
	const struct fbt_step step = {.tid = 7, .kind = 2};

	slow_calls__add_call(fixture->slow, &call);
	slow_calls__add_step(fixture->slow, &step);
	assert_in_range(fixture->shared->call_limits[2 * FBT_LIMITS + 5] << FBT_LIMIT_SHIFT,
			20000000, 30000000);
	/* One outside of steps does not. */
	call.header.flags = 0;
	call.nr = 6;
	slow_calls__add_call(fixture->slow, &call);
	slow_calls__add_step(fixture->slow, &step);
	assert_int_equal(fixture->shared->call_limits[2 * FBT_LIMITS + 6], 0);
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FACT(a_stack_that_was_read_is_wiped),
		FACT(a_place_that_is_being_filled_is_left_alone),
		FACT(stacks_of_the_calibration_are_wiped_and_not_sent),
		FACT(what_was_taken_and_what_was_not_is_counted),
		FACT(calls_in_steps_set_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
