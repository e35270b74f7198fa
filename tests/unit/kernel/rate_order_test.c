/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "fbt_shared.h"
#include "kernel/rate_order.h"

#define RATED_MAX 8

/* Measured candidates. The kind of a candidate is its index + 1. */
struct fixture {
	struct step_function functions[RATED_MAX];
	struct rated rated[RATED_MAX];
	size_t count;
	struct fbt_rate_inside insides[FBT_INSIDES];
};

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static struct rate *add(struct fixture *fixture, const char *name, uint64_t calls, uint64_t mean_ns)
{
	struct rated *rated = &fixture->rated[fixture->count];
	struct step_function *function = &fixture->functions[fixture->count];

	assert_true(fixture->count < RATED_MAX);
	function->name = (char *)name;
	rated->kind = (uint32_t)++fixture->count;
	rated->rate = (struct rate){
		.function = function,
		.calls = calls,
		.ended = mean_ns ? calls : 0,
		.mean_ns = mean_ns,
		.since_ns = 1000000000,
	};
	return &rated->rate;
}

static uint32_t kind_of(const struct fixture *fixture, const char *name)
{
	for (size_t i = 0; i < fixture->count; i++)
		if (!strcmp(fixture->functions[i].name, name))
			return (uint32_t)i + 1;
	fail_msg("no %s", name);
	return 0;
}

/* Calls that outer makes to inner, with that mean duration. */
static void nest(struct fixture *fixture, const char *outer, const char *inner, uint64_t calls,
		 uint64_t mean_ns)
{
	fixture->insides[kind_of(fixture, outer) * FBT_KIND_COUNT + kind_of(fixture, inner)] =
		(struct fbt_rate_inside){.ended = calls, .total_ns = calls * mean_ns};
}

/* names: in their order, each followed by a space. */
static void assert_order(struct fixture *fixture, const char *names)
{
	char got[256] = "";

	assert_int_equal(rate_order(fixture->rated, fixture->count, fixture->insides), 0);
	for (size_t i = 0; i < fixture->count; i++) {
		strcat(got, fixture->rated[i].rate.function->name);
		strcat(got, " ");
	}
	assert_string_equal(got, names);
}

static void mark_builtin(struct fixture *fixture, const char *name)
{
	fixture->functions[kind_of(fixture, name) - 1].builtin = true;
}

static void the_greatest_total_comes_first(void **state)
{
	add(*state, "short", 100, 1000);
	add(*state, "long", 10, 50000);
	assert_order(*state, "long short ");
}

static void a_function_whose_time_is_not_known_follows_those_whose_is(void **state)
{
	add(*state, "idle", 0, 0);
	add(*state, "unknown", 100, 0);
	add(*state, "short", 1, 1000);
	assert_order(*state, "short unknown idle ");
}

static void one_that_is_called_too_often_comes_last(void **state)
{
	add(*state, "often", 100000, 1000)->too_often = true;
	add(*state, "idle", 0, 0);
	assert_order(*state, "idle often ");
}

static void a_built_in_function_that_was_called_comes_first(void **state)
{
	add(*state, "long", 10, 50000);
	add(*state, "idle_builtin", 0, 0);
	add(*state, "builtin", 10, 1000);
	mark_builtin(*state, "builtin");
	mark_builtin(*state, "idle_builtin");
	assert_order(*state, "builtin long idle_builtin ");
}

static void a_wrapper_follows_what_it_wraps(void **state)
{
	add(*state, "outer", 100, 10000);
	add(*state, "inner", 100, 9500);
	nest(*state, "outer", "inner", 100, 9500);
	assert_order(*state, "inner outer ");
}

static void the_innermost_of_several_wrappers_comes_first(void **state)
{
	add(*state, "outer", 100, 10000);
	add(*state, "middle", 100, 9900);
	add(*state, "other", 100, 9850);
	add(*state, "inner", 100, 9800);
	nest(*state, "outer", "middle", 100, 9900);
	nest(*state, "middle", "inner", 100, 9800);
	assert_order(*state, "inner middle outer other ");
}

