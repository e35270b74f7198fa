/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * fault_forks TRUTH KIND COUNT AT_ONCE [REST_MS]: creates COUNT threads or processes, AT_ONCE of
 * them at a time with a rest in between. Each makes 3 getppid calls and ends. One thread creates
 * them all; several would be no faster.
 */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include "program.h"
#include "small_threads.h"

#define CALLS	    3
#define AT_ONCE_MAX 1024

static void make_calls(void)
{
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
}

static void *run_thread(void *arg)
{
	make_calls();
	return arg;
}

static long make_processes(long count)
{
	long made = 0;
	pid_t child;

	while (made < count) {
		child = fork();
		if (child < 0)
			break;
		if (!child) {
			make_calls();
			_exit(EXIT_SUCCESS);
		}
		made++;
	}
	while (wait(NULL) > 0)
		;
	return made;
}

int main(int argc, char **argv)
{
	int processes = argc > 2 && !strcmp(argv[2], "processes");
	long count = number_at(argv, 3, 10000), at_once = number_at(argv, 4, 100), made = 0;
	long rest_ms = number_at(argv, 5, 0);
	FILE *truth;

	if (at_once < 1 || at_once > AT_ONCE_MAX)
		return 2;
	wait_for_go();
	while (made < count) {
		long now = processes ? make_processes(at_once)
				     : run_small_threads(at_once, run_thread);

		if (!now)
			return EXIT_FAILURE;
		made += now;
		usleep((useconds_t)rest_ms * 1000);
	}
	truth = open_truth(argv);
	fprintf(truth, "{\"made\": %ld, \"getppid\": %ld}\n", made, made * CALLS);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
