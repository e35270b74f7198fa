/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* On which CPUs threads may run. */
#ifndef FBT_PROC_CPUS_H
#define FBT_PROC_CPUS_H

#include <stdbool.h>
#include <stdint.h>

/* More than any kernel is built for. */
#define CPUS_MAX 8192

/* {0} is no CPU. */
struct cpus {
	unsigned long bits[CPUS_MAX / (8 * sizeof(unsigned long))];
};

/* Adds those that a thread may run on, now. 0 or -errno: -ESRCH if it has ended. */
int cpus_add(struct cpus *cpus, uint32_t tid);

uint32_t cpus_count(const struct cpus *cpus);
bool cpus_has(const struct cpus *cpus, uint32_t cpu);

/* Adds those of a list as the kernel writes it: "1-3,5". "(null)" is no CPU. */
void cpus_add_list(struct cpus *cpus, const char *list);

/*
 * Finds the CPUs that have no timer tick while they run one thread only (nohz_full=). There the
 * kernel updates the CPU time of a running thread once a second. Returns whether there are any.
 */
bool cpus_find_tickless(struct cpus *cpus);

#endif
