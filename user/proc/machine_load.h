/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* How busy the machine is. */
#ifndef FBT_PROC_MACHINE_LOAD_H
#define FBT_PROC_MACHINE_LOAD_H

#include <stdint.h>

/* Context switches of all CPUs since the machine started (/proc/stat). 0, or -errno. */
int machine_switches(uint64_t *count);

/* CPUs that are online; at least 1. */
uint32_t machine_cpus(void);

#endif
