/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>
#include "inject/python_use.h"

static void the_version_is_in_the_name_of_the_file(void **state)
{
	assert_int_equal(python_use_minor("python3.11"), 11);
	assert_int_equal(python_use_minor("libpython3.9.so.1.0"), 9);
	assert_int_equal(python_use_minor("libpython3.13t.so.1.0"), 13);
}

static void a_free_threaded_build_is_told_by_a_letter(void **state)
{
	assert_true(python_use_is_threaded("python3.14t"));
	assert_true(python_use_is_threaded("libpython3.13t.so.1.0"));
	assert_false(python_use_is_threaded("python3.14"));
	assert_false(python_use_is_threaded("libpython3.13.so.1.0"));
	assert_false(python_use_is_threaded("pythont"));
}

static void other_files_are_no_interpreters(void **state)
{
	assert_int_equal(python_use_minor("python3"), 0);
	assert_int_equal(python_use_minor("libpython3.so"), 0);
	assert_int_equal(python_use_minor("_json.cpython-311-x86_64-linux-gnu.so"), 0);
	assert_int_equal(python_use_minor("libboost_python311.so"), 0);
	assert_int_equal(python_use_minor(""), 0);
}

static void a_program_without_python_has_none(void **state)
{
	assert_false(python_use_is_there((uint32_t)getpid()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_version_is_in_the_name_of_the_file),
		cmocka_unit_test(a_free_threaded_build_is_told_by_a_letter),
		cmocka_unit_test(other_files_are_no_interpreters),
		cmocka_unit_test(a_program_without_python_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
