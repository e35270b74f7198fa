/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * diff TRUTH STEPS SMALL LARGE EVERY [WAIT]: steps (diff_step) of two sorts, which compute for
 * about SMALL and LARGE microseconds of the thread's own time; each EVERY-th is large, at random.
 * What a step is asked to do, its argument, is 4 or 600 tokens whatever that takes. WAIT: each
 * small step also sleeps for so many microseconds in a futex. Writes how many of each sort there
 * were, and the median time of each as measured here: inside, without the probes at its begin and
 * end.
 */
#include <linux/futex.h>
#include <string.h>
#include <time.h>
#include "program.h"

#define SMALL_TOKENS 4
#define LARGE_TOKENS 600

long diff_step(long tokens, long ns, long wait_us);

static long long now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static long long inside_ns;

/* By the clock: the speed of a machine that others use too changes slowly, from run to run. */
static void compute(long long ns)
{
	long long end = now_ns(CLOCK_MONOTONIC) + ns;

	while (now_ns(CLOCK_MONOTONIC) < end)
		;
}

STEP long diff_step(long tokens, long ns, long wait_us)
{
	long long begin = now_ns(CLOCK_MONOTONIC);
	struct timespec time = {0, wait_us * 1000};
	int word = 0;

	if (wait_us)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
	compute(ns);
	inside_ns = now_ns(CLOCK_MONOTONIC) - begin;
	STAY();
	return tokens;
}

static int compare(const void *left, const void *right)
{
	long long a = *(const long long *)left, b = *(const long long *)right;

	return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
	long steps = atol(argv[2]), us[2] = {atol(argv[3]), atol(argv[4])}, every = atol(argv[5]);
	long wait_us = argc > 6 ? atol(argv[6]) : 0, counts[2] = {0};
	FILE *truth = open_truth(argv);
	long long *taken[2];

	for (int i = 0; i < 2; i++)
		taken[i] = calloc((size_t)steps + 1, sizeof(**taken));
	if (!taken[0] || !taken[1])
		return 1;
	wait_for_go();
	srand48(steps + every);
	for (long i = 0; i < steps; i++) {
		int sort = lrand48() % every == 0;

		/* Up to 5 % more or less, so that no two steps are alike. */
		diff_step(sort ? LARGE_TOKENS : SMALL_TOKENS, us[sort] * (950 + lrand48() % 100),
			  sort ? 0 : wait_us);
		taken[sort][counts[sort]++] = inside_ns;
	}
	for (int i = 0; i < 2; i++)
		qsort(taken[i], (size_t)counts[i], sizeof(**taken), compare);
	fprintf(truth, "{\"small\":%ld,\"large\":%ld,\"small_ns\":%lld,\"large_ns\":%lld}\n",
		counts[0], counts[1], taken[0][counts[0] / 2], taken[1][counts[1] / 2]);
	return fclose(truth) != 0;
}
