/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What took the extra time of a step, in terms of what a person would look at next. Pure.
 *
 * The time of a step falls into parts, and each part belongs to one cause. The time of a call,
 * without its wait for a CPU, belongs to one of the first parts, by the number of the call and the
 * file it worked on. The other parts are those waits for a CPU, time stopped, other sleep outside
 * of calls, page faults, and work: what is left. The cause of a step is the part that has grown
 * most against what is usual in its class; or, if the step took as long as is usual but must not,
 * the largest part.
 */
#ifndef FBT_JUDGE_CAUSE_H
#define FBT_JUDGE_CAUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "judge/calls.h"
#include "judge/split.h"
#include "model/step.h"
#include "model/window.h"

#define CAUSE_GROWN 3
/* The function, and those that called it. */
#define CAUSE_GROWN_CODES 3

/* The evidence. Counts are of the calls of that cause in this step. */
struct cause {
	enum cause_kind kind;
	bool estimated;	     /* time_ns is an estimate */
	bool usual_known;    /* else usual_ns is 0 and means nothing */
	bool calls_known;    /* else the counts of calls, and what they name, are 0 */
	bool calls_partial;  /* some of the step's calls were lost: counts are of the others */
	bool gpu_lost;	     /* GPU records are missing: it may have waited for a GPU that worked */
	uint64_t time_ns;    /* of this part of the step */
	uint64_t usual_ns;   /* the class's median of it */
	uint64_t between_ns; /* of time_ns, in leaving a call and entering the next one */
	/* Of time_ns, in the step's own code: it is taken to have spun for another thread. */
	uint64_t inferred_ns;
	/*
	 * The step took about as long as is usual, which is over the budget: this part is the
	 * largest one, not what has grown, and over_ns what the step took beyond the budget.
	 */
	bool is_usual;
	uint64_t over_ns;
	uint64_t calls;
	bool blocked_known; /* of each call it is known whether it blocked */
	uint64_t blocked;   /* of them */
	uint64_t bytes;	    /* read, written, mapped, unmapped, advised */
	uint32_t nr;	    /* the syscall that took most of the time, if nr_calls is not 0 */
	uint64_t nr_calls;
	uint64_t nr_ns;
	uint32_t file;	     /* window file id that took most of the time; 0: none or not known */
	uint64_t file_calls; /* that worked on it */
	uint64_t file_ns;
	uint64_t writes_ns; /* TINY_WRITES: that they took of time_ns; usual_ns is of all I/O */
	uint64_t command;   /* DRIVER_CALLS: fbt_call.args[1] of the ioctls that took most time */
	uint64_t command_calls; /* 0: not known; file is that of the command's calls */
	uint64_t command_ns;
	uint64_t lock; /* LOCK_CONTENTION: address of the futex that was waited for longest */
	uint32_t minor_faults; /* of the whole step, as the next four */
	uint32_t major_faults;
	uint32_t worker_faults; /* those that waited for a disk, of threads that it waited for, … */
	uint32_t worker_minor_faults; /* … and all others of these threads meanwhile */
	uint32_t signals;
	uint32_t threads_made;
	uint64_t covered_ns; /* COMPUTE: of time_ns, waiting for the GPU while that worked */
	/* COMPUTE: of time_ns, with covered_ns what all other threads computed; and usually. */
	uint64_t elsewhere_ns;
	uint64_t elsewhere_usual_ns;
	uint64_t fault_wait_ns; /* of the step, measured: waiting for a disk in page faults */
	/* Of the step's page faults, if they were timed: what took most of the time. */
	bool faults_timed;
	bool mapping_is_all; /* or nearly all of it */
	enum fbt_mapping mapping;
	uint32_t fault_file;  /* window file id; 0: not known, or no file */
	struct fbt_stop stop; /* who stopped it, or the thread that it waited for: cause_has_stop */
	struct fbt_stop_sender
		stop_sender;	       /* … and whose signal that was; header.type 0: not known */
	uint32_t step_tid;	       /* the step's own thread */
	struct fbt_step_limits limits; /* CPU_LIMIT, MEMORY_LIMIT: of the whole step */
	uint64_t steal_ns; /* STEAL, OFF_CPU: what the host took of the CPU of the step's thread, as
			    * far as that was off the CPU outside of calls */
	struct fbt_stalls stalls; /* GIL, GARBAGE_COLLECTION: of the whole step */
	/*
	 * LOCK_CONTENTION, LATE_THREAD, GIL, RUN_QUEUE, CPU_LIMIT, STOPPED, PAGE_FAULTS,
	 * MEMORY_LIMIT, OFF_CPU, COMPUTE: the thread that the step waited for longest, of the waits
	 * in that part of the step. tid 0: none is known.
	 */
	struct {
		uint32_t tid;
		uint32_t flags;	 /* FBT_WAKE_* of its longest wait */
		uint64_t ns;	 /* of time_ns */
		uint64_t cpu_ns; /* what the thread did meanwhile, as in fbt_wake */
		uint64_t delay_ns;
		uint64_t stopped_ns;
		uint64_t fault_ns;
		uint64_t off_ns;
		uint64_t futex_ns; /* in futex, of those waits in which that was longest */
		uint64_t call_ns;  /* in calls of the number nr, of those waits in which that was
				      longest */
		uint32_t nr;
		/* Of its longest wait: the step's call, and how long after the begin of the wait it
		 * was ended; 0: not known, as nothing says that this thread ended a wait. */
		uint64_t start_ns;
		uint64_t after_ns;
	} waker;
	/*
	 * SLEEP, LOCK_CONTENTION, PEER_PROCESS: waits of that part that spun (model/spins.h), wall
	 * time with the code between calls. calls 0: there are none.
	 */
	struct {
		uint64_t ns;
		uint64_t calls;
		uint32_t waits;
		uint32_t nr;  /* of the longest one */
		bool partial; /* some calls in them have no record */
	} spin;
	/*
	 * PEER_PROCESS: for which the step waited, and of time_ns the wait. With record.via, for
	 * which the thread waited that holds the lock.
	 */
	struct step_peer peer;
	uint64_t peer_ns;
	/* The stack of the longest call of that part of the step; count 0: not known. */
	struct fbt_stack stack;
	/* Of the thread that ended that call; count 0: not known. */
	struct fbt_stack waker_stack;
	/*
	 * While that call was open: the thread that held its lock, the one that held the lock for
	 * which that thread waited, …
	 */
	struct fbt_look_thread holders[FBT_LOOK_HOLDERS];
	uint32_t holder_count;
	/* What groups of the other threads were in, if nobody was seen to hold a lock. */
	struct fbt_look_thread others[FBT_LOOK_OTHERS];
	uint32_t other_count;
	/*
	 * COMPUTE: in which functions the step computed for longer than usual, most first; without
	 * grown_usual it is not known what is usual, and ns is all of the time in them.
	 */
	bool grown_usual;
	uint32_t grown_count;
	struct {
		/* Window code ids, the function first: of most of its samples; 0: no more known. */
		uint32_t codes[CAUSE_GROWN_CODES];
		uint64_t ns;
	} grown[CAUSE_GROWN];
	/*
	 * The longest call of that part has waited for somebody to wake it, whom no record of the
	 * system calls names; and who did; header.type 0: not known.
	 */
	bool wants_waker;
	struct fbt_woken woken;
	/* PAGE_FAULTS, MEMORY_LIMIT: where, of the whole step; header.type 0: not known. */
	struct fbt_fault_sites fault_sites;
	/*
	 * RUN_QUEUE: who had the CPU meanwhile, of the whole step; if cause_is_of_other, that of
	 * waker.tid. header.type 0: not known.
	 */
	struct fbt_taken taken;
	/* GPU_TRANSFER: time_ns of the step's total, and what the step had copied. */
	uint64_t total_ns;
	uint64_t h2d_bytes;
	uint64_t d2h_bytes;
	uint64_t p2p_bytes;
	uint32_t copies; /* from or to pageable memory: pageable of all copies */
	uint32_t pageable;
};

/*
 * Finds the cause of a step: times are its own, usual are the medians of its class, NULL if they
 * are not known. A caller excludes a part by setting its usual time to the time of the step: such a
 * part has not grown.
 *
 * Some causes replace the part that has grown most:
 * - THREAD_CHURN: in a step that made more threads than usual, each of them also claims the mapping
 *   and unmapping of its stack and one wait for its end, as far as those parts have grown.
 * - TINY_WRITES: 32 writes or more, of less than 512 bytes on average, took half of that part,
 *   without those that took more than 8 times as long as all do on average.
 * - SIGNAL_STORM: that part is COMPUTE, and there were more than 10 signals, and more than 4 times
 *   the usual.
 * - UNKNOWN: that part is COMPUTE, and calls were not traced.
 * - CPU_LIMIT: that part is RUN_QUEUE, and the cgroups of the step were throttled for at least half
 *   of its growth.
 * - MEMORY_LIMIT: that part is PAGE_FAULTS, OFF_CPU, or COMPUTE with faults that waited for a disk
 *   and may be half of its growth, and the cgroups reached their memory limit at least once per 128
 * page faults: of the step, and of threads for which it waited while they waited for a disk in some
 * of them.
 * - STEAL: that part is OFF_CPU, and the host took the CPU of the step's thread for at least half
 * of its growth.
 * - PEER_PROCESS: that part is SLEEP, SOCKET_IO or LOCK_CONTENTION, one wait is most of its growth,
 *   and what another process did (judge/peers.h) explains most of that wait.
 *
 * GIL: each wait counts, whatever the holder did meanwhile. Waiters ask for the GIL in turns, so
 * all waits of a row but the last one time out: only the last one names a thread that held the GIL
 * long.
 */
void cause_find(const struct window *window, const struct step *step,
		const struct cause_times *times, const struct cause_times *usual,
		struct cause *cause);

/* The same of a step that is over a budget by over_ns, but takes about as long as is usual. */
void cause_find_largest(const struct window *window, const struct step *step,
			const struct cause_times *times, const struct cause_times *usual,
			uint64_t over_ns, struct cause *cause);

/*
 * Its time above the usual, or of a step that is as long as usual, above the budget; 0 if it is not
 * known what is usual.
 */
uint64_t cause_extra_ns(const struct cause *cause);

/* The same, but of copies all their time: they are found by their share, however usual that is. */
static inline uint64_t cause_cost_ns(const struct cause *cause)
{
	return cause->kind == CAUSE_GPU_TRANSFER ? cause->time_ns : cause_extra_ns(cause);
}

/*
 * How long after the begin of the wait that was done in which waker_stack was copied; 0: not known.
 */
uint64_t cause_ended_after_ns(const struct cause *cause);

/*
 * Whether the cgroups reached their memory limit so often that this explains as many page faults.
 */
bool cause_is_memory_limit(const struct fbt_step_limits *limits, uint64_t faults);

/* Whether somebody stopped a thread, and that is part of the cause. */
bool cause_has_stop(const struct cause *cause);

/*
 * Whether at least half of the time was that of another thread, for which the step waited, or of
 * the GPU: then what the step's own thread did, or who took its CPU, explains little.
 */
bool cause_is_of_other(const struct cause *cause);

/* Makes the GPU copies the cause of a step that was escalated for them; it has GPU figures. */
void cause_set_transfer(const struct step *step, struct cause *cause);

#endif
