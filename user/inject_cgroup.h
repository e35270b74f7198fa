/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the cgroups of a process say, where they are mounted below /sys/fs/cgroup. */
#ifndef FBT_INJECT_CGROUP_H
#define FBT_INJECT_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* Whether it is frozen, by either version; false also where that is not known. */
bool inject_cgroup_is_frozen(uint32_t tgid, uint32_t thread);

/* How many more threads pids.max lets it start; UINT64_MAX: any number, or not known. */
uint64_t inject_cgroup_threads_left(uint32_t tgid, uint32_t thread);

#endif
