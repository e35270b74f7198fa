/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The parts that a step's time falls into, by what a person would do next about each, and which
 * part each of its calls belongs to. Pure.
 */
#ifndef FBT_JUDGE_CALLS_H
#define FBT_JUDGE_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_event.h"
#include "model/step.h"
#include "model/window.h"

/*
 * Causes that are a set of system calls stand before CAUSE_RUN_QUEUE, the others after it. A new
 * cause needs its name and advice (calls.c), and in text.c the words of its evidence, where the
 * compiler names the switch; besides:
 *
 * - A set of system calls: its rows of groups in calls.c, and a line of group_words in add_head.
 * - Another part of a step: its time, in cause_split (split.c), and a case of add_hidden, whose
 *   default says "work". If it is about memory, also memory_ns in classify.c.
 * - Instead of another cause that has won, as CAUSE_CPU_LIMIT: cause_find (cause.c) decides, and it
 *   gets no time in cause_split.
 */
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
	CAUSE_LATE_THREAD,	   /* futex at a barrier, or a read: another thread came late */
	CAUSE_GIL,		   /* futex: the lock of a CPython interpreter */
	CAUSE_RUN_QUEUE,	   /* ready to run, no CPU free */
	CAUSE_CPU_LIMIT,    /* … because its cgroup was at its limit: instead of RUN_QUEUE */
	CAUSE_PAGE_FAULTS,  /* time of those without a disk is estimated by their number */
	CAUSE_MEMORY_LIMIT, /* … at the limit of its cgroup: instead of PAGE_FAULTS, OFF_CPU */
	CAUSE_STOPPED,	    /* by a signal, a tracer or a freezer */
	CAUSE_GARBAGE_COLLECTION, /* by a CPython interpreter, on this thread */
	CAUSE_OFF_CPU,		  /* asleep outside of calls, for none of these */
	CAUSE_STEAL,		  /* … because the host took its CPU: instead of OFF_CPU */
	CAUSE_AWAIT,		  /* of a future: between its polls */
	CAUSE_PEER_PROCESS,	  /* waits for another process: instead of a set of calls */
	CAUSE_GPU_TRANSFER,	  /* GPU copies: found by their share, a part of no step */
	CAUSE_UNKNOWN,		  /* instead of COMPUTE where calls were not traced */
	CAUSE_COMPUTE,		  /* none of the above: the step itself had more to do */
	CAUSE_COUNT,
};

/* "lock_contention", "allocation_churn", … in the order above; "unknown" of any other number. */
const char *cause_name(enum cause_kind kind);

#define CAUSE_WORDS_SIZE 40

/* "lock contention". Writes to text and returns it. */
const char *cause_words(enum cause_kind kind, char text[CAUSE_WORDS_SIZE]);

/* One sentence, without a full stop: what to do about it. "" of any other number. */
const char *cause_advice(enum cause_kind kind);

/*
 * The same beside the evidence: what that has is not asked for. names_culprit: see
 * cause_names_culprit(). calls_known: it can name the call. detail: that of the window.
 */
const char *cause_advice_beside(enum cause_kind kind, bool names_culprit, bool calls_known,
				uint32_t detail);

/* Traits of a syscall: what its arguments and its result mean. */
#define CALL_BY_FILE	  1    /* file I/O or socket I/O: its file says which */
#define CALL_MOVES	  2    /* a positive result is a number of bytes */
#define CALL_WRITES	  4    /* … that were written or sent */
#define CALL_SPANS	  8    /* its second argument is a length of memory */
#define CALL_BREAK	  16   /* brk: what it returns is the end of the heap */
#define CALL_FUTEX	  32   /* its first argument is the address of the lock */
#define CALL_COMMAND	  64   /* ioctl: its second argument is the command */
#define CALL_MAKES_THREAD 128  /* a positive result is a new thread or process */
#define CALL_SIGNAL	  256  /* it returns from a signal handler */
#define CALL_STACK_NEW	  512  /* pthread_create does it before it makes a thread */
#define CALL_STACK_GONE	  1024 /* pthread_join may do it after the end of a thread */
#define CALL_ANSWERED	  2048 /* a positive result says that there was something to read */

struct call_rule {
	uint8_t cause;	  /* enum cause_kind */
	uint8_t category; /* enum fbt_category */
	uint16_t traits;  /* CALL_* */
};

/* Walks the calls of a step and finds the part that each belongs to. */
struct call_walk {
	/* Of the current call. */
	const struct fbt_call *call;
	const struct call_rule *rule;
	uint64_t ns;		     /* that it took in the step (call_walk_ns), without … */
	uint64_t covered_ns;	     /* … waiting for the GPU while it worked: that is work */
	uint64_t worker_ns;	     /* … the same for a thread of the process that computed */
	uint64_t delay_ns;	     /* … waiting for a thread that waited for a CPU */
	uint64_t stopped_ns;	     /* … that was stopped */
	uint64_t fault_ns;	     /* … that waited for a disk in a page fault */
	uint64_t off_ns;	     /* … that was off the CPU for another reason */
	const struct fbt_wake *wake; /* who ended the call, a wait; NULL: not known */
	uint64_t cpu_wait_ns;	     /* … waiting for a CPU itself */
	bool is_gil;		     /* it waited for the GIL, whatever the waker did */
	enum cause_kind part;	     /* of the call by itself */
	enum cause_kind cause;	     /* the same, or CAUSE_THREAD_CHURN if a new thread claims it */

	/* The walk's own. */
	const struct window *window;
	const struct step *step;
	const struct call_rule *rules;
	uint64_t gil_start; /* see fbt_python */
	uint64_t gil_end;
	size_t next;
	size_t busy; /* where to look in step->gpu */
	size_t sync_busy;
	size_t wakes;  /* where to look in step->wakes */
	uint32_t file; /* the latest one that was looked up */
	bool file_is_socket;
	bool claims;
	uint32_t joins;	 /* of made threads that no wait is charged to yet */
	uint32_t stacks; /* … and no unmapping */
};

/*
 * window and step are borrowed. claims: charges to CAUSE_THREAD_CHURN what a thread that the step
 * makes costs besides its clone, at most one call of each kind per thread: mapping and protecting
 * its stack before the clone, unmapping it and one blocked futex wait (the join) after. A wait that
 * another thread ended is no join, nor is one with FUTEX_PRIVATE_FLAG.
 */
void call_walk_begin(struct call_walk *walk, const struct window *window, const struct step *step,
		     bool claims);

/*
 * Moves to the next call; false after the last. A call waits for the GPU if it blocked, or lies
 * inside a CUDA call that waits; without GPU records, and in an interval, nothing is covered. A
 * wait for a thread of the process is covered as far as that computed, unless it gave back a lock.
 */
bool call_walk_next(struct call_walk *walk);

/*
 * The time that a call took in the step: all of it. Of an interval's calls, which are those that
 * returned in it, only what lies inside the interval.
 */
uint64_t call_walk_ns(const struct step *step, const struct fbt_call *call);

/* Whether some of the current call is work, or is a wait of another thread outside of calls. */
bool call_walk_is_covered(const struct call_walk *walk);

/* The current call made a thread or process. */
bool call_walk_made_thread(const struct call_walk *walk);

/* Of a call of futex: it is known that other processes may be meant too. */
bool call_is_shared_futex(const struct fbt_call *call);

/* Calls of that number wait for a lock. */
bool call_walk_is_futex(const struct call_walk *walk, uint32_t nr);

#endif
