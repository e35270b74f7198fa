/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The processes there are, from /proc. */
#ifndef FBT_PROCESSES_H
#define FBT_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include "vec.h"

struct process_entry {
	uint32_t tgid;
	uint32_t parent_tgid;
};

typedef VEC(struct process_entry) process_vec;

/* From /proc/TGID/task/TID/stat (proc(5)). */
struct thread_stat {
	char state; /* R, S, D, T, Z, … */
	uint32_t parent_tgid;
	uint32_t flags;	      /* PF_* of the kernel */
	uint64_t start_ticks; /* since boot, sysconf(_SC_CLK_TCK) a second */
};

/* 0, or -ESRCH if the thread is gone, -errno of the open; without a message. */
int thread_stat_read(struct thread_stat *stat, uint32_t tgid, uint32_t tid);

/* All processes but kernel threads and ourselves. 0 or -errno, logged. */
int processes_list(process_vec *processes);

/* Whether tgid is one of roots, or descends from one of them, by the parents in processes. */
bool processes_descends(const process_vec *processes, uint32_t tgid, const uint32_t *roots,
			size_t root_count);

/*
 * A thread of the process by which /proc knows its files: tgid, or another one where the first
 * thread has ended before the others. tgid if there is none.
 */
uint32_t processes_living_thread(uint32_t tgid);

/* Threads of a process, or of the whole machine for tgid 0; 0 if that cannot be read. */
uint32_t processes_count_threads(uint32_t tgid);

#endif
