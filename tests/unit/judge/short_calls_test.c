/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judged_fixture.h"

#include "judge/short_calls.h"

/* A stack of two functions, of which the inner one is given. */
static struct fbt_stack *add(struct step *step, const char *name, uint32_t code)
{
	const struct fbt_stack stack = {
		.tid = 7, .owner = 7, .nr = nr_of(name), .count = 2, .codes = {code, 1}};

	assert_int_equal(vec_push(&step->stacks, stack), 0);
	return &step->stacks.items[step->stacks.count - 1];
}

static bool find(void **state, const struct step *step, const char *name, struct fbt_stack *stack)
{
	return short_calls_stack(*state, step, false, CAUSE_ALLOCATION_CHURN, nr_of(name), stack);
}

static void free_all(struct step *step)
{
	vec_free(&step->stacks);
	free_step(step);
}

static void the_commonest_stack_of_a_number_stands_for_its_calls(void **state)
{
	struct step step = make_step(100 * MS);
	struct fbt_stack stack = {.count = 0};

	add(&step, "mmap", 5);
	add(&step, "munmap", 6);
	add(&step, "munmap", 7);
	add(&step, "mmap", 6);
	add(&step, "munmap", 7);
	assert_true(find(state, &step, "munmap", &stack));
	assert_int_equal(stack.codes[0], 7);
	assert_true(find(state, &step, "mmap", &stack));
	assert_int_equal(stack.codes[0], 5);
	free_all(&step);
}

static void without_one_those_of_the_cause_s_other_calls_do(void **state)
{
	struct step step = make_step(100 * MS);
	struct fbt_stack stack = {.count = 0};

	add(&step, "munmap", 5)->start_ns = add_call(&step, "munmap", MS)->start_ns;
	add(&step, "read", 6)->start_ns = add_call(&step, "read", MS)->start_ns;
	assert_true(find(state, &step, "mmap", &stack));
	assert_int_equal(stack.codes[0], 5);
	free_all(&step);
}

static void calls_of_that_number_that_are_of_another_cause_do_not_count(void **state)
{
	struct step step = make_step(100 * MS);
	struct fbt_stack stack = {.count = 0};

	name_file(*state, 2, S_IFSOCK, "socket:[5]");
	for (int i = 0; i < 2; i++) {
		struct fbt_call *call = add_call(&step, "read", MS);

		call->file = 2;
		add(&step, "read", 5)->start_ns = call->start_ns;
	}
	add(&step, "read", 6)->start_ns = add_call(&step, "read", MS)->start_ns;
	assert_true(
		short_calls_stack(*state, &step, false, CAUSE_SOCKET_IO, nr_of("read"), &stack));
	assert_int_equal(stack.codes[0], 5);
	assert_true(short_calls_stack(*state, &step, false, CAUSE_FILE_IO, nr_of("read"), &stack));
	assert_int_equal(stack.codes[0], 6);
	free_all(&step);
}

static void without_any_it_is_left_as_it_is(void **state)
{
	struct step step = make_step(100 * MS);
	struct fbt_stack stack = {.count = 1, .codes = {3}};

	assert_false(find(state, &step, "mmap", &stack));
	add(&step, "munmap", 7);
	add(&step, "mmap", 7)->count = 0;
	assert_false(find(state, &step, "mmap", &stack));
	assert_int_equal(stack.count, 1);
	assert_int_equal(stack.codes[0], 3);
	free_all(&step);
}

static void stacks_of_wakers_and_samples_are_of_no_call_of_it(void **state)
{
	struct step step = make_step(100 * MS);
	struct fbt_stack stack = {.count = 0};

	add(&step, "mmap", 5)->header.flags = FBT_STACK_WAKER;
	add(&step, "mmap", 5)->header.flags = FBT_STACK_SAMPLED;
	assert_false(find(state, &step, "mmap", &stack));
	add(&step, "mmap", 6);
	assert_true(find(state, &step, "mmap", &stack));
	assert_int_equal(stack.codes[0], 6);
	free_all(&step);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_window, teardown_window)
	const struct CMUnitTest tests[] = {
		TEST(the_commonest_stack_of_a_number_stands_for_its_calls),
		TEST(without_one_those_of_the_cause_s_other_calls_do),
		TEST(calls_of_that_number_that_are_of_another_cause_do_not_count),
		TEST(without_any_it_is_left_as_it_is),
		TEST(stacks_of_wakers_and_samples_are_of_no_call_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
