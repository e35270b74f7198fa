/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The records that bpf/ sends, that the stages of user/ pass on and that --record stores.
 *
 * A stream is a sequence of records. Each begins with a struct fbt_header whose size covers the
 * whole record, strings included, and is a multiple of 8. Where a record says "Strings", these
 * NUL-terminated strings follow the struct, and then zero bytes up to a multiple of 8.
 *
 * Times are CLOCK_MONOTONIC nanoseconds. tgid and tid are those of the initial PID namespace.
 * Enumerators are append-only: a number that was used once is never reused.
 */
#ifndef FBT_EVENT_H
#define FBT_EVENT_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/*
 * The six categories of ferrum's schema, in its order (cbtop SyscallBreakdown): think twice before
 * you add one. It needs an entry in each of these, and the compiler does not ask for most of them:
 *
 *	here                      FBT_CATEGORY_COUNT, and the asserted size of fbt_step
 *	user/output/capture.h     CAPTURE_VERSION, because records change
 *	include/fbt_shared.h      the arrays of struct fbt_slot, which grow with the count
 *	user/model/syscalls.c     names
 *	user/model/step.c         step_part_name
 *	user/judge/split.c        split_unknown
 *	user/judge/escalation.c   attributes, and BREAKDOWN_ATTRIBUTES
 *	user/report/findings.c    causes_of and part_advice
 *	user/ranks/late.c         may_be_wait and late_cause_words
 *	user/output/slice.c       names of arguments, twice
 *	user/top/view.c           top_part_words, and the columns of draw_row_wide
 *	user/diff/words.c         diff_part_words
 *	user/html/common.js       partColors
 */
enum fbt_category {
	FBT_MMAP = 0,
	FBT_FUTEX = 1,
	FBT_IOCTL = 2,
	FBT_READ = 3,
	FBT_WRITE = 4,
	FBT_OTHER = 5,
	FBT_CATEGORY_COUNT = 6,
};

/* Rows of a syscall table. All numbers from FBT_NR_COUNT - 1 on share the last row. */
#define FBT_NR_COUNT 512
/* Values that --step-arg records with a step. */
#define FBT_ARG_COUNT 4
/* Step kinds are 1 to FBT_KIND_COUNT - 1. Kind 0 is the fixed interval. */
#define FBT_KIND_COUNT 64

enum fbt_event_type {
	FBT_EVENT_WINDOW = 1,
	FBT_EVENT_TARGET = 2,
	FBT_EVENT_THREAD = 3,
	FBT_EVENT_KIND = 4,
	FBT_EVENT_STEP = 5,
	FBT_EVENT_CALL = 6,
	FBT_EVENT_TABLE = 7,
	FBT_EVENT_LOST = 8,
	FBT_EVENT_COST = 9,
	FBT_EVENT_TARGET_EXIT = 10,
	FBT_EVENT_WINDOW_END = 11,
	FBT_EVENT_FILE = 12,
	FBT_EVENT_MANUAL = 13,
	/* fbt_gpu.h */
	FBT_EVENT_GPU_STATE = 14,
	FBT_EVENT_GPU_NAME = 15,
	FBT_EVENT_GPU_DEVICE = 16,
	FBT_EVENT_GPU_WORK = 17,
	FBT_EVENT_GPU_API = 18,
	FBT_EVENT_GPU_SYNC = 19,
	FBT_EVENT_GPU_OVERHEAD = 20,
	FBT_EVENT_GPU_FLUSH = 21,
	FBT_EVENT_GPU_CLOCK = 22,

	FBT_EVENT_SAMPLING = 23,
	FBT_EVENT_ENDS = 24,
	FBT_EVENT_SITE = 25, /* only between bpf/ and the loader */
	FBT_EVENT_STOP = 26,
	FBT_EVENT_WAKE = 28,
	FBT_EVENT_THREAD_USE = 29,
	FBT_EVENT_CPUS = 30,
	FBT_EVENT_TAILS = 31,
	FBT_EVENT_PROBES = 32,
	FBT_EVENT_PYTHON = 33,
	FBT_EVENT_STALLS = 34,
	FBT_EVENT_CODE = 35,
	FBT_EVENT_STACK = 36,
	FBT_EVENT_STACKS = 37,
	FBT_EVENT_HANG = 38,
	FBT_EVENT_GAP = 39,
	FBT_EVENT_PEER = 44,
	FBT_EVENT_LOOK = 40,
	FBT_EVENT_LOOK_THREAD = 41,
	FBT_EVENT_LOOKS = 42,
	FBT_EVENT_TAKEN = 47,
	FBT_EVENT_WOKEN = 48,
	FBT_EVENT_SAMPLES = 49,
	FBT_EVENT_EXPLAIN = 50,
	FBT_EVENT_STOP_SENDER = 51,
	FBT_EVENT_FAULT_SITES = 52,
	FBT_EVENT_CLOCK = 53,
	FBT_EVENT_UNSEEN = 54,
	FBT_EVENT_EXPLAIN_LOST = 55,
	FBT_EVENT_OPTIONS = 56,
	FBT_EVENT_PEER_LINK = 57,
};

