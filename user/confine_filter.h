/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The seccomp filter of the steady state: what a window does from when it is open, and nothing
 * else. A call that is not among these fails with EPERM, is counted, and the tool goes on: to be
 * killed would lose what was captured, and whoever has taken the tool over gains nothing from
 * EPERM.
 */
#ifndef FBT_CONFINE_FILTER_H
#define FBT_CONFINE_FILTER_H

#include <stdbool.h>

struct confine_calls {
	bool windows; /* --flag: load and attach programs anew, make files */
	bool loads;   /* load programs: libbpf tries what the kernel has before a perf uprobe */
	bool network; /* --otlp: sockets, threads, and libraries that are loaded then */
	bool command; /* SIGCONT to what was started */
};

/*
 * For all threads of this process, for good, and for what it forks. no_new_privs has to be set.
 * 0; -ENOSYS: this build (sanitizers) or kernel has no such filters; -ENOMEM; -errno.
 */
int confine_filter_apply(const struct confine_calls *calls);

/* Warns, once a call, of those that were refused since the last time. */
void confine_filter_report(void);

#endif
