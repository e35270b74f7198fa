/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which thread of the process was kept from its work by calls while a step ran. Threads that spin
 * at barriers make no call that would show for whom they wait: so the step's end looks for a thread
 * that usually computes, and made long calls within the step.
 */
#ifndef FBT_LATE_BPF_H
#define FBT_LATE_BPF_H

#include <bpf/bpf_core_read.h>
#include "threads.bpf.h"

/* Whether a thread usually computes is known for stretches of this length or more. */
#define USE_MIN_NS 20000000

/* Threads that one function looks at; FBT_TEAM_MAX is a multiple of it. */
#define LATE_AT_ONCE 8

/*
 * Long calls of a thread of the process of self, within the step of self. A wait that began before
 * it, or goes on after it, is not what the step has waited for; and who waits in futex, but not for
 * a lock, waits for work. What is found is in the slot of self, because older kernels allow 512
 * bytes of stack in all.
 */
__noinline int look_late(__u32 self, __u64 address)
{
	struct task_struct *task = (struct task_struct *)address;
	__u32 tid = BPF_CORE_READ(task, pid), index = 0, own = 0, nr = 0;
	struct fbt_slot *slot = find_thread(tid, &index), *stepping;
	__u64 sum = 0, longest = 0;
	struct fbt_past *past;
	struct fbt_late *walk;

	/* The list may have changed under the walk: then this is no thread of the process. */
	if (!slot || tid == self || slot->tid != tid || !slot->computes)
		return 0;
	stepping = find_thread(self, &own);
	past = bpf_map_lookup_elem(&pasts, &index);
	if (!stepping || !past || slot->tgid != stepping->tgid || past->tid != tid)
		return 0;
	walk = &stepping->late;
	for (__u32 i = 0; i < FBT_PAST_CALLS; i++) {
		struct fbt_past_call *call = &past->calls[i];
		__u64 ns = call->duration_ns;

		/* Its thread may be writing it: what is read then is not used if it cannot be. */
		if (i >= past->count || call->is_idle || call->end_ns > walk->now ||
		    ns > walk->now - walk->start_ns || call->end_ns - ns < walk->start_ns)
			continue;
		ns -= call->call_delay_ns < ns ? call->call_delay_ns : ns;
		sum += ns;
		if (ns > longest) {
			longest = ns;
			nr = call->nr;
		}
	}
	if (sum > walk->ns && sum <= walk->now - walk->start_ns) {
		walk->ns = sum;
		walk->tid = tid;
		walk->nr = nr;
	}
	return 0;
}

/* Some threads, from a node of the list on; returns the node after them. As look_at_some(). */
__noinline __u64 look_late_some(__u32 self, __u64 address, __u64 head)
{
	for (int i = 0; i < LATE_AT_ONCE && address && address != head; i++) {
		struct list_head *node = (struct list_head *)address;

		look_late(self, address - bpf_core_field_offset(struct task_struct, thread_node));
		address = (__u64)BPF_CORE_READ(node, next);
	}
	return address;
}

/*
 * A walk of its own, after a long step only: within walk_team() there is no stack left. The address
 * of the list is taken from its first node: the verifier lets no function take a pointer for a
 * number. If that node is just leaving the list, the walk is too long, and finds no more threads.
 */
__noinline int walk_late(__u32 self)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct list_head *list =
		(void *)task->signal + bpf_core_field_offset(struct signal_struct, thread_head);
	struct list_head *first = BPF_CORE_READ(list, next);
	__u64 head = (__u64)BPF_CORE_READ(first, prev), node = (__u64)first;

	for (int i = 0; i < FBT_TEAM_MAX / LATE_AT_ONCE && node && node != head; i++)
		node = look_late_some(self, node, head);
	return 0;
}

static __always_inline void begin_late(struct fbt_slot *slot, __u64 start, __u64 now)
{
	slot->late.start_ns = start;
	slot->late.now = now;
	slot->late.ns = 0;
	slot->late.tid = 0;
	slot->late.nr = 0;
}

/* ran_ns: for how long the thread has been on a CPU or wanted one, in all. */
static __always_inline void learn_use(struct fbt_slot *slot, __u64 ran_ns, __u64 now)
{
	__u64 ns = now - slot->use_seen_ns;

	/* Another thread's step may have ended a little later, and have looked already. */
	if ((__s64)ns < USE_MIN_NS)
		return;
	slot->computes = slot->use_seen_ns && 2 * (ran_ns - slot->use_ran_ns) >= ns;
	slot->use_seen_ns = now;
	slot->use_ran_ns = ran_ns;
}

#endif
