/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Doctor's check of a process's system calls: few and many. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "commands/doctor_calls.h"
#include "doctor_fixture.h"

static struct findings judge(const struct doctor_calls *calls)
{
	struct findings checks = {.tgid = 42};

	doctor_calls_judge(calls, &checks);
	return checks;
}

static void many_calls_are_better_not_traced(void **state)
{
	struct doctor_calls calls = {.counted = true,
				     .has_steps = true,
				     .calls = 10001,
				     .count_ns = 200000000,
				     .call_ps = 200000};
	struct findings checks = judge(&calls);

	(void)state;
	assert_check(&checks, "system calls", FINDING_WARN, "50,005 a second, in 200 ms",
		     "--detail probes");
	assert_check(&checks, "system calls", FINDING_WARN, "takes 1.0 % of a CPU",
		     "use --detail probes");
	end_checks(&checks);
	calls.has_steps = false;
	checks = judge(&calls);
	assert_check(&checks, "system calls", FINDING_WARN, "50,005", "name a step function");
	end_checks(&checks);
}

static void few_calls_are_well(void **state)
{
	struct doctor_calls calls = {.counted = true, .calls = 10000, .count_ns = 200000000};
	struct findings checks = judge(&calls);

	(void)state;
	assert_check(&checks, "system calls", FINDING_OK, "50,000 a second", NULL);
	end_checks(&checks);
	calls.calls = 0;
	checks = judge(&calls);
	assert_check(&checks, "system calls", FINDING_OK, "0 a second", NULL);
	end_checks(&checks);
}

static void what_was_not_counted_is_not_told(void **state)
{
	struct doctor_calls calls = {.counted = false};
	struct findings checks = judge(&calls);

	(void)state;
	assert_int_equal(checks.items.count, 0);
	end_checks(&checks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_calls_are_better_not_traced),
		cmocka_unit_test(few_calls_are_well),
		cmocka_unit_test(what_was_not_counted_is_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
