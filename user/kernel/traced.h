/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The traced processes, and the slots of their threads (fbt_shared.h). Takes slots for threads that
 * already exist, sums up the rows of slots, and gives slots back after their threads have ended.
 * The exact table of a process, what its threads used, and on which CPUs they may run, is sent when
 * it or the window ends; of a thread that has ended, when its slot is given back.
 */
#ifndef FBT_KERNEL_TRACED_H
#define FBT_KERNEL_TRACED_H

#include <stdbool.h>
#include "base/vec.h"
#include "kernel/shared.h"
#include "model/event.h"

struct target_seen;
struct uprobes;

/* Sums of one process: those of its ended threads, plus a snapshot of its living threads. */
struct process_sums {
	struct fbt_sum rows[FBT_NR_COUNT];
	uint64_t unfinished[FBT_NR_COUNT]; /* number of calls that have not returned */
	uint64_t open_ns[FBT_NR_COUNT];	   /* time of these calls so far, which is not in rows */
	uint64_t thread_ns;		   /* sum of the times that its threads were traced */
	struct fbt_slot_stalls stalls;	   /* with what is open; gc_own_ns is not summed */
	uint64_t gc_longest; /* since the last time, as in fbt_slot; with one that is open */
	uint32_t threads;    /* living threads */
};

/* Puts all slots but 0 on the free list. To be called before anything is attached. */
void slots_init(struct shared *shared);

/*
 * Takes a slot for an existing thread. Returns the index of the slot, 0 if the thread already has
 * one, or -ENOSPC.
 */
int slots_take(struct shared *shared, uint32_t tgid, uint32_t tid, uint64_t now_ns);

/*
 * Empties thread_stacks. To be called after slots were taken, and from time to time: a BPF
 * program that runs at the same time may again enter a thread that has just got its slot.
 */
void slots_forget_stacks(struct shared *shared);

/* Marks a thread that was in a call when it got its slot: its time counts from the call's end. */
void slots_mark_blocked(struct shared *shared, uint32_t slot);

/* Slots with this index and above were never used. */
uint32_t slots_used(const struct shared *shared);

/* Ends the slot of a thread that ended during slots_take(), as the BPF side would have done. */
void slots_end(struct shared *shared, uint32_t tid, uint64_t now_ns);

/*
 * Adds the rows of a slot to sums, as of now_ns. The thread may be running, so the rows are read
 * again until the copy is consistent: until the sum of the rows equals the thread's time in
 * syscalls. Returns false if no copy was.
 */
bool slots_add(const struct shared *shared, uint32_t slot, uint64_t now_ns,
	       struct process_sums *sums);

/* Zeroes the slot of an ended thread and puts it on the free list. */
void slots_give_back(struct shared *shared, uint32_t slot);

/* A traced process. */
struct traced {
	uint32_t tgid;
	uint32_t live_threads; /* threads with a slot at the last traced_set__collect() */
	uint64_t start_ns;     /* when tracing of it began */
	uint64_t start_ticks;  /* when it began itself, as in /proc/PID/stat; 0: not known */
	bool wanted;	       /* named by -p or started as COMMAND, not found by --follow or -a */
	uint32_t parent_tgid;  /* set if --follow found it, or if it is one of a Python engine */
	bool taken;	       /* its threads have slots, and new threads get them */
	bool rescan;	       /* look for step functions now */
	uint64_t code_kib;     /* that it had mapped when it was searched last; only with -a */
	struct uprobes *uprobes; /* links for it, or in files of its own; NULL: none */
	struct uprobes *stale;	 /* bound to a first thread that has ended; kept until replaced */
	VEC(uint32_t) kinds;	 /* step functions in the files it has mapped */
	uint32_t missing;	 /* threads without a slot, because none was free */
	uint64_t counted;	 /* what the kernel side had counted when they were listed */
	size_t probed_kinds;	 /* how many of kinds are probed */
	struct target_seen *seen;
	struct process_sums ended;     /* sums of its ended threads */
	struct process_sums *previous; /* for interval steps: sums at the last boundary, or NULL */
	uint64_t previous_ns;
	bool is_part;	      /* it began between two boundaries: its first interval is cut off */
	struct fbt_cpus cpus; /* its cpus are 0 if they are not known */
};

struct traced_set;

/* shared is borrowed. NULL: -ENOMEM. */
struct traced_set *traced_set__new(struct shared *shared, const struct record_output *output);
void traced_set__free(struct traced_set *set);

/* Moves the probes of all processes to one owner, which can then detach them together. */
void traced_set__give_probes(struct traced_set *set, struct uprobes *to);

/* Adds a process, or finds it if it was added before. NULL: -ENOMEM. */
struct traced *traced_set__add(struct traced_set *set, uint32_t tgid);
struct traced *traced_set__find(struct traced_set *set, uint32_t tgid);

/* Whether its process is still there, and not another one that has got its number. */
bool traced_is_there(const struct traced *traced);

/*
 * The bits of a cookie that make a probe in all processes do nothing in others than this one. 0:
 * there is no room for more such processes.
 */
uint64_t traced_set__only(struct traced_set *set, uint32_t tgid);

size_t traced_set__count(const struct traced_set *set);

/* The process at index; NULL if index is too large. */
struct traced *traced_set__at(struct traced_set *set, size_t index);

/*
 * Gives slots to the threads of a process that are not ending. To be called after the BPF side has
 * begun to trace its new threads, and again if slots were missing. Returns how many threads have a
 * slot now; -ESRCH if the process has ended.
 */
int traced_set__take_threads(struct traced_set *set, uint32_t tgid, uint64_t now_ns);

/*
 * Counts the threads that found no slot in the last traced_set__take_threads() as lost. To be
 * called once, when the process is taken, and before its threads are listed again: the kernel side
 * counts those that begin once it traces new threads. Before that it had counted as many as counted
 * says (traced_set__counted()), of all processes.
 */
void traced_set__count_missing(struct traced_set *set, const struct traced *traced,
			       uint64_t counted);
uint64_t traced_set__counted(const struct traced_set *set);
uint64_t traced_set__lost_threads(const struct traced_set *set);

/*
 * Collects ended threads in two halves: mark before the rings are drained, collect afterwards. So
 * no slot is given back while a ring contains records of it. Calls on_end, if not NULL, for each
 * thread.
 */
void traced_set__mark_ended(struct traced_set *set);
void traced_set__collect(struct traced_set *set, void (*on_end)(void *ctx, uint32_t tid),
			 void *ctx);

/* Ends the slots of a process that has ended, although its slots say that threads live. */
void traced_set__end_slots(struct traced_set *set, const struct traced *traced, uint64_t now_ns);

/* Ends those slots of a process whose threads have ended without the BPF side
 * (loader__missed_exits). */
void traced_set__end_gone(struct traced_set *set, const struct traced *traced, uint64_t now_ns);

/* Sums over all threads of a process, ended and living, as of now_ns. */
void traced_set__sum(struct traced_set *set, const struct traced *traced, uint64_t now_ns,
		     struct process_sums *sums);

/* Sends the table of a process, what those of its threads used that have a slot, and its CPUs. */
void traced_set__send_table(struct traced_set *set, struct traced *traced, uint64_t now_ns);

/* Removes a process and sends nothing. */
void traced_set__forget(struct traced_set *set, struct traced *traced);

/* Sends the table and the exit of a process that has ended, and removes the process. */
void traced_set__remove(struct traced_set *set, struct traced *traced, uint64_t now_ns);

#endif
