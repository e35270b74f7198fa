/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "judge/short_calls.h"

enum { TID = 7, MMAP = 9, MUNMAP = 11 };

/* A stack of two functions, of which the inner one is given. */
static struct fbt_stack *add(struct step *step, uint32_t nr, uint32_t code)
{
	const struct fbt_stack stack = {
		.tid = TID, .owner = TID, .nr = nr, .count = 2, .codes = {code, 1}};

	assert_int_equal(vec_push(&step->stacks, stack), 0);
	return &step->stacks.items[step->stacks.count - 1];
}

static struct step make_step(void)
{
	return (struct step){.record.tid = TID};
}

static void the_commonest_stack_of_a_number_stands_for_its_calls(void **state)
{
	struct step step = make_step();
	struct fbt_stack stack = {.count = 0};

	(void)state;
	add(&step, MMAP, 5);
	add(&step, MUNMAP, 6);
	add(&step, MUNMAP, 7);
	add(&step, MMAP, 6);
	add(&step, MUNMAP, 7);
	assert_true(short_calls_stack(&step, MUNMAP, &stack));
	assert_int_equal(stack.codes[0], 7);
	assert_true(short_calls_stack(&step, MMAP, &stack));
	assert_int_equal(stack.codes[0], 5);
	vec_free(&step.stacks);
}

static void without_one_it_is_left_as_it_is(void **state)
{
	struct step step = make_step();
	struct fbt_stack stack = {.count = 1, .codes = {3}};

	(void)state;
	assert_false(short_calls_stack(&step, MMAP, &stack));
	add(&step, MUNMAP, 7);
	add(&step, MMAP, 7)->count = 0;
	assert_false(short_calls_stack(&step, MMAP, &stack));
	assert_int_equal(stack.count, 1);
	assert_int_equal(stack.codes[0], 3);
	vec_free(&step.stacks);
}

static void stacks_of_wakers_and_samples_are_of_no_call_of_it(void **state)
{
	struct step step = make_step();
	struct fbt_stack stack = {.count = 0};

	(void)state;
	add(&step, MMAP, 5)->header.flags = FBT_STACK_WAKER;
	add(&step, MMAP, 5)->header.flags = FBT_STACK_SAMPLED;
	assert_false(short_calls_stack(&step, MMAP, &stack));
	add(&step, MMAP, 6);
	assert_true(short_calls_stack(&step, MMAP, &stack));
	assert_int_equal(stack.codes[0], 6);
	vec_free(&step.stacks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_commonest_stack_of_a_number_stands_for_its_calls),
		cmocka_unit_test(without_one_it_is_left_as_it_is),
		cmocka_unit_test(stacks_of_wakers_and_samples_are_of_no_call_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
