/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "commands/doctor_process.h"
#include "doctor_fixture.h"

static const struct cgroup_limits none = {.memory_bytes = UINT64_MAX};

static void without_limits_nothing_is_said(void **state)
{
	struct findings checks = {.tgid = 42};

	(void)state;
	doctor_process_judge_limits(&none, &checks);
	assert_int_equal(checks.items.count, 0);
	end_checks(&checks);
}

static void a_cpu_limit_that_is_often_reached_is_a_limit(void **state)
{
	struct cgroup_limits limits = none;
	struct findings checks = {.tgid = 42};

	(void)state;
	limits.quota_us = 150000;
	limits.period_us = 100000;
	limits.periods = 2000;
	limits.throttled = 19;
	doctor_process_judge_limits(&limits, &checks);
	assert_check(&checks, "CPU limit", FINDING_OK, "1.50 CPUs", NULL);
	end_checks(&checks);
	checks = (struct findings){.tgid = 42};
	limits.throttled = 60;
	doctor_process_judge_limits(&limits, &checks);
	assert_check(&checks, "CPU limit", FINDING_WARN, "reached in 3.0 % of 2,000 periods",
		     "raise or remove the limit");
	end_checks(&checks);
	checks = (struct findings){.tgid = 42};
	limits.periods = limits.throttled = 0;
	doctor_process_judge_limits(&limits, &checks);
	assert_check(&checks, "CPU limit", FINDING_OK, "0.0 % of 0 periods", NULL);
	end_checks(&checks);
}

static void a_memory_limit_is_told(void **state)
{
	struct cgroup_limits limits = none;
	struct findings checks = {.tgid = 42};

	(void)state;
	limits.memory_bytes = UINT64_C(4) << 30;
	limits.memory_hits = 1;
	doctor_process_judge_limits(&limits, &checks);
	assert_check(&checks, "memory limit", FINDING_OK, "4.00 GiB (cgroup); reached 1 time",
		     NULL);
	end_checks(&checks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_limits_nothing_is_said),
		cmocka_unit_test(a_cpu_limit_that_is_often_reached_is_a_limit),
		cmocka_unit_test(a_memory_limit_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