struct fbt_header {
	__u16 type;  /* enum fbt_event_type */
	__u16 flags; /* their meaning depends on the type */
	__u32 size;  /* bytes, this header included; a multiple of 8 */
};

enum fbt_detail {
	FBT_DETAIL_STEPS = 0,
	FBT_DETAIL_ESCALATED = 1,
	FBT_DETAIL_ALL = 2,
	FBT_DETAIL_PROBES = 3, /* steps only: system calls are not traced, nor counted */
};

enum fbt_step_source {
	FBT_SOURCE_FUNCTION = 0, /* uprobes on a function's entry and exits */
	FBT_SOURCE_USDT = 1,
	FBT_SOURCE_INTERVAL = 2,
};

enum fbt_arch {
	FBT_ARCH_X86_64 = 1,
	FBT_ARCH_ARM64 = 2,
};

/* fbt_window.header.flags */
#define FBT_WINDOW_GPU_STRICT 1 /* a step has only GPU work that its own thread launched */

/* First record of a stream. Strings: tag, tool version, kernel release, host name. */
struct fbt_window {
	struct fbt_header header;
	__u64 start_ns;
	__u64 realtime_ns; /* CLOCK_REALTIME at start_ns */
	__u32 detail;	   /* enum fbt_detail */
	__u32 arch;	   /* enum fbt_arch, of the syscall numbers */
	__u64 interval_ns; /* length of interval steps; 0: there are none */
	__u64 fault_ps;	   /* what a page fault costs on this machine; 0: not measured */
	__u64 call_ps;	   /* as in fbt_cost, which comes at the end only */
};

#define FBT_OPTIONS_MAX 16

/*
 * The options that say which steps are wrong, as far as they were given. Sent after the window's
 * record. count strings follow: "NAME=VALUE", without dashes.
 */
struct fbt_options {
	struct fbt_header header;
	__u32 count; /* at most FBT_OPTIONS_MAX */
	__u32 reserved;
};

/* fbt_target.header.flags */
#define FBT_TARGET_NEW_LEADER 1 /* a thread other than the first one called execve */

/* A traced process. Strings: comm, executable path, command line (arguments joined by spaces). */
struct fbt_target {
	struct fbt_header header;
	__u64 start_ns; /* when tracing of the process began */
	__u32 tgid;
	__u32 parent_tgid; /* set if --follow found the process, or it is one of a Python engine */
};

/* A thread's name, sent when the thread is first seen and again when the tool notices a change. */
struct fbt_thread_name {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid;
	char comm[16];
};

/* fbt_kind.header.flags */
/* It polls a future, and when that is ready cannot be told, so each poll is a step. */
#define FBT_KIND_POLLED 1
#define FBT_KIND_PYTHON 2 /* a Python function: address is 0, and path is its source file */
/* Its argument i is given by calls inside of the step, so there is none where there are none. */
#define FBT_KIND_INNER(i) (256u << (i))
/* That argument is how long these took, in us. */
#define FBT_KIND_TIMED(i) (4096u << (i))

/*
 * A step function. Strings: name (demangled), path as the target sees it, the names of its
 * arg_count arguments. Sent before the first step of that kind.
 */
struct fbt_kind {
	struct fbt_header header;
	__u32 kind;
	__u32 source;  /* enum fbt_step_source */
	__u64 address; /* ELF virtual address of the function; 0 if not known */
	__u32 builtin; /* 1: found by the built-in table, 0: named by the user */
	__u32 exits;   /* number of probed exits; 0: a uretprobe */
	__u32 tgid;    /* the process in which it was found first */
	__u32 arg_count;
};

struct fbt_sum {
	__u64 ns;
	__u64 calls;
	__u64 errors; /* calls that returned -4095 … -1 */
	__u64 max_ns;
};

enum fbt_step_end {
	FBT_END_RETURN = 0,
	/* Left by an exception, a panic or longjmp; closed when that was noticed. */
	FBT_END_UNWOUND = 1,
	/*
	 * Still open when the window ended or the probes were switched off. Its end may be later
	 * than when the window began to end.
	 */
	FBT_END_TRUNCATED = 2,
	FBT_END_EXITED = 3, /* the thread ended in the step */
	FBT_END_RAISED = 4, /* left by an exception, at end_ns: of a Python function */
};

