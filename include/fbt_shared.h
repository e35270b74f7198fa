/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Memory that bpf/ and the loader share while a window is open: the mapped BPF maps. Not part of
 * the capture format.
 *
 * A traced thread has a slot. The table from thread id to slot is both filter and lookup; slot 0
 * means "not traced". While a thread lives, only the thread itself writes its slot and its rows, so
 * plain stores are exact even if it is preempted. Slots are allocated by the BPF side (fork) and by
 * the loader (existing threads), and freed only by the loader.
 */
#ifndef FBT_SHARED_H
#define FBT_SHARED_H

#include "fbt_event.h"
#include "fbt_explain.h"

/* The map thread_ids: the slot of a thread is value tid % FBT_IDS of element tid / FBT_IDS. */
#define FBT_IDS 4096
struct fbt_ids {
	__u16 slot[FBT_IDS];
};

/*
 * The map thread_stacks: a cache of threads by the address of their registers at the top of their
 * kernel stack, which the tracepoint passes. Element (address >> FBT_STACK_SHIFT) %
 * FBT_THREAD_STACKS has the address without its lower bits and, instead of these, the thread's
 * slot. A thread with slot 0 is dismissed without asking the kernel who it is, which would be most
 * of the cost for untraced processes. Another slot counts only if it is that of the current thread.
 *
 * When a thread comes under trace, or ends, what the cache says of its stack is wrong: the BPF side
 * removes it; the loader, which does not know stacks, empties the table.
 */
#define FBT_THREAD_STACKS 4096
#define FBT_STACK_SHIFT	  14 /* the smallest kernel stack: 16 KiB */
#define FBT_STACK_SPAN	  4  /* the largest, in units of the smallest: 64 KiB */

/* Bound of every loop over slots, for the verifier. */
#define FBT_SLOTS_MAX 4096

enum fbt_slot_state {
	FBT_SLOT_FREE = 0,
	FBT_SLOT_LIVE = 1,
	/* The thread has ended: the loader sums up its rows and frees the slot. */
	FBT_SLOT_DEAD = 2,
};

/* How a syscall uses descriptors, by its number. */
enum fbt_descriptor {
	FBT_FD_FIRST = 1,   /* the first argument is a descriptor */
	FBT_FD_CLOSED = 2,  /* the call closes it */
	FBT_FD_RING = 4,    /* unless the fourth argument has FBT_RING_INDEX */
	FBT_FD_MADE = 8,    /* the call returns a descriptor */
	FBT_FD_WRITES = 16, /* it writes to the first argument */
	/* It waits until there is something to read: */
	FBT_FD_READS = 32,  /* from the first argument */
	FBT_FD_POLLS = 64,  /* from any in an array of struct pollfd, the first argument */
	FBT_FD_EPOLLS = 96, /* from any that an epoll, the first argument, watches */
	FBT_FD_WAITS = 96,
	/* The second argument is a command for its driver, the third that command's own: ioctl. */
	FBT_FD_DRIVER = 128,
};

/* In one word with these: calls that are more than that, and the category of the call. */
enum fbt_trait {
	FBT_TRAIT_FUTEX = 256,
	FBT_TRAIT_SIGRETURN = 512, /* the end of a signal handler */
	FBT_TRAIT_YIELD = 1024,	   /* sched_yield */
};
#define FBT_CATEGORY_SHIFT 13

/* IORING_ENTER_REGISTERED_RING */
#define FBT_RING_INDEX 16

/* A cache of the files that a thread has used in its step, by descriptor. */
#define FBT_SLOT_FILES 8
struct fbt_slot_file {
	__u64 file; /* address of the kernel's struct file; 0: none */
	__u64 inode;
	__u32 fd;
	__u32 id;
};

/* Signal handlers that are open at once on a thread. Of more, the outer ones are not timed. */
#define FBT_HANDLERS 4
struct fbt_slot_handler {
	__u64 sp;      /* of the code that it has interrupted */
	__u64 base_ns; /* the time of handlers is the thread's own time minus this */
};

/*
 * What a thread's CPython interpreter kept it from, since the thread is traced: see
 * bpf/stalls.bpf.h. Only the thread adds to it; others read it.
 */
struct fbt_slot_stalls {
	__u64 gil_ns;
	__u64 gil_waits;
	__u64 gc_ns;
	__u64 gc_own_ns; /* in steps only */
	__u64 gc_count;
};

/* The longest collection: its ns << FBT_GC_SHIFT | its generation, in one word. */
#define FBT_GC_SHIFT 2

/* In fbt_slot.call_flags only: the call is a futex wait that was noted (bpf/wakes.bpf.h). */
#define FBT_CALL_NOTED (1u << 31)

/* In fbt_slot.born_cpu_ns and died_cpu_ns. */
#define FBT_USE_UNKNOWN (~0ull)

