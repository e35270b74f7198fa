/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What is required of each process, where others are traced with it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#include "commands/doctor_needs.h"

static void what_one_process_has_is_required_of_no_other(void **state)
{
	const struct options options = {.gpu.mode = GPU_REQUIRE, .python = PYTHON_REQUIRE};
	struct doctor_needs needs = {.has_shim = true};
	struct options eased = doctor_needs_ease(&needs, &options);

	(void)state;
	assert_int_equal(eased.gpu.mode, GPU_AUTO);
	assert_int_equal(eased.python, PYTHON_REQUIRE);
	needs = (struct doctor_needs){.has_python = true};
	eased = doctor_needs_ease(&needs, &options);
	assert_int_equal(eased.gpu.mode, GPU_REQUIRE);
	assert_int_equal(eased.python, PYTHON_AUTO);
}

static void what_is_not_required_stays_as_it_is(void **state)
{
	const struct options options = {.gpu.mode = GPU_OFF, .python = PYTHON_INJECT};
	const struct doctor_needs needs = {.has_shim = true, .has_python = true};
	struct options eased = doctor_needs_ease(&needs, &options);

	(void)state;
	assert_int_equal(eased.gpu.mode, GPU_OFF);
	assert_int_equal(eased.python, PYTHON_INJECT);
}

static void a_process_without_either_has_neither(void **state)
{
	struct options options = {.gpu.mode = GPU_REQUIRE, .python = PYTHON_REQUIRE};
	struct doctor_needs needs = {.has_shim = true, .has_python = true};

	(void)state;
	assert_int_equal(vec_push(&options.pids, (uint32_t)getpid()), 0);
	doctor_needs_read(&needs, &options);
	assert_false(needs.has_shim || needs.has_python);
	options.follow = true;
	needs = (struct doctor_needs){.has_shim = true, .has_python = true};
	doctor_needs_read(&needs, &options);
	assert_false(needs.has_shim || needs.has_python);
	vec_free(&options.pids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_one_process_has_is_required_of_no_other),
		cmocka_unit_test(what_is_not_required_stays_as_it_is),
		cmocka_unit_test(a_process_without_either_has_neither),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
