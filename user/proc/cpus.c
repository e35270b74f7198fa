/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/cpus.h"

#include <errno.h>
#include <sched.h>

#define WORDS (CPUS_MAX / (8 * sizeof(unsigned long)))

int cpus_add(struct cpus *cpus, uint32_t tid)
{
	struct cpus own = {{0}};

	if (sched_getaffinity((pid_t)tid, sizeof(own.bits), (cpu_set_t *)(void *)own.bits))
		return -errno;
	for (size_t i = 0; i < WORDS; i++)
		cpus->bits[i] |= own.bits[i];
	return 0;
}

uint32_t cpus_count(const struct cpus *cpus)
{
	uint32_t count = 0;

	for (size_t i = 0; i < WORDS; i++)
		count += (uint32_t)__builtin_popcountl(cpus->bits[i]);
	return count;
}
