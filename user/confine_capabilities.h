/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which capabilities stay once a window is open, and as whom files are written then. */
#ifndef FBT_CONFINE_CAPABILITIES_H
#define FBT_CONFINE_CAPABILITIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct confine_rights {
	const char *const *folders; /* where outputs are made or renamed; borrowed */
	size_t folder_count;
	bool has_user; /* there is a user behind sudo, to whom the outputs belong */
	unsigned int uid, gid;
	bool makes_files; /* later, for a window by flag */
	bool command;	  /* what was started may become another user's */
	bool statistics;  /* the kernel's run time statistics are switched on anew */
	bool perf_probes; /* step probes are perf uprobes: since 2025 those take CAP_SYS_ADMIN */
};

struct confined_rights {
	uint64_t kept; /* bit n: capability n */
	bool as_user;  /* the file system takes us for the user behind sudo */
};

/*
 * Gives up all others of this thread: permitted, effective, inheritable, ambient, and the bounding
 * set where that is allowed. Never asks for one that was not there. 0 or -errno; on failure some
 * may be gone that were not needed.
 */
int confine_capabilities(const struct confine_rights *rights, struct confined_rights *confined);

/* What a broker (broker.h) is to do. */
struct confine_works {
	bool injects; /* puts the shim into a process */
	bool appends; /* opens what may be another user's, and makes the folder if that is gone */
	bool perf_probes; /* as above, of those who look for candidates */
};

/*
 * What such a broker keeps of those that are permitted. All, where CAP_SYS_PTRACE is not among
 * them: a process may be looked into then that has none that we have not.
 */
uint64_t confine_wanted_by_broker(const struct confine_works *works, uint64_t permitted);

/* The same of what it starts to look for candidates, which reads the target's files. */
uint64_t confine_wanted_to_look(const struct confine_works *works, uint64_t permitted);

/*
 * Gives up all others of this process, which has one thread, in every set; the bounding set where
 * that is allowed, and not if this program's file has capabilities: one that may not be had keeps
 * it from being run again. Those that are kept stay inheritable and ambient if they were. 0 or
 * -errno.
 */
int confine_keep(uint64_t (*wanted)(const struct confine_works *works, uint64_t permitted),
		 const struct confine_works *works);

/* The set that is wanted of those that are permitted; for folders' sake nothing is added. */
uint64_t confine_wanted(const struct confine_rights *rights, uint64_t permitted);

#endif