/* fbt_step.header.flags */
/* The first step on its thread, or since the probes were switched: the gap is unknown. */
#define FBT_STEP_NO_GAP	       1
#define FBT_STEP_OTHER_UNKNOWN 2  /* other_syscall_ns was not measured */
#define FBT_STEP_SCHED_UNKNOWN 4  /* run_delay_ns and the faults were not measured */
#define FBT_STEP_SAMPLED       8  /* the probes of its kind are on for only part of the time */
#define FBT_STEP_CPU_KNOWN     16 /* cpu_ns, asleep_ns and fault_wait_ns were measured */
/*
 * System calls were not traced (FBT_DETAIL_PROBES): sums, gap_syscall_ns, other_syscall_ns and
 * lost_calls are 0 and mean nothing; run_delay_ns and the faults include those in calls.
 */
#define FBT_STEP_CALLS_UNKNOWN	32
#define FBT_STEP_HANDLERS_TIMED 128 /* handlers_ns and the counts of handlers were measured */
#define FBT_STEP_TEAM_KNOWN	256 /* starved_ns was measured */
#define FBT_STEP_TEAM_TIMED	512 /* team_ns, team_cpu_ns and team_delay_ns were measured */
/* Never in a process with more threads than this: only so many are looked at. */
#define FBT_TEAM_MAX 512
/* The times of page faults were measured, of at least 15 in 16 of them; or there were none. */
#define FBT_STEP_FAULTS_TIMED 1024
/*
 * One poll of a future (an async function of Rust), which user/model/futures.c joins to the step
 * that all its polls are. Never set in a step.
 */
#define FBT_STEP_POLL 2048
/* It may be the rest of a call of another step function that was not traced, after a jump. */
#define FBT_STEP_MAYBE_PART 4096
/* PyTorch's profiler was on meanwhile (--torch-trace), in its process or one that it may wait for.
 */
#define FBT_STEP_PROFILED 8192

/* How far a future has come, in its own memory: 3 and more are the places where it awaits. */
enum fbt_future_state {
	FBT_FUTURE_NEW = 0,
	FBT_FUTURE_READY = 1,
	FBT_FUTURE_PANICKED = 2,
	FBT_FUTURE_AWAITS = 3,
	FBT_FUTURE_UNKNOWN = 255, /* it could not be read */
};

/*
 * What the limits of the step thread's cgroups did during a step: sums of the counters of its own
 * cgroup and of those above it, for all threads in them. 0 also where the kernel does not count.
 */
struct fbt_step_limits {
	__u64 throttled_ns; /* summed over CPUs: no thread ran there, because of a CPU limit */
	/* The limit, quota_ns of CPU time each period_ns; 0: none by the end, or several. */
	__u64 quota_ns;
	__u64 period_ns;
	__u32 throttled_periods; /* a limit was reached in them; one may be partly outside */
	/*
	 * How often a limit of memory (max, high) was in the way. Of a step of less than 1 ms
	 * without page faults 0; counted from up to 10 ms before the step.
	 */
	__u32 memory_hits;
};

/* What a page fault was for. */
enum fbt_mapping {
	FBT_MAPPING_UNKNOWN = 0,
	FBT_MAPPING_FILE = 1, /* of a file, shared memory too */
	FBT_MAPPING_ANON = 2, /* the heap, and other memory without a file */
	FBT_MAPPING_STACK = 3,
	FBT_MAPPING_COUNT = 4,
};

/*
 * Page faults of a step's thread, outside of its calls (see FBT_STEP_CALLS_UNKNOWN). The times of a
 * step without FBT_STEP_FAULTS_TIMED are those of some of its faults only. No time has waits for a
 * CPU in it.
 */
struct fbt_step_faults {
	__u64 cpu_ns;		     /* part of the step's cpu_ns: in page faults */
	__u64 asleep_ns;	     /* in them, but not in fault_wait_ns: as for a lock */
	__u64 ns[FBT_MAPPING_COUNT]; /* by enum fbt_mapping: on a CPU and asleep */
	__u64 major_ns;		     /* of these, the major ones */
	__u64 file_ns;		     /* those in the mapping of file, or fewer */
	__u64 mean_ps; /* of minor ones that were timed lately on this thread; 0: none */
	__u32 count[FBT_MAPPING_COUNT]; /* those that were timed */
	__u32 major_count;
	__u32 file; /* fbt_file.id of the mapped file that took most of the time; 0: none */
};