/* Which thread was longest in calls during a step: bpf/late.bpf.h. */
struct fbt_late {
	__u64 start_ns; /* begin of the step */
	__u64 now;	/* its end */
	__u64 ns;	/* of that thread: its calls in the step, without their waits for a CPU */
	__u32 tid;
	__u32 nr; /* of its longest call */
};

struct fbt_slot {
	__u64 start_ns; /* when the open syscall was entered; 0 in user mode */
	/*
	 * Time in syscalls so far, in one word that other CPUs can read atomically. Even: ns * 2.
	 * Odd, while a call is open: (ns - start_ns) * 2 + 1, so that adding the present time gives
	 * the time up to now (fbt_busy_ns).
	 */
	__u64 busy;
	__u32 nr;    /* of the open syscall */
	__u32 state; /* enum fbt_slot_state */
	__u32 tgid;
	__u32 tid;
	__u64 step_start_ns; /* 0: no step is open */
	__u64 step_sp;
	__u64 lost_calls; /* lost call records of this thread */
	/*
	 * End of the previous call, if that may be one of a row of calls that are alike: see
	 * bpf/spins.bpf.h. Else 0.
	 */
	__u64 spin_end_ns;

	/* What each call in a step reads or writes is in these lines of the cache. */
	/* The open call, if it was entered in a step: the thread's counters then, … */
	__u64 call_delay_ns; /* of a futex call, also if it was entered outside of a step */
	__u64 call_minor_faults;
	__u64 call_major_faults;
	/*
	 * … and how often the thread had given up its CPU when it last had slept in its step, or
	 * the step began. No call has been entered since without reading it.
	 */
	__u64 awake_switches;
	__u64 call_args[2];
	__u32 call_file;
	__u32 call_flags; /* FBT_CALL_ARGS and _BLOCKED, or 0; and FBT_CALL_NOTED */
	/* The counter when the step began, plus its growth in the step's calls. */
	__u64 step_delay_ns;
	__u64 call_delays_ns[FBT_CATEGORY_COUNT]; /* that growth, by category of the call */
	/* The thread's counters when the step began, plus their growth in the step's calls. */
	__u64 step_minor_faults;
	__u64 step_major_faults;
	struct fbt_sum sums[FBT_CATEGORY_COUNT];
	/* At which of these sums a stack is copied next (bpf/stacks.bpf.h); 0: not known yet. */
	__u64 sum_limits_ns[FBT_CATEGORY_COUNT];

	/*
	 * The thread's clocks when it last had slept in its step, or the step began: see
	 * bpf/times.bpf.h.
	 */
	__u64 awake_ns;
	__u64 awake_cpu_ns;
	__u64 awake_delay_ns;
	__u64 awake_major_faults;
	__u64 step_cpu_ns; /* the thread's CPU clock when the step began */
	__u64 step_asleep_ns;
	__u64 step_fault_wait_ns;

	/* The row so far without its first call, which has a record, if spin_calls is not 0. */
	__u64 spin_step_ns; /* step_start_ns of its step */
	__u64 spin_start_ns;
	__u64 spin_ns; /* in its calls */
	__u64 spin_delay_ns;
	__u32 spin_calls;
	__u32 spin_longest_ns;
	__u32 spin_slot; /* index of this slot */
	__u32 spin_nr;
	/* The arguments that all of its calls have; 0 of sched_yield, which has none. */
	__u64 spin_args[2];
	__u32 spin_file;
	__u32 reserved_spin;

