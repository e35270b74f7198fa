/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * slow_calls TRUTH STEPS: steps in C, without frame pointers. Every tenth waits in a call that it
 * makes one or two functions below, in turns asleep and for a lock. The account has how many did.
 * With a third argument every fourth step has STORM_CALLS calls of 2 ms instead: so many that not
 * all get a stack. The account has how many there were, and in how many of the kernel side's turns.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include "../../include/fbt_shared.h"
#include "program.h"

#define SLOW_NS	    20000000L
#define STORM_NS    2000000L
#define STORM_CALLS 10
#define STORM_EVERY 4

void take_lock(pthread_mutex_t *lock);
void hold_lock(pthread_mutex_t *lock);
void outer_pause(long ns);
void inner_pause(long ns);
void slow_step(int way);
void storm_step(bool storms);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begin;

static void nap(long ns)
{
	struct timespec time = {0, ns};

	nanosleep(&time, NULL);
}

STEP void inner_pause(long ns)
{
	nap(ns);
	STAY();
}

STEP void outer_pause(long ns)
{
	inner_pause(ns);
	STAY();
}

STEP void take_lock(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
	STAY();
}

STEP void hold_lock(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_barrier_wait(&begin);
	nap(SLOW_NS);
	pthread_mutex_unlock(mutex);
	STAY();
}

static void *hold(void *arg)
{
	hold_lock(arg);
	return NULL;
}

STEP void slow_step(int way)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < 500000);
	if (way == 1)
		outer_pause(SLOW_NS);
	else if (way == 2)
		take_lock(&lock);
	STAY();
}

STEP void storm_step(bool storms)
{
	for (int i = 0; storms && i < STORM_CALLS; i++)
		inner_pause(STORM_NS);
	STAY();
}

/* The turn of a limit per turn. */
static uint64_t turn_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) >> FBT_TURN_SHIFT;
}

static void run_storm(char **argv, long steps)
{
	uint64_t first;
	long slow = 0;
	FILE *truth;

	wait_for_go();
	first = turn_now();
	for (long i = 1; i <= steps; i++) {
		storm_step(i % STORM_EVERY == 0);
		slow += i % STORM_EVERY ? 0 : STORM_CALLS;
	}
	truth = open_truth(argv);
	fprintf(truth, "{\"slow\": %ld, \"turns\": %" PRIu64 "}\n", slow, turn_now() - first + 1);
	if (fclose(truth))
		exit(EXIT_FAILURE);
}

static void wait_for_holder(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, hold, &lock))
		exit(EXIT_FAILURE);
	pthread_setname_np(thread, "holder");
	pthread_barrier_wait(&begin);
	slow_step(2);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	long steps = number_at(argv, 2, 200), slow = 0;
	FILE *truth = NULL;

	if (argc > 3) {
		run_storm(argv, steps);
		return EXIT_SUCCESS;
	}
	pthread_barrier_init(&begin, NULL, 2);
	wait_for_go();
	for (long i = 1; i <= steps; i++) {
		slow += i % 10 == 0;
		if (i % 20 == 0)
			wait_for_holder();
		else
			slow_step(i % 10 == 0);
		nap(500000);
	}
	truth = open_truth(argv);
	fprintf(truth, "{\"slow\": %ld}\n", slow);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
