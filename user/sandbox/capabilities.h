/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which capabilities are kept once a window is open, and as which user files are written. */
#ifndef FBT_SANDBOX_CAPABILITIES_H
#define FBT_SANDBOX_CAPABILITIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sandbox_rights {
	const char *const *folders; /* where outputs are created or renamed; borrowed */
	size_t folder_count;
	bool has_user; /* the tool runs under sudo: outputs belong to the user who called it */
	unsigned int uid, gid;
	bool makes_files; /* files are created later, for a window by flag */
	bool command;	  /* COMMAND may change its user */
	/*
	 * perf_event_open(2) needs CAP_SYS_ADMIN: sandbox_events_need_admin, or step probes are
	 * perf uprobes, which need it since 2025.
	 */
	bool admin_events;
};

struct sandboxed_rights {
	uint64_t kept; /* bit n: capability n */
	bool as_user;  /* files are opened as the user who called sudo */
};

/*
 * Drops all capabilities of this thread that the rights do not need: permitted, effective,
 * inheritable, ambient and, where that is allowed, from the bounding set. Adds none. 0 or -errno;
 * on failure some of them may already be dropped.
 */
int sandbox_capabilities(const struct sandbox_rights *rights, struct sandboxed_rights *confined);

/* The work of a broker (broker.h). */
struct sandbox_works {
	bool injects;	   /* puts the shim into a process */
	bool appends;	   /* opens files that may be another user's, and creates missing folders */
	bool admin_events; /* as above, for the processes that search for candidates */
};

/*
 * Which of the permitted capabilities such a broker keeps. All, if CAP_SYS_PTRACE is not among
 * them: ptrace then demands every capability of the target.
 */
uint64_t sandbox_wanted_by_broker(const struct sandbox_works *works, uint64_t permitted);

/*
 * The same for the process that the broker starts to search for candidates, which reads the
 * target's files.
 */
uint64_t sandbox_wanted_to_look(const struct sandbox_works *works, uint64_t permitted);

/*
 * Drops all other capabilities of this process, which has one thread, from every set. The bounding
 * set is left as it is where changing it is not allowed, and if this program's file has
 * capabilities, since the kernel would then refuse to run it again. Capabilities that are kept stay
 * inheritable and ambient if they were. 0 or -errno.
 */
int sandbox_keep(uint64_t (*wanted)(const struct sandbox_works *works, uint64_t permitted),
		 const struct sandbox_works *works);

/*
 * Whether the kernel refuses perf_event_open(2) to a thread that has CAP_PERFMON but not
 * CAP_SYS_ADMIN. Those of Debian do, by a change of their own (kernel.perf_event_paranoid is 3).
 * False also if this thread lacks one of the two. Its capabilities are the same afterwards.
 */
bool sandbox_events_need_admin(void);

/* Which of the permitted capabilities tracing needs, without those for writing to folders. */
uint64_t sandbox_wanted(const struct sandbox_rights *rights, uint64_t permitted);

#endif
