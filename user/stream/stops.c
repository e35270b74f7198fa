/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/stops.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernel/traced.h"
#include "proc/process.h"
#include "proc/status.h"

#define LOOK_NS	 (20 * NS_PER_MS)
#define AGAIN_NS (5 * NS_PER_MS) /* between looks at a stopped thread, or at one that is late */

/* Each look costs some 20 us, and a step may wait for many threads, most of which compute. */
#define WORKERS_PER_LOOK 4
#define PROCESSES_MAX	 8

/*
 * A thread that has ended a step by so much before, and has begun no other, is one that others may
 * wait for: a rank of an engine. Beyond that it has nothing to do.
 */
#define GAP_MAX_NS (10 * NS_PER_S)

/* What was seen of a slot's thread. */
struct seen {
	uint64_t looked_ns;
	uint64_t since_ns;   /* beginning of the step, or of the wait for the thread: */
	uint64_t going_ns;   /* when it was last seen running, or since_ns */
	uint64_t stopped_ns; /* upper bound on the time of stops that are over */
	bool is_stopped;
	struct fbt_stop last;
};

/* A process in which a step waits. */
struct waiting {
	uint32_t tgid;
	uint64_t since_ns;
};

struct stops {
	const struct shared *shared;
	const struct record_output *output;
	struct waiting waiting[PROCESSES_MAX];
	uint32_t waiting_count;
	bool has_long_step; /* a step of any process takes longer than LOOK_NS */
	uint32_t next;	    /* the slot to look at first for workers */
	struct seen seen[]; /* one for each slot */
};

struct stops *stops__new(const struct shared *shared, const struct record_output *output)
{
	struct stops *stops =
		calloc(1, sizeof(*stops) + shared->slot_count * sizeof(stops->seen[0]));

	if (!stops)
		return NULL;
	stops->shared = shared;
	stops->output = output;
	return stops;
}

void stops__free(struct stops *stops)
{
	free(stops);
}

bool stop_find_reason(struct fbt_stop *stop)
{
	struct proc_ref thread = {stop->tgid, stop->tid};
	struct thread_status status;
	struct process_text tracer;

	if (thread_status_read(&status, thread))
		return false;
	switch (status.state) {
	case 'T':
		stop->reason = FBT_STOP_SIGNAL;
		return true;
	case 't':
		stop->reason = FBT_STOP_TRACER;
		stop->tracer = status.tracer;
		if (status.tracer) {
			process_text_read(&tracer, status.tracer);
			snprintf(stop->comm, sizeof(stop->comm), "%.15s", tracer.comm);
		}
		return true;
	case 'R':
		return false;
	default:
		stop->reason = FBT_STOP_FREEZER;
		return cgroup_is_frozen(thread);
	}
}

/* Adds what is seen now. Returns the longest time for which the thread can have been stopped. */
static uint64_t add_sight(struct seen *seen, bool is_stopped, uint64_t now_ns)
{
	uint64_t last_ns = now_ns - seen->going_ns;

	/* The thread may stay stopped until the next look, and the step may have ended by then. */
	if (is_stopped)
		return seen->stopped_ns + last_ns + LOOK_NS;
	if (seen->is_stopped)
		seen->stopped_ns += last_ns;
	seen->going_ns = now_ns;
	return seen->stopped_ns;
}

/*
 * Looks at a thread that is in no call. since_ns: when its step began, or the wait for the thread.
 */
static void look_at(struct stops *stops, uint32_t index, uint64_t since_ns, uint64_t now_ns)
{
	const volatile struct fbt_slot *slot = &stops->shared->slots[index];
	struct seen *seen = &stops->seen[index];
	struct fbt_stop stop = {.time_ns = now_ns, .tgid = slot->tgid, .tid = slot->tid};
	uint64_t step_ns = slot->step_start_ns;
	bool is_stopped, was_stopped;

	if (seen->since_ns != since_ns)
		*seen = (struct seen){.since_ns = since_ns, .going_ns = since_ns};
	was_stopped = seen->is_stopped;
	seen->looked_ns = now_ns;
	is_stopped = stop_find_reason(&stop);
	if (slot->step_start_ns != step_ns)
		return;
	stop.stopped_ns = add_sight(seen, is_stopped, now_ns);
	seen->is_stopped = is_stopped;
	if (is_stopped)
		seen->last = stop;
	else if (!was_stopped)
		return;
	seen->last.time_ns = now_ns;
	seen->last.stopped_ns = stop.stopped_ns;
	stop = seen->last;
	record_send(stops->output, &stop, sizeof(stop), FBT_EVENT_STOP);
}