	__u64 step_end_ns;	/* of the previous step; 0: none yet */
	__u64 step_end_busy_ns; /* syscall time of the thread at step_end_ns */
	__u64 step_last_ns;	/* length of the previous step */
	__u64 step_usual_ns;	/* about how long its steps take */
	__u64 team_walked_ns;	/* when its step last looked at the threads of its process */
	/*
	 * Of the other threads, when the step began: the sums of their clocks (bpf/team.bpf.h), and
	 * how many threads of the process had ended. team_ns 0: not known.
	 */
	__u64 team_ns;
	__u64 team_cpu_ns;
	__u64 team_delay_sum_ns;
	__u32 team_exits;
	__u32 team_threads; /* as of the last walk */
	/*
	 * When a step of another thread last looked at this thread, and its waits for a CPU by
	 * then.
	 */
	__u64 team_seen_ns;
	__u64 team_delay_ns;
	/*
	 * When it was last determined whether the thread computes for most of the time, and for how
	 * long it had been on a CPU or wanted one by then. Written by the same.
	 */
	__u64 use_seen_ns;
	__u64 use_ran_ns;
	__u32 computes;
	__u32 is_awaited; /* by the loader: a step has waited for the thread while it had no CPU */
	struct fbt_late late;  /* what its own step has found */
	__u64 step_lost_calls; /* lost_calls when the step began */
	__u64 step_others_ns;  /* fbt_target_state sum when the step began */
	__u64 gap_ns;
	__u64 gap_syscall_ns;
	__u64 gap_cpu_ns;
	__u64 gap_delay_ns;
	/* The thread's clocks at step_end_ns. */
	__u64 step_end_cpu_ns;
	__u64 step_end_delay_ns;
	/*
	 * Since when the time of the thread counts; ~0: the thread is still in a call that began
	 * before.
	 */
	__u64 born_ns;
	__u64 died_ns;
	__u64 taken_ns; /* when it got its slot */
	/* The thread's counters at born_ns and died_ns; FBT_USE_UNKNOWN: not known. */
	__u64 born_cpu_ns;
	__u64 born_delay_ns;
	__u64 died_cpu_ns;
	__u64 died_delay_ns;
	char died_comm[16];
	/* Time of the thread's last begin probe, minus all its waits for a CPU. */
	__u64 begin_own_ns;
	__u64 debt_ns; /* cost of its probes above their allowed share of its time */
	__u32 step_kind;
	__u32 step_flags; /* FBT_STEP_* */
	__u32 arg_mask;
	__u32 step_tail;   /* the step has left, or may leave, by a jump to another function */
	__u64 step_return; /* identifies the step's frame, see read_return(); 0: not known */
	__u64 left_sp;	   /* step_sp of the last step ended at an exit, until its site is passed */
	__u32 step_at_site; /* the step's call site is probed */
	__u32 step_missed;  /* a call since the last step was not traced: the gap is not known */
	/* Counters of the thread's cgroups, see bpf/limits.bpf.h: when the step began, and … */
	__u64 step_cgroups; /* address of the kernel's struct css_set: which cgroups they are */
	__u64 step_throttled_ns;
	__u32 step_throttled;
	__u32 step_closing; /* close_step() is under way: its record may not be readable yet */
	/* … at memory_seen_ns, which is 0 if they were not read yet. */
	__u64 memory_hits;
	__u64 memory_seen_ns;
	/* When the step began: see bpf/times.bpf.h. */
	__u64 step_steal_ns;
	__u64 step_moves;
	__s64 args[FBT_ARG_COUNT];
	/*
	 * Of arguments that calls inside of the step give (fbt_kind_args.given, here too): the
	 * stack pointer of the call that is open, 0: none is, and when it began.
	 */
	__u64 inner_sp[FBT_ARG_COUNT];
	__u64 inner_since_ns[FBT_ARG_COUNT];
	__u32 inner_wanted;
	__u32 arg_kind; /* what args and arg_mask are of */
	struct fbt_slot_file files[FBT_SLOT_FILES];
	/* Signal handlers of the step, see bpf/handlers.bpf.h. */
	struct fbt_slot_handler handlers[FBT_HANDLERS];
	__u64 handlers_ns;
	__u32 handlers_begun;
	__u32 handlers_done;
	__u32 handler_depth;
	/* The kind of the last call that was not traced (fbt_hits.unseen); see unseen_sp. */
	__u32 unseen_kind;
	/* Page faults, while they are timed: see bpf/faults.bpf.h. The one that is handled: */
	__u64 fault_address;
	__u64 fault_cpu_ns; /* the CPU clock at its begin; 0: none */
	__u64 fault_majors; /* the thread's counter then */
	/* The mapping of the latest one. */
	__u64 area_start;
	__u64 area_end;
	__u32 area_mapping; /* enum fbt_mapping */
	__u32 area_file;
	struct fbt_step_faults faults; /* of the step; mean_ps is not used */
	/*
	 * For the thread: the number of faults that were timed, and a sum over the latest minor
	 * ones.
	 */
	__u64 faults_timed;
	__u64 lately_ns;
	__u64 lately_count;
	/* The step is a poll, see struct fbt_kind_args: of the future at this address; else 0. */
	__u64 step_future;
	__u64 step_state_at; /* address of its state */
	__u32 step_state;    /* when the poll began */
	__u32 step_turn;
	/* The frame of that call; sp 0: none. */
	__u64 unseen_sp;
	__u64 unseen_return;
	__u64 away_sp; /* the call that begins there leaves by a jump that is not followed */
	struct fbt_slot_stalls stalls;
	struct fbt_slot_stalls step_stalls; /* the same when the step began */
	__u64 gc_longest;		    /* of the step, or since it was last taken */
	__u64 gc_start_ns;		    /* of the collection that runs; 0: none */
	__u64 gc_begin_ns;		    /* of the latest one that has ended */
	__u64 gc_end_ns;
	__u64 gc_sp;	 /* the stack pointer at its begin; ~0: USDT */
	__u64 gc_own_ns; /* the thread's own clock at its begin */
	__u32 gc_generation;
	__u32 call_gil;	    /* the open call waits for the GIL */
	__u32 gil_again;    /* the latest such call has timed out: its wait goes on with the next */
	__u64 gil_since_ns; /* when the first call of that wait began */
	__u64 gil_end_ns;   /* of its latest call */
} __attribute__((aligned(64)));