/*
 * One step. sums are of the step thread's own syscalls that returned in the step. Of a truncated
 * step they also have the time of the open call before end_ns, without counting the call. An
 * interval step has tid = tgid, sums over all threads, and as thread_ns the time for which those
 * threads existed, so that the sum of sums[].ns never exceeds thread_ns.
 */
struct fbt_step {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid;
	__u32 kind;
	__u32 end; /* enum fbt_step_end */
	__u64 start_ns;
	__u64 end_ns;
	__u64 thread_ns;	/* end_ns - start_ns; for interval steps see above */
	__u64 gap_ns;		/* from the end of the thread's previous step to start_ns */
	__u64 gap_syscall_ns;	/* syscall time of the thread in that gap */
	__u64 other_syscall_ns; /* syscall time of the process's other threads during the step */
	__u64 lost_calls;	/* lost call records of this step */
	__u32 threads;		/* threads of the process at the end of the step; 0: not counted */
	__u32 arg_mask;		/* bit i: args[i] was read */
	__s64 args[FBT_ARG_COUNT];
	/*
	 * Of the step thread, outside its syscalls (see FBT_STEP_CALLS_UNKNOWN): the time that it
	 * was runnable but waited for a CPU, and its page faults.
	 */
	__u64 run_delay_ns;
	__u32 minor_faults;
	__u32 major_faults; /* those that waited for a disk */
	/* Of the step thread: */
	__u64 cpu_ns;	 /* signed: time on a CPU, in and outside of its calls */
	__u64 asleep_ns; /* time in its calls, neither on a CPU nor waiting for one */
	/*
	 * The same in page faults outside of its calls, for pages from a disk; where those were not
	 * timed, in stretches with a major fault.
	 */
	__u64 fault_wait_ns;
	__u64 call_delay_ns[FBT_CATEGORY_COUNT]; /* part of sums[].ns: waiting for a CPU */
	struct fbt_sum sums[FBT_CATEGORY_COUNT];
	struct fbt_step_limits limits;
	/*
	 * Of the other threads of the process that have the step thread's priority or a higher one,
	 * the one that waited longest for a CPU: from shortly before the step to its end. 0:
	 * none did, or it was not measured (FBT_STEP_TEAM_KNOWN).
	 */
	__u64 starved_ns;
	__u32 starved_tid;
	/*
	 * What the host of a virtual machine took of the step thread's CPU during the step, in
	 * microseconds. 0: nothing, or the thread changed its CPU, or the kernel does not count it.
	 */
	__u32 steal_us;
	/*
	 * If the step took more than twice as long as usual: of the other threads of the process
	 * that usually compute, the one that was longest in calls which began and ended in the
	 * step, and lasted 0.1 ms or more: without their waits for a CPU, and those in futex that
	 * were not for a lock. late_nr is its longest call. 0: none was, or it was not measured.
	 */
	__u64 late_ns;
	__u32 late_tid;
	__u32 late_nr;
	/*
	 * Signal handlers of the step thread that began in the step: part of the time on a CPU
	 * outside of its calls. A handler that ran on top of another one counts, its time once.
	 */
	__u64 handlers_ns;   /* of those that returned in it */
	__u32 handlers;	     /* that returned in it */
	__u32 handlers_left; /* that were left otherwise, or still ran: not timed */
	/*
	 * Of the other threads of the process, from the begin of the step to its end, summed up:
	 * the time for which they existed, and of it that on a CPU and that waiting for one. Of a
	 * thread that runs, the kernel updates its time on a CPU at each tick only.
	 */
	__u64 team_ns;
	__u64 team_cpu_ns;
	__u64 team_delay_ns;
	struct fbt_step_faults faults;
	/*
	 * For a step that is a future, the figures above are those of its polls, each measured on
	 * the thread that made the poll. Exceptions are the times of begin and end, and thread_ns.
	 * tid made the first poll.
	 */
	__u64 await_ns; /* between its polls */
	__u64 future;	/* FBT_STEP_POLL: its address; else 0 */
	__u32 polls;	/* 0: the step is no future, or the record is a poll */
	/* FBT_STEP_POLL: changes whenever probes are switched on or off; else 0, as are the next.
	 */
	__u32 turn;
	__u8 state_before; /* enum fbt_future_state, when the poll began … */
	__u8 state_after;  /* … and when it ended */
	__u16 reserved_state;
	__u32 reserved_future;
};

