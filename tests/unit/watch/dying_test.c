/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "watch/dying.h"

/* A child that does not end by itself. */
static pid_t start_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	while (!pid)
		pause();
	return pid;
}

static void assert_killed(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void who_is_late_is_killed(void **state)
{
	struct dying dying = {0};
	pid_t early = start_child(), late = start_child();

	dying_add(&dying, early, 3, 1000);
	dying_add(&dying, late, 0, 2000);
	dying_add(&dying, 0, 0, 0);
	assert_int_equal(dying_slots(&dying), 1 << 3);
	dying_turn(&dying, 1000 + DYING_NS);
	assert_int_equal(waitpid(early, NULL, WNOHANG), 0);
	dying_turn(&dying, 1001 + DYING_NS);
	assert_killed(early);
	assert_int_equal(dying_slots(&dying), 1 << 3);
	assert_true(dying_reap(&dying, early));
	assert_int_equal(dying_slots(&dying), 0);
	assert_false(dying_reap(&dying, early));
	assert_int_equal(waitpid(late, NULL, WNOHANG), 0);
	dying_clear(&dying);
	assert_killed(late);
	assert_false(dying_reap(&dying, late));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_late_is_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
