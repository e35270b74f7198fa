/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* How much CPU time each thread of a process takes, and how long it waits for a CPU. */
#ifndef FBT_PROC_THREAD_USE_H
#define FBT_PROC_THREAD_USE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"
#include "proc/open.h"

struct thread_use {
	uint32_t tid;
	uint64_t cpu_ns;
	uint64_t wait_ns; /* ready to run, but not on a CPU */
};

typedef VEC(struct thread_use) thread_use_vec;

/*
 * Reads what one thread has used since it began; its tid is not set. 0; -ESRCH if the thread has
 * ended; -ENOENT on a kernel without schedstat, or if the thread has ended; or another -errno.
 */
int thread_use_read_one(struct thread_use *use, struct proc_ref ref);

/*
 * Reads what the threads of a process have used since they began. 0; -ESRCH if the process has
 * ended; -ENOENT on a kernel without schedstat; or another -errno. Without a message.
 */
int thread_use_read(thread_use_vec *threads, uint32_t tgid);

/*
 * Makes threads hold what was used since before was read: only the threads that used a CPU or
 * waited for one, the busiest first. A thread that is not in before is new.
 */
void thread_use_since(thread_use_vec *threads, const thread_use_vec *before);

/*
 * Whether the threads are short of CPUs: together they waited for one for more than a fifth of the
 * time that they were ready to run, and for more than a fifth of the period.
 */
bool thread_use_is_short(const thread_use_vec *threads, uint64_t period_ns);

#endif
