/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * clock TRUTH STEPS: on one CPU, steps (clock_step) that compute for 20 us each, while a thread on
 * another CPU makes the kernel bring the clock of the first one up to date every 40 us. TRUTH says
 * in how many of these calls that CPU was held up, as by the host of a virtual machine: then it may
 * have left the clock half moved on.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include "program.h"

#define STEP_NS	  20000
#define MEDDLE_NS 40000
#define HELD_NS	  10000
#define NS_PER_S  1000000000ll

static _Atomic int is_over;
static _Atomic long held;
static pid_t first;

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void compute(long long ns)
{
	long long end = now_ns() + ns;

	while (now_ns() < end)
		;
}

/* The set of the number-th CPU that the program may use. */
static cpu_set_t cpu_of(int number)
{
	cpu_set_t all, one;

	CPU_ZERO(&one);
	sched_getaffinity(getpid(), sizeof(all), &all);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &all) && !number--)
			CPU_SET(cpu, &one);
	}
	return one;
}

static cpu_set_t own, other;

/* The set stays the same: nothing happens but for a look at the clock. */
static void *meddle(void *arg)
{
	sched_setaffinity(0, sizeof(other), &other);
	while (!is_over) {
		long long begin = now_ns();

		sched_setaffinity(first, sizeof(own), &own);
		held += now_ns() - begin > HELD_NS;
		compute(MEDDLE_NS);
	}
	return arg;
}

STEP void clock_step(void);
void clock_step(void)
{
	compute(STEP_NS);
	STAY();
}

int main(int argc, char **argv)
{
	long steps = number_at(argv, 2, 1000);
	FILE *truth = open_truth(argv);
	pthread_t thread;

	first = getpid();
	own = cpu_of(0);
	other = cpu_of(1);
	if (!CPU_COUNT(&other))
		exit(77);
	sched_setaffinity(0, sizeof(own), &own);
	if (pthread_create(&thread, NULL, meddle, NULL))
		exit(EXIT_FAILURE);
	wait_for_go();
	held = 0;
	for (long i = 0; i < steps; i++)
		clock_step();
	is_over = 1;
	pthread_join(thread, NULL);
	fprintf(truth, "{\"steps\": %ld, \"held\": %ld}\n", steps, held);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
