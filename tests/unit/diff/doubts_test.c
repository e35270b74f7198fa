/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "diff/result.h"

#define STEPS 1000

/* How many doubts there are if so many steps of A are left out, beside 1,000 that count. */
static size_t count_doubts(enum left_out why, uint64_t left_out)
{
	static const char *const arguments[FBT_ARG_COUNT] = {0};
	const struct diff_options options = {.margin = 0.02, .threshold = 0.05};
	struct side *sides[SIDES] = {side__new("a"), side__new("b")};
	struct result *result;
	size_t count;

	for (int i = 0; i < SIDES; i++) {
		assert_non_null(sides[i]);
		assert_int_equal(side__kind(sides[i], "step", arguments, false), 0);
		for (uint64_t n = 0; n < STEPS; n++) {
			const struct side_step step = {.ns = 1000000 + n * 7919 % 1000,
						       .size = {1000000, 0}};

			assert_int_equal(side__add(sides[i], &step, NULL), 0);
		}
	}
	for (uint64_t n = 0; n < left_out; n++)
		side__leave_out(sides[0], 0, why);
	assert_int_equal(result__new(&result, (const struct side *const *)sides, &options), 0);
	count = result->doubts.count;
	result__free(result);
	for (int i = 0; i < SIDES; i++)
		side__free(sides[i]);
	return count;
}

static void few_steps_that_are_left_out_are_no_doubt(void **unused)
{
	size_t none = count_doubts(LEFT_UNWOUND, 0);

	assert_int_equal(count_doubts(LEFT_UNWOUND, STEPS / 100), none);
	assert_int_equal(count_doubts(LEFT_UNWOUND, STEPS / 50), none + 1);
}

static void each_step_beyond_the_limit_is_told(void **unused)
{
	assert_int_equal(count_doubts(LEFT_TOO_MANY, 1), count_doubts(LEFT_TOO_MANY, 0) + 1);
}

/* A typo in --class-by, or the argument was not recorded: the user asked for other classes. */
static void an_argument_that_no_step_has_is_a_doubt(void **unused)
{
	static const char *const arguments[FBT_ARG_COUNT] = {"n_tokens"};
	const struct diff_options options = {.margin = 0.02, .threshold = 0.05};
	size_t counts[2];

	for (int typo = 0; typo < 2; typo++) {
		struct side *sides[SIDES] = {side__new("a"), side__new("b")};
		struct result *result;

		for (int i = 0; i < SIDES; i++) {
			assert_non_null(sides[i]);
			sides[i]->class_by = typo ? "n_token" : "n_tokens";
			assert_int_equal(side__kind(sides[i], "step", arguments, false), 0);
			for (uint64_t n = 0; n < STEPS; n++) {
				const struct side_step step = {.ns = 1000000 + n * 7919 % 1000,
							       .size = {1000000, 4},
							       .has_argument = !typo};

				assert_int_equal(side__add(sides[i], &step, NULL), 0);
			}
		}
		assert_int_equal(result__new(&result, (const struct side *const *)sides, &options),
				 0);
		counts[typo] = 0;
		vec_for_each (doubt, &result->doubts)
			counts[typo] += doubt->is_serious && strstr(doubt->text, "--class-by");
		result__free(result);
		for (int i = 0; i < SIDES; i++)
			side__free(sides[i]);
	}
	assert_int_equal(counts[0], 0);
	assert_int_equal(counts[1], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_steps_that_are_left_out_are_no_doubt),
		cmocka_unit_test(each_step_beyond_the_limit_is_told),
		cmocka_unit_test(an_argument_that_no_step_has_is_a_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
