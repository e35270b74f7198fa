/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/ways.h"

static void expect(struct ways_out ways, const char *wanted)
{
	char text[FORMAT_WAYS_MAX];

	assert_string_equal(format_ways_out(text, &ways), wanted);
}

static void a_function_that_only_returns_has_nothing_to_tell(void **state)
{
	expect((struct ways_out){.returns = 3}, "");
}

static void returns_and_the_names_of_other_functions_are_told(void **state)
{
	expect((struct ways_out){.returns = 3,
				 .tail_calls = 2,
				 .targets = 1,
				 .names = {"llama_context::decode"}},
	       "3 returns; 2 tail calls to llama_context::decode");
	expect(
		(struct ways_out){
			.returns = 1, .tail_calls = 2, .targets = 2, .names = {"one", "two"}},
		"1 return; 2 tail calls to one and two");
	expect((struct ways_out){.tail_calls = 5, .targets = 4, .names = {"one", "two"}},
	       "5 tail calls to one, two and 2 others");
}

static void jumps_through_pointers_have_no_name(void **state)
{
	expect((struct ways_out){.tail_calls = 1, .pointers = 1}, "1 tail call through a pointer");
	expect((struct ways_out){.tail_calls = 3, .pointers = 2, .targets = 1, .names = {"one"}},
	       "3 tail calls to one and through pointers");
	expect((struct ways_out){.tail_calls = 2, .targets = 2}, "2 tail calls");
}

static void long_names_are_shortened(void **state)
{
	char name[400], text[FORMAT_WAYS_MAX];
	struct ways_out ways = {.tail_calls = UINT64_MAX,
				.returns = UINT64_MAX,
				.targets = UINT64_MAX,
				.pointers = 2,
				.names = {name, name}};

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_true(strlen(format_ways_out(text, &ways)) < 220);
	assert_non_null(strstr(text, "and through pointers"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_that_only_returns_has_nothing_to_tell),
		cmocka_unit_test(returns_and_the_names_of_other_functions_are_told),
		cmocka_unit_test(jumps_through_pointers_have_no_name),
		cmocka_unit_test(long_names_are_shortened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
