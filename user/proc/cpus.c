/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/cpus.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>

#define WORD_BITS  (8 * sizeof(unsigned long))
#define WORDS	   (CPUS_MAX / WORD_BITS)
#define LIST_BYTES 4096

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

bool cpus_has(const struct cpus *cpus, uint32_t cpu)
{
	return cpu < CPUS_MAX && cpus->bits[cpu / WORD_BITS] >> cpu % WORD_BITS & 1;
}

void cpus_add_list(struct cpus *cpus, const char *list)
{
	uint32_t first, last;
	int length;

	while (sscanf(list, "%" SCNu32 "%n", &first, &length) == 1) {
		list += length;
		last = first;
		if (sscanf(list, "-%" SCNu32 "%n", &last, &length) == 1)
			list += length;
		for (uint32_t cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++)
			cpus->bits[cpu / WORD_BITS] |= 1ul << cpu % WORD_BITS;
		if (*list++ != ',')
			return;
	}
}

bool cpus_find_tickless(struct cpus *cpus)
{
	FILE *file = fopen("/sys/devices/system/cpu/nohz_full", "re");
	char list[LIST_BYTES];

	*cpus = (struct cpus){{0}};
	if (file && fgets(list, sizeof(list), file))
		cpus_add_list(cpus, list);
	if (file)
		fclose(file);
	return cpus_count(cpus) > 0;
}
