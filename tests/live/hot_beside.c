/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * hot_beside TRUTH COUNTS: on one CPU, a hot thread calls any_step as fast as it can, once it is
 * told to; others sleep in any_step, 20 ms each time; and more burn CPU time, so that the hot
 * thread gets little. Runs until SIGTERM. COUNTS is a file of 8-byte numbers: the calls of the hot
 * thread so far, the calls of the others, and, written by the test, whether the first thread is
 * hot.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include "program.h"

#define PAUSE_US 20000
#define SLEEPERS 16
#define BURNERS	 4
#define THREADS	 (1 + SLEEPERS + BURNERS)
/* Gives the thread some 4 % of a CPU, because the burners want the CPU too. */
#define HOT_NICE 8

struct counts {
	_Atomic uint64_t hot;
	_Atomic uint64_t asleep;
	_Atomic uint64_t is_hot;
};

static struct counts *counts;
static _Atomic int stop;

long any_step(long pause_us);

STEP long any_step(long pause_us)
{
	if (pause_us)
		usleep((useconds_t)pause_us);
	STAY();
	return pause_us + 1;
}

static int is_stopped(void)
{
	return atomic_load_explicit(&stop, memory_order_relaxed);
}

static int is_hot(void)
{
	return atomic_load_explicit(&counts->is_hot, memory_order_relaxed) != 0;
}

static void *run_hot(void *arg)
{
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), HOT_NICE);
	while (!is_stopped()) {
		if (!is_hot()) {
			usleep(PAUSE_US);
			continue;
		}
		any_step(0);
		atomic_fetch_add_explicit(&counts->hot, 1, memory_order_relaxed);
	}
	return arg;
}

static void *run_asleep(void *arg)
{
	while (!is_stopped()) {
		any_step(PAUSE_US);
		atomic_fetch_add(&counts->asleep, 1);
	}
	return arg;
}

static void *run_burner(void *arg)
{
	while (!is_stopped()) {
		if (!is_hot())
			usleep(PAUSE_US);
	}
	return arg;
}

/* Stays on the first CPU that it may use. */
static int stay_on_one_cpu(void)
{
	cpu_set_t allowed, one;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return -1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		return sched_setaffinity(0, sizeof(one), &one);
	}
	return -1;
}

static void *(*run_of(int i))(void *)
{
	if (!i)
		return run_hot;
	return i <= SLEEPERS ? run_asleep : run_burner;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	sigset_t signals;
	FILE *truth;
	int signal;

	if (argc < 3 || stay_on_one_cpu())
		return EXIT_FAILURE;
	counts = map_shared(argv[2], sizeof(*counts));
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	wait_for_go();
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, run_of(i), NULL))
			return EXIT_FAILURE;
	}
	sigwait(&signals, &signal);
	atomic_store(&stop, 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	truth = open_truth(argv);
	fprintf(truth, "{\"hot\": %llu, \"asleep\": %llu}\n", (unsigned long long)counts->hot,
		(unsigned long long)counts->asleep);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
