/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Events of what was seen from outside while a step waited: threads, stops, other processes. */
#ifndef FBT_LOOK_H
#define FBT_LOOK_H

#include "fbt_event.h"

/* What a thread does when it is looked at. */
enum fbt_look_doing {
	FBT_DOING_UNKNOWN = 0,
	FBT_DOING_CALL = 1,	/* asleep in a call */
	FBT_DOING_CPU = 2,	/* on a CPU */
	FBT_DOING_CPU_WAIT = 3, /* ready to run, without a CPU */
	FBT_DOING_STOPPED = 4,	/* by a signal or a tracer */
	FBT_DOING_KERNEL = 5,	/* asleep outside of calls, as for a page */
	FBT_DOING_COUNT = 6,
};

/* Threads of a chain: the one that waits, and this many holders. */
#define FBT_LOOK_HOLDERS 3
#define FBT_LOOK_TIDS	 8
#define FBT_LOOK_OTHERS	 6

/* fbt_look_thread.header.flags, beside those of fbt_stack that do not say whose it is */
#define FBT_LOOK_HANG	 16   /* at a hang: start_ns is that of the step */
#define FBT_LOOK_GROUP	 32   /* threads that are in the same place; without HANG see below */
#define FBT_LOOK_SAMPLE	 64   /* it ran: the stack is that of its last entry into the kernel */
#define FBT_LOOK_CYCLE	 128  /* a thread of the chain before it, or itself, holds its lock */
#define FBT_LOOK_GIL	 2048 /* start_ns is that of the first call of a wait for the GIL */
#define FBT_LOOK_SPIN	 4096 /* … of a wait that spins, or shortly after it */
#define FBT_LOOK_IN_CALL 256  /* nr is known, and call_ns if it is not 0 */

/*
 * A thread that was seen from outside, while a call of a step was open for long. Of depth 0 it is
 * the thread that waits; of depth 1, 2 … the one that holds the lock for which the thread before it
 * waits. Sent before the step, or before the hang.
 *
 * Groups of all other threads follow, those that hold locks too, FBT_LOOK_OTHERS at most: of more
 * groups the last one stands for all the rest, without a stack and with FBT_DOING_UNKNOWN.
 */
struct fbt_look_thread {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid;		       /* whose step it is */
	__u64 start_ns;		       /* of its call; see FBT_LOOK_HANG */
	__u64 time_ns;		       /* of the look */
	__u64 call_ns;		       /* for how long the seen thread has been in its call */
	__u64 lock;		       /* address of the futex that it waits at; 0: it does not */
	__u32 owner;		       /* the thread that was seen; of a group the first */
	__u32 depth;		       /* of a group its number, from 0 */
	__u32 nr;		       /* of its call */
	__u32 doing;		       /* enum fbt_look_doing */
	__u32 threads;		       /* 1, or those of the group */
	__u32 count;		       /* of codes; 0: its stack is not known */
	__u32 tids[FBT_LOOK_TIDS];     /* of a group, the first ones; 0: no more */
	__u32 codes[FBT_STACK_FRAMES]; /* fbt_code.id, the innermost first; 0: no room for it */
};

/* All threads of a process in which a step hangs were looked at. Sent before the hang. */
struct fbt_look {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid;
	__u64 start_ns; /* of the step */
	__u64 time_ns;
	__u32 threads;	 /* of the process; more than FBT_LOOK_THREADS are not counted */
	__u32 stackless; /* of them, those whose stack was not read */
	__u32 groups;	 /* that were sent */
	__u32 left_out;	 /* threads of groups that were not sent */
};
#define FBT_LOOK_THREADS 512
#define FBT_LOOK_GROUPS	 64

/* How many looks there were. A later record replaces an earlier one. */
struct fbt_looks {
	struct fbt_header header;
	__u64 taken;
	__u64 skipped; /* above the limit of their rate */
	__u64 stale;   /* thrown away: the threads had gone on meanwhile */
	__u64 blind;   /* the memory of the process could not be read */
	__u64 cost_ns; /* of the tool's time, for all of them */
};