static bool is_due(const struct seen *seen, uint64_t patience_ns, uint64_t now_ns)
{
	return seen->looked_ns + (seen->is_stopped ? AGAIN_NS : patience_ns) <= now_ns;
}

static void note_waiting(struct stops *stops, uint32_t tgid, uint64_t since_ns)
{
	uint32_t i = 0;

	while (i < stops->waiting_count && stops->waiting[i].tgid != tgid)
		i++;
	if (i == PROCESSES_MAX)
		return;
	if (i == stops->waiting_count)
		stops->waiting[stops->waiting_count++] = (struct waiting){tgid, since_ns};
	/* All waits of the process count as one, which began with the first. */
	if (since_ns < stops->waiting[i].since_ns)
		stops->waiting[i].since_ns = since_ns;
}

/*
 * The step takes longer than steps of that thread do. It may be stopped, or wait at a barrier where
 * it spins.
 */
static bool is_late(const volatile struct fbt_slot *slot, uint64_t start_ns, uint64_t now_ns)
{
	uint64_t usual_ns = slot->step_usual_ns;

	return usual_ns && now_ns > start_ns && now_ns - start_ns > 2 * usual_ns;
}

/* Looks at a thread in its step, or notes that the step waits, or may wait. */
static void look_at_step(struct stops *stops, uint32_t index, uint64_t now_ns)
{
	const volatile struct fbt_slot *slot = &stops->shared->slots[index];
	uint64_t start_ns = slot->step_start_ns, call_ns = slot->start_ns;
	bool late = is_late(slot, start_ns, now_ns);
	uint64_t patience_ns = late ? AGAIN_NS : LOOK_NS;

	if (!start_ns || start_ns + patience_ns > now_ns || slot->state != FBT_SLOT_LIVE)
		return;
	stops->has_long_step |= start_ns + LOOK_NS <= now_ns;
	if (!call_ns && is_due(&stops->seen[index], patience_ns, now_ns))
		look_at(stops, index, start_ns, now_ns);
	if (!call_ns && late && start_ns + LOOK_NS <= now_ns)
		note_waiting(stops, slot->tgid, start_ns);
	else if (call_ns && call_ns + LOOK_NS <= now_ns)
		note_waiting(stops, slot->tgid, call_ns);
}

/* Looks at a thread between its steps, which a step of another process may wait for. */
static void look_at_gap(struct stops *stops, uint32_t index, uint64_t now_ns)
{
	const volatile struct fbt_slot *slot = &stops->shared->slots[index];
	uint64_t end_ns = slot->step_end_ns;

	if (slot->state == FBT_SLOT_LIVE && end_ns && !slot->step_start_ns && !slot->start_ns &&
	    end_ns + LOOK_NS <= now_ns && now_ns < end_ns + GAP_MAX_NS &&
	    is_due(&stops->seen[index], LOOK_NS, now_ns))
		look_at(stops, index, end_ns, now_ns);
}

/* False: it is no thread that could be stopped while a step waits for it, or is not due. */
static bool look_at_worker(struct stops *stops, uint32_t index, uint64_t now_ns)
{
	const volatile struct fbt_slot *slot = &stops->shared->slots[index];

	if (slot->state != FBT_SLOT_LIVE || slot->start_ns || slot->step_start_ns ||
	    !is_due(&stops->seen[index], LOOK_NS, now_ns))
		return false;
	for (uint32_t i = 0; i < stops->waiting_count; i++) {
		if (stops->waiting[i].tgid != slot->tgid)
			continue;
		look_at(stops, index, stops->waiting[i].since_ns, now_ns);
		return true;
	}
	return false;
}

void stops__look(struct stops *stops, uint64_t now_ns)
{
	uint32_t used = slots_used(stops->shared), looks = 0, begin = stops->next;

	stops->waiting_count = 0;
	stops->has_long_step = false;
	for (uint32_t i = 1; i < used; i++)
		look_at_step(stops, i, now_ns);
	for (uint32_t i = 1; stops->has_long_step && i < used; i++)
		look_at_gap(stops, i, now_ns);
	for (uint32_t i = 0; stops->waiting_count && i < used && looks < WORKERS_PER_LOOK; i++) {
		uint32_t index = (begin + i) % used;

		stops->next = index + 1;
		looks += index && look_at_worker(stops, index, now_ns);
	}
}
