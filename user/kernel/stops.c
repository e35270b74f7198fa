/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/stops.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernel/traced.h"
#include "proc/process.h"
#include "proc/status.h"

#define LOOK_NS (20 * NS_PER_MS)

/* What was seen of a slot's thread. */
struct seen {
	uint64_t looked_ns;
	uint64_t step_start_ns; /* of the step that a record was sent for */
};

struct stops {
	const struct shared *shared;
	const struct record_output *output;
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

/* Fills in who stopped the thread. False: it is not stopped, or has ended. */
static bool find_reason(struct fbt_stop *stop)
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

static void look_at(struct stops *stops, uint32_t index, uint64_t now_ns)
{
	const volatile struct fbt_slot *slot = &stops->shared->slots[index];
	struct seen *seen = &stops->seen[index];
	uint64_t start_ns = slot->step_start_ns;
	struct fbt_stop stop = {.time_ns = now_ns, .tgid = slot->tgid, .tid = slot->tid};

	if (!start_ns || slot->start_ns || slot->state != FBT_SLOT_LIVE ||
	    start_ns + LOOK_NS > now_ns || seen->looked_ns + LOOK_NS > now_ns ||
	    seen->step_start_ns == start_ns)
		return;
	seen->looked_ns = now_ns;
	if (!find_reason(&stop) || slot->step_start_ns != start_ns)
		return;
	seen->step_start_ns = start_ns;
	record_send(stops->output, &stop, sizeof(stop), FBT_EVENT_STOP);
}

void stops__look(struct stops *stops, uint64_t now_ns)
{
	uint32_t used = slots_used(stops->shared);

	for (uint32_t i = 1; i < used; i++)
		look_at(stops, i, now_ns);
}
