/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/wakes.h"

#include <stdbool.h>
#include <string.h>

#include "base/arith.h"

/* The walk back from the wake to the begin of the wait. */
struct walk {
	struct fbt_wake *wake;
	uint64_t begin_ns; /* of the wait */
	/* The time up to which the walk has come, and the waker's counters there. */
	uint64_t at_ns;
	uint64_t busy_ns;
	uint64_t delay_ns;
	/*
	 * The end of the call that was walked last, or the wake: there it is known how long the
	 * waker was on a CPU.
	 */
	struct fbt_past_call end;
	uint32_t awaited; /* how often it gave up its CPU in that call, at least */
	/* The waker's time in long calls during the wait, by number. */
	struct {
		uint32_t nr;
		uint64_t ns;
	} calls[FBT_PAST_CALLS];
};

static uint64_t part_of(uint64_t ns, uint64_t part_ns, uint64_t whole_ns)
{
	return whole_ns ? (uint64_t)((unsigned __int128)ns * part_ns / whole_ns) : 0;
}

/*
 * Time of a stretch in which the waker slept outside of calls: from the end of a call up to the
 * next long one. What it slept in that one is not known: the least is taken.
 */
static uint64_t find_off_ns(const struct walk *walk, const struct fbt_past_call *from)
{
	const struct fbt_past_call *to = &walk->end;
	uint64_t ns = sub_saturating(to->end_ns, from->end_ns);
	uint64_t call_ns = sub_saturating(to->busy_ns, from->busy_ns);

	/* What interrupts and a host take is in none of its times, but it keeps its CPU. */
	if (!from->cpu_ns || !to->cpu_ns || to->switches - from->switches <= walk->awaited)
		return 0;
	ns = sub_saturating(ns, sub_saturating(to->cpu_ns, from->cpu_ns));
	ns = sub_saturating(ns, sub_saturating(to->delay_ns, from->delay_ns));
	ns = sub_saturating(ns, sub_saturating(call_ns, to->call_delay_ns));
	return ns < FBT_LONG_NS ? 0 : ns;
}

static void add_off(struct fbt_wake *wake, uint64_t ns, const struct fbt_past_call *from,
		    const struct fbt_past_call *to)
{
	uint32_t faults = to->faults - from->faults;

	if (faults) {
		wake->fault_wait_ns += ns;
		wake->faults += ns ? faults : 0;
		wake->minor_faults += ns ? to->minor_faults - from->minor_faults : 0;
	} else {
		wake->off_ns += ns;
	}
}

/* A stretch without long calls, from a time at which the counters are known. */
static void walk_stretch(struct walk *walk, const struct fbt_past_call *from)
{
	struct fbt_wake *wake = walk->wake;
	uint64_t from_ns = from->end_ns, busy_ns = from->busy_ns, delay_ns = from->delay_ns;
	uint64_t whole_ns = sub_saturating(walk->at_ns, from_ns);
	uint64_t left_ns = sub_saturating(walk->at_ns, max_u64(from_ns, walk->begin_ns));
	uint64_t part_ns = left_ns;

	add_off(wake, take_u64(part_of(find_off_ns(walk, from), part_ns, whole_ns), &left_ns), from,
		&walk->end);
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
	uint64_t left_ns = sub_saturating(walk->at_ns, max_u64(begin_ns, walk->begin_ns));

	walk->wake->delay_ns += take_u64(call->call_delay_ns, &left_ns);
	if (left_ns)
		add_call(walk, call->nr, left_ns);
	walk->at_ns = min_u64(walk->at_ns, begin_ns);
	walk->busy_ns = sub_saturating(call->busy_ns, call->duration_ns);
	walk->end = *call;
	walk->awaited = 1;
	walk->delay_ns = sub_saturating(call->delay_ns, call->call_delay_ns);
}

/*
 * Walks to the beginning of the history: when the thread was made, or when its calls began to be
 * recorded.
 */
static void walk_rest(struct walk *walk, const struct fbt_waker *waker)
{
	/*
	 * The counter of waits for a CPU also contains those before that time, which are not known
	 * separately.
	 */
	if (waker->past.count <= FBT_PAST_CALLS && waker->since_ns < walk->at_ns &&
	    walk->at_ns > walk->begin_ns)
		walk_stretch(walk, &(struct fbt_past_call){.end_ns = waker->since_ns,
							   .delay_ns = walk->delay_ns});
	walk->wake->unknown_ns = sub_saturating(walk->at_ns, walk->begin_ns);
}

/*
 * A wait for the GIL times out every few ms, and is made again: it began with the first of these
 * calls. But what the waker did before it took the GIL kept nobody waiting.
 */
static uint64_t begin_of_wait(const struct fbt_ring_wake *from)
{
	if (!from->since_ns)
		return from->start_ns;
	return min_u64(from->start_ns, max_u64(from->since_ns, from->waker.took_ns));
}

void wake_split(const struct fbt_ring_wake *from, struct fbt_wake *wake)
{
	const struct fbt_waker *waker = &from->waker;
	struct walk walk = {.wake = wake,
			    .begin_ns = begin_of_wait(from),
			    .at_ns = waker->wake_ns,
			    .busy_ns = waker->busy_ns,
			    .delay_ns = waker->delay_ns,
			    .end = {.end_ns = waker->wake_ns,
				    .busy_ns = waker->busy_ns,
				    .delay_ns = waker->delay_ns,
				    .cpu_ns = waker->cpu_ns,
				    .switches = waker->switches,
				    .faults = waker->faults,
				    .minor_faults = waker->minor_faults}};
	uint32_t known = waker->past.count < FBT_PAST_CALLS ? waker->past.count : FBT_PAST_CALLS;

	*wake = (struct fbt_wake){.header = {FBT_EVENT_WAKE, 0, sizeof(*wake)},
				  .tgid = from->tgid,
				  .tid = from->tid,
				  .start_ns = from->start_ns,
				  .wake_ns = max_u64(waker->wake_ns, from->start_ns),
				  .waker_tid = waker->past.tid,
				  .flags = waker->flags};
	if (walk.begin_ns < wake->start_ns)
		wake->flags |= FBT_WAKE_ROW;
	for (uint32_t i = 1; i <= known && walk.at_ns > walk.begin_ns; i++) {
		const struct fbt_past_call *call =
			&waker->past.calls[(waker->past.count - i) % FBT_PAST_CALLS];

		walk_stretch(&walk, call);
		if (walk.at_ns > walk.begin_ns)
			walk_call(&walk, call);
	}
	walk_rest(&walk, waker);
}
