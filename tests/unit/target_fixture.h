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
	char path[32], start[sizeof(TARGET)] = "";
	pid_t pid = child_fork();
	FILE *file;

	if (pid == 0) {
		execve("/proc/self/exe", (char *const *)arguments, (char *const *)environment);
		_exit(127);
	}
	assert_true(pid > 0);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	while (strcmp(start, TARGET) != 0) {
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		file = fopen(path, "re");
		if (file && fread(start, 1, sizeof(start) - 1, file) < sizeof(start) - 1)
			start[0] = '\0';
		if (file)
			fclose(file);
	}
	return pid;
}

static inline void target_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif
