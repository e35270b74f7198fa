/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * slots_in_step TRUTH: 400 threads compute for 10 ms each and sleep from then on. Then the first
 * thread makes steps (my_step) until the go, so that the others get their slots while a step is
 * open: of 2 ms, and in the end longer ones with pauses, so that the other threads are looked at
 * when such a step begins and when it ends.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include "program.h"
#include "small_threads.h"

#define SHORT	 1000
#define THREADS	 400
#define BURN_NS	 10000000
#define STEP_NS	 2000000
#define NS_PER_S 1000000000ll

static _Atomic int burnt, is_over;

static void sleep_ns(long ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static void *burn_and_sleep(void *arg)
{
	struct timespec used = {0};

	while (used.tv_sec * NS_PER_S + used.tv_nsec < BURN_NS)
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	burnt++;
	for (;;)
		pause();
	return arg;
}

STEP void my_step(long ns);
void my_step(long ns)
{
	sleep_ns(ns);
	STAY();
}

static void *wait_to_end(void *arg)
{
	wait_for_go();
	is_over = 1;
	return arg;
}

int main(int argc, char **argv)
{
	FILE *truth = open_truth(argv);
	pthread_t members[THREADS], ender;

	if (start_small_threads(members, sizeof(*members), THREADS, burn_and_sleep) < THREADS)
		exit(EXIT_FAILURE);
	while (burnt < THREADS)
		sleep_ns(STEP_NS);
	if (pthread_create(&ender, NULL, wait_to_end, NULL))
		exit(EXIT_FAILURE);
	for (int i = 0; i < SHORT; i++)
		my_step(STEP_NS);
	while (!is_over) {
		sleep_ns(10 * STEP_NS);
		my_step(10 * STEP_NS);
	}
	fprintf(truth, "{\"threads\": %d}\n", THREADS);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
