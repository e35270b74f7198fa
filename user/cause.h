/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What took the extra time of a step, in terms of what a person would look at next. Pure.
 *
 * The time of a step falls into parts, each part belongs to one cause: every call by its number
 * (and the file it worked on) to one of the first parts, then the time without a CPU, page faults
 * (estimated), and work: what is left. The cause of a step is the part that has grown most against
 * what is usual in its class.
 */
#ifndef FBT_CAUSE_H
#define FBT_CAUSE_H

#include <stdbool.h>
#include <stdint.h>
#include "step.h"
#include "window.h"

enum cause_kind {
	CAUSE_LOCK_CONTENTION = 0, /* futex */
	CAUSE_ALLOCATION_CHURN,	   /* mmap, munmap, mprotect, mremap, brk, madvise */
	CAUSE_DRIVER_CALLS,	   /* ioctl */
	CAUSE_FILE_IO,		   /* read, write, open, stat, fsync … of files */
	CAUSE_TINY_WRITES,	   /* many writes of few bytes: instead of FILE_IO or SOCKET_IO */
	CAUSE_SOCKET_IO,	   /* reads, writes … of sockets and pipes */
	CAUSE_THREAD_CHURN,	   /* clone, fork, exit, wait */
	CAUSE_SIGNAL_STORM,	   /* signal handlers, sigreturn */
	CAUSE_SLEEP,		   /* poll, epoll_wait, select, nanosleep */
	CAUSE_OTHER_CALLS,	   /* any other syscall: named in the evidence */
	CAUSE_RUN_QUEUE,	   /* ready to run, no CPU free */
	CAUSE_PAGE_FAULTS,	   /* estimated: their number is exact, their time is not */
	CAUSE_COMPUTE,		   /* none of the above: the step itself had more to do */
	CAUSE_COUNT,
};

/* "lock_contention", … */
const char *cause_name(enum cause_kind kind);

/* One sentence: what to do about it. */
const char *cause_advice(enum cause_kind kind);

/* Time of a step by part. Their sum is its total, but for CAUSE_TINY_WRITES and SIGNAL_STORM, which
 * have no time of their own here unless calls say so. */
struct cause_times {
	uint64_t ns[CAUSE_COUNT];
	uint32_t threads_made; /* clone, fork … that succeeded */
	uint32_t signals;      /* handlers that returned */
};

/*
 * Splits a step. fault_ps: fbt_window.fault_ps. Where its calls are not known (--detail steps,
 * calls_truncated) the categories stand for them: other is CAUSE_OTHER_CALLS then.
 */
void cause_split(const struct window *window, const struct step *step, struct cause_times *times);

/* What remains of a step without syscalls, run queue and page faults. */
uint64_t cause_work_ns(const struct cause_times *times);

/* The evidence. Counts are of the calls of that cause in this step. */
struct cause {
	enum cause_kind kind;
	bool estimated;	   /* time_ns is an estimate */
	bool calls_known;  /* else the counts below mean nothing */
	uint64_t time_ns;  /* of this part of the step */
	uint64_t usual_ns; /* the class's median of it; 0 if the class is not known yet */
	uint64_t calls;
	uint64_t blocked; /* of them */
	uint64_t bytes;	  /* read, written, mapped, unmapped, advised */
	uint32_t nr;	  /* the syscall that took most of the time */
	uint64_t nr_calls;
	uint64_t nr_ns;
	uint32_t file;	  /* window file id that took most of the time; 0: none or not known */
	uint32_t command; /* DRIVER_CALLS: the ioctl command that took most of the time */
	uint64_t command_calls;
	uint64_t command_ns;
	uint64_t lock; /* LOCK_CONTENTION: address of the futex that was waited for longest */
	uint32_t minor_faults;
	uint32_t major_faults;
	uint32_t signals;
	uint32_t threads_made;
};

/*
 * Finds the cause of a step: times are its own, usual are the medians of its class (all 0 if there
 * are none yet), usual_signals and usual_threads those of the counts.
 */
void cause_find(const struct window *window, const struct step *step,
		const struct cause_times *times, const struct cause_times *usual,
		struct cause *cause);

/*
 * One line of evidence: "futex 291.0 ms (usually 0.1 ms), 3 of 12 calls blocked, lock 0x7f…". Cut
 * at size; control characters of paths are escaped.
 */
void cause_describe(const struct cause *cause, const struct window *window, char *text,
		    size_t size);

#endif
