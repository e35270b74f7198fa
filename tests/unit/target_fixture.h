/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A process with arguments and an environment of the test's choice. Include after cmocka.h. */
#ifndef FBT_TARGET_FIXTURE_H
#define FBT_TARGET_FIXTURE_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
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

/* Whether a file in the process's folder begins with that text. */
static inline bool target_shows(pid_t pid, const char *name, const char *text)
{
	char path[64], start[64] = "";
	size_t length = strnlen(text, sizeof(start) - 1);
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	file = fopen(path, "re");
	if (file && fread(start, 1, sizeof(start) - 1, file) < length)
		start[0] = '\0';
	if (file)
		fclose(file);
	return !strncmp(start, text, length);
}

/*
 * The first argument is TARGET. Returns when it has them: the kernel gives it the arguments first,
 * and then the environment.
 */
static inline pid_t target_start(const char *const *arguments, const char *const *environment)
{
	pid_t pid = child_fork();

	if (pid == 0) {
		execve("/proc/self/exe", (char *const *)arguments, (char *const *)environment);
		_exit(127);
	}
	assert_true(pid > 0);
	while (!target_shows(pid, "cmdline", TARGET) ||
	       (environment[0] && !target_shows(pid, "environ", environment[0]))) {
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		usleep(100);
	}
	return pid;
}

static inline void target_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif
