/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * steal TRUTH MS: for MS milliseconds, on one CPU, steps (steal_step) that compute for 1 ms each.
 * TRUTH says how many there were, and what the host took of that CPU meanwhile by the kernel's own
 * account (steal in /proc/stat), in ms.
 */
#include <sched.h>
#include <string.h>
#include <time.h>
#include "program.h"

#define STEP_NS	 1000000ll
#define NS_PER_S 1000000000ll

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Of the CPU that this thread is on. */
static long stolen_ms(void)
{
	FILE *stat = fopen("/proc/stat", "re");
	char line[512], name[32];
	long long ticks = -1;

	snprintf(name, sizeof(name), "cpu%d ", sched_getcpu());
	while (stat && ticks < 0 && fgets(line, sizeof(line), stat))
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), "%*s %*s %*s %*s %*s %*s %*s %lld", &ticks);
	if (ticks < 0)
		exit(EXIT_FAILURE);
	fclose(stat);
	return (long)(ticks * 1000 / sysconf(_SC_CLK_TCK));
}

STEP void steal_step(void);
void steal_step(void)
{
	long long end = now_ns() + STEP_NS;

	while (now_ns() < end)
		;
	STAY();
}

int main(int argc, char **argv)
{
	long long end = number_at(argv, 2, 1000) * 1000000ll;
	FILE *truth = open_truth(argv);
	long steps = 0, before_ms;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (argc < 2 || sched_setaffinity(0, sizeof(one), &one))
		exit(EXIT_FAILURE);
	wait_for_go();
	before_ms = stolen_ms();
	for (end += now_ns(); now_ns() < end; steps++)
		steal_step();
	fprintf(truth, "{\"steps\": %ld, \"stolen_ms\": %ld}\n", steps, stolen_ms() - before_ms);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}
