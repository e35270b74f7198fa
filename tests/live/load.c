/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * load TRUTH THREADS SECONDS CALLS STEPS: each thread makes STEPS steps a second (0: as many as it
 * can) of CALLS getppid calls each, and sleeps between them. If CALLS is negative, the calls are
 * made outside of steps. The account has what was made, not what was asked for:
 * {"threads":2,"steps":N,"calls":N,"seconds":F}
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include "program.h"

#define THREADS_MAX 256
/* At each tick a thread makes all that has come due since the last one. */
#define TICK_NS	 1000000
#define NS_PER_S 1000000000ull

struct worker {
	pthread_t thread;
	long calls;
	uint64_t period_ns; /* 0: without a pause */
	uint64_t length_ns;
	uint64_t steps;
	uint64_t took_ns;
};

void load_step(long calls);

STEP void load_step(long calls)
{
	for (long i = 0; i < calls; i++)
		syscall(SYS_getppid);
	STAY();
}

static void call_outside(long calls)
{
	for (long i = 0; i < calls; i++)
		syscall(SYS_getppid);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec until = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static void make_step(struct worker *worker)
{
	if (worker->calls < 0)
		call_outside(-worker->calls);
	else
		load_step(worker->calls);
	worker->steps++;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	uint64_t begin = now_ns(), end = begin + worker->length_ns, tick = begin, now;

	while ((now = now_ns()) < end) {
		uint64_t due =
			worker->period_ns ? (now - begin) / worker->period_ns : worker->steps + 1;

		while (worker->steps < due && now_ns() < end)
			make_step(worker);
		if (!worker->period_ns)
			continue;
		/* A thread that lags behind does not sleep. */
		tick += TICK_NS;
		if (tick > now_ns())
			sleep_until(tick);
		else
			tick = now_ns();
	}
	worker->took_ns = now_ns() - begin;
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	long threads = number_at(argv, 2, 1), calls = number_at(argv, 4, 100);
	long rate = number_at(argv, 5, 0);
	uint64_t steps = 0, took_ns = 0;
	FILE *truth = open_truth(argv);

	if (threads < 1 || threads > THREADS_MAX)
		return EXIT_FAILURE;
	wait_for_go();
	for (long i = 0; i < threads; i++) {
		workers[i].calls = calls;
		workers[i].period_ns = rate ? NS_PER_S / (uint64_t)rate : 0;
		workers[i].length_ns = (uint64_t)number_at(argv, 3, 1) * NS_PER_S;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return EXIT_FAILURE;
	}
	for (long i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		steps += workers[i].steps;
		took_ns = workers[i].took_ns > took_ns ? workers[i].took_ns : took_ns;
	}
	fprintf(truth, "{\"threads\":%ld,\"steps\":%llu,\"calls\":%llu,\"seconds\":%.3f}\n",
		threads, (unsigned long long)(calls < 0 ? 0 : steps),
		(unsigned long long)steps * (unsigned long long)labs(calls),
		(double)took_ns / (double)NS_PER_S);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
