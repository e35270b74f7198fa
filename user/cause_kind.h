/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The parts a step's time falls into, by what a person would do next about each. Pure. */
#ifndef FBT_CAUSE_KIND_H
#define FBT_CAUSE_KIND_H

enum cause_kind {
	CAUSE_LOCK_CONTENTION = 0, /* futex */
	CAUSE_ALLOCATION_CHURN,	   /* mmap, munmap, mprotect, mremap, brk, madvise, mlock … */
	CAUSE_DRIVER_CALLS,	   /* ioctl */
	CAUSE_FILE_IO,		   /* read, write, open, stat, fsync … of files */
	CAUSE_TINY_WRITES,	   /* many writes of few bytes: instead of FILE_IO or SOCKET_IO */
	CAUSE_SOCKET_IO,	   /* reads, writes … of sockets, pipes, eventfds */
	CAUSE_THREAD_CHURN,	   /* clone, fork, exit, wait */
	CAUSE_SIGNAL_STORM,	   /* signal handlers, sigreturn */
	CAUSE_SLEEP,		   /* poll, epoll_wait, select, nanosleep, sched_yield */
	CAUSE_OTHER_CALLS,	   /* any other syscall: named in the evidence */
	CAUSE_RUN_QUEUE,	   /* ready to run, no CPU free */
	CAUSE_PAGE_FAULTS,	   /* estimated: their number is exact, their time is not */
	CAUSE_GPU_TRANSFER,	   /* GPU copies: found by their share, a part of no step */
	CAUSE_COMPUTE,		   /* none of the above: the step itself had more to do */
	CAUSE_COUNT,
};

/* "lock_contention", "allocation_churn", … in the order above; "unknown" of any other number. */
const char *cause_name(enum cause_kind kind);

/* One sentence, without a full stop: what to do about it. "" of any other number. */
const char *cause_advice(enum cause_kind kind);

#endif