/* fbt_call.header.flags */
#define FBT_CALL_UNFINISHED 1 /* had not returned when the window ended: ret is meaningless */
#define FBT_CALL_BLOCKED    2 /* the thread gave up its CPU to wait */
#define FBT_CALL_ARGS	    4 /* args, file and FBT_CALL_BLOCKED are valid: a call in a step */
/* Several calls in a row, of one number and with result 0: run is valid. Never with the others. */
#define FBT_CALL_RUN 8

/* What a record with FBT_CALL_RUN has instead of arguments. */
struct fbt_run {
	__u32 calls;	  /* how many it stands for, at least 1 */
	__u32 longest_ns; /* of them */
	__u64 calls_ns;	  /* sum of their durations: the rest of duration_ns is between them */
};

/* One syscall; or a run of them, from the begin of the first to the end of the last. */
struct fbt_call {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid;
	__u64 start_ns;
	__u64 duration_ns;
	__s64 ret;
	__u32 nr;
	__u32 file; /* fbt_file.id of the descriptor used or returned; 0: none, or unknown */
	/*
	 * The first two arguments. Of an ioctl: the descriptor, and the command in the low half.
	 * In the high half is what a control or an allocation of NVIDIA's resource manager asks
	 * for: NVOS54's cmd, NVOS21's hClass; else 0. Of a command that is transferred
	 * (NV_ESC_IOCTL_XFER_CMD): 0xc0004600 with its number.
	 */
	union {
		__u64 args[2];
		struct fbt_run run;
	};
	__u64 delay_ns; /* part of duration_ns: waiting for a CPU; only of a call in a step */
};

/* fbt_wake.flags */
#define FBT_WAKE_LOCK 1 /* the waker gave back a lock, which it may have had all the time */
#define FBT_WAKE_ALL  2 /* it woke all that waited, as the last thread at a barrier does */
#define FBT_WAKE_GC   4 /* for most of the wait it collected the garbage of its interpreter */
#define FBT_WAKE_ROW  8 /* the wait began with an earlier call, as one for the GIL */

/*
 * Who ended a futex wait of a step, and what that thread did from the begin of the wait until it
 * woke the waiter. The parts sum up to wake_ns - start_ns, with FBT_WAKE_ROW to more: they are
 * those since the first call of the wait, or since the waker took the GIL. Sent before the step; of
 * waits of at least 0.1 ms only, and not of all of them.
 */
struct fbt_wake {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid;	/* of the waiter */
	__u64 start_ns; /* that of the waiter's call */
	__u64 wake_ns;
	/* What is not known to be one of the others counts as time on a CPU. */
	__u64 cpu_ns;	  /* the waker ran outside of calls */
	__u64 delay_ns;	  /* it waited for a CPU */
	__u64 call_ns;	  /* it was in calls */
	__u64 unknown_ns; /* its calls are no longer known */
	__u64 nr_ns;	  /* the part of call_ns in calls of number nr, which took longest */
	__u32 nr;
	__u32 waker_tid;
	__u32 flags;  /* FBT_WAKE_* */
	__u32 faults; /* of fault_wait_ns: page faults that waited for a disk */
	/* Outside of calls, neither on a CPU nor waiting for one: */
	__u64 stopped_ns;    /* 0 in a stream: of off_ns, what a stop was seen in (fbt_stop) */
	__u64 fault_wait_ns; /* in stretches with a page fault that waited for a disk */
	__u64 off_ns;	     /* for another reason */
	__u32 minor_faults;  /* in the same stretches: all other page faults */
	__u32 reserved;
};

/* fbt_code.header.flags: it is in a script, at line address. */
#define FBT_CODE_SCRIPT 1

/*
 * A place in the code of a traced process, sent before the first stack that has it. Strings: the
 * function, demangled, "" if the file does not name it; the path of the file, "" for code of no
 * file; and the build-id of the file in hexadecimal digits, or "".
 */
struct fbt_code {
	struct fbt_header header;
	__u32 id; /* 1, 2, … */
	__u32 tgid;
	__u64 address; /* of a call in the file, as nm prints addresses; without a file in memory */
	__u64 offset;  /* from the begin of the function; 0 if that is not known */
};

#define FBT_STACK_FRAMES 128

/* fbt_stack.header.flags: what is not known of it. */
#define FBT_STACK_CUT	  1 /* the outer calls were not copied, or are too many */
#define FBT_STACK_LOST	  2 /* the caller of the outermost call shown could not be found */
#define FBT_STACK_GUESSED 4 /* a caller was found by frame pointers only: it may be wrong */
#define FBT_STACK_WAKER	  8 /* it is that of the thread that ended the call, a wait */
/*
 * Functions of a script (FBT_CODE_SCRIPT) stand after the native ones, because the two do not fit;
 * or because the thread ran meanwhile, and what the script called last is not known.
 */
