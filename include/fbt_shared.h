/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Memory that bpf/ and the loader share while a window is open: the mapped BPF maps. Not part of
 * the capture format.
 *
 * A traced thread owns a slot. The table from thread id to slot is filter and lookup at once; slot
 * 0 means "not traced". Only the owning thread writes its slot and its rows while it lives, so
 * plain stores are exact however it is preempted. Slots are taken by the kernel side (fork) and by
 * the loader (threads that were there already), and given back by the loader alone.
 */
#ifndef FBT_SHARED_H
#define FBT_SHARED_H

#include "fbt_event.h"

/* thread_ids: value tid % FBT_IDS of element tid / FBT_IDS. */
#define FBT_IDS 4096
struct fbt_ids {
	__u16 slot[FBT_IDS];
};

/*
 * strangers: a thread that has no slot is remembered by where its registers lie at a syscall, at
 * the top of its kernel stack, which the tracepoint hands over: so that it is let go without asking
 * the kernel who it is, which would be most of what tracing costs the processes that are not
 * traced. Element key % FBT_STRANGERS is the key. A thread that comes under trace must not be in
 * it: the kernel side takes its stack out, the loader, which does not know the stacks, empties the
 * table.
 */
#define FBT_STRANGERS	   4096
#define FBT_STRANGER_SHIFT 14 /* no stack is smaller */
#define FBT_STRANGER_SPAN  4  /* nor larger than 4 such parts: 64 KiB */

/* Bound of every loop over slots: the verifier needs one. */
#define FBT_SLOTS_MAX 4096

enum fbt_slot_state {
	FBT_SLOT_FREE = 0,
	FBT_SLOT_LIVE = 1,
	FBT_SLOT_DEAD =
		2, /* the thread has ended: the loader adds its rows up and frees the slot */
};

/* What is done about the descriptors of a call, by its number. */
enum fbt_descriptor {
	FBT_FD_FIRST = 1,  /* its first argument is one */
	FBT_FD_CLOSED = 2, /* and is none any more afterwards */
	FBT_FD_RING = 4,   /* unless its fourth argument says FBT_RING_INDEX */
	FBT_FD_MADE = 8,   /* it returns one */
};

/* IORING_ENTER_REGISTERED_RING */
#define FBT_RING_INDEX 16

/* Files that a thread has worked on in its step, by descriptor: so that each is looked up once. */
#define FBT_SLOT_FILES 8
struct fbt_slot_file {
	__u64 file; /* address of the kernel's struct file; 0: none */
	__u64 inode;
	__u32 fd;
	__u32 id;
};

struct fbt_slot {
	__u64 start_ns; /* when the open syscall was entered; 0 in user mode */
	/*
	 * Time in syscalls so far, as one word that other CPUs can read whole: even = ns * 2; odd =
	 * (ns - start_ns) * 2 + 1 while a call is open, so that adding the present gives the time
	 * up to now (fbt_busy_ns).
	 */
	__u64 busy;
	__u32 nr;    /* of the open syscall */
	__u32 state; /* enum fbt_slot_state */
	__u32 tgid;
	__u32 tid;
	__u64 step_start_ns; /* 0: no step is open */
	__u64 step_sp;
	__u64 lost_calls;  /* call records of this thread that found no room */
	__u64 step_end_ns; /* of the previous step; 0: none yet */

	/* Of the open call, if it was entered in a step. */
	__u64 call_delay_ns; /* the thread's counters when it was entered */
	__u64 call_minor_faults;
	__u64 call_major_faults;
	__u64 call_switches;
	__u64 call_args[2];
	__u32 call_file;
	__u32 call_flags;    /* FBT_CALL_ARGS, or 0 */
	__u64 step_delay_ns; /* the counter when the step began, plus what it grew in its calls */

	__u64 step_end_busy_ns; /* syscall time of the thread at step_end_ns */
	__u64 step_last_ns;	/* length of the previous step */
	__u64 step_lost_calls;	/* lost_calls when the step began */
	__u64 step_others_ns;	/* fbt_target_state sum when the step began */
	__u64 gap_ns;
	__u64 gap_syscall_ns;
	__u64 born_ns; /* since when its time counts; ~0: it is in a call that began before */
	__u64 died_ns;
	__u64 begin_own_ns; /* at the last begin probe that the thread hit: when, less all waits for
			       a CPU */
	__u64 debt_ns; /* what probes cost it beyond the share of its time that they may take */
	__u32 step_kind;
	__u32 step_flags; /* FBT_STEP_* */
	__u32 arg_mask;
	__u32 step_tail;	 /* it has left by a jump to another step function */
	__u64 step_return;	 /* what tells its frame from others: read_return(); 0: not known */
	__u64 step_minor_faults; /* the thread's counter when the step began, plus what it grew in
				    calls */
	__u64 step_major_faults;
	__s64 args[FBT_ARG_COUNT];
	struct fbt_sum sums[FBT_CATEGORY_COUNT];
	struct fbt_slot_file files[FBT_SLOT_FILES];
} __attribute__((aligned(64)));

/* What a slot's busy says at now_ns. */
static inline __u64 fbt_busy_ns(__u64 busy, __u64 now_ns)
{
	return (__u64)((__s64)busy >> 1) + (now_ns & -(busy & 1));
}

/* A traced process. */
struct fbt_target_state {
	/*
	 * Syscall time of its threads that have ended. exits_begun and exits_done let a reader see
	 * that no thread was between the list of slots and this sum.
	 */
	__u64 ended_busy_ns;
	__u32 exits_begun;
	__u32 exits_done;
};