/* The syscall time that a slot's busy means at now_ns. */
static inline __u64 fbt_busy_ns(__u64 busy, __u64 now_ns)
{
	return (__u64)((__s64)busy >> 1) + (now_ns & -(busy & 1));
}

/* A traced process. */
struct fbt_target_state {
	/*
	 * Syscall time of the threads that have ended. While exits_begun and exits_done differ, a
	 * thread is neither in the list of slots nor in this sum.
	 */
	__u64 ended_busy_ns;
	__u32 exits_begun;
	__u32 exits_done;
	__u32 sites_of; /* process that it was forked from, with the same code; 0 after execve */
	__u32 reserved;
};

/* A step in the event ring, with what is sent right before it. */
struct fbt_ring_step {
	struct fbt_step step; /* header.size is that of fbt_step */
	struct fbt_stalls stalls;
	struct fbt_gap gap;
};

/* The map runtimes: by process, where its interpreter's locks lie. */
#define FBT_RUNTIMES 1024
struct fbt_runtime {
	__u64 start;
	__u64 end;
};

/* One syscall in a call ring. */
struct fbt_ring_call {
	__u64 start_ns;
	__u64 duration_ns;
	__s64 ret;
	__u16 nr;
	__u16 slot;
	__u32 flags;	/* FBT_CALL_* */
	__u64 args[2];	/* these and file are valid only with FBT_CALL_ARGS; FBT_CALL_RUN: see
			   fbt_run */
	__u64 delay_ns; /* waiting for a CPU; 0 outside of steps */
	__u32 file;
	__u32 lap; /* written last; (index >> ring_shift) + 1: the record is of this lap */
};

/*
 * The heads of one CPU's call ring. A place is reserved by an atomic add and becomes valid by its
 * lap, so records are exact even if one program preempts another on the same CPU. The reader stops
 * at the first place that is not valid yet.
 */
struct fbt_ring_heads {
	__u64 head; /* next place to reserve */
	__u64 pad0[7];
	__u64 tail; /* next place to read; written by the loader */
	__u64 pad1[7];
	__u64 lost;
	__u64 pad2[7];
};

/*
 * Places that are kept free: a bound on the number of programs between check and reservation on one
 * CPU.
 */
#define FBT_RING_MARGIN 256

/* Places of only_tgids. */
#define FBT_ONLY_COUNT 256

struct fbt_control {
	/*
	 * The next slot to allocate is free_slots[free_head & mask]. Slots are first allocated in
	 * ascending order, so no slot above free_head was ever used.
	 */
	__u64 free_head;
	__u64 free_tail; /* written by the loader */
	__u64 lost[FBT_LOST_COUNT];
	__u64 walk_ns;	    /* the sum of fbt_hits.walk_ns */
	__u32 pending_tgid; /* the process that comes under trace when it calls execve */
	__u32 closed;	    /* enum fbt_closing */
	__u32 files;	    /* number of file ids given out */
	__u32 command_tgid; /* the process to stop after each execve, see user/trace/command.h */
	/*
	 * Of the rate guard, a bit per step kind: kinds that are off, and kinds that are sampled.
	 */
	__u64 off_kinds;
	__u64 sampled_kinds;
	/* Kinds that are off in one process, while probes are attached to it. */
	__u64 attaching_kinds;
	__u32 attaching_tgid;
	__u32 unused;
	__u64 switched_ns; /* when kinds were last switched; no gap begins before this time */
	/*
	 * How steps end, a bit per kind. For kinds in learn_kinds the loader is told of call sites
	 * that it does not know. Kinds in site_kinds have no probes on their exits: a step begins
	 * only if its call site is probed.
	 */
	__u64 learn_kinds;
	__u64 site_kinds;
	/* What a thread is charged for its probes, see fbt_hits.excess_ns. */
	__u64 charge_ns;      /* charge for the two probes of a step; 0: no charge */
	__u64 charge_site_ns; /* the same for kinds in site_kinds */
	__u64 charge_part; /* the probes' allowed share of a thread's time, in 1 / FBT_PART_ONE */
	__u64 debt_max_ns;
	__u32 handlers_timed; /* the begin of signal handlers is traced */
	/* Of a timed page fault: what its programs cannot see, with what they cost themselves. */
	__u32 fault_entry_ns;
	/* Stacks of slow calls: the present turn, how many in it, and the next place. */
	__u32 stack_turn;
	__u32 stack_count;
	__u32 stack_head;
	__u32 reserved_stacks;
	__u64 stacks_skipped;		       /* too many in a turn, or no place was free */
	__u64 explain_lost[FBT_EXPLAIN_COUNT]; /* see struct fbt_explain_lost */
	/*
	 * Processes whose first thread has ended: links can only be made for all processes then.
	 * Probes with such a place in their cookie do nothing in others. 0 is not used.
	 */
	__u32 only_tgids[FBT_ONLY_COUNT];
};