#define FBT_STACK_APART 512
#define FBT_STACK_MOVED 1024
/* The thread ran on, outside of its call, while its stack was read: functions may be wrong. */
#define FBT_STACK_RAN 8192
/* It is not of a call: the step was found computing so, outside of calls. */
#define FBT_STACK_SAMPLED 2048

/*
 * The calls that a thread was in when it returned from a system call of a step that took longer
 * than its limit, or when it ended such a call of another thread. Or, FBT_STACK_SAMPLED, a way by
 * which samples (fbt_explain.h) came to the innermost function with a name. Sent before the step.
 */
struct fbt_stack {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid;
	__u64 start_ns; /* that of the call, or of a sampled step */
	__u32 nr;
	__u32 owner; /* the thread whose stack it is: tid, or with FBT_STACK_WAKER another one */
	__u32 count;
	__u32 samples;		       /* FBT_STACK_SAMPLED: how many */
	__u32 codes[FBT_STACK_FRAMES]; /* fbt_code.id, the innermost first; 0: no room for it */
};

/*
 * An open file of a traced process, sent before the first call that refers to it. Strings: path, as
 * the kernel knew it while the file was open: "/dev/nvidiactl", "socket:[123]"; "" if it has none.
 */
struct fbt_file {
	struct fbt_header header;
	__u32 id; /* 1, 2, … */
	__u32 tgid;
	__s32 fd;
	__u32 mode; /* st_mode */
	__u64 ino;
	__u32 device;	   /* of the file system: major << 20 | minor */
	__u32 node_device; /* of a device file, the device itself, in the same form; else 0 */
};

/* How many stacks there are in the stream. A later record replaces an earlier one. */
struct fbt_stacks {
	struct fbt_header header;
	__u64 taken;
	__u64 skipped; /* calls over their limit whose stack was not copied: too many at once */
	__u64 copy_ns; /* that copying those taken has cost the threads */
};

/*
 * A step has been open for longer than --hang. Sent once for a step, while it is open: if it ends,
 * its own record comes later.
 */
struct fbt_hang {
	struct fbt_header header;
	__u64 time_ns; /* when it was seen */
	__u32 tgid;
	__u32 tid;
	__u32 kind;
	__u32 state;	      /* of the thread, as in /proc: R, S, D, T, t; 0: not known */
	__u64 step_start_ns;  /* of the open poll, if it is a step of a future */
	struct fbt_call call; /* the open one, up to time_ns; its header.type is 0: none */
};

/*
 * CLOCK_REALTIME was set, or the machine has slept: from here on, times of day follow from this
 * pair instead of fbt_window's.
 */
struct fbt_clock {
	struct fbt_header header;
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 realtime_ns;
};

/* The user has asked to escalate the next step that ends (SIGUSR1, --escalate-now). */
struct fbt_manual {
	struct fbt_header header;
	__u64 time_ns;
};

/*
 * Exact totals of one syscall number in one process since the window began, in every detail mode. A
 * later row for the same process and number replaces an earlier one.
 */
struct fbt_table {
	struct fbt_header header;
	__u32 tgid;
	__u32 nr;
	struct fbt_sum sum;
	__u64 unfinished; /* calls that were still open when the row was made */
};

/* fbt_thread_use.header.flags */
#define FBT_USE_CPU_KNOWN 1 /* cpu_ns and delay_ns were measured */
#define FBT_USE_ENDED	  2 /* the thread has ended */
#define FBT_USE_STEPS	  4 /* it ran steps */

/*
 * What one thread used while it was traced. Sent once, when the thread or the window has ended. The
 * kernel updates the time on a CPU of a thread that runs at each tick only, every 1 to 10 ms.
 */
struct fbt_thread_use {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid;
	__u64 calls;	 /* that have returned */
	__u64 call_ns;	 /* time in calls, waits included, that of an open one too */
	__u64 cpu_ns;	 /* time on a CPU, in and outside of calls */
	__u64 delay_ns;	 /* time waiting for a CPU */
	char comm[16];	 /* its name; "": see fbt_thread_name */
	__u64 traced_ns; /* for how long it was traced */
};

/* On which CPUs a process may run. Sent when it or the window ends, if it is known. */
struct fbt_cpus {
	struct fbt_header header;
	__u32 tgid;
	__u32 cpus; /* by the affinity of its threads, together */
	/* The limit of its cgroups: so much CPU time in each period. 0: none, or not known. */
	__u64 quota_ns;
	__u64 period_ns;
};

