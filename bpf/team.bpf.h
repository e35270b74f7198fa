/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What the other threads of the process did while a step ran: their time on a CPU and waiting for
 * one, and which of them waited longest. A step whose threads meet at a spinning barrier makes no
 * call that would tell: its own thread computes, for nothing, until the last one has had a CPU.
 *
 * The kernel keeps the sum of each thread's waits. What a step has added to it is the difference of
 * two walks over the threads: one at the end of a step that may be slow, and the one before, which
 * is TEAM_SEEN_NS old at most when the step begins. Figures of a thread are its own, whichever step
 * reads them: if steps run side by side, each sees only the part of a wait after the last walk.
 *
 * A thread that is late because of a call is looked for at the end of a long step: bpf/late.bpf.h.
 *
 * The sums over all of them are kept with the step, and told only if there was a walk right when it
 * began. Threads that begin in the step, or get their slot in it, add their own from then on; if
 * one ends, they are not known.
 */
#ifndef FBT_TEAM_BPF_H
#define FBT_TEAM_BPF_H

#include <bpf/bpf_core_read.h>
#include "late.bpf.h"
#include "threads.bpf.h"
#include "times.bpf.h"

/* One walk takes 0.1 us a thread: with more threads than this, walks are as much rarer. */
#define TEAM_OFTEN 64
/* How old the walk before a step may be. */
#define TEAM_SEEN_NS 2000000
/* At the end of a step that is not slow, a walk is due this long after the last one. */
#define TEAM_DUE_NS 10000000
/* Threads that one function looks at; FBT_TEAM_MAX is a multiple of it. */
#define TEAM_AT_ONCE 8
/* No walk after a shorter step. */
#define TEAM_STEP_MIN_NS 200000
/*
 * If steps usually take this long per thread, the threads are walked at the beginning and the end
 * of every step.
 */
#define TEAM_SHARE_NS 200000

/*
 * The thread of a longer walk was kept off its CPU. What the others did in that time would be
 * counted for the step.
 */
#define WALK_MAX_NS 100000
/* With many threads it takes longer: a quarter to half of that each, more where caches are cold. */
#define WALK_THREAD_NS 1000

static __always_inline __u64 walk_max_ns(__u32 threads)
{
	return WALK_MAX_NS + (__u64)threads * WALK_THREAD_NS;
}

#define has_team(task)                                                                             \
	(has_run_delay(task) && bpf_core_field_exists((task)->signal->thread_head) &&              \
	 bpf_core_field_exists((task)->thread_node))

struct team_walk {
	__u64 head;	/* address of the list of threads; see look_at_some() */
	__u64 since_ns; /* figures that are older do not count */
	__u64 now;
	__u64 starved_ns;
	__u32 starved_tid;
	__u32 tgid;
	__u32 self;
	int priority; /* of the step's thread */
	/*
	 * Sums over the other threads: for how long they have been traced, and what they had used
	 * by now, since then.
	 */
	__u64 ns;
	__u64 cpu_ns;
	__u64 delay_ns;
	__u32 threads;
	__u8 unknown;  /* what one of them used is not known */
	__u8 is_whole; /* all threads were looked at, and what they used is known */
};

/*
 * How long a thread has waited for a CPU, with the wait that it is in: by the clock of its CPU,
 * which is a tick old at most, because other threads run there.
 */
static __always_inline __u64 waits_of(struct task_struct *task)
{
	__u64 delay = BPF_CORE_READ(task, sched_info.run_delay);
	__u64 since = BPF_CORE_READ(task, sched_info.last_queued), clock;

	if (!since || !has_cpu_clock(task))
		return delay;
	clock = BPF_CORE_READ(task, se.cfs_rq, rq, clock);
	return (__s64)(clock - since) > 0 ? delay + clock - since : delay;
}

