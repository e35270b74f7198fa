/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What is never done by the broker (broker.h) and by what it starts to look for candidates, which
 * runs a whole program: there the calls are named that are refused, not those that are allowed. A
 * refused call fails with EPERM.
 */
#ifndef FBT_CONFINE_BROKER_FILTER_H
#define FBT_CONFINE_BROKER_FILTER_H

#include <stdbool.h>

/*
 * For this process, which has one thread, for good, and for all that it forks or runs; those may
 * add another one. no_new_privs has to be set. reads: nothing is opened for writing, and no folder
 * made. 0; -ENOSYS: this build (sanitizers) or kernel has no such filters; -ENOMEM; -errno.
 *
 * Not for what puts the shim into a process: the kernel shows the filters of another to whom has
 * none alone (PTRACE_SECCOMP_GET_FILTER).
 */
int confine_broker_filter_apply(bool reads);

#endif
