/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Seccomp filters. The tool's filter allows only what an open window does. The broker's filter is
 * also that of the process that searches for candidates, which needs a whole program's calls, so it
 * refuses only what these two never do. A refused call fails with EPERM: killing the tool would
 * lose what was captured, and an attacker gains nothing from EPERM.
 */
#ifndef FBT_SANDBOX_FILTER_H
#define FBT_SANDBOX_FILTER_H

#include <stdbool.h>
#include <stdint.h>

struct sandbox_calls {
	bool windows; /* --flag: load and attach programs again, create files */
	bool creates; /* --metrics, top: create files */
	/* Load programs: libbpf probes the kernel's features before it attaches a perf uprobe. */
	bool loads;
	bool explains; /* --explain: attach programs that are loaded already */
	bool network;  /* --otlp: sockets */
	bool command;  /* SIGCONT to COMMAND */
	bool terminal; /* change the modes of a terminal */
};

/*
 * Applies the tool's filter to all threads of this process and what it forks, for good. Refused
 * calls are counted. no_new_privs must be set. 0; -ENOSYS: this build (sanitizers) or kernel has no
 * such filters; -ENOMEM; -errno.
 */
int sandbox_filter_apply(const struct sandbox_calls *calls);

/* Warns of refused calls, once for each system call. */
void sandbox_filter_report(void);

/*
 * Applies the broker's filter to this process, which has one thread, and all that it forks or runs,
 * for good; they may add another one. no_new_privs must be set. reads: nothing may be opened for
 * writing, and no folder created. Results as above.
 *
 * Not for the process that injects the shim: the kernel shows another process's filters only to a
 * process without filters (PTRACE_SECCOMP_GET_FILTER).
 */
int sandbox_broker_filter_apply(bool reads);

#endif