/* Reads the figure of one thread, and keeps it for the next walk. */
static __always_inline int look_at(struct team_walk *walk, struct task_struct *task)
{
	__u32 tid = BPF_CORE_READ(task, pid), index;
	__u64 delay, grown, cpu, born;
	struct fbt_slot *slot;

	if (tid == walk->self)
		return 0;
	slot = find_thread(tid, &index);
	/* The list may have changed under the walk: then this is no thread of the process. */
	if (!slot || slot->tid != tid || slot->tgid != walk->tgid)
		return 0;
	delay = waits_of(task);
	walk->ns += walk->now - slot->taken_ns;
	cpu = BPF_CORE_READ(task, se.sum_exec_runtime);
	/* One that gets its slot while a step is open adds nothing of its life before. */
	born = *(volatile __u64 *)&slot->born_cpu_ns;
	if (born == FBT_USE_UNKNOWN)
		walk->unknown = 1;
	walk->cpu_ns += cpu - born;
	walk->delay_ns += delay - slot->born_delay_ns;
	walk->threads++;
	grown = delay - slot->team_delay_ns;
	/* A thread that gives way to others, as it was told to, waits by design. */
	if (slot->team_seen_ns >= walk->since_ns && (__s64)grown > (__s64)walk->starved_ns &&
	    BPF_CORE_READ(task, static_prio) <= walk->priority) {
		walk->starved_ns = grown;
		walk->starved_tid = tid;
	}
	slot->team_delay_ns = delay;
	slot->team_seen_ns = walk->now;
	learn_use(slot, cpu + delay, walk->now);
	return 0;
}

/*
 * Looks at some threads, from a node of the list on; returns the node after them. Not inlined, so
 * that the verifier checks it once: such a function takes addresses as numbers. For each thread by
 * itself the loop around it would be too long.
 */
__noinline __u64 look_at_some(struct team_walk *walk, __u64 address)
{
	for (int i = 0; i < TEAM_AT_ONCE && walk && address && address != walk->head; i++) {
		struct list_head *node = (struct list_head *)address;

		look_at(walk,
			(void *)node - bpf_core_field_offset(struct task_struct, thread_node));
		address = (__u64)BPF_CORE_READ(node, next);
	}
	return address;
}

/* Not inlined, so that the verifier checks it once. */
__noinline int walk_team(struct team_walk *walk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct list_head *head;
	__u64 node;

	if (!walk || !has_team(task))
		return 0;
	head = (void *)task->signal + bpf_core_field_offset(struct signal_struct, thread_head);
	walk->head = (__u64)head;
	node = (__u64)BPF_CORE_READ(head, next);
	for (int i = 0; i < FBT_TEAM_MAX / TEAM_AT_ONCE && node && node != (__u64)head; i++)
		node = look_at_some(walk, node);
	walk->is_whole = node == (__u64)head;
	/* In one condition, the verifier would go through the loop four times as long. */
	if (walk->unknown)
		walk->is_whole = 0;
	return 0;
}

/* How many threads of the process have ended; ~0: one is ending, or it is not known. */
static __always_inline __u32 exits_of(__u32 tgid)
{
	struct fbt_target_state *target = bpf_map_lookup_elem(&targets, &tgid);
	__u32 begun;

	if (!target)
		return ~0u;
	begun = *(volatile __u32 *)&target->exits_begun;
	return begun == *(volatile __u32 *)&target->exits_done ? begun : ~0u;
}

static __always_inline struct team_walk team_walk_of(struct fbt_slot *slot,
						     struct task_struct *task, __u64 now)
{
	slot->team_walked_ns = now;
	return (struct team_walk){
		.now = now, .tgid = slot->tgid, .self = slot->tid, .priority = task->static_prio};
}

/* Steps take long, beside what it takes to look at the threads. */
static __always_inline bool is_walk_cheap(const struct fbt_slot *slot)
{
	return slot->step_usual_ns >= (__u64)slot->team_threads * TEAM_SHARE_NS &&
	       slot->step_usual_ns >= TEAM_STEP_MIN_NS;
}