enum fbt_stop_reason {
	FBT_STOP_SIGNAL = 0,  /* SIGSTOP, SIGTSTP, SIGTTIN or SIGTTOU */
	FBT_STOP_TRACER = 1,  /* ptrace(2): a debugger, strace */
	FBT_STOP_FREEZER = 2, /* the freezer of its cgroup */
	FBT_STOP_REASON_COUNT = 3,
};

/*
 * A thread was seen stopped: in its step, or while a step of its process waited. Sent before that
 * step; of several records about one thread the latest counts.
 */
struct fbt_stop {
	struct fbt_header header;
	__u64 time_ns; /* when it was seen */
	__u32 tgid;
	__u32 tid;
	__u32 reason;  /* enum fbt_stop_reason */
	__u32 tracer;  /* FBT_STOP_TRACER: its pid; 0: not known */
	char comm[16]; /* of the tracer; "": not known */
	/* The most that its stops in the step, or in the wait, can have taken so far. */
	__u64 stopped_ns;
};

/* By what a step may wait for another process. */
enum fbt_peer_way {
	FBT_PEER_MEMORY =
		0,	    /* they map the same memory, writable, and the step looks at it again */
	FBT_PEER_FUTEX = 1, /* … and again, or waits there in futex */
	FBT_PEER_PIPE = 2,  /* the process may write to a pipe from which the step reads */
	FBT_PEER_SOCKET = 3, /* it has the other end of a Unix socket */
	FBT_PEER_WAY_COUNT = 4,
};

#define FBT_PEER_NR_UNKNOWN (~0u)

/* fbt_peer.header.flags: measured by a step of its own (fbt_peer_link); else sampled. */
#define FBT_PEER_OF_STEP 1

/*
 * What another process did while a step waited that may have waited for it. Sampled from outside
 * every 5 ms or so, from first_ns to time_ns: the four parts sum up to that. Sent before the step;
 * of several records about one step and process the latest counts.
 */
struct fbt_peer {
	struct fbt_header header;
	__u32 tgid; /* of the step */
	__u32 tid;
	__u64 step_start_ns;
	__u64 first_ns; /* of the first look at the process */
	__u64 time_ns;	/* of the latest */
	__u32 peer;	/* its tgid */
	__u32 peer_tid; /* the thread that was looked at: of a step, or the busiest one */
	__u32 way;	/* enum fbt_peer_way */
	__u32 others;	/* how many other processes the step may as well have waited for */
	__u64 cpu_ns;
	__u64 delay_ns; /* ready to run, but without a CPU */
	__u64 stopped_ns;
	__u64 asleep_ns;
	__u32 nr; /* the call in which it was seen asleep most often; FBT_PEER_NR_UNKNOWN */
	__u32 throttled_periods; /* in which its cgroup reached a CPU limit meanwhile */
	__u32 kind;		 /* of the step in which its thread was last seen; 0: in none */
	__u32 stop_reason;	 /* enum fbt_stop_reason, if stopped_ns is not 0 */
	__u64 kind_start_ns;	 /* when that step began */
	__u32 tracer;		 /* as in fbt_stop */
	/*
	 * The thread of the step's process that waited for it, and held the lock that the step
	 * waited for; 0: the step itself waited.
	 */
	__u32 via;
	char tracer_comm[16];
	char comm[16]; /* of the process */
};

/*
 * Steps of one process may wait for the other one: it maps memory that they look at, shared and
 * writable. If the other one is traced too, its own steps say what it did meanwhile.
 */
struct fbt_peer_link {
	struct fbt_header header;
	__u32 tgid;
	__u32 peer;
};

FBT_ASSERT_SIZE(fbt_peer_link, 16);
FBT_ASSERT_SIZE(fbt_stop, 56);
FBT_ASSERT_SIZE(fbt_peer, 152);
FBT_ASSERT_SIZE(fbt_look_thread, 616);
FBT_ASSERT_SIZE(fbt_look, 48);
FBT_ASSERT_SIZE(fbt_looks, 48);

#endif
