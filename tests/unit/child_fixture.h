/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Children of tests that wait until they are killed. */
#ifndef FBT_CHILD_FIXTURE_H
#define FBT_CHILD_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "proc/status.h"

/* As fork(). The kernel kills the child when the test program ends, whether a test failed or the
 * program was killed. */
static inline pid_t child_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The parent may have ended before that. */
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

/* Waits until the process is in a state of /proc/PID/stat. */
static inline void child_await_state(pid_t process, char state)
{
	struct thread_stat stat = {0};

	while (stat.state != state) {
		usleep(1000);
		assert_int_equal(
			thread_stat_read(&stat, (struct proc_ref){.tgid = (uint32_t)process}), 0);
	}
}

#endif
