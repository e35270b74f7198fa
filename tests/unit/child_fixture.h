/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Children of tests that wait until they are killed. */
#ifndef FBT_CHILD_FIXTURE_H
#define FBT_CHILD_FIXTURE_H

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

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

#endif
