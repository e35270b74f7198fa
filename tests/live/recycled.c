/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * recycled TRUTH ROUNDS CALLS: in each round a thread makes a step (my_step) of CALLS getppid and
 * ends. Then a child of another process gets its number, and most likely its kernel stack, and
 * makes CALLS getsid. That process is forked before the go.
 */
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include "program.h"

#define TRIES 2000

struct run {
	long calls;
	pid_t tid;
};

long my_step(long calls);

STEP long my_step(long calls)
{
	for (long i = 0; i < calls; i++)
		syscall(SYS_getppid);
	STAY();
	return calls;
}

static void *make_step(void *arg)
{
	struct run *run = arg;

	run->tid = (pid_t)syscall(SYS_gettid);
	my_step(run->calls);
	return NULL;
}

/* The number is free again only some time after the thread has ended. */
static pid_t fork_as(pid_t number)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&number,
		.set_tid_size = 1,
	};
	const struct timespec while_ends = {.tv_nsec = 20000};
	long pid = -1;

	for (int i = 0; i < TRIES && pid < 0; i++) {
		pid = syscall(SYS_clone3, &args, sizeof(args));
		if (pid < 0 && errno != EEXIST)
			break;
		if (pid < 0)
			nanosleep(&while_ends, NULL);
	}
	return (pid_t)pid;
}

static bool recycle(pid_t number, long calls)
{
	pid_t pid = fork_as(number);

	if (pid < 0)
		return false;
	if (!pid) {
		for (long i = 0; i < calls; i++)
			syscall(SYS_getsid, 0);
		_exit(0);
	}
	return waitpid(pid, NULL, 0) == pid;
}

static void serve(int from, int to, long calls)
{
	pid_t number;

	while (read(from, &number, sizeof(number)) == sizeof(number)) {
		char done = recycle(number, calls);

		if (write(to, &done, 1) != 1)
			break;
	}
	_exit(0);
}

static void stay_on_one_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

int main(int argc, char **argv)
{
	long rounds = number_at(argv, 2, 1), recycled = 0;
	struct run run = {.calls = number_at(argv, 3, 1)};
	int ask[2], answer[2];
	FILE *truth;

	stay_on_one_cpu();
	if (pipe(ask) || pipe(answer))
		return EXIT_FAILURE;
	if (!fork()) {
		close(ask[1]);
		serve(ask[0], answer[1], run.calls);
	}
	wait_for_go();
	for (long i = 0; i < rounds; i++) {
		pthread_t thread;
		char done;

		if (pthread_create(&thread, NULL, make_step, &run) || pthread_join(thread, NULL) ||
		    write(ask[1], &run.tid, sizeof(run.tid)) != sizeof(run.tid) ||
		    read(answer[0], &done, 1) != 1)
			return EXIT_FAILURE;
		recycled += done;
	}
	truth = open_truth(argv);
	fprintf(truth, "{\"rounds\": %ld, \"recycled\": %ld, \"getppid\": %ld}\n", rounds, recycled,
		rounds * run.calls);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
