/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* One step, and the figures that ferrum computes of a step (cbtop, types.rs). */
#ifndef FBT_MODEL_STEP_H
#define FBT_MODEL_STEP_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_look.h"
#include "fbt_explain.h"
#include "base/vec.h"

/* Most calls kept per step. Beyond that, calls_truncated is set; the sums stay exact. */
#define STEP_CALLS_MAX 65536

typedef VEC(struct fbt_call) call_vec;
typedef VEC(struct fbt_wake) wake_vec;
typedef VEC(struct fbt_stack) stack_vec;
typedef VEC(struct fbt_look_thread) look_vec;

/* A process that a step may have waited for, and the one that this one waited for itself. */
struct step_peer {
	struct fbt_peer record;
	struct fbt_peer beyond; /* header.type 0: none is known */
	/* Whose signals stopped them; header.type 0: it is not known, or none did. */
	struct fbt_stop_sender sender;
	struct fbt_stop_sender beyond_sender;
};
typedef VEC(struct step_peer) peer_vec;
typedef VEC(struct fbt_woken) woken_vec;
typedef VEC(struct fbt_taken) taken_vec;

struct step_gpu;

/* The class of a step (judge/class.h), which the classifier sets. */
struct step_class {
	bool is_known;
	bool by_argument;  /* else by its work in ns */
	uint32_t bits;	   /* of the work or the argument: 0 for 0, else its highest bit + 1 */
	uint64_t usual_ns; /* length of its steps; 0: not known, or step is not a slowest one */
};

/* What a CPython interpreter kept the step from. What is not known is 0. */
struct step_stalls {
	bool gil_known;
	bool gc_known;
	struct fbt_stalls record;
};

/*
 * What the thread did in the gap before the step. The times sum up to record.gap_ns at most; the
 * rest is asleep in calls. Only of gaps in which the thread was off its CPU or waited for one.
 */
struct step_gap {
	bool known;
	uint64_t cpu_ns;	       /* on a CPU, in and outside of calls */
	uint64_t delay_ns;	       /* waiting for a CPU */
	uint64_t stopped_ns;	       /* upper bound, of the stop that was seen */
	uint64_t off_ns;	       /* at least: otherwise off its CPU, outside of calls */
	struct fbt_stop stop;	       /* header.type is 0 if no stop was seen */
	struct fbt_stop_sender sender; /* as stop_sender of the step */
};

/* A wait that spins, see model/spins.h: calls in a row that each came to nothing. */
struct spin {
	uint64_t start_ns; /* of the first call */
	uint64_t end_ns;   /* of the last one */
	/*
	 * Wall time, with the code between the calls. Without what lies between two calls if the
	 * records of those in between were lost, unless the sums of the step account for it.
	 */
	uint64_t ns;
	uint64_t calls;
	uint64_t calls_ns;  /* of ns, in calls */
	uint64_t delay_ns;  /* of ns, outside of calls, waiting for a CPU; as far as is known */
	uint64_t unseen_ns; /* of ns, in calls whose records were lost */
	uint32_t nr;	    /* of the call that took most of that */
	bool partial;	    /* records in it were lost: there were more calls */
	size_t first;	    /* in step->calls; */
	size_t end;	    /* after the last one */
};

/* The waits of one step. All 0: none, or its calls are not known. */
struct step_spins {
	uint64_t ns;
	uint64_t calls;
	uint32_t waits;
	bool partial;
	struct spin longest;
};