/* The end of a window. */
enum fbt_closing {
	FBT_NOT_CLOSED = 0,
	FBT_CLOSING = 1, /* no step begins; those that end are FBT_END_TRUNCATED */
	FBT_CLOSED = 2,	 /* step probes do nothing */
};

#define FBT_PART_SHIFT 20
#define FBT_PART_ONE   (1ull << FBT_PART_SHIFT)
/*
 * Time since a thread's last begin counts up to this limit, so that the product fits into 64 bits.
 */
#define FBT_PAYS_MAX_NS (1ull << 43)

/* Counters of one CPU, never reset. */
struct fbt_hits {
	/* Hits of step probes by kind, in any thread. */
	__u64 begins[FBT_KIND_COUNT];
	__u64 ends[FBT_KIND_COUNT];
	__u64 emulated[FBT_KIND_COUNT]; /* those of both that were at FBT_PROBE_EMULATED */
	/* Hits of call sites, and of followed exits, by the kind for which they were probed: */
	__u64 confirmed[FBT_KIND_COUNT]; /* where its steps ended, or had just ended at an exit */
	__u64 strangers[FBT_KIND_COUNT]; /* all others */
	__u64 unseen[FBT_KIND_COUNT];	 /* steps that did not begin: see site_kinds */
	__u64 walk_ns[FBT_KIND_COUNT];	 /* time spent on walks over a process's other threads */
	/*
	 * A thread's debt is the cost of its probes minus their allowed share of its time. Debt
	 * above debt_max_ns is moved here, to the kind that was hit. For sampled kinds the limit is
	 * half of debt_max_ns, so that the other kinds have the other half.
	 */
	__u64 excess_ns[FBT_KIND_COUNT];
	__u64 excess_own_ns; /* time between the begins of the threads whose debt was moved */
};

/* fbt_ring_file.flags */
#define FBT_PATH_CUT	  1 /* the names nearest to the root are missing */
#define FBT_PATH_FLOATING 2 /* a name outside all directories: a socket, a pipe, a memfd */
#define FBT_PATH_DELETED  4

#define FBT_PATH_NAMES 32
#define FBT_PATH_BYTES 1024
#define FBT_NAME_BYTES 256 /* the longest name in any file system, and its NUL */

/* A file in the event ring; user/stream/call_ring.c turns it into an fbt_file. */
struct fbt_ring_file {
	struct fbt_file file; /* header.size covers the names, rounded up to 8 */
	__u32 magic;	      /* statfs f_type of its file system */
	__u16 flags;
	__u16 length; /* of the names */
	/*
	 * The names from the file to the root, each with a NUL. None begins after FBT_PATH_BYTES.
	 */
	char names[FBT_PATH_BYTES + FBT_NAME_BYTES];
};

/*
 * The map sites: the call sites of step functions, by return address and process. The BPF side adds
 * a site when a step is first called from there, and tells the loader (fbt_ring_site).
 */
#define FBT_SITES_MAX 4096
struct fbt_site_key {
	__u64 address;
	__u32 tgid;
	__u32 jump_kind; /* 0; or it is a jump of that kind (FBT_PROBE_JUMP), or … */
};

/* … with this bit what such a jump has led to. */
#define FBT_SITE_TARGET 0x10000u

enum fbt_site_state {
	FBT_SITE_TOLD = 1,
	FBT_SITE_PROBED = 2,
	FBT_SITE_REFUSED = 3, /* cannot be probed, or is not worth it */
};

struct fbt_site {
	__u64 kinds; /* the kinds that were called from there, a bit for each */
	__u32 state; /* enum fbt_site_state */
	__u32 reserved;
};

/* A new call site, in the event ring. */
struct fbt_ring_site {
	struct fbt_header header; /* FBT_EVENT_SITE */
	__u64 address;
	__u32 tgid;
	__u32 kind;
	__u32 jump_kind; /* as in fbt_site_key */
	__u32 reserved;
};

/*
 * Who ended a wait, and what that thread did meanwhile. A thread in a step notes a futex wait in
 * the map waits, by address. A thread of its process that wakes this address copies its own history
 * to the note, and the waiter sends both when it returns. Only waits and calls of at least
 * FBT_LONG_NS count.
 */
#define FBT_LONG_NS 100000ull

/*
 * Calls that are alike, shorter than FBT_LONG_NS and no farther apart than this are one row; a
 * record of a row covers at most FBT_RUN_MAX_NS.
 */
#define FBT_SPIN_GAP_NS 10000ull
#define FBT_RUN_MAX_NS	16000000ull

