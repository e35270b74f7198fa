/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/switch_cost.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

#define CHUNKS		24
#define TURNS_PER_CHUNK 40

/* Two threads that take turns. Each turn has two switches. */
struct turns {
	int there;
	int back;
};

static bool pass(int to)
{
	const uint64_t one = 1;

	return write(to, &one, sizeof(one)) == sizeof(one);
}

static bool await(int from)
{
	uint64_t count;

	return read(from, &count, sizeof(count)) == sizeof(count);
}

static void *answer(void *ctx)
{
	const struct turns *turns = ctx;

	for (int i = 0; i < CHUNKS * TURNS_PER_CHUNK; i++)
		if (!await(turns->there) || !pass(turns->back))
			break;
	return NULL;
}

/* CPU time of both threads, because others may have the CPU for a while. */
static uint64_t chunk_ns(const struct turns *turns, bool *ok)
{
	uint64_t start_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	for (int i = 0; i < TURNS_PER_CHUNK; i++)
		*ok = *ok && pass(turns->there) && await(turns->back);
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns;
}

/* The lower quartile: what disturbs a chunk makes it longer. */
static uint64_t run_turns(struct turns *turns)
{
	uint64_t sorted[CHUNKS];
	bool ok = true;
	pthread_t thread;

	if (pthread_create(&thread, NULL, answer, turns))
		return 0;
	for (int i = 0; i < CHUNKS; i++) {
		uint64_t ns = chunk_ns(turns, &ok);
		int place = i;

		for (; place && sorted[place - 1] > ns; place--)
			sorted[place] = sorted[place - 1];
		sorted[place] = ns;
	}
	pthread_join(thread, NULL);
	return ok ? sorted[CHUNKS / 4] * 1000 / (2 * TURNS_PER_CHUNK) : 0;
}

/* A thread inherits on which CPU it may run. */
static uint64_t run_on_one_cpu(struct turns *turns)
{
	cpu_set_t before, one;
	int cpu = sched_getcpu();
	uint64_t ps;

	if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before))
		return 0;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return 0;
	ps = run_turns(turns);
	sched_setaffinity(0, sizeof(before), &before);
	return ps;
}

uint64_t switch_cost_ps(void)
{
	struct turns turns = {eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC)};
	uint64_t ps = 0;

	if (turns.there >= 0 && turns.back >= 0)
		ps = run_on_one_cpu(&turns);
	if (turns.there >= 0)
		close(turns.there);
	if (turns.back >= 0)
		close(turns.back);
	return ps;
}