/* A time between walks, of at most TEAM_OFTEN threads, or of as many as there are. */
static __always_inline __u64 between_walks(const struct fbt_slot *slot, __u64 ns)
{
	return slot->team_threads > TEAM_OFTEN ? ns / TEAM_OFTEN * slot->team_threads : ns;
}

/* A step begins at now. */
static __always_inline void begin_team(struct fbt_slot *slot, struct task_struct *task, __u64 now)
{
	struct team_walk walk;

	slot->team_ns = 0;
	if (slot->step_end_ns && slot->step_last_ns < TEAM_STEP_MIN_NS)
		return;
	if (now - slot->team_walked_ns < between_walks(slot, TEAM_SEEN_NS) && !is_walk_cheap(slot))
		return;
	slot->team_exits = exits_of(slot->tgid);
	walk = team_walk_of(slot, task, now);
	walk_team(&walk);
	slot->team_threads = walk.threads;
	if (!walk.is_whole || slot->team_exits == ~0u)
		return;
	slot->team_ns = walk.ns + 1; /* not 0 */
	slot->team_cpu_ns = walk.cpu_ns;
	slot->team_delay_sum_ns = walk.delay_ns;
}

/* One long step is an outlier; many long steps are the new usual length. */
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

/* What the other threads did since begin_team, if that is known. */
static __always_inline void time_team(struct fbt_step *step, struct fbt_slot *slot,
				      const struct team_walk *walk, __u64 now)
{
	__u64 ns = walk->ns + 1 - slot->team_ns;

	if (!slot->team_ns || !walk->is_whole || slot->team_exits != exits_of(slot->tgid) ||
	    bpf_ktime_get_ns() - now > walk_max_ns(walk->threads))
		return;
	step->team_cpu_ns = walk->cpu_ns - slot->team_cpu_ns;
	step->team_delay_ns = walk->delay_ns - slot->team_delay_sum_ns;
	if ((__s64)ns < 0 || (__s64)step->team_cpu_ns < 0 || (__s64)step->team_delay_ns < 0) {
		step->team_cpu_ns = 0;
		step->team_delay_ns = 0;
		return;
	}
	step->team_ns = ns;
	slot->step_flags |= FBT_STEP_TEAM_TIMED;
}

/* The step that began at start ends at now: fills in what is known of other threads. */
static __always_inline void end_team(struct fbt_step *step, struct fbt_slot *slot,
				     struct task_struct *task, __u64 start, __u64 now)
{
	bool is_long = now - start > 2 * slot->step_usual_ns;
	__u64 before = slot->team_walked_ns;
	struct team_walk walk;

	step->starved_ns = 0;
	step->starved_tid = 0;
	step->late_ns = 0;
	step->late_tid = 0;
	step->late_nr = 0;
	step->team_ns = 0;
	step->team_cpu_ns = 0;
	step->team_delay_ns = 0;
	learn_length(slot, now - start);
	if (now - start < TEAM_STEP_MIN_NS ||
	    (!is_long && !is_walk_cheap(slot) && now - before < between_walks(slot, TEAM_DUE_NS)))
		return;
	walk = team_walk_of(slot, task, now);
	walk.since_ns = start - between_walks(slot, TEAM_SEEN_NS);
	begin_late(slot, start, now);
	/* Before the other walk, which learns what threads do in this step. */
	if (is_long && has_team(task))
		walk_late(slot->tid);
	walk_team(&walk);
	slot->team_threads = walk.threads;
	step->late_ns = slot->late.ns;
	step->late_tid = slot->late.tid;
	step->late_nr = slot->late.nr;
	time_team(step, slot, &walk, now);
	if (before < walk.since_ns)
		return;
	step->starved_ns = walk.starved_ns;
	step->starved_tid = walk.starved_tid;
	slot->step_flags |= FBT_STEP_TEAM_KNOWN;
}

#endif
