/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * hot TRUTH COUNTS INNER: one thread calls hot_step as fast as it can, which does next to nothing.
 * Another makes steps of 5 ms, with CALLS getppid calls and INNER hot_step calls each, until
 * SIGTERM. COUNTS is a file of 8-byte numbers: the calls of the first thread so far, those of the
 * second, and the id of the first thread.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include "program.h"

#define CALLS 3

struct counts {
	_Atomic uint64_t hot; /* calls of the thread that does nothing else */
	_Atomic uint64_t slow;
	_Atomic uint64_t hot_tid;
};

struct work {
	struct counts *counts;
	struct timespec pause;
	long inner;
	_Atomic int stop;
};

long hot_step(long value);
void slow_step(const struct work *work);

STEP long hot_step(long value)
{
	STAY();
	return value + 1;
}

STEP void slow_step(const struct work *work)
{
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	for (long i = 0; i < work->inner; i++)
		hot_step(i);
	nanosleep(&work->pause, NULL);
	STAY();
}

static void *run_hot(void *arg)
{
	struct work *work = arg;
	uint64_t count = 0;

	atomic_store(&work->counts->hot_tid, (uint64_t)syscall(SYS_gettid));
	while (!atomic_load_explicit(&work->stop, memory_order_relaxed)) {
		hot_step((long)count);
		count++;
		atomic_store_explicit(&work->counts->hot, count, memory_order_relaxed);
	}
	return NULL;
}

static void *run_slow(void *arg)
{
	struct work *work = arg;

	while (!atomic_load(&work->stop)) {
		slow_step(work);
		atomic_fetch_add(&work->counts->slow, 1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct work work;
	pthread_t threads[2];
	sigset_t signals;
	FILE *truth;
	int signal;

	if (argc < 3)
		return EXIT_FAILURE;
	work.counts = map_shared(argv[2], sizeof(struct counts));
	work.pause = (struct timespec){.tv_nsec = 5000000};
	work.inner = number_at(argv, 3, 0);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	wait_for_go();
	if (pthread_create(&threads[0], NULL, run_hot, &work) ||
	    pthread_create(&threads[1], NULL, run_slow, &work))
		return EXIT_FAILURE;
	sigwait(&signals, &signal);
	atomic_store(&work.stop, 1);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	truth = open_truth(argv);
	fprintf(truth, "{\"hot\": %llu, \"slow\": %llu, \"calls\": %d}\n",
		(unsigned long long)work.counts->hot, (unsigned long long)work.counts->slow, CALLS);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