enum fbt_lost_cause {
	FBT_LOST_CALLS = 0,   /* the call ring was full */
	FBT_LOST_STEPS = 1,   /* the step ring was full */
	FBT_LOST_THREADS = 2, /* threads without a slot: their calls were not counted */
	FBT_LOST_BEGINS = 3,  /* step begins on a thread without a slot */
	FBT_LOST_NAMES = 4,   /* processes that could not be followed: the table was full */
	FBT_LOST_FILES = 5,   /* files whose record was lost */
	FBT_LOST_COUNT = 6,
};

/* Lost records since the window began, by cause. */
struct fbt_lost {
	struct fbt_header header;
	__u64 count[FBT_LOST_COUNT];
};

/*
 * Calls that no program saw. From Linux 7 on, programs of system calls may be preempted, and are
 * left out for other threads on that CPU meanwhile. The kernel does not say whose calls these were.
 * Sent at the end of a window, if there were any.
 */
struct fbt_unseen {
	struct fbt_header header;
	__u64 calls; /* at most, of all processes of the machine */
};

/* What the tool itself costs, measured on this machine when it attached. 0: not measured. */
struct fbt_cost {
	struct fbt_header header;
	__u64 call_ps;	   /* added to each syscall of a traced thread, picoseconds */
	__u64 neighbor_ps; /* added to each syscall of an untraced thread, picoseconds */
	__u64 step_ns;	   /* added to each step by its two probes */
	__u64 floor_ns;	   /* duration that the outputs show for a getppid: the resolution floor */
	__u64 rss_bytes;   /* memory of the tool, without what it shares with the kernel */
	__u64 ring_bytes;  /* rings and tables shared with the kernel */
	/*
	 * The same as step_ns where the kernel emulates the instructions at both probes, measured
	 * when the tool attached.
	 */
	__u64 site_ns;
	__u32 collections;   /* garbage collections of CPython that were probed */
	__u32 collection_ns; /* added to each of them, at most */
	__u64 cpu_ns;	     /* user + system time of the tool in the window */
	__u64 fault_ps;	     /* added to each page fault that is timed, picoseconds */
};

/*
 * A step function that is called too often to be probed all the time (user/targets/rate_guard.h).
 * Totals since the window began; a later record of the same kind replaces an earlier one.
 */
struct fbt_sampling {
	struct fbt_header header;
	__u32 kind;
	__u32 cost_percent; /* of its threads' time, when its probes were first switched off */
	__u64 time_ns;	    /* of this record */
	__u64 watched_ns;   /* time for which its probes were on */
	__u64 off_ns;	    /* time for which they were off */
	__u64 calls;	 /* calls of the function while its probes were on, including nested ones */
	__u64 cut_steps; /* steps that were open when the probes were switched off */
};

/* How the steps of a kind end. A later record of the same kind replaces an earlier one. */
struct fbt_ends {
	struct fbt_header header;
	__u32 kind;
	__u32 exits;	    /* places that are probed where it leaves, or what it jumps to does */
	__u32 sites;	    /* places in its callers that are probed, where it has returned */
	__u32 tail_calls;   /* instructions by which the function may leave for another one */
	__u64 unseen_steps; /* steps that were not traced: their call site was not known yet */
};

/*
 * The ways out of the function of a kind that makes tail calls. Two strings follow: names of
 * functions that it jumps to, "" where there are none.
 */
struct fbt_tails {
	struct fbt_header header;
	__u32 kind;
	__u32 returns;	  /* return instructions */
	__u32 tail_calls; /* instructions by which it leaves for another function */
	__u32 pointers;	  /* those of them through a register or memory */
	__u32 targets;	  /* functions that the others lead to */
	__u32 reserved;
};

/* How collections of a CPython interpreter are seen. */
enum fbt_collector {
	FBT_COLLECTOR_NONE = 0,	  /* not at all: it has neither of the next two */
	FBT_COLLECTOR_USDT = 1,	  /* gc__start and gc__done */
	FBT_COLLECTOR_SYMBOL = 2, /* begin and ends of the function that collects */
	FBT_COLLECTOR_OFF = 3,	  /* no more: it collected so often that its probes were removed */
	FBT_COLLECTOR_FAILED = 4, /* not at all: its probes could not be attached */
	FBT_COLLECTOR_COUNT = 5,
};

/* No step function was found, and libferrum_python.so is not in it: --python=inject may find one.
 */
#define FBT_PYTHON_OFFERED 1

/*
 * The CPython interpreter of a process. A later record of the same process replaces an earlier one.
 * String: the path of its file.
 */
