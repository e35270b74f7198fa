/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Events of what is attached on demand (--explain). */
#ifndef FBT_EXPLAIN_H
#define FBT_EXPLAIN_H

#include "fbt_event.h"

/* On whose behalf a signal was sent. */
enum fbt_sender_origin {
	FBT_SENT_BY_PROCESS = 0,  /* kill(2) and others: sender is that process */
	FBT_SENT_BY_TERMINAL = 1, /* job control: ^Z, or a read from the background; no sender */
	FBT_SENT_BY_TRACER = 2,	  /* ptrace(2) as sender attached */
	FBT_SENT_BY_KERNEL = 3,	  /* the kernel for another reason; no sender */
	FBT_SENDER_ORIGINS = 4,
};

/*
 * Which signal stopped a process, and who sent it. Sent before the FBT_EVENT_STOP or FBT_EVENT_PEER
 * that was seen after it, once for each such signal.
 */
struct fbt_stop_sender {
	struct fbt_header header;
	__u64 time_ns; /* when it was sent */
	__u32 tgid;    /* of the process that was stopped */
	__u32 number;  /* SIGSTOP, SIGTSTP, SIGTTIN or SIGTTOU: 19 to 22 on all architectures */
	__u32 origin;  /* enum fbt_sender_origin */
	__u32 sender;  /* pid of the process; 0: none */
	__u32 parent;  /* of the sender, which may have ended since; 0: none */
	__u32 reserved;
	char comm[16]; /* of the sender; "": not known */
	char parent_comm[16];
};

/*
 * Who ran on a CPU while a thread was ready to run, but had to wait for it. With tgid 0: processes
 * of one cgroup together, of which each had too little for a place of its own.
 */
struct fbt_taker {
	__u32 tgid;
	__u32 tid; /* of a thread of the waiter's own process; else 0: all threads of tgid */
	__u64 ns;
	char comm[16]; /* of the process, or of the thread if tid is not 0 */
	union {
		char cgroup[40]; /* the last names of the path of its cgroup; "": not known */
		__u64 cgroup_id; /* from bpf/: of version 2; 0: the root, or not known */
	};
};

#define FBT_TAKERS 6

/*
 * In fbt_taken.header.flags: of a thread that is not in the step. From bpf/ it is one wait, which
 * begins at start_ns.
 */
#define FBT_TAKEN_OUTSIDE 1

/*
 * Who had the CPUs that the thread of the next step waited for: that step is of this thread and
 * begins at start_ns. Sent right before it, if --explain was looking and the thread has waited. The
 * parts sum up to waited_ns at most; of the rest it is not known who ran.
 *
 * With FBT_TAKEN_OUTSIDE, the same of another thread of the process during the next step, which is
 * of any thread and begins at start_ns. Of a wait that began before the step or ends after it, each
 * taker has the same part as of the whole wait.
 */
struct fbt_taken {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid;
	__u64 start_ns;	 /* of the step */
	__u64 waited_ns; /* ready to run, without a CPU, while it was looked at */
	__u64 idle_ns;	 /* … and that CPU ran nothing */
	__u64 own_ns; /* … it ran other threads of the process, the takers with a tid included */
	__u64 other_ns; /* … it ran other processes than these: */
	__u32 count;
	__u32 cpu; /* 1 + the CPU of nine tenths of the wait at least; 0: of several, or not known
		    */
	struct fbt_taker takers[FBT_TAKERS]; /* the one with the most time first */
};

/* In which context a thread was woken. */
enum fbt_woken_context {
	FBT_WOKEN_BY_THREAD = 0,    /* by the waker itself */
	FBT_WOKEN_BY_INTERRUPT = 1, /* a timer or a device: the waker is nobody */
	/* The same while the waker was sending: a packet to this machine arrives in an interrupt.
	 */
	FBT_WOKEN_WHILE_SENDING = 2,
	FBT_WOKEN_BY_KERNEL = 3, /* by a thread of the kernel */
	FBT_WOKEN_CONTEXTS = 4,
};

#define FBT_NR_UNKNOWN (~0u)

/*
 * Who woke a thread in a call of its step. Sent before the step; of waits of at least 1 ms only, if
 * --explain was looking. A thread may be woken several times in one call: the last one ends it.
 */
