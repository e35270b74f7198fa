/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "record_keeper.h"
#include "stream/samples.h"

#define TGID  7
#define TID   8
#define START 1000

struct fixture {
	struct record_keeper keeper;
	struct record_output output;
	struct sample_sums *sums;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	*state = fixture;
	if (!fixture)
		return -1;
	fixture->output = keeper_output(&fixture->keeper);
	fixture->sums = sample_sums__new(&fixture->output);
	return fixture->sums ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	sample_sums__free(fixture->sums);
	free(fixture);
	return 0;
}

static void add(struct fixture *fixture, uint64_t start_ns, const struct stack_codes *codes)
{
	const struct fbt_samples of = {.tgid = TGID, .tid = TID, .start_ns = start_ns};

	sample_sums__add(fixture->sums, &of, codes);
}

static void send(struct fixture *fixture, uint64_t start_ns)
{
	const struct fbt_step step = {.tgid = TGID, .tid = TID, .start_ns = start_ns};

	sample_sums__send(fixture->sums, &step);
}

static void ways_to_a_function_are_told_apart(void **state)
{
	static const struct stack_codes by_one = {.count = 3, .codes = {1, 2, 3}};
	static const struct stack_codes by_other = {
		.count = 2, .codes = {1, 3}, .flags = FBT_STACK_LOST};
	struct fixture *fixture = *state;
	const struct fbt_samples *samples;
	const struct fbt_stack *stack;

	add(fixture, START, &by_one);
	add(fixture, START, &by_other);
	add(fixture, START, &by_one);
	send(fixture, START);
	assert_int_equal(fixture->keeper.count, 3);

	stack = kept(&fixture->keeper, 0, FBT_EVENT_STACK);
	assert_int_equal(stack->header.flags, FBT_STACK_SAMPLED);
	assert_int_equal(stack->tgid, TGID);
	assert_int_equal(stack->tid, TID);
	assert_int_equal(stack->owner, TID);
	assert_int_equal(stack->start_ns, START);
	assert_int_equal(stack->samples, 2);
	assert_int_equal(stack->count, 3);
	assert_memory_equal(stack->codes, by_one.codes, 3 * sizeof(uint32_t));
	stack = kept(&fixture->keeper, 1, FBT_EVENT_STACK);
	assert_int_equal(stack->header.flags, FBT_STACK_SAMPLED | FBT_STACK_LOST);
	assert_int_equal(stack->samples, 1);
	assert_int_equal(stack->count, 2);

	samples = kept(&fixture->keeper, 2, FBT_EVENT_SAMPLES);
	assert_int_equal(samples->samples, 3);
	assert_int_equal(samples->count, 1);
	assert_int_equal(samples->functions[0].code, 1);
	assert_int_equal(samples->functions[0].samples, 3);
}

static void the_function_with_most_samples_is_the_first(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_samples *samples;
	size_t last;

	for (uint32_t code = 1; code <= 3; code++) {
		const struct stack_codes codes = {.count = 1, .codes = {code}};

		for (uint32_t i = 0; i < code; i++)
			add(fixture, START, &codes);
	}
	send(fixture, START);
	last = fixture->keeper.count - 1;
	samples = kept(&fixture->keeper, last, FBT_EVENT_SAMPLES);
	assert_int_equal(samples->functions[0].code, 3);
	assert_int_equal(samples->functions[1].code, 2);
	assert_int_equal(samples->functions[2].code, 1);
}

static void ways_without_room_are_still_samples(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_samples *samples;

	for (uint32_t way = 0; way < 100; way++) {
		const struct stack_codes codes = {.count = 2, .codes = {1, 10 + way}};

		add(fixture, START, &codes);
	}
	send(fixture, START);
	assert_int_equal(fixture->keeper.count, 33);
	samples = kept(&fixture->keeper, 32, FBT_EVENT_SAMPLES);
	assert_int_equal(samples->samples, 100);
	assert_int_equal(samples->functions[0].samples, 100);
}

static void a_long_way_is_cut(void **state)
{
	struct fixture *fixture = *state;
	struct stack_codes codes = {.count = FBT_STACK_FRAMES};
	const struct fbt_stack *stack;

	for (uint32_t i = 0; i < FBT_STACK_FRAMES; i++)
		codes.codes[i] = i + 1;
	add(fixture, START, &codes);
	send(fixture, START);
	stack = kept(&fixture->keeper, 0, FBT_EVENT_STACK);
	assert_int_equal(stack->count, 64);
	assert_int_equal(stack->header.flags, FBT_STACK_SAMPLED | FBT_STACK_CUT);
}

static void each_step_has_its_own(void **state)
{
	static const struct stack_codes codes = {.count = 1, .codes = {1}};
	struct fixture *fixture = *state;

	add(fixture, START, &codes);
	send(fixture, START + 1);
	assert_int_equal(fixture->keeper.count, 0);
	send(fixture, START);
	assert_int_equal(fixture->keeper.count, 2);
	send(fixture, START);
	assert_int_equal(fixture->keeper.count, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ways_to_a_function_are_told_apart),
		TEST(the_function_with_most_samples_is_the_first),
		TEST(ways_without_room_are_still_samples),
		TEST(a_long_way_is_cut),
		TEST(each_step_has_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
