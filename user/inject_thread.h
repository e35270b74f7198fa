/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which thread to send through the stub: one that waits in a system call in which it can hold no
 * lock of the allocator or the loader, and which the kernel restarts.
 */
#ifndef FBT_INJECT_THREAD_H
#define FBT_INJECT_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include "vec.h"

/* Lower is better. */
enum inject_rank {
	INJECT_RANK_BLOCK,   /* poll, nanosleep, futex with a time-out: keep their deadline */
	INJECT_RANK_RESTART, /* restarted by the kernel, and no time-out to distort */
	INJECT_RANK_WRITTEN, /* select, ppoll, clock_nanosleep(ABSTIME): what is left, or absolute
			      */
	INJECT_RANK_EINTR,   /* epoll_wait without time-out: EINTR if the tool dies while it is
				stopped */
	INJECT_RANK_EINTR_TIMED, /* … with one: it waits up to that much longer */
	INJECT_RANK_NONE,	 /* not to be touched */
};

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

/* By call and arguments alone (a socket's SO_RCVTIMEO is asked for elsewhere). */
enum inject_rank inject_thread_rank(const struct inject_thread *thread);

/*
 * The threads of a process that may be taken, best first; those in the code of ld.so or of the stub
 * (at stub, stub_size) are not, nor ones of a real-time policy, stopped or in state D. 0 or -errno:
 * -ESRCH it is gone, -EPERM may not be looked at, -ENOMEM. Without a message.
 */
int inject_threads_list(inject_thread_vec *threads, uint32_t tgid, uint64_t stub,
			uint32_t stub_size);

/* Looks at the thread again: whether it still waits in the same call, at the same place. */
bool inject_thread_is_same(const struct inject_thread *thread, uint32_t tgid);

#endif
