/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What --gpu=inject costs the thread that is taken. Injects ROUNDS times into a process of our own,
 * in which one thread polls and the others wait for a futex. Prints NAME=NUMBER, times in us.
 *
 * usage: bench_inject ROUNDS LIBRARY
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench_away.skel.h"
#include "inject/inject.h"

#define THREADS	   8
#define ROUNDS_MAX 4096

static void *wait_for_ever(void *lock)
{
	pthread_mutex_lock(lock);
	return NULL;
}

/* The first thread is the one that is taken. */
static pid_t start_target(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct pollfd nothing = {.events = POLLIN};
	int ends[2];
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, wait_for_ever, &lock))
			_exit(1);
	}
	if (pipe(ends))
		_exit(1);
	nothing.fd = ends[0];
	for (;;)
		poll(&nothing, 1, -1);
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void print(const char *name, double *us, uint32_t count)
{
	qsort(us, count, sizeof(*us), compare);
	printf("%s_p50=%.1f %s_p99=%.1f %s_max=%.1f ", name, us[count / 2], name,
	       us[count * 99 / 100], name, us[count - 1]);
}

static int read_library(const char *path, struct inject_library *library)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	struct stat status;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status))
		err = -errno;
	library->size = (size_t)status.st_size;
	library->bytes = mmap(NULL, library->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (!err && library->bytes == MAP_FAILED)
		err = -errno;
	library->entry = "inject_probe";
	close(fd);
	return err;
}

static int run_rounds(struct bench_away_bpf *skel, struct inject_wish *wish, uint32_t rounds)
{
	static double stop_us[ROUNDS_MAX], wait_us[ROUNDS_MAX], total_us[ROUNDS_MAX],
		away_us[ROUNDS_MAX];
	uint32_t tries = 0, seen;

	for (uint32_t i = 0; i < rounds; i++) {
		struct inject_outcome outcome;

		usleep(5000);
		inject_run(wish, &outcome);
		if (outcome.status != INJECT_LOADED) {
			fprintf(stderr, "bench_inject: round %u: %s\n", i, outcome.text);
			return -1;
		}
		stop_us[i] = (double)outcome.stop_ns / 1e3;
		wait_us[i] = (double)outcome.wait_ns / 1e3;
		total_us[i] = (double)outcome.total_ns / 1e3;
		tries += outcome.tries;
	}
	usleep(100000);
	seen = skel->bss->rounds < rounds ? skel->bss->rounds : rounds;
	if (!seen)
		return -1;
	for (uint32_t i = 0; i < seen; i++)
		away_us[i] = (double)skel->bss->away_ns[i] / 1e3;
	print("stop", stop_us, rounds);
	print("wait", wait_us, rounds);
	print("away", away_us, seen);
	print("total", total_us, rounds);
	printf("rounds=%u seen=%u tries=%u\n", rounds, seen, tries);
	return 0;
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
	struct inject_wish wish = {.timeout_ns = 5000000000ull};
	struct bench_away_bpf *skel = NULL;
	int err = -1;

	if (argc != 3 || !rounds || rounds > ROUNDS_MAX || read_library(argv[2], &wish.library)) {
		fputs("usage: bench_inject ROUNDS LIBRARY\n", stderr);
		return EXIT_FAILURE;
	}
	wish.tgid = (uint32_t)start_target();
	wish.tid = wish.tgid;
	usleep(200000);
	skel = bench_away_bpf__open_and_load();
	if (!skel || bench_away_bpf__attach(skel)) {
		fputs("bench_inject: cannot attach\n", stderr);
		goto out;
	}
	skel->bss->call = SYS_poll;
	skel->bss->tid = wish.tgid;
	inject_hurry(); /* as the tool's child does */
	err = run_rounds(skel, &wish, rounds);
out:
	bench_away_bpf__destroy(skel);
	kill((pid_t)wish.tgid, SIGKILL);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