/* Latest long calls that are remembered of each thread, in the map pasts, by slot. */
#define FBT_PAST_CALLS 8

struct fbt_past_call {
	__u64 end_ns;
	__u64 duration_ns;
	__u64 busy_ns;	     /* time in calls of this thread so far, this one included */
	__u64 delay_ns;	     /* its waits for a CPU so far, those in this call included */
	__u64 cpu_ns;	     /* its CPU clock, see bpf/times.bpf.h; 0: the kernel has none */
	__u32 call_delay_ns; /* of delay_ns, those in this call; at most 2^32 - 1 */
	__u32 nr;
	__u32 switches;	    /* how often it gave up its CPU so far */
	__u32 faults;	    /* its page faults so far that waited for a disk */
	__u32 minor_faults; /* … and all others */
	__u32 is_idle;	    /* in futex, but not for a lock: it may have waited for work */
};

struct fbt_past {
	__u32 tid;   /* whose calls these are: the slot may have had another thread before */
	__u32 count; /* of all; call n is calls[n % FBT_PAST_CALLS] */
	struct fbt_past_call calls[FBT_PAST_CALLS];
};

/* A thread at the moment when it wakes another one. */
struct fbt_waker {
	__u64 wake_ns;
	__u64 since_ns; /* since when its calls are known; ~0: not known */
	__u64 took_ns;	/* of the GIL: when it took it at the earliest; else 0 */
	__u64 busy_ns;	/* as in fbt_past_call */
	__u64 delay_ns;
	__u64 cpu_ns;
	__u32 flags; /* FBT_WAKE_* */
	__u32 switches;
	__u32 faults;
	__u32 minor_faults;
	struct fbt_past past;
};

struct fbt_wait {
	__u64 address; /* 0: none yet */
	__u64 start_ns;
	__u32 tgid;
	__u32 slot;   /* of the waiter, or of the first of several */
	__u32 busy;   /* the waker is being read or written */
	__u32 unread; /* wakes since a waiter came or went */
	/* Of a wait for the GIL: when the first of its calls began; else 0. */
	__u64 since_ns;
	struct fbt_waker waker;
};

#define FBT_WAITS 4096

/* A place is free again after this many wakes that no step has waited for. */
#define FBT_UNREAD_MAX 1024

/*
 * The map answered: the slots of a process whose steps wait for an answer in another call than
 * futex, the latest of them.
 */
#define FBT_ANSWERED	   256
#define FBT_ANSWERED_SLOTS 4
struct fbt_answered {
	__u32 tgid;
	__u32 next;
	__u32 slot[FBT_ANSWERED_SLOTS]; /* 0: none */
};

/*
 * The latest signal that stopped a process, in the map stop_notes of bpf/signals.bpf.c at its tgid
 * modulo FBT_STOP_NOTES. The header of sender is not set.
 */
#define FBT_STOP_NOTES 256
struct fbt_stop_note {
	__u32 changes; /* odd while the place is written */
	__u32 reserved;
	__u64 born_ns;	/* when the process began, by the kernel's own clock */
	__u64 ended_ns; /* when it was told to go on; 0: not yet */
	struct fbt_stop_sender sender;
};

/*
 * Page faults of a thread's latest steps, in the map fault_sums by tid: see bpf/fault_sites.bpf.h.
 * A place with faults 0, and all after it, are free. What found no place is in faults only.
 */
#define FBT_FAULT_THREADS 4
#define FBT_FAULT_STEPS	  16
#define FBT_FAULT_PLACES  12

struct fbt_fault_place {
	__u64 ip; /* of the instruction that faulted */
	__u64 sp;
	__u32 faults;
	__u32 majors;
	__u32 mapping; /* enum fbt_mapping */
	__u32 file;    /* fbt_file.id, FBT_MAPPING_FILE; 0: not known */
	__u32 named;   /* its stack was copied, in this step or before */
	__u32 reserved;
};

struct fbt_fault_sum {
	__u64 step_ns;	/* when the step began; 0: none */
	__u64 faults;	/* outside of calls */
	__u64 in_calls; /* in calls of the step */
	struct fbt_fault_place places[FBT_FAULT_PLACES];
};

struct fbt_fault_thread {
	__u64 latest; /* sums[latest % FBT_FAULT_STEPS] is that of the latest step with a fault */
	struct fbt_fault_sum sums[FBT_FAULT_STEPS];
};

/* A wait and its waker, in the event ring; user/stream/wakes.c turns it into an fbt_wake. */
struct fbt_ring_wake {
	struct fbt_header header; /* FBT_EVENT_WAKE */
	__u32 tgid;
	__u32 tid; /* of the waiter */
	__u64 start_ns;
	__u64 since_ns; /* of a wait for the GIL: when the first of its calls began; else 0 */
	struct fbt_waker waker;
};