struct fbt_woken {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid;
	__u64 start_ns; /* that of the call */
	__u64 wake_ns;
	__u32 waker_tgid; /* 0, as the next, if it is nobody */
	__u32 waker_tid;
	__u32 context; /* enum fbt_woken_context */
	__u32 nr;      /* of the waker's call; FBT_NR_UNKNOWN */
	char comm[16]; /* of the waker's process, or of the thread if it is of the same process */
};

#define FBT_SAMPLED_FUNCTIONS 16

/*
 * In which functions a step was found computing, outside of calls, at regular times of its CPU
 * time: of the next step, which is of that thread and begins at start_ns. Sent right before it. A
 * sample counts for the innermost function that has a name.
 */
struct fbt_samples {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid;
	__u64 start_ns; /* of the step */
	__u32 samples;	/* of all functions */
	__u32 count;
	struct {
		__u32 code; /* fbt_code.id of the function; 0: none has a name, or no room */
		__u32 samples;
	} functions[FBT_SAMPLED_FUNCTIONS]; /* the ones with most samples */
};

#define FBT_FAULT_SITES	  12
#define FBT_FAULT_CALLERS 4

/*
 * Where a step had its page faults, if --explain was looking: of the next step, which is of that
 * thread and begins at start_ns. Sent right before it. Exact, but for faults that the kernel has on
 * behalf of others: faults and in_calls are all of the step's.
 */
struct fbt_fault_sites {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid;
	__u64 start_ns; /* of the step */
	__u64 faults;	/* outside of calls, those at no site of these too */
	__u64 in_calls;
	__u32 count;
	__u32 reserved;
	struct fbt_fault_site {
		__u32 faults;
		__u32 majors;  /* of these */
		__u32 mapping; /* enum fbt_mapping */
		__u32 file;    /* fbt_file.id; 0: none, or not known */
		/* fbt_code.id of the function that faulted, and of its callers; 0: no more known */
		__u32 codes[FBT_FAULT_CALLERS];
	} sites[FBT_FAULT_SITES]; /* the one with most faults first */
};

/* What is looked at only once a step was slow for a reason that it would explain (--explain). */
enum fbt_explain {
	FBT_EXPLAIN_SWITCHES = 0, /* who took the CPU */
	FBT_EXPLAIN_WAKES = 1,	  /* who ended a wait */
	FBT_EXPLAIN_SAMPLES = 2,  /* which functions a step computed in */
	FBT_EXPLAIN_FAULTS = 3,	  /* where a step had page faults */
	FBT_EXPLAIN_COUNT = 4,
};

enum fbt_explain_state {
	FBT_EXPLAIN_UNUSED = 0, /* never needed */
	FBT_EXPLAIN_OFF = 1,	/* no longer needed */
	FBT_EXPLAIN_ARMED = 2,
	FBT_EXPLAIN_REFUSED = 3, /* it would have cost more than the limit */
	FBT_EXPLAIN_FAILED = 4,	 /* this kernel, or the tool's rights, do not allow it */
	FBT_EXPLAIN_STATES = 5,
};

/* A later record of the same kind replaces an earlier one. */
struct fbt_explained {
	struct fbt_header header;
	__u32 kind;	 /* enum fbt_explain */
	__u32 state;	 /* enum fbt_explain_state */
	__u64 missed;	 /* escalated steps that came before it was armed, or while it was not */
	__u64 armed_ns;	 /* for how long it was armed, in total */
	__u64 events;	 /* while it was: context switches of the machine, samples, or faults */
	__u64 event_ps;	 /* what one of them costs, as measured when the tool attached */
	__u64 price_ppm; /* of the machine's CPU time, when it was armed last, or refused */
	__u64 limit_ppm; /* 0: none */
};

/*
 * What was found out, and then lost: wake-ups for which the ring had no room, and samples for which
 * no place was free. A later record replaces an earlier one.
 */
struct fbt_explain_lost {
	struct fbt_header header;
	__u64 count[FBT_EXPLAIN_COUNT];
};

FBT_ASSERT_SIZE(fbt_stop_sender, 72);
FBT_ASSERT_SIZE(fbt_taker, 72);
FBT_ASSERT_SIZE(fbt_taken, 496);
FBT_ASSERT_SIZE(fbt_woken, 64);
FBT_ASSERT_SIZE(fbt_samples, 160);
FBT_ASSERT_SIZE(fbt_fault_sites, 432);
FBT_ASSERT_SIZE(fbt_explained, 64);
FBT_ASSERT_SIZE(fbt_explain_lost, 40);

#endif
