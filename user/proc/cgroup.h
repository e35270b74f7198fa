/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The limits of the cgroups of a process: of its own one and of those above it, as far up as they
 * are mounted here. Both versions of cgroups (cgroups(7)).
 */
#ifndef FBT_PROC_CGROUP_H
#define FBT_PROC_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "proc/open.h"

struct cgroup_limits {
	/* The cgroup with the fewest CPUs; period_us is 0 if none has a limit, or none can be seen.
	 */
	uint64_t quota_us; /* of CPU time in each period */
	uint64_t period_us;
	uint64_t periods;   /* that have passed while threads of it ran */
	uint64_t throttled; /* of these: the limit was reached */
	/* The cgroup with the least memory; UINT64_MAX if none has a limit, or none can be seen. */
	uint64_t memory_bytes;
	uint64_t memory_hits; /* how often the limit was reached */
	/*
	 * A cgroup of the process lies outside of this process's cgroup namespace, as in a
	 * container of its own: what limits there are is not known.
	 */
	bool hidden;
};

/* What cannot be read is no limit. */
void cgroup_limits_read(struct cgroup_limits *limits, struct proc_ref ref);

/*
 * The same from the open files /proc/PID/cgroup and mountinfo of this process. Cgroups that lie
 * outside of the mounted ones, or of this process's cgroup namespace, cannot be seen.
 */
void cgroup_limits_find(struct cgroup_limits *limits, FILE *cgroups, FILE *mounts);

/* Where cgroups of version 2 are mounted, by an open file as /proc/self/mountinfo. false: nowhere.
 */
bool cgroup_v2_folder(FILE *mounts, char folder[PATH_MAX]);

#endif
