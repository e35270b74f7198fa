/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Programs under filters for system calls.
 *
 *   live_inject_seccomp FILTER… -- COMMAND…  runs it under these, which it has from its start
 *   live_inject_seccomp only-needed          waits in read() of stdin, and echoes each line, under
 * a filter that kills for each call but its own few and those of inject_calls()
 *
 * FILTER: docker, or kill-CALL, errno-CALL, enosys-CALL of the calls below.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../fake/seccomp_filters.h"

#if defined(__x86_64__)

#include "inject/filters.h"

static const struct {
	const char *name;
	long nr;
} names[] = {
	{"memfd_create", SYS_memfd_create},
	{"clone3", SYS_clone3},
	{"pwrite64", SYS_pwrite64},
	{"rseq", SYS_rseq},
	{"fallocate", SYS_fallocate},
	{"restart_syscall", SYS_restart_syscall},
	{"perf_event_open", SYS_perf_event_open},
};

static const struct {
	const char *name;
	uint32_t action;
} actions[] = {
	{"kill-", SECCOMP_RET_KILL_PROCESS},
	{"errno-", SECCOMP_RET_ERRNO | EPERM},
	{"enosys-", SECCOMP_RET_ERRNO | ENOSYS},
};

static bool make_filter(struct filter *filter, const char *text)
{
	if (!strcmp(text, "docker")) {
		filter_docker(filter);
		return true;
	}
	for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++) {
		size_t length = strlen(actions[i].name);

		if (strncmp(text, actions[i].name, length))
			continue;
		for (size_t j = 0; j < sizeof(names) / sizeof(*names); j++) {
			if (strcmp(text + length, names[j].name))
				continue;
			filter_but_one(filter, names[j].nr, actions[i].action);
			return true;
		}
	}
	return false;
}

static int run_command(char **argv)
{
	struct filter filter;

	for (; *argv && strcmp(*argv, "--"); argv++) {
		if (!make_filter(&filter, *argv)) {
			fprintf(stderr, "no such filter: %s\n", *argv);
			return 2;
		}
		if (filter_install(&filter)) {
			perror("seccomp");
			return 2;
		}
	}
	if (!*argv || !argv[1]) {
		fprintf(stderr, "what is to be run?\n");
		return 2;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 2;
}

static int run_needed(void)
{
	static const long own[] = {SYS_read, SYS_write, SYS_exit_group, SYS_rt_sigreturn};
	const struct inject_call *needed;
	struct filter filter;
	char line[256];
	ssize_t size;
	size_t count;

	needed = inject_calls(&count);
	filter_begin(&filter, SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < count; i++)
		filter_if(&filter, needed[i].nr, SECCOMP_RET_ALLOW);
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		filter_if(&filter, (uint32_t)own[i], SECCOMP_RET_ALLOW);
	filter_return(&filter, SECCOMP_RET_KILL_PROCESS);
	if (filter_install(&filter)) {
		perror("seccomp");
		return 2;
	}
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	while ((size = read(STDIN_FILENO, line, sizeof(line))) > 0) {
		if (write(STDOUT_FILENO, line, (size_t)size) != size)
			return 1;
	}
	return size ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "only-needed"))
		return run_needed();
	return run_command(argv + 1);
}

#else

int main(void)
{
	fprintf(stderr, "for x86-64 only\n");
	return 2;
}

#endif
