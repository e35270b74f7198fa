/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "engine_fixture.h"

static void candidates_come_likeliest_first(void **state)
{
	pid_t child = start(*state, "engine");
	struct target_options options = {0};
	function_vec functions = {0};
	int found = target_find_candidates(child, &options, 4, &functions);

	stop(child);
	assert_true(found >= 1 && found <= 4);
	assert_string_equal(functions.items[0]->name, "llama_decode");
	release(&functions);
}

static void candidates_are_at_most_as_many_as_asked_for(void **state)
{
	pid_t child = start(*state, "engine");
	struct target_options options = {0};
	function_vec functions = {0};

	assert_int_equal(target_find_candidates(child, &options, 0, &functions), 0);
	assert_int_equal(functions.count, 0);
	stop(child);
}

static void candidates_have_safe_exits(void **state)
{
	pid_t child = start(*state, "engine");
	struct target_options options = {0};
	function_vec functions = {0};

	assert_true(target_find_candidates(child, &options, 16, &functions) > 0);
	vec_for_each (function, &functions)
		assert_true((*function)->exit_offsets.count > 0);
	release(&functions);
	stop(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(candidates_come_likeliest_first),
		cmocka_unit_test(candidates_are_at_most_as_many_as_asked_for),
		cmocka_unit_test(candidates_have_safe_exits),
	};

	return cmocka_run_group_tests(tests, build, elf_fixture_tear_down);
}
