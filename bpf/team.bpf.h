/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which other thread of the process waited longest for a CPU while a step ran. If the threads of a
 * step meet at a spinning barrier, no system call shows a late thread: the step's own thread spins
 * until the last one has had a CPU.
 *
 * The kernel keeps the sum of each thread's waits. The growth of that sum during a step is the
 * difference between two walks over the threads: one at the end of a step that may be slow, and the
 * one before, which is at most TEAM_SEEN_NS old when the step begins. A thread has one figure for
 * all steps: if steps run side by side, each sees only the part of the wait after the last walk.
 */
#ifndef FBT_TEAM_BPF_H
#define FBT_TEAM_BPF_H

#include <bpf/bpf_core_read.h>
#include "threads.bpf.h"
#include "times.bpf.h"

/* Threads of a process beyond this number are not looked at. */
#define TEAM_MAX 64
/* How old the walk before a step may be: one walk takes 0.1 us a thread. */
#define TEAM_SEEN_NS 2000000
/* A walk at the end of a step that is not slow is due so long after the last one. */
#define TEAM_DUE_NS 10000000
/* No walk after a shorter step. */
#define TEAM_STEP_MIN_NS 200000

#define has_team(task)                                                                             \
	(has_run_delay(task) && bpf_core_field_exists((task)->signal->thread_head) &&              \
	 bpf_core_field_exists((task)->thread_node))

struct team_walk {
	__u64 since_ns; /* figures that are older do not count */
	__u64 now;
	__u64 starved_ns;
	__u32 starved_tid;
	__u32 tgid;
	__u32 self;
	int priority; /* of the step's thread */
};

/* Reads the figure of one thread, and keeps it for the next walk. */
static __always_inline void look_at(struct team_walk *walk, struct task_struct *task)
{
	__u64 delay = BPF_CORE_READ(task, sched_info.run_delay), grown;
	__u32 tid = BPF_CORE_READ(task, pid), index;
	struct fbt_slot *slot;
	__u16 *id;

	id = slot_of_tid(tid);
	if (!id || !*id || tid == walk->self)
		return;
	index = *id;
	slot = bpf_map_lookup_elem(&slots, &index);
	/* The list may have changed under the walk: then this is no thread of the process. */
	if (!slot || slot->tid != tid || slot->tgid != walk->tgid)
		return;
	grown = delay - slot->team_delay_ns;
	/* A thread that gives way to others, as it was told to, waits by design. */
	if (slot->team_seen_ns >= walk->since_ns && (__s64)grown > (__s64)walk->starved_ns &&
	    BPF_CORE_READ(task, static_prio) <= walk->priority) {
		walk->starved_ns = grown;
		walk->starved_tid = tid;
	}
	slot->team_delay_ns = delay;
	slot->team_seen_ns = walk->now;
}

/* Not inlined, so that the verifier checks it once. */
__noinline int walk_team(struct team_walk *walk)
{
	struct task_struct *task = bpf_get_current_task_btf(), *other;
	struct list_head *head, *node;

	if (!walk || !has_team(task))
		return 0;
	head = (void *)task->signal + bpf_core_field_offset(struct signal_struct, thread_head);
	node = BPF_CORE_READ(head, next);
	for (int i = 0; i < TEAM_MAX && node && node != head; i++) {
		other = (void *)node - bpf_core_field_offset(struct task_struct, thread_node);
		look_at(walk, other);
		node = BPF_CORE_READ(node, next);
	}
	return 0;
}

static __always_inline struct team_walk team_walk_of(struct fbt_slot *slot,
						     struct task_struct *task, __u64 now)
{
	slot->team_walked_ns = now;
	return (struct team_walk){
		.now = now, .tgid = slot->tgid, .self = slot->tid, .priority = task->static_prio};
}

/* A step begins at now. */
static __always_inline void begin_team(struct fbt_slot *slot, struct task_struct *task, __u64 now)
{
	struct team_walk walk;

	if (now - slot->team_walked_ns < TEAM_SEEN_NS ||
	    (slot->step_end_ns && slot->step_last_ns < TEAM_STEP_MIN_NS))
		return;
	walk = team_walk_of(slot, task, now);
	walk_team(&walk);
}

/* A long step is one outlier, many of them are how long steps take now. */
static __always_inline void learn_length(struct fbt_slot *slot, __u64 ns)
{
	__u64 usual = slot->step_usual_ns;

	if (!usual)
		slot->step_usual_ns = ns;
	else if (ns > 2 * usual)
		slot->step_usual_ns = usual + usual / 8;
	else
		slot->step_usual_ns = usual - usual / 8 + ns / 8;
}

/* The step that began at start ends at now: fills in its starved_ns and starved_tid. */
static __always_inline void end_team(struct fbt_step *step, struct fbt_slot *slot,
				     struct task_struct *task, __u64 start, __u64 now)
{
	bool is_long = now - start > 2 * slot->step_usual_ns;
	__u64 before = slot->team_walked_ns;
	struct team_walk walk;

	step->starved_ns = 0;
	step->starved_tid = 0;
	step->reserved = 0;
	learn_length(slot, now - start);
	if (now - start < TEAM_STEP_MIN_NS || (!is_long && now - before < TEAM_DUE_NS))
		return;
	walk = team_walk_of(slot, task, now);
	walk.since_ns = start - TEAM_SEEN_NS;
	walk_team(&walk);
	if (before < walk.since_ns)
		return;
	step->starved_ns = walk.starved_ns;
	step->starved_tid = walk.starved_tid;
	slot->step_flags |= FBT_STEP_TEAM_KNOWN;
}

#endif