struct step {
	uint64_t number;      /* 1, 2, … in the window, in the order in which steps ended */
	uint64_t kind_number; /* the same among the steps of its kind */
	struct fbt_step record;
	call_vec calls;	      /* by start time; empty unless the kernel sent them */
	wake_vec wakes;	      /* who ended its long futex waits, as far as known; by start time */
	stack_vec stacks;     /* of calls that were slow, as far as known */
	peer_vec peers;	      /* of a step that took long; as far as known */
	look_vec looks;	      /* what was seen while such calls were open; each look by depth */
	woken_vec wokens;     /* who woke it in calls, as far as that was looked at */
	taken_vec takens;     /* who had the CPUs that other threads of the process waited for */
	bool calls_truncated; /* some calls, or what is known of them, are missing */
	bool complete;	      /* nothing of the step was lost or cut off; gpu does not count */
	bool manual;	      /* the user asked for its escalation */
	struct step_class class;
	/*
	 * The stop of the thread or, if the thread was not stopped, of a thread that it waited for.
	 * header.type is 0 if no stop was seen. Polls of a future may run on several threads: the
	 * stop of one that was polling it has the tid of the step.
	 */
	struct fbt_stop stop;
	/* Whose signal that was; header.type is 0 if it is not known, or was none. */
	struct fbt_stop_sender stop_sender;
	struct step_gpu *gpu; /* set by gpu/merge; NULL: its process has no GPU records */
	struct step_stalls stalls;
	struct step_gap gap;
	struct step_spins spins;
	struct fbt_samples samples;	    /* where it computed; header.type is 0: not sampled */
	struct fbt_fault_sites fault_sites; /* header.type is 0: not looked at */
	struct fbt_taken taken; /* who had its CPU; header.type is 0: it was not looked at */
};

/* Frees what a step has of its own: calls, wakes, stacks, peers and looks. */
void step_clear(struct step *step);

/* Forgets the same: another one has taken them. */
void step_hand_over(struct step *step);

/* Whether it stands for processes of one cgroup together. */
static inline bool taker_is_group(const struct fbt_taker *taker)
{
	return !taker->tgid;
}

/*
 * Leaves of a wait for a CPU no more than that: who had it just then is not known, so each taker
 * keeps its share.
 */
void taken_cut(struct fbt_taken *taken, uint64_t waited_ns);

/* Where the time of a step can go. */
enum step_part {
	STEP_OWN = 0,  /* its own code: on a CPU, outside of calls */
	STEP_CPU_WAIT, /* ready to run, without a CPU: in calls and outside */
	STEP_CALLS,    /* + enum fbt_category: in calls, but not waiting for a CPU */
	/*
	 * In page faults outside of calls, without waiting for a disk. On a CPU, except for waits
	 * for locks.
	 */
	STEP_FAULTS = STEP_CALLS + FBT_CATEGORY_COUNT,
	/* Outside of calls, neither on a CPU nor waiting for one: */
	STEP_DISK_WAIT, /* for pages from a disk */
	STEP_STOPPED,	/* by a signal, a tracer or a freezer */
	STEP_OFF_CPU,	/* all else, such as interrupts, and CPU time that the host took */
	STEP_AWAIT,	/* of a future: between its polls */
	STEP_PARTS,
};

/*
 * The parts sum up to step_total_ns() exactly. A part that was not measured is 0, and its time is
 * in STEP_OWN. Where calls were not traced, STEP_OWN is all time on a CPU, and STEP_OFF_CPU all
 * time asleep. STEP_AWAIT is always known.
 */
struct step_parts {
	uint64_t ns[STEP_PARTS];
	bool known;	   /* all were measured, except maybe STEP_FAULTS */
	bool faults_known; /* STEP_FAULTS was measured; else it is 0, and its time is in STEP_OWN */
	bool stops_known;  /* else STEP_OFF_CPU may contain a stop that was too short to be seen */
};

/* Ferrum's SyscallBreakdown. */
struct breakdown {
	uint64_t category_us[FBT_CATEGORY_COUNT];
	uint64_t total_us;
	bool unknown; /* calls were not traced: only total_us means anything */
};

/*
 * False: all that is derived from system calls, compute included, is unknown and must not be shown.
 */
bool step_calls_known(const struct step *step);

/*
 * An exception or longjmp has left its function. That is seen only when the thread begins its next
 * step or an outer function ends: when it really ended is not known.
 */
bool step_end_is_late(const struct step *step);