static void what_has_lost_a_tenth_of_the_outermost_is_not_the_same(void **state)
{
	add(*state, "outer", 100, 10000);
	add(*state, "middle", 100, 9400);
	add(*state, "inner", 100, 8800);
	nest(*state, "outer", "middle", 100, 9400);
	nest(*state, "middle", "inner", 100, 8800);
	assert_order(*state, "middle outer inner ");
}

static void what_is_called_several_times_is_not_wrapped(void **state)
{
	add(*state, "step", 100, 10000);
	add(*state, "layer", 400, 2450);
	nest(*state, "step", "layer", 400, 2450);
	assert_order(*state, "step layer ");
}

static void a_part_follows_the_whole_whatever_their_totals(void **state)
{
	add(*state, "layer", 400, 2510);
	add(*state, "matrix", 4000, 252);
	add(*state, "step", 100, 10000);
	nest(*state, "step", "layer", 400, 2510);
	nest(*state, "layer", "matrix", 4000, 252);
	assert_order(*state, "step layer matrix ");
}

static void what_others_call_too_is_no_part(void **state)
{
	add(*state, "run", 400, 2510);
	add(*state, "warm", 50, 10000);
	nest(*state, "warm", "run", 200, 2510);
	assert_order(*state, "run warm ");
}

static void what_is_called_by_few_of_the_calls_is_not_wrapped(void **state)
{
	add(*state, "step", 100, 10000);
	add(*state, "prefill", 80, 12000);
	nest(*state, "step", "prefill", 80, 12000);
	assert_order(*state, "step prefill ");
}

static void of_two_with_one_rate_and_time_that_do_not_nest_none_is_a_wrapper(void **state)
{
	add(*state, "a", 100, 10000);
	add(*state, "b", 100, 9900);
	assert_order(*state, "a b ");
}

static void two_wrappers_of_one_function_follow_it(void **state)
{
	add(*state, "encode", 50, 10000);
	add(*state, "decode", 60, 10000);
	add(*state, "run", 110, 9900);
	nest(*state, "encode", "run", 50, 9900);
	nest(*state, "decode", "run", 60, 9900);
	assert_order(*state, "run decode encode ");
}

static void a_built_in_function_is_named_before_what_it_wraps(void **state)
{
	add(*state, "llama_process", 100, 10000);
	add(*state, "llama_context::decode", 100, 9990);
	mark_builtin(*state, "llama_process");
	nest(*state, "llama_process", "llama_context::decode", 100, 9990);
	assert_order(*state, "llama_process llama_context::decode ");
}

static void functions_that_call_each_other_are_each_listed_once(void **state)
{
	add(*state, "a", 100, 10000);
	add(*state, "b", 100, 10000);
	nest(*state, "a", "b", 100, 10000);
	nest(*state, "b", "a", 100, 10000);
	assert_order(*state, "b a ");
}

static void the_first_calls_that_have_no_time_do_not_hide_a_wrapper(void **state)
{
	add(*state, "outer", 100, 10000)->ended = 70;
	add(*state, "inner", 100, 9900);
	nest(*state, "outer", "inner", 70, 9900);
	assert_order(*state, "inner outer ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_greatest_total_comes_first),
		TEST(a_function_whose_time_is_not_known_follows_those_whose_is),
		TEST(one_that_is_called_too_often_comes_last),
		TEST(a_built_in_function_that_was_called_comes_first),
		TEST(a_wrapper_follows_what_it_wraps),
		TEST(the_innermost_of_several_wrappers_comes_first),
		TEST(what_has_lost_a_tenth_of_the_outermost_is_not_the_same),
		TEST(what_is_called_several_times_is_not_wrapped),
		TEST(a_part_follows_the_whole_whatever_their_totals),
		TEST(what_others_call_too_is_no_part),
		TEST(what_is_called_by_few_of_the_calls_is_not_wrapped),
		TEST(of_two_with_one_rate_and_time_that_do_not_nest_none_is_a_wrapper),
		TEST(two_wrappers_of_one_function_follow_it),
		TEST(a_built_in_function_is_named_before_what_it_wraps),
		TEST(functions_that_call_each_other_are_each_listed_once),
		TEST(the_first_calls_that_have_no_time_do_not_hide_a_wrapper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
