/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "proc/machine.h"

static void the_machine_has_what_grep_finds(void **state)
{
	bool expected = !system("grep -m1 '^flags' /proc/cpuinfo | grep -qw user_shstk");

	assert_int_equal(machine_has_shadow_stacks(), expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_machine_has_what_grep_finds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
