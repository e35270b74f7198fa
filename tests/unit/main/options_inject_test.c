/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Options about libraries that are loaded into processes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "options_fixture.h"

REFUSED(a_timeout_refuses_another_gpu_mode, "--inject-timeout requires --gpu inject", "-p", "1",
	"--inject-timeout", "5")
REFUSED(no_timeout_is_refused, "--inject-timeout: invalid value '0'", "-p", "1", "--gpu=inject",
	"--inject-timeout", "0")
REFUSED(a_long_timeout_is_refused, "--inject-timeout: invalid value '61'", "-p", "1",
	"--gpu=inject", "--inject-timeout", "61")
REFUSED(a_dry_run_refuses_another_gpu_mode, "--dry-run requires --gpu inject", "-p", "1",
	"--dry-run")
REFUSED(a_dry_run_refuses_no_pid, "--dry-run requires -p PID", "--gpu=inject", "--dry-run")
REFUSED(a_dry_run_refuses_all, "--dry-run requires -p PID", "--gpu=inject", "--dry-run", "-a")
REFUSED(a_dry_run_refuses_a_command, "--dry-run requires -p PID", "--gpu=inject", "--dry-run", "--",
	"sleep")
REFUSED(a_dry_run_refuses_another_mode, "--dry-run requires -p PID", "--gpu=inject", "--dry-run",
	"-p", "1", "--list-steps")
REFUSED(a_bad_python_mode_is_refused,
	"--python: invalid value 'on' (expected auto, off, require, inject or share)", "-p", "1",
	"--python", "on")
REFUSED(a_required_python_refuses_a_command, "--python require is about processes that run",
	"--python=require", "--", "sleep")
REFUSED(a_list_refuses_the_steps_of_another_tracer,
	"--list-steps has Python functions armed, and --python share has no orders given", "-p1",
	"--list-steps", "--python=share")

static void inject_options_are_kept(void **state)
{
	const struct options *options;

	options = accept(state, "-p1", "--gpu=inject", NULL);
	assert_int_equal(options->mode, MODE_TRACE);
	assert_int_equal(options->gpu.mode, GPU_INJECT);
	assert_int_equal(options->gpu.inject_timeout_ns, 5000000000);
	assert_false(options->gpu.dry_run);
	options =
		accept(state, "-p1,2", "--gpu=inject", "--inject-timeout", "60", "--dry-run", NULL);
	assert_int_equal(options->mode, MODE_DRY_RUN);
	assert_int_equal(options->gpu.inject_timeout_ns, 60000000000);
	options = accept(state, "-p1", "--python=inject", "--dry-run", NULL);
	assert_int_equal(options->mode, MODE_DRY_RUN);
	assert_int_equal(options->gpu.mode, GPU_AUTO);
}

static void inject_is_short_for_both(void **state)
{
	const struct options *options = accept(state, "-p1", "--inject", NULL);

	assert_int_equal(options->gpu.mode, GPU_INJECT);
	assert_int_equal(options->python, PYTHON_INJECT);
	/* An option for one of the two wins, before or after --inject. */
	options = accept(state, "-p1", "--inject", "--gpu=off", NULL);
	assert_int_equal(options->gpu.mode, GPU_OFF);
	assert_int_equal(options->python, PYTHON_INJECT);
	options = accept(state, "-p1", "--python=require", "--inject", NULL);
	assert_int_equal(options->gpu.mode, GPU_INJECT);
	assert_int_equal(options->python, PYTHON_REQUIRE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_timeout_refuses_another_gpu_mode),
		TEST(no_timeout_is_refused),
		TEST(a_long_timeout_is_refused),
		TEST(a_dry_run_refuses_another_gpu_mode),
		TEST(a_dry_run_refuses_no_pid),
		TEST(a_dry_run_refuses_all),
		TEST(a_dry_run_refuses_a_command),
		TEST(a_dry_run_refuses_another_mode),
		TEST(a_bad_python_mode_is_refused),
		TEST(a_required_python_refuses_a_command),
		TEST(a_list_refuses_the_steps_of_another_tracer),
		TEST(inject_options_are_kept),
		TEST(inject_is_short_for_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
