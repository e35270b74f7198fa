/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which thread of the process was kept from its work by calls while a step ran. Threads that spin
 * at barriers make no call that would show for whom they wait: so the step's end looks for a thread
 * that usually computes, and made long calls within the step.
 */
#ifndef FBT_LATE_BPF_H
#define FBT_LATE_BPF_H

#include <bpf/bpf_core_read.h>
#include "maps.bpf.h"

/* Whether a thread usually computes is known for stretches of this length or more. */
#define USE_MIN_NS 20000000

struct late_walk {
	__u64 start_ns; /* begin of the step; 0: nobody is looked for */
	__u64 now;
	__u64 ns; /* of the latest thread: its calls in the step, without their waits for a CPU */
	__u32 tid;
	__u32 nr; /* of its longest call */
};

/*
 * Long calls of a thread within the step. A wait that began before it, or goes on after it, is not
 * what the step has waited for; and who waits in futex, but not for a lock, waits for work.
 */
__noinline int look_at_calls(struct late_walk *walk, struct fbt_slot *slot, __u32 index)
{
	struct fbt_past *past = bpf_map_lookup_elem(&pasts, &index);
	__u64 sum = 0, longest = 0;
	__u32 nr = 0;

	if (!walk || !slot || !past || past->tid != slot->tid)
		return 0;
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
		walk->tid = slot->tid;
		walk->nr = nr;
	}
	return 0;
}

/* ran_ns: for how long the thread has been on a CPU or wanted one, in all. */
static __always_inline void learn_use(struct fbt_slot *slot, __u64 ran_ns, __u64 now)
{
	__u64 ns = now - slot->use_seen_ns;

	if (ns < USE_MIN_NS)
		return;
	slot->computes = slot->use_seen_ns && 2 * (ran_ns - slot->use_ran_ns) >= ns;
	slot->use_seen_ns = now;
	slot->use_ran_ns = ran_ns;
}

#endif
