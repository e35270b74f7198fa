/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Thread numbers of a process in its own PID namespace to those of the initial one. */
#ifndef FBT_GPU_TIDS_H
#define FBT_GPU_TIDS_H

#include <stdbool.h>
#include <stdint.h>

struct gpu_tids;

/* Reads nothing yet. NULL: -ENOMEM. */
struct gpu_tids *gpu_tids__new(uint32_t tgid);
void gpu_tids__free(struct gpu_tids *tids);

/*
 * The thread's number here: from NSpid of /proc/TGID/task/TID/status, looked up again when an
 * unknown number comes, at most once per 100 ms of now_ns, more seldom where nothing is found. 0:
 * not known. A thread that ended before it was ever looked up keeps its number where both
 * namespaces are the same, and is 0 where not.
 */
uint32_t gpu_tids__find(struct gpu_tids *tids, uint32_t inner_tid, uint64_t now_ns);

/*
 * A line of that file: whether it is NSpid, and then the thread's number in the namespace of /proc,
 * in its own one, and in how many it has one.
 */
bool gpu_tids_parse(const char *line, uint32_t *outer, uint32_t *inner, uint32_t *depth);

#endif
