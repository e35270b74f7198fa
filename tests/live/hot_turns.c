/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * hot_turns TRUTH COUNTS: two threads call first_step and second_step until SIGTERM, 50 times a
 * second each, or as fast as they can while they are told to. COUNTS is a file of 8-byte numbers:
 * the calls of first_step so far, those of second_step, and, written by the test, which is hot: 1
 * the first, 2 the second, 3 both.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include "program.h"

#define PAUSE_US 20000

struct counts {
	_Atomic uint64_t calls[2];
	_Atomic uint64_t hot;
};

struct caller {
	pthread_t thread;
	struct counts *counts;
	long (*step)(long value);
	int number;
	_Atomic int stop;
};

long first_step(long value);
long second_step(long value);

STEP long first_step(long value)
{
	STAY();
	return value + 1;
}

STEP long second_step(long value)
{
	STAY();
	return value + 2;
}

static void *run(void *arg)
{
	struct caller *caller = arg;
	struct counts *counts = caller->counts;
	uint64_t count = 0;

	while (!atomic_load_explicit(&caller->stop, memory_order_relaxed)) {
		caller->step((long)count);
		count++;
		atomic_store_explicit(&counts->calls[caller->number], count, memory_order_relaxed);
		if (!(atomic_load_explicit(&counts->hot, memory_order_relaxed) >> caller->number &
		      1))
			usleep(PAUSE_US);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct caller callers[2];
	sigset_t signals;
	FILE *truth;
	int signal;

	if (argc < 3)
		return EXIT_FAILURE;
	callers[0] = (struct caller){.step = first_step,
				     .counts = map_shared(argv[2], sizeof(struct counts))};
	callers[1] = (struct caller){.step = second_step, .counts = callers[0].counts, .number = 1};
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	wait_for_go();
	for (int i = 0; i < 2; i++) {
		if (pthread_create(&callers[i].thread, NULL, run, &callers[i]))
			return EXIT_FAILURE;
	}
	sigwait(&signals, &signal);
	for (int i = 0; i < 2; i++) {
		atomic_store(&callers[i].stop, 1);
		pthread_join(callers[i].thread, NULL);
	}
	truth = open_truth(argv);
	fprintf(truth, "{\"first\": %llu, \"second\": %llu}\n",
		(unsigned long long)callers[0].counts->calls[0],
		(unsigned long long)callers[0].counts->calls[1]);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
