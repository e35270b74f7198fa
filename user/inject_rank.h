/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * How well a system call that a thread waits in bears that the thread is stopped and sent through
 * the stub. The rule is what each call was seen to return to the kernel's restart logic when it is
 * interrupted; tests/unit/inject_thread_test.c holds that against the kernel it runs on. x86-64
 * only: elsewhere no call is taken.
 */
#ifndef FBT_INJECT_RANK_H
#define FBT_INJECT_RANK_H

#include <stdint.h>

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

/* What the descriptor in the first argument has to be, for the rank to hold. */
enum inject_file {
	INJECT_FILE_ANY,    /* there is none, or it does not matter */
	INJECT_FILE_SOCKET, /* it is a socket; SO_RCVTIMEO and SO_RCVLOWAT matter */
	INJECT_FILE_QUEUE,  /* has to be a pipe, a socket, an eventfd or the like */
};

/* By call and arguments alone, as /proc/TGID/task/TID/syscall shows them. */
enum inject_rank inject_rank_of(uint64_t nr, const uint64_t args[6]);
enum inject_file inject_rank_file(uint64_t nr);

#endif
