/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* How busy the machine is, and in which part of it a process runs. */
#ifndef FBT_PROC_MACHINE_LOAD_H
#define FBT_PROC_MACHINE_LOAD_H

#include <stddef.h>
#include <stdint.h>

/* Context switches of all CPUs since the machine started (/proc/stat). 0, or -errno. */
int machine_switches(uint64_t *count);

/* CPUs that are online; at least 1. */
uint32_t machine_cpus(void);

/*
 * The last names of the path of a process's cgroup, from a '/' on where there is room: of its CPU
 * controller or, if that is in its root, of the unified hierarchy. "": not known, or it has ended.
 */
void machine_cgroup_name(uint32_t tgid, char *name, size_t size);

#endif
