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

/* The set that is wanted of those that are permitted; for folders' sake nothing is added. */
uint64_t confine_wanted(const struct confine_rights *rights, uint64_t permitted);

#endif
