/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which thread to send through the stub: one that waits in a system call in which it can hold no
 * lock of the allocator or the loader, and which the kernel restarts.
 */
#ifndef FBT_INJECT_THREAD_H
#define FBT_INJECT_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include "inject_rank.h"
#include "vec.h"

struct inject_thread {
	uint32_t tid;
	enum inject_rank rank;
	/* From /proc/TGID/task/TID/syscall. */
	uint64_t nr;
	uint64_t args[6];
	uint64_t sp;
	uint64_t pc;
	bool filtered; /* has a seccomp filter: to be asked while it is stopped */
};

typedef VEC(struct inject_thread) inject_thread_vec;

/* One line of that file: 0, -EAGAIN if the thread runs or is not in a call, -EBADMSG. */
int inject_thread_parse(struct inject_thread *thread, const char *line);

/* inject_rank_of its call and arguments. */
enum inject_rank inject_thread_rank(const struct inject_thread *thread);

/*
 * The threads of a process that may be taken, best first: by rank (but filtered ones of
 * INJECT_RANK_BLOCK last: a stop makes the kernel do restart_syscall there); of equal ones those
 * with fewer seccomp filters, then others than the first thread, then those that have slept less
 * often. Not taken are: those in the code of ld.so or of the stub (at stub, stub_size), ones of a
 * real-time policy or under strict seccomp, whatever does not sleep interruptibly, reads of other
 * files than pipes, sockets and the kernel's own queues, and sockets with a time-out or a least
 * count.
 *
 * Of a process with more than INJECT_THREADS_LOOKED threads only that many are looked at, some
 * 40 us each, from another one on each time. 0 or -errno: -ESRCH it is gone, -EPERM may not be
 * looked at, -ENOMEM. Without a message; the caller frees threads also then.
 */
#define INJECT_THREADS_LOOKED 256
int inject_threads_list(inject_thread_vec *threads, uint32_t tgid, uint64_t stub,
			uint32_t stub_size);

/* Looks at the thread again: whether it still waits in the same call, at the same place. */
bool inject_thread_is_same(const struct inject_thread *thread, uint32_t tgid);

#endif