/*
 * The stack of a call of a step that took longer than its limit, see bpf/stacks.bpf.h. A thread
 * takes a place of the map stack_places, fills it in and marks it ready; the loader reads it, wipes
 * the stack and marks it free. So stacks take no room from other records, and none is kept.
 */
#define FBT_REGISTERS	    33 /* x86-64 uses 17; both in the order of DWARF */
#define FBT_STACK_BYTES	    65536
#define FBT_STACK_PLACES    16
#define FBT_STACKS_PER_TURN 50
/* Those that stand for many short calls leave room for those of slow ones. */
#define FBT_SHORT_STACKS_PER_TURN 25
#define FBT_TURN_SHIFT		  30 /* ns to turns, of 1.07 s */

enum fbt_place_state {
	FBT_PLACE_FREE = 0,
	FBT_PLACE_TAKEN = 1,
	FBT_PLACE_READY = 2,
};

#define FBT_PLACE_SAMPLE (FBT_NR_COUNT - 1)
#define FBT_PLACE_FAULT	 (FBT_NR_COUNT - 2)

struct fbt_stack_place {
	__u32 state; /* enum fbt_place_state */
	__u32 tgid;
	__u32 tid;	/* of the thread that made the call */
	__u32 nr;	/* of the call; of owner 0: FBT_PLACE_SAMPLE, FBT_PLACE_FAULT */
	__u64 start_ns; /* of the call, or of the step */
	__u64 step_sp;	/* where the frame of the step's function begins; 0: not known */
	__u32 bytes;	/* of stack; they begin at the stack pointer */
	__u32 owner;	/* the thread whose stack it is: tid, or the one that ended the wait */
	__u64 copy_ns;	/* that copying it has cost that thread */
	__u64 registers[FBT_REGISTERS];
	__u8 stack[FBT_STACK_BYTES];
} __attribute__((aligned(64)));

/*
 * One thread of a process, as the iterator of bpf/look.bpf.c sees it. The registers of a thread
 * that is on a CPU are those of its last entry into the kernel.
 */
struct fbt_look_task {
	__u32 tid;
	__u32 ns_tid; /* in the innermost PID namespace: as the thread itself sees it */
	__u32 state;  /* task_struct.__state: 0 is running, or ready to run */
	__u32 on_cpu;
	__u64 switches; /* how often it has left its CPU */
	__s64 nr;	/* of the call that it is in; below 0: in none. On a CPU it may have left */
	char comm[16];
	__u64 registers[FBT_REGISTERS]; /* in the order of DWARF */
};

/*
 * The map call_limits: by kind and number of the call, how long it may take, and by kind and
 * category, how long the shorter calls of a step may take together, in units of 2^10 ns. 0:
 * FBT_LIMIT_MIN_NS. Element KIND * FBT_LIMITS + NR, or KIND * FBT_LIMITS + FBT_NR_COUNT + CATEGORY.
 */
#define FBT_LIMITS	 (FBT_NR_COUNT + FBT_CATEGORY_COUNT)
#define FBT_LIMIT_SHIFT	 10
#define FBT_LIMIT_MIN_NS 1000000ull

/* How to read a step argument; see user/steps/spec.h for the text form. */
struct fbt_arg_spec {
	__u32 base; /* 0 … 5 integer argument registers, 6 stack pointer */
	__u32 reads;
	__s32 offset[2];
	__u32 width[2]; /* 0 s32, 1 u32, 2 s64, 3 u64 */
	__u32 element;	/* if not 0, see struct step_arg */
	__s32 limit_offset;
	__u32 optional; /* the least s64 means that there is no value */
	__u32 name;	/* of a Python function: a hash; see struct fbt_kind_args */
};

struct fbt_kind_args {
	__u32 count;
	/* The function polls a future: see struct future. Its address is in this register. */
	__u32 is_future;
	__u32 future_base; /* as fbt_arg_spec.base */
	__s32 state_offset;
	/*
	 * Bit i: args[i] is not read. It is the sum over the calls of other Python functions inside
	 * of the step, of their arguments that have its name; or, with the same bit of timed, of
	 * the durations, in us, of those of the function with its name; or, with that of before,
	 * args[base] of the thread's last step, if that was of this kind.
	 */
	__u32 given;
	__u32 timed;
	__u32 before;
	__u32 name; /* of the function: a hash, 0 unless it is one of Python */
	struct fbt_arg_spec args[FBT_ARG_COUNT];
};

/*
 * Calls by how long they lasted: element 0 those of less than 1,024 ns, and each next one those of
 * up to twice as long.
 */
#define FBT_RATE_SPANS	    32
#define FBT_RATE_FIRST_BITS 10