/* Whether PyTorch's profiler was on during the step, so that it took longer than usual. */
bool step_is_profiled(const struct step *step);

/* Whether the step's page faults were timed, and their time without waits for a disk. */
bool step_faults_known(const struct step *step);
uint64_t step_faults_ns(const struct step *step);

uint64_t step_total_ns(const struct step *step);   /* record.thread_ns */
uint64_t step_wall_ns(const struct step *step);	   /* end - start */
uint64_t step_syscall_ns(const struct step *step); /* sum of the six categories */
uint64_t step_compute_ns(const struct step *step); /* total - syscall, never below 0 */
void step_split(const struct step *step, struct step_parts *parts);

/*
 * What the step's page faults waited for a disk. Where calls are not known, sleep in them cannot be
 * told from that unless each fault was timed: then it is part of STEP_OFF_CPU, else 0.
 */
uint64_t step_disk_wait_ns(const struct step *step, const struct step_parts *parts);

/*
 * Sets step->gap. next is the latest fbt_gap that came, which belongs to this step or to none; it
 * is emptied.
 */
void step_join_gap(struct step *step, struct fbt_gap *next);

/*
 * "own", "cpu_wait", "mmap_net", … "faults", "disk_wait", … "off_cpu". Where calls are not known:
 * "on_cpu", "cpu_wait", "stopped" and "asleep", and NULL for the other parts, which are unknown
 * then.
 */
const char *step_part_name(enum step_part part, bool calls_known);

/*
 * Of the parts, waiting for the GIL (of STEP_CALLS + FBT_FUTEX) and collecting garbage (of
 * STEP_OWN; of an interval from the begins to the ends of collections). 0 if it is not known.
 */
uint64_t step_gil_ns(const struct step *step, const struct step_parts *parts);
uint64_t step_gc_ns(const struct step *step, const struct step_parts *parts);

uint64_t step_calls(const struct step *step);

/* How many calls a record stands for, how long they took, and the longest of them. */
uint64_t call_count(const struct fbt_call *call);
uint64_t call_ns(const struct fbt_call *call);
uint64_t call_longest_ns(const struct fbt_call *call);

/* Calls of the step that have a record. */
uint64_t step_recorded_calls(const struct step *step);
uint64_t step_errors(const struct step *step);

/*
 * Time in which the other threads were neither on a CPU nor waiting for one, where it was measured.
 */
uint64_t step_team_blocked_ns(const struct fbt_step *record);

/*
 * The longest that one thread may have waited for the CPU limits of its cgroups: throttled_ns is
 * the sum of several CPUs, but no wait is longer than the periods in which a limit was reached and
 * the rest of one more.
 */
uint64_t step_throttled_ns(const struct fbt_step_limits *limits);

/*
 * What the host of a virtual machine took of the step, as far as it was off the CPU outside of
 * calls; 0 if calls are not known. The host may have taken the CPU while another thread had it.
 */
uint64_t step_steal_ns(const struct step *step, const struct step_parts *parts);

const char *stop_reason_name(enum fbt_stop_reason reason); /* "signal", "tracer", "freezer" */
const char *step_end_name(enum fbt_step_end end); /* "return", "unwound", "truncated", "exited" */

/* In microseconds. Each figure is rounded down, so the sum never exceeds the total. */
void step_breakdown(const struct step *step, struct breakdown *breakdown);

uint64_t breakdown_syscall_us(const struct breakdown *breakdown); /* saturates */
uint64_t breakdown_compute_us(const struct breakdown *breakdown);

/* Share of the total that is syscall time; 0 if the total is 0, not clamped to 100. */
double breakdown_overhead_percent(const struct breakdown *breakdown);

/* The same, rounded to the number that ferrum's text form "{:.1}" shows. */
double breakdown_overhead_tenths(const struct breakdown *breakdown);

/* The category with the most time, the last one of equals; "none" if all are 0. */
const char *breakdown_dominant(const struct breakdown *breakdown);

#endif
