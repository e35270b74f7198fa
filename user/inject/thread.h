/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which thread to send through the stub: one that waits in a system call in which it can hold no
 * lock of the allocator or the loader, and which the kernel restarts. Calls are ranked by what an
 * interrupted call returns to the kernel's restart logic; tests/unit/inject/thread_rank_test.c
 * checks the ranks against the running kernel. x86-64 only; elsewhere no thread is taken.
 */
#ifndef FBT_INJECT_THREAD_H
#define FBT_INJECT_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"

/* Lower is better. */
enum inject_rank {
	INJECT_RANK_BLOCK,   /* poll, nanosleep, futex with a time-out: they keep their deadline */
	INJECT_RANK_RESTART, /* restarted by the kernel; no time-out to distort */
	/*
	 * Restarted with the time left, or with an absolute time: select, ppoll, clock_nanosleep.
	 */
	INJECT_RANK_WRITTEN,
	/*
	 * Returns EINTR if the tool dies while the thread is stopped: epoll_wait without a
	 * time-out.
	 */
	INJECT_RANK_EINTR,
	INJECT_RANK_EINTR_TIMED, /* the same with a time-out, and may wait up to that much longer */
	INJECT_RANK_NONE,	 /* must not be stopped */
};

/* The rank by call and arguments alone, as /proc/TGID/task/TID/syscall shows them. */
enum inject_rank inject_rank_of(uint64_t nr, const uint64_t args[6]);

/*
 * inject_rank_of, but INJECT_RANK_NONE if the rank does not hold for the descriptor in the first
 * argument: regular files, terminals, devices, named FIFOs; sockets with SO_RCVTIMEO or
 * SO_RCVLOWAT. A socket that may not be queried gets INJECT_RANK_EINTR_TIMED. The descriptor is
 * judged by its name; a socket is queried through a duplicate that we hold for some microseconds.
 * Nothing is opened.
 */
enum inject_rank inject_file_rank(uint32_t tgid, uint32_t tid, uint64_t nr, const uint64_t args[6]);

struct inject_thread {
	uint32_t tid;
	enum inject_rank rank;
	/* As /proc/TGID/task/TID/syscall shows them. */
	uint64_t nr;
	uint64_t args[6];
	uint64_t sp;
	uint64_t pc;
	bool filtered; /* has a seccomp filter, which is read while it is stopped */
};

typedef VEC(struct inject_thread) inject_thread_vec;

/*
 * Parses a line of /proc/TGID/task/TID/syscall. 0; -EAGAIN the thread runs or is not in a call;
 * -EBADMSG.
 */
int inject_thread_parse(struct inject_thread *thread, const char *line);

/* inject_rank_of for the thread's call and arguments. */
enum inject_rank inject_thread_rank(const struct inject_thread *thread);

/*
 * Lists the threads of a process that may be taken, best first: by rank (but filtered threads of
 * INJECT_RANK_BLOCK last, since a stop makes the kernel use restart_syscall there), then those with
 * fewer seccomp filters, then other threads before the first one, then those that have slept less
 * often.
 *
 * Left out are threads in the code of ld.so or of the stub (at stub, stub_size), with a real-time
 * policy, under strict seccomp, or not in interruptible sleep; reads of files other than pipes,
 * sockets and the kernel's own queues; and sockets with a receive time-out or a least count.
 *
 * At most INJECT_THREADS_LOOKED threads are examined, at some 40 us each. In a process with more,
 * each call starts at another one. 0 or -errno, without a message: -ESRCH the process is gone,
 * -EPERM it may not be examined, -ENOMEM. The caller frees threads in any case.
 */
#define INJECT_THREADS_LOOKED 256
int inject_threads_list(inject_thread_vec *threads, uint32_t tgid, uint64_t stub,
			uint32_t stub_size);

/* Whether the thread still waits in the same call, at the same place. */
bool inject_thread_is_same(const struct inject_thread *thread, uint32_t tgid);

#endif
