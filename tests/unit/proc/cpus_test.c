/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "proc/cpus.h"

static void a_list_has_single_cpus_and_ranges(void **state)
{
	struct cpus cpus = {{0}};

	(void)state;
	cpus_add_list(&cpus, "1-3,64,8191\n");
	assert_int_equal(cpus_count(&cpus), 5);
	assert_false(cpus_has(&cpus, 0));
	assert_true(cpus_has(&cpus, 1) && cpus_has(&cpus, 3));
	assert_true(cpus_has(&cpus, 64) && cpus_has(&cpus, 8191));
	assert_false(cpus_has(&cpus, 4));
	assert_false(cpus_has(&cpus, CPUS_MAX));
}

/* What the kernel writes without nohz_full=. */
static void what_is_no_list_is_no_cpu(void **state)
{
	struct cpus cpus = {{0}};

	(void)state;
	cpus_add_list(&cpus, "  (null)\n");
	cpus_add_list(&cpus, "\n");
	cpus_add_list(&cpus, "");
	assert_int_equal(cpus_count(&cpus), 0);
}

static void cpus_beyond_the_largest_are_left_out(void **state)
{
	struct cpus cpus = {{0}};

	(void)state;
	cpus_add_list(&cpus, "8190-4294967295,9000");
	assert_int_equal(cpus_count(&cpus), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_has_single_cpus_and_ranges),
		cmocka_unit_test(what_is_no_list_is_no_cpu),
		cmocka_unit_test(cpus_beyond_the_largest_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
