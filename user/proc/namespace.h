/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Time and PID namespaces of other processes (time_namespaces(7), pid_namespaces(7)). */
#ifndef FBT_PROC_NAMESPACE_H
#define FBT_PROC_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>
#include "proc/open.h"

/*
 * Whether a process is in the same namespace of that kind ("pid", "time") as the tool: 1, 0, or
 * -errno if not known.
 */
int namespace_is_ours(struct proc_ref ref, const char *kind);

/*
 * By how much the process's CLOCK_MONOTONIC is ahead of the tool's, in nanoseconds; 0 also if this
 * cannot be read.
 */
int64_t time_namespace_offset(uint32_t tgid);

/* Parses a line of /proc/PID/timens_offsets. False if it is not that of CLOCK_MONOTONIC. */
bool time_namespace_parse(const char *line, int64_t *offset_ns);

/* Translates thread IDs from the PID namespace of a process to that of the tool. */
struct ns_tids;

/* Does not read /proc yet. NULL: -ENOMEM. */
struct ns_tids *ns_tids__new(uint32_t tgid);
void ns_tids__free(struct ns_tids *tids);

/*
 * The thread ID in the tool's namespace; 0 if not known. For an unknown ID all threads of the
 * process are read, at most once per 100 ms of now_ns, and less often after a search that found
 * nothing; for a known one every 10 s, as a new thread may have the number of one that has ended.
 * If both namespaces are the same, the ID is returned unchanged, also for a thread that
 * has ended.
 */
uint32_t ns_tids__find(struct ns_tids *tids, uint32_t inner_tid, uint64_t now_ns);

#endif