struct fbt_python {
	struct fbt_header header;
	__u32 tgid;
	__u32 minor;	 /* 11 of 3.11 */
	__u64 time_ns;	 /* what begins from then on is measured so */
	__u64 gil_start; /* where its locks lie: those of a futex wait for the GIL; … */
	__u64 gil_end;	 /* … both 0: not known */
	__u32 collector; /* enum fbt_collector */
	__u32 flags;	 /* FBT_PYTHON_OFFERED */
};

#define FBT_GENERATION_UNKNOWN 3

/*
 * What the interpreter itself kept the next step from, which is of that thread and begins at
 * start_ns. Sent right before it, if anything is not 0. Of an interval the sums of all threads.
 */
struct fbt_stalls {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid;
	__u64 start_ns;
	__u64 gil_ns;	 /* in futex, waiting for the GIL; of a step without waits for a CPU */
	__u64 gc_ns;	 /* in collections: from their begin to their end */
	__u64 gc_own_ns; /* of these, on a CPU and outside of calls; of an interval 0 */
	__u64 gc_longest_ns;
	__u32 gil_waits;
	__u32 gc_count;	     /* collections that ended in it */
	__u32 gc_generation; /* of the longest one, 0 to 2; FBT_GENERATION_UNKNOWN */
	__u32 reserved;
};

/*
 * What the thread of the next step did in the gap before it: that step is of this thread and begins
 * at start_ns. Sent right before it, if the thread was off its CPU in the gap or waited for one.
 */
struct fbt_gap {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid;
	__u64 start_ns;
	__u64 cpu_ns;	/* signed: on a CPU, in and outside of calls */
	__u64 delay_ns; /* waiting for a CPU */
};

/* What the probes of a kind have cost its threads in the window. */
struct fbt_probes {
	struct fbt_header header;
	__u32 kind;
	__u32 reserved;
	__u64 cost_ns; /* of all hits, also of calls that were no steps, and of thread walks */
};

struct fbt_target_exit {
	struct fbt_header header;
	__u64 end_ns;
	__u32 tgid;
	__u32 reserved;
};

/* Last record of a stream that was not cut off. */
struct fbt_window_end {
	struct fbt_header header;
	__u64 end_ns;
};

#ifdef __cplusplus
#define _Static_assert static_assert
#endif
#define FBT_ASSERT_SIZE(type, bytes)                                                               \
	_Static_assert(sizeof(struct type) == (bytes), #type " is part of the capture format")
FBT_ASSERT_SIZE(fbt_header, 8);
FBT_ASSERT_SIZE(fbt_window, 56);
FBT_ASSERT_SIZE(fbt_options, 16);
FBT_ASSERT_SIZE(fbt_target, 24);
FBT_ASSERT_SIZE(fbt_thread_name, 32);
FBT_ASSERT_SIZE(fbt_kind, 40);
FBT_ASSERT_SIZE(fbt_sum, 32);
FBT_ASSERT_SIZE(fbt_step_limits, 32);
FBT_ASSERT_SIZE(fbt_step_faults, 96);
FBT_ASSERT_SIZE(fbt_step, 632);
FBT_ASSERT_SIZE(fbt_run, 16);
FBT_ASSERT_SIZE(fbt_call, 72);
FBT_ASSERT_SIZE(fbt_wake, 120);
FBT_ASSERT_SIZE(fbt_code, 32);
FBT_ASSERT_SIZE(fbt_stack, 552);
FBT_ASSERT_SIZE(fbt_stacks, 32);
FBT_ASSERT_SIZE(fbt_table, 56);
FBT_ASSERT_SIZE(fbt_thread_use, 72);
FBT_ASSERT_SIZE(fbt_cpus, 32);
FBT_ASSERT_SIZE(fbt_lost, 56);
FBT_ASSERT_SIZE(fbt_unseen, 16);
FBT_ASSERT_SIZE(fbt_cost, 88);
FBT_ASSERT_SIZE(fbt_target_exit, 24);
FBT_ASSERT_SIZE(fbt_window_end, 16);
FBT_ASSERT_SIZE(fbt_file, 40);
FBT_ASSERT_SIZE(fbt_manual, 16);
FBT_ASSERT_SIZE(fbt_clock, 24);
FBT_ASSERT_SIZE(fbt_hang, 112);
FBT_ASSERT_SIZE(fbt_sampling, 56);
FBT_ASSERT_SIZE(fbt_ends, 32);
FBT_ASSERT_SIZE(fbt_tails, 32);
FBT_ASSERT_SIZE(fbt_probes, 24);
FBT_ASSERT_SIZE(fbt_python, 48);
FBT_ASSERT_SIZE(fbt_stalls, 72);
FBT_ASSERT_SIZE(fbt_gap, 40);

#endif
