/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "targets/text_check.h"

#define MS 1000000ull

static void one_function_that_is_called_as_a_step_is_the_step(void **state)
{
	const struct text_use uses[] = {{0, 0}, {84, 84 * 6 * MS}, {0, 0}};

	(void)state;
	assert_false(text_uses_are_doubtful(uses, 3));
}

static void what_was_not_called_is_not_judged(void **state)
{
	const struct text_use uses[] = {{0, 0}, {0, 0}};

	(void)state;
	assert_false(text_uses_are_doubtful(uses, 2));
}

static void two_functions_that_are_called_are_in_doubt(void **state)
{
	const struct text_use alike[] = {{84, 84 * 6 * MS}, {40, 40 * 5 * MS}};
	const struct text_use rare[] = {{84, 84 * 6 * MS}, {1, MS / 10}};

	(void)state;
	assert_true(text_uses_are_doubtful(alike, 2));
	assert_true(text_uses_are_doubtful(rare, 2));
}

static void a_function_that_is_over_at_once_is_in_doubt(void **state)
{
	const struct text_use uses[] = {{0, 0}, {1000, 1000 * (MS / 100)}};

	(void)state;
	assert_true(text_uses_are_doubtful(uses, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_function_that_is_called_as_a_step_is_the_step),
		cmocka_unit_test(what_was_not_called_is_not_judged),
		cmocka_unit_test(two_functions_that_are_called_are_in_doubt),
		cmocka_unit_test(a_function_that_is_over_at_once_is_in_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