/* Calls of a candidate for a step function, for --list-steps. */
struct fbt_rate {
	__u64 begun; /* calls that are not inside of a call of the same function */
	__u64 ended; /* those of them whose begin and end were seen */
	__u64 total_ns;
	__u64 hits;	 /* of the probes on its entry */
	__u64 strangers; /* hits of its call sites at which no call ended */
	__u64 sites;	 /* call sites that it was the first to be called from */
	__u64 delay_ns;	 /* of total_ns the threads waited for a CPU; 0: none, or not known */
	__u64 lasted[FBT_RATE_SPANS]; /* of ended, without the time that they waited for a CPU */
};

/* The map thread_rates: the calls of a candidate by thread. Key: the kind << 32, and the tid. */
struct fbt_thread_rate {
	__u64 ended;
	__u64 total_ns;
};

#define FBT_THREAD_RATES 4096

/*
 * Calls of one candidate made by another, with no third one in between. Of a call of the outer one
 * that has ended, or will.
 */
struct fbt_rate_inside {
	__u64 ended;
	__u64 total_ns;
};

/* The map insides: element OUTER * FBT_KIND_COUNT + INNER. */
#define FBT_INSIDES (FBT_KIND_COUNT * FBT_KIND_COUNT)

/*
 * The map rate_sites: call sites of candidates that have no other end, by return address. A
 * function that is called from more places is no step.
 */
#define FBT_RATE_SITES_PER_KIND 16
#define FBT_RATE_SITES		256

/*
 * The cookie of a step probe: the kind in the low 8 bits; in the next 8 bits the place in
 * only_tgids of the one process that it is for, 0: for all; these flags; and in the high 32 bits
 * the signed difference between the stack pointer at the probe and the one at the function's entry:
 * of the function that begins or ends there, or that has returned (FBT_PROBE_SITE).
 */
#define FBT_PROBE_NO_SP	     (1u << 16) /* USDT: the stack pointers of begin and end are unrelated */
#define FBT_PROBE_RETURN     (1u << 17) /* uretprobe: the return address is already off the stack */
#define FBT_PROBE_END	     (1u << 18) /* an end of the function; else its entry */
#define FBT_PROBE_STOP	     (1u << 19) /* entry of the program of command_tgid: stop there */
#define FBT_PROBE_FRAME	     (1u << 21) /* entry of a function that keeps a frame record (arm64) */
#define FBT_PROBE_SITE	     (1u << 22) /* with END: after the return address, in the caller */
#define FBT_PROBE_TAILS	     (1u << 23) /* entry of a function that may leave by a jump to another */
#define FBT_PROBE_SELF	     (1u << 25) /* with TAILS: it may jump to itself */
#define FBT_PROBE_EMULATED   (1u << 24) /* the kernel emulates the instruction there: a cheap hit */
#define FBT_PROBE_RAISED     (1u << 26) /* with END: reached only by an exception */
#define FBT_PROBE_FOLLOWED   (1u << 27) /* with END: of a function that it jumps to */
#define FBT_PROBE_JUMP	     (1u << 28) /* with END: a jump, after which no end may be seen */
#define FBT_PROBE_AT_BEGIN   (1u << 29) /* with JUMP: it is where the begin is probed too */
#define FBT_PROBE_KIND	     0xffu
#define FBT_PROBE_ONLY_SHIFT 8
#define FBT_PROBE_SP_SHIFT   32
/*
 * The collector of a CPython interpreter. Instead of a kind, the low 8 bits say where the
 * generation is at its begin: in the register of that number (FBT_GC_REGISTERS), or in memory at it
 * plus the high 32 bits, which a USDT probe does not need for its stack pointer.
 */
#define FBT_PROBE_GC	    (1u << 30)
#define FBT_PROBE_GC_MEMORY (1u << 20)
#define FBT_GC_NOWHERE	    0
#define FBT_GC_REGISTERS    1  /* and more: those of x86-64 in the order of DWARF */
#define FBT_GC_SECOND	    17 /* the second argument of a function */

/*
 * The high 32 bits of the cookie of an FBT_PROBE_JUMP through a register or memory (x86-64): where
 * its target is. 0 if that is not known, or if its target is in the code or the GOT.
 */
#define FBT_JUMP_KNOWN		    1u
#define FBT_JUMP_MEMORY		    2u /* at base + (index << scale) + displacement; else base */
#define FBT_JUMP_HAS_BASE	    4u
#define FBT_JUMP_HAS_INDEX	    8u
#define FBT_JUMP_BASE_SHIFT	    4 /* registers as instructions number them */
#define FBT_JUMP_INDEX_SHIFT	    8
#define FBT_JUMP_REGISTER_MASK	    15u
#define FBT_JUMP_SCALE_SHIFT	    12
#define FBT_JUMP_DISPLACEMENT_SHIFT 14 /* signed */
#define FBT_JUMP_DISPLACEMENT_MAX   (1 << 17)

#endif
