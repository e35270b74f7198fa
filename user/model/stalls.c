/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/stalls.h"

#include "base/arith.h"

/* What was not measured from the begin of the step on is not known. */
static void find_known(const struct window *window, struct step *step)
{
	const struct fbt_step *record = &step->record;
	const struct process *process = window__process(window, record->tgid);
	const struct fbt_python *python = process ? &process->python : NULL;

	if (!python || !python->tgid || record->start_ns < python->time_ns ||
	    record->header.flags & FBT_STEP_POLL)
		return;
	step->stalls.gil_known =
		python->gil_end && window__traces_calls(window) && step_calls_known(step);
	step->stalls.gc_known = python->collector == FBT_COLLECTOR_USDT ||
				python->collector == FBT_COLLECTOR_SYMBOL;
}

void stalls_join(const struct window *window, struct fbt_stalls *next, struct step *step)
{
	const struct fbt_step *record = &step->record;
	struct fbt_stalls *own = &step->stalls.record,
			  none = {.gc_generation = FBT_GENERATION_UNKNOWN};
	bool is_own = next->tgid == record->tgid && next->tid == record->tid &&
		      next->start_ns == record->start_ns;

	step->stalls = (struct step_stalls){.record = is_own ? *next : none};
	*next = none;
	find_known(window, step);
	if (!step->stalls.gil_known) {
		own->gil_ns = 0;
		own->gil_waits = 0;
	}
	if (!step->stalls.gc_known) {
		own->gc_ns = 0;
		own->gc_own_ns = 0;
		own->gc_longest_ns = 0;
		own->gc_count = 0;
		own->gc_generation = FBT_GENERATION_UNKNOWN;
	}
}

uint64_t step_gil_ns(const struct step *step, const struct step_parts *parts)
{
	return min_u64(step->stalls.record.gil_ns, parts->ns[STEP_CALLS + FBT_FUTEX]);
}

uint64_t step_gc_ns(const struct step *step, const struct step_parts *parts)
{
	const struct fbt_stalls *stalls = &step->stalls.record;

	return min_u64(step->record.kind ? stalls->gc_own_ns : stalls->gc_ns, parts->ns[STEP_OWN]);
}
