/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "step_function.h"

static void function_free_accepts_nothing(void **state)
{
	target_function_free(NULL);
}

static void function_free_closes_the_file(void **state)
{
	struct step_function *function = target_function_new();
	int fd;

	assert_int_equal(function->fd, -1);
	fd = function->fd = open("/dev/null", O_RDONLY);
	target_function_free(function);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void function_keeps_the_first_argument_of_a_name(void **state)
{
	struct step_function *function = target_function_new();
	struct step_arg first = {.name = "n", .base = 1}, second = {.name = "n", .base = 2};

	target_function_add_arg(function, &first);
	target_function_add_arg(function, &second);
	assert_int_equal(function->arg_count, 1);
	assert_int_equal(function->args[0].base, 1);
	target_function_free(function);
}

static void function_takes_no_more_arguments_than_a_record_holds(void **state)
{
	struct step_function *function = target_function_new();

	for (int i = 0; i < FBT_ARG_COUNT + 2; i++) {
		struct step_arg arg = {.base = 0};

		snprintf(arg.name, sizeof(arg.name), "n%d", i);
		target_function_add_arg(function, &arg);
	}
	assert_int_equal(function->arg_count, FBT_ARG_COUNT);
	target_function_free(function);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(function_free_accepts_nothing),
		cmocka_unit_test(function_free_closes_the_file),
		cmocka_unit_test(function_keeps_the_first_argument_of_a_name),
		cmocka_unit_test(function_takes_no_more_arguments_than_a_record_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