/* One syscall in a call ring. */
struct fbt_ring_call {
	__u64 start_ns;
	__u64 duration_ns;
	__s64 ret;
	__u16 nr;
	__u16 slot;
	__u32 flags;   /* FBT_CALL_* */
	__u64 args[2]; /* these and file: only with FBT_CALL_ARGS */
	__u32 file;
	__u32 lap; /* written last: (index >> ring_shift) + 1 says that the rest is this lap's */
};

/*
 * Heads of one CPU's call ring. A place is reserved with an atomic add and made valid by its lap,
 * so records are exact even if a program is preempted by another on the same CPU. The reader stops
 * at the first place that is not valid yet.
 */
struct fbt_ring_heads {
	__u64 head; /* next place to reserve */
	__u64 pad0[7];
	__u64 tail; /* next place to read; the loader's */
	__u64 pad1[7];
	__u64 lost;
	__u64 pad2[7];
};

/* Places kept empty: more programs than this cannot be between check and reservation on one CPU. */
#define FBT_RING_MARGIN 256

struct fbt_control {
	/*
	 * Next free slot to take: free_slots[free_head & mask]. Slots are first handed out in
	 * rising order, so none above free_head was ever used.
	 */
	__u64 free_head;
	__u64 free_tail; /* the loader's */
	__u64 lost[FBT_LOST_COUNT];
	__u64 walk_ns;	    /* the sum of fbt_hits.walk_ns */
	__u32 pending_tgid; /* process that comes under trace when it calls execve */
	__u32 closed;	    /* the window has ended: step probes that are still there do nothing */
	__u32 files;	    /* ids of files given out */
	__u32 command_tgid; /* process that is stopped after each execve: see user/launch.h */
	/* The rate guard's, by step kind: steps that must not begin, and those that are a sample.
	 */
	__u64 off_kinds;
	__u64 sampled_kinds;
	__u64 switched_ns; /* no gap reaches back over this time */
	/* And what a thread is charged for probes, see fbt_hits.excess_ns. */
	__u64 charge_ns;   /* a step's two; 0: nothing is charged */
	__u64 charge_part; /* what they may take of a thread's time, in 1 / FBT_PART_ONE */
	__u64 debt_max_ns;
};

#define FBT_PART_SHIFT 20
#define FBT_PART_ONE   (1ull << FBT_PART_SHIFT)
/* Time since a thread's last begin beyond this pays for nothing; the product fits 64 bits. */
#define FBT_PAYS_MAX_NS (1ull << 43)

/* Of one CPU. What is counted here is not set back. */
struct fbt_hits {
	/* By kind: how often step probes were hit, in any thread. */
	__u64 begins[FBT_KIND_COUNT];
	__u64 ends[FBT_KIND_COUNT];
	__u64 walk_ns[FBT_KIND_COUNT]; /* time that they spent on the process's other threads */
	/*
	 * A thread owes what probes cost it, less their part of its time. What is beyond
	 * debt_max_ns is not owed, but counted here, by the kind that was hit; so is what a kind
	 * that is a sample costs beyond half of that, so that the others have a half of their own.
	 */
	__u64 excess_ns[FBT_KIND_COUNT];
	__u64 excess_own_ns; /* time of the threads to which that happened, from begin to begin */
};

/* fbt_ring_file.flags */
#define FBT_PATH_CUT	  1 /* the names nearest to the root are missing */
#define FBT_PATH_FLOATING 2 /* its only name belongs to no folder: a socket, a pipe, memfd */
#define FBT_PATH_DELETED  4

#define FBT_PATH_NAMES 32
#define FBT_PATH_BYTES 1024
#define FBT_NAME_BYTES 256 /* the longest name of all file systems, and its NUL */

/* A file as the event ring has it; user/file_path.h makes an fbt_file of it. */
struct fbt_ring_file {
	struct fbt_file file; /* header.size is that of the whole, rounded up to 8 */
	__u32 magic;	      /* statfs f_type of its file system */
	__u16 flags;
	__u16 length; /* of the names */
	/* Names from the file to the root, each with a NUL. None begins after FBT_PATH_BYTES. */
	char names[FBT_PATH_BYTES + FBT_NAME_BYTES];
};

/* How to read a step argument; see step_spec.h for the text form. */
struct fbt_arg_spec {
	__u32 base; /* 0 … 5 integer argument registers, 6 stack pointer */
	__u32 reads;
	__s32 offset[2];
	__u32 width[2]; /* 0 s32, 1 u32, 2 s64, 3 u64 */
};

struct fbt_kind_args {
	__u32 count;
	__u32 reserved;
	struct fbt_arg_spec args[FBT_ARG_COUNT];
};

/* Calls of a candidate for the step function, for --list-steps. */
struct fbt_rate {
	__u64 begun;
	__u64 ended;
	__u64 total_ns; /* of those that ended */
};

/* Cookie of a step probe: the kind in the low 16 bits and these. */
#define FBT_PROBE_NO_SP	 (1u << 16) /* USDT: the stack pointers of begin and end are unrelated */
#define FBT_PROBE_RETURN (1u << 17) /* uretprobe: the return address is already off the stack */
#define FBT_PROBE_END	 (1u << 18) /* an exit of the function; else its entry */
#define FBT_PROBE_STOP	 (1u << 19) /* entry of the program of command_tgid: stop there */
#define FBT_PROBE_TAIL	 (1u << 20) /* exit that jumps to another step function: the step goes on */
#define FBT_PROBE_FRAME	 (1u << 21) /* entry of a function that keeps a frame record (arm64) */
#define FBT_PROBE_KIND	 0xffffu

#endif
