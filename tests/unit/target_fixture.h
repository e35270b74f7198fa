/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A process with arguments and an environment of the test's choice. Include after cmocka.h. */
#ifndef FBT_TARGET_FIXTURE_H
#define FBT_TARGET_FIXTURE_H

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child_fixture.h"

#define TARGET "target"

/* The test's own program, when it is started as a target: it waits to be killed. */
static __attribute__((constructor)) void target_run(int argc, char **argv)
{
	while (argc && !strcmp(argv[0], TARGET))
		pause();
}

/* The first argument is TARGET. Returns when it has them. */
static inline pid_t target_start(const char *const *arguments, const char *const *environment)
{
	int started[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(started, O_CLOEXEC), 0);
	pid = child_fork();
	if (pid == 0) {
		execve("/proc/self/exe", (char *const *)arguments, (char *const *)environment);
		_exit(127);
	}
	assert_true(pid > 0);
	close(started[1]);
	/* Closed by the kernel once the process has its arguments and environment. */
	assert_int_equal(read(started[0], &byte, 1), 0);
	close(started[0]);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	return pid;
}

static inline void target_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif
