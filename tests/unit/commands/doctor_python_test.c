/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Doctor's checks of Python processes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "commands/doctor_process.h"
#include "commands/doctor_python.h"
#include "doctor_fixture.h"

static struct doctor_python good(void)
{
	struct doctor_python python = {.is_python = true, .minor = 11, .is_supported = true};

	strcpy(python.outlook, "vllm: EngineCore.step");
	return python;
}

/* Asserts the one check of a Python process. */
static void check(const struct doctor_python *python, enum severity severity, const char *part,
		  const char *remedy)
{
	struct findings checks = {.tgid = 42};

	doctor_python_judge(python, &checks);
	assert_int_equal(checks.items.count, 1);
	assert_check(&checks, "Python", severity, part, remedy);
	end_checks(&checks);
}

static void one_without_the_library_is_told_how_to_get_it(void **state)
{
	struct doctor_python python = good();

	check(&python, FINDING_WARN,
	      "CPython 3.11, without libferrum_python.so: --python=inject would look for vllm: "
	      "EngineCore.step",
	      "use --python=inject, or start it with what ferrum-bpftrace engine-env prints");
	python.others = 1;
	check(&python, FINDING_WARN, "EngineCore.step, also in 1 other process of its engine",
	      "--python=inject");
	python.others = 2;
	check(&python, FINDING_WARN, "also in 2 other processes", "--python=inject");
	python.is_inherited = true;
	check(&python, FINDING_WARN, "forked from a process with libferrum_python.so",
	      "use --python=inject");
}

static void one_that_would_get_it_or_has_it_is_fine(void **state)
{
	struct doctor_python python = good();

	python.mode = PYTHON_INJECT;
	check(&python, FINDING_OK, "it would be loaded, and would look for vllm", NULL);
	python.has_library = true;
	check(&python, FINDING_OK, "with libferrum_python.so: a trace would look for vllm", NULL);
}

static void one_that_cannot_have_it_is_told_why(void **state)
{
	struct doctor_python python = good();

	strcpy(python.refused, "libc: none");
	check(&python, FINDING_WARN, "cannot be loaded: libc: none", "engine-env");
	python.is_supported = false;
	python.minor = 8;
	check(&python, FINDING_WARN, "CPython 3.8: its functions cannot be steps", "3.9 to 3.14");
}

static void what_python_require_lacks_is_an_obstacle(void **state)
{
	struct doctor_python python = good();

	python.mode = PYTHON_REQUIRE;
	check(&python, FINDING_FAIL, "without libferrum_python.so", "--python=inject");
	strcpy(python.refused, "libc: none");
	check(&python, FINDING_FAIL, "cannot be loaded: libc: none", "engine-env");
	python.is_supported = false;
	check(&python, FINDING_FAIL, "its functions cannot be steps", "3.9 to 3.14");
	python.is_python = false;
	check(&python, FINDING_FAIL, "does not run CPython", "leave out --python require");
	python = good();
	python.mode = PYTHON_REQUIRE;
	python.has_library = true;
	check(&python, FINDING_OK, "with libferrum_python.so", NULL);
}

static void other_programs_have_no_line(void **state)
{
	struct doctor_python python = {.is_python = false};
	struct findings checks = {.tgid = 42};

	doctor_python_judge(&python, &checks);
	python = good();
	python.mode = PYTHON_OFF;
	doctor_python_judge(&python, &checks);
	assert_int_equal(checks.items.count, 0);
	end_checks(&checks);
}

/* A library of a Python process may have a function with "decode" in its name that is no step. */
static void the_step_of_a_python_process_is_no_native_candidate(void **state)
{
	struct doctor_steps steps = {
		.interval_ns = 100000000, .is_python = true, .wants_python = true};
	struct findings checks = {.tgid = 42};

	doctor_steps_judge(&steps, &checks);
	assert_check(&checks, "step function", FINDING_WARN, "fixed intervals of 100 ms",
		     "see the line about Python");
	end_checks(&checks);
	steps.python_ready = true;
	doctor_steps_judge(&steps, &checks);
	assert_check(&checks, "step function", FINDING_NOTE, "Python functions are looked for",
		     NULL);
	end_checks(&checks);
	/* A native function that --step names and that does not exist is still an error. */
	steps.named = true;
	steps.wants_python = false;
	doctor_steps_judge(&steps, &checks);
	assert_check(&checks, "step function", FINDING_FAIL, "nothing matches --step",
		     "name a Python function");
	end_checks(&checks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_without_the_library_is_told_how_to_get_it),
		cmocka_unit_test(one_that_would_get_it_or_has_it_is_fine),
		cmocka_unit_test(one_that_cannot_have_it_is_told_why),
		cmocka_unit_test(what_python_require_lacks_is_an_obstacle),
		cmocka_unit_test(other_programs_have_no_line),
		cmocka_unit_test(the_step_of_a_python_process_is_no_native_candidate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
