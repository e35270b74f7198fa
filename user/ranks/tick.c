/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "ranks/tick.h"

#include <string.h>

#include "base/arith.h"

static void add_to(uint64_t *sum, uint64_t ns)
{
	*sum = add_saturating(*sum, ns);
}

/* The tick has the stop that was seen last. */
static void note_stop(struct tick *tick, const struct fbt_stop *stop,
		      const struct fbt_stop_sender *sender)
{
	if (stop->header.type != FBT_EVENT_STOP)
		return;
	tick->stop = *stop;
	tick->stop_sender = *sender;
}

static void add_parts(struct tick *tick, const struct step *step)
{
	uint64_t *ns = tick->parts_ns, gc_ns, gil_ns;
	struct step_parts parts;

	step_split(step, &parts);
	tick->parts_known &= parts.known;
	tick->calls_known &= step_calls_known(step);
	gc_ns = step_gc_ns(step, &parts);
	gil_ns = step_gil_ns(step, &parts);
	parts.ns[STEP_OWN] -= gc_ns;
	parts.ns[STEP_CALLS + FBT_FUTEX] -= gil_ns;
	add_to(&ns[TICK_GC], gc_ns);
	add_to(&ns[TICK_GIL], gil_ns);
	if (parts.ns[STEP_CPU_WAIT] &&
	    step_throttled_ns(&step->record.limits) >= parts.ns[STEP_CPU_WAIT] / 2) {
		add_to(&ns[TICK_CPU_LIMIT], parts.ns[STEP_CPU_WAIT]);
		parts.ns[STEP_CPU_WAIT] = 0;
	}
	for (int i = 0; i < STEP_PARTS; i++)
		add_to(&ns[i], parts.ns[i]);
	if (step->stop.tid == step->record.tid)
		note_stop(tick, &step->stop, &step->stop_sender);
}

/* The time from the last step of the tick to this one. */
static void add_between(struct tick *tick, const struct step *step)
{
	uint64_t left_ns = sub_saturating(step->record.start_ns, tick->end_ns),
		 *ns = tick->parts_ns;
	const struct step_gap *gap = &step->gap;

	add_to(&ns[STEP_CPU_WAIT], take_u64(gap->delay_ns, &left_ns));
	add_to(&ns[STEP_STOPPED], take_u64(gap->stopped_ns, &left_ns));
	add_to(&ns[STEP_OFF_CPU], take_u64(gap->off_ns, &left_ns));
	add_to(&ns[TICK_BETWEEN], left_ns);
	note_stop(tick, &gap->stop, &gap->sender);
}

static void count_kind(struct tick *tick, const struct step *step)
{
	struct tick_kind *kind = tick->kinds;

	while (kind->kind && kind->kind != step->record.kind && kind < &tick->kinds[TICK_KINDS - 1])
		kind++;
	kind->kind = kind->kind ? kind->kind : step->record.kind;
	kind->steps++;
	add_to(&kind->ns, step_wall_ns(step));
}

static void begin_tick(struct ticker *ticker, const struct step *step)
{
	const struct fbt_step *record = &step->record;

	ticker->is_open = true;
	ticker->tick = (struct tick){
		.tgid = record->tgid,
		.kind = record->kind,
		.number = step->number,
		.begin_ns = record->start_ns,
		.end_ns = record->start_ns,
		.parts_known = true,
		.calls_known = true,
		.gap_known = !(record->header.flags & FBT_STEP_NO_GAP),
		.gap_ns = record->gap_ns,
		.gap = step->gap,
		.arg_mask = record->arg_mask,
	};
	memcpy(ticker->tick.args, record->args, sizeof(record->args));
}

static void add_step(struct tick *tick, const struct step *step)
{
	add_between(tick, step);
	add_parts(tick, step);
	count_kind(tick, step);
	tick->end_ns = max_u64(tick->end_ns, step->record.end_ns);
}

/* Whether the function of this step leads from now on. */
static bool takes_lead(const struct ticker *ticker, const struct fbt_step *record)
{
	return !ticker->lead || (!ticker->lead_has_args && record->arg_mask);
}

bool ticker_end(struct ticker *ticker, struct tick *done)
{
	if (!ticker->is_open)
		return false;
	*done = ticker->tick;
	done->next_ns = UINT64_MAX;
	ticker->is_open = false;
	return true;
}

/* A leading step ends the tick before it. */
static bool end_before(struct ticker *ticker, const struct fbt_step *record, struct tick *done)
{
	if (record->kind != ticker->lead || !ticker_end(ticker, done))
		return false;
	done->next_ns = record->start_ns;
	return true;
}

bool ticker_add(struct ticker *ticker, const struct step *step, struct tick *done)
{
	const struct fbt_step *record = &step->record;
	bool is_done = false;

	if (record->end == FBT_END_TRUNCATED || record->end == FBT_END_EXITED)
		return false;
	/* PyTorch's profiler slows the step down, so no tick has it; the tick before it is over. */
	if (step_is_profiled(step))
		return end_before(ticker, record, done);
	if (takes_lead(ticker, record)) {
		ticker->lead = record->kind;
		ticker->lead_has_args = record->arg_mask != 0;
		ticker->is_open = false;
	}
	if (record->kind == ticker->lead) {
		is_done = end_before(ticker, record, done);
		begin_tick(ticker, step);
	}
	/* What comes before the first leading step belongs to a tick that was not seen whole. */
	if (ticker->is_open && record->start_ns >= ticker->tick.end_ns)
		add_step(&ticker->tick, step);
	return is_done;
}
