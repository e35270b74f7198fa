/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/wakes.h"

#include <stdbool.h>
#include <string.h>

#include "base/arith.h"

/* The walk back from the wake to the begin of the wait. */
struct walk {
	struct fbt_wake *wake;
	/* The time up to which the walk has come, and the waker's counters there. */
	uint64_t at_ns;
	uint64_t busy_ns;
	uint64_t delay_ns;
	/* Of the wait, the waker's time in long calls by number. */
	struct {
		uint32_t nr;
		uint64_t ns;
	} calls[FBT_PAST_CALLS];
};

static uint64_t part_of(uint64_t ns, uint64_t part_ns, uint64_t whole_ns)
{
	return whole_ns ? (uint64_t)((unsigned __int128)ns * part_ns / whole_ns) : 0;
}

/* A stretch without long calls, from a time at which the counters are known. */
static void walk_stretch(struct walk *walk, uint64_t from_ns, uint64_t busy_ns, uint64_t delay_ns)
{
	struct fbt_wake *wake = walk->wake;
	uint64_t whole_ns = sub_saturating(walk->at_ns, from_ns);
	uint64_t left_ns = sub_saturating(walk->at_ns, max_u64(from_ns, wake->start_ns));
	uint64_t part_ns = left_ns;

	wake->delay_ns += take_u64(
		part_of(sub_saturating(walk->delay_ns, delay_ns), part_ns, whole_ns), &left_ns);
	wake->call_ns += take_u64(
		part_of(sub_saturating(walk->busy_ns, busy_ns), part_ns, whole_ns), &left_ns);
	wake->cpu_ns += left_ns;
	walk->at_ns = min_u64(walk->at_ns, from_ns);
}

static void add_call(struct walk *walk, uint32_t nr, uint64_t ns)
{
	size_t i = 0;

	walk->wake->call_ns += ns;
	while (i + 1 < FBT_PAST_CALLS && walk->calls[i].ns && walk->calls[i].nr != nr)
		i++;
	walk->calls[i].nr = nr;
	walk->calls[i].ns += ns;
	if (walk->calls[i].ns > walk->wake->nr_ns) {
		walk->wake->nr = nr;
		walk->wake->nr_ns = walk->calls[i].ns;
	}
}

/* A thread waits for a CPU at the end of a call, when what it waited for has come. */
static void walk_call(struct walk *walk, const struct fbt_past_call *call)
{
	uint64_t begin_ns = sub_saturating(call->end_ns, call->duration_ns);
	uint64_t left_ns = sub_saturating(walk->at_ns, max_u64(begin_ns, walk->wake->start_ns));

	walk->wake->delay_ns += take_u64(call->call_delay_ns, &left_ns);
	if (left_ns)
		add_call(walk, call->nr, left_ns);
	walk->at_ns = min_u64(walk->at_ns, begin_ns);
	walk->busy_ns = sub_saturating(call->busy_ns, call->duration_ns);
	walk->delay_ns = sub_saturating(call->delay_ns, call->call_delay_ns);
}

/* To the begin of its history: when it was made, or when its calls began to be known. */
static void walk_rest(struct walk *walk, const struct fbt_waker *waker)
{
	struct fbt_wake *wake = walk->wake;

	/* Its waits for a CPU before that are in the counter, and not known. */
	if (waker->past.count <= FBT_PAST_CALLS && waker->since_ns < walk->at_ns &&
	    walk->at_ns > wake->start_ns)
		walk_stretch(walk, waker->since_ns, 0, walk->delay_ns);
	wake->unknown_ns = sub_saturating(walk->at_ns, wake->start_ns);
}

void wake_split(const struct fbt_ring_wake *from, struct fbt_wake *wake)
{
	const struct fbt_waker *waker = &from->waker;
	struct walk walk = {.wake = wake,
			    .at_ns = waker->wake_ns,
			    .busy_ns = waker->busy_ns,
			    .delay_ns = waker->delay_ns};
	uint32_t known = waker->past.count < FBT_PAST_CALLS ? waker->past.count : FBT_PAST_CALLS;

	*wake = (struct fbt_wake){.header = {FBT_EVENT_WAKE, 0, sizeof(*wake)},
				  .tgid = from->tgid,
				  .tid = from->tid,
				  .start_ns = from->start_ns,
				  .wake_ns = max_u64(waker->wake_ns, from->start_ns),
				  .waker_tid = waker->past.tid,
				  .flags = waker->flags};
	for (uint32_t i = 1; i <= known && walk.at_ns > wake->start_ns; i++) {
		const struct fbt_past_call *call =
			&waker->past.calls[(waker->past.count - i) % FBT_PAST_CALLS];

		walk_stretch(&walk, call->end_ns, call->busy_ns, call->delay_ns);
		if (walk.at_ns > wake->start_ns)
			walk_call(&walk, call);
	}
	walk_rest(&walk, waker);
}
