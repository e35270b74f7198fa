/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/stop_table.h"

#include <stddef.h>

#include "base/arith.h"

void stop_table_add(struct stop_table *table, const struct fbt_stop *stop)
{
	table->stops[table->count++ % STOPS_KEPT] = *stop;
}

/* The latest stop of a thread in this time. Its record came before that of the step. */
static const struct fbt_stop *find_stop(const struct stop_table *table, uint32_t tgid, uint32_t tid,
					uint64_t from_ns, uint64_t to_ns)
{
	const struct fbt_stop *latest = NULL;

	for (size_t i = 0; i < STOPS_KEPT; i++) {
		const struct fbt_stop *stop = &table->stops[i];

		if (stop->header.type == FBT_EVENT_STOP && stop->tgid == tgid && stop->tid == tid &&
		    stop->time_ns >= from_ns && stop->time_ns <= to_ns &&
		    (!latest || stop->time_ns >= latest->time_ns))
			latest = stop;
	}
	return latest;
}

/* The longest stop of another thread of the process in the step. */
static const struct fbt_stop *find_stop_beside(const struct stop_table *table,
					       const struct fbt_step *record)
{
	const struct fbt_stop *longest = NULL;

	for (uint64_t i = 0; i < STOPS_KEPT; i++) {
		const struct fbt_stop *stop = &table->stops[i];

		if (stop->header.type == FBT_EVENT_STOP && stop->tgid == record->tgid &&
		    stop->tid != record->tid && stop->time_ns >= record->start_ns &&
		    stop->time_ns <= record->end_ns &&
		    (!longest || stop->stopped_ns >= longest->stopped_ns))
			longest = stop;
	}
	return longest;
}

/* Sets stopped_ns of a wake. The kernel side only knows that the thread was off its CPU. */
static const struct fbt_stop *know_wake_stop(const struct stop_table *table, struct fbt_wake *wake)
{
	const struct fbt_stop *stop;

	if (!wake->off_ns)
		return NULL;
	stop = find_stop(table, wake->tgid, wake->waker_tid, wake->start_ns, wake->wake_ns);
	if (!stop)
		return NULL;
	wake->stopped_ns = min_u64(stop->stopped_ns, wake->off_ns);
	wake->off_ns -= wake->stopped_ns;
	return stop;
}

/* Sets the stop of a gap. The kernel side only knows that the thread was off its CPU. */
static void know_gap_stop(const struct stop_table *table, struct step *step)
{
	const struct fbt_step *record = &step->record;
	const struct fbt_stop *stop =
		find_stop(table, record->tgid, record->tid,
			  sub_saturating(record->start_ns, record->gap_ns), record->start_ns);

	if (!stop)
		return;
	step->gap.stop = *stop;
	step->gap.stopped_ns = min_u64(stop->stopped_ns, step->gap.off_ns);
	step->gap.off_ns -= step->gap.stopped_ns;
}

/*
 * The step gets the stop of its own thread, else that of the thread that was stopped longest while
 * the step waited for it, else that of the thread of its process that was stopped longest.
 */
void stop_table_join(const struct stop_table *table, struct step *step)
{
	const struct fbt_step *record = &step->record;
	const struct fbt_stop *stop =
		find_stop(table, record->tgid, record->tid, record->start_ns, record->end_ns);
	const struct fbt_stop *others = NULL;
	uint64_t longest_ns = 0;

	if (step->gap.known)
		know_gap_stop(table, step);
	vec_for_each (wake, &step->wakes) {
		const struct fbt_stop *other = know_wake_stop(table, wake);

		if (!other || wake->stopped_ns <= longest_ns)
			continue;
		others = other;
		longest_ns = wake->stopped_ns;
	}
	if (!stop)
		stop = others ? others : find_stop_beside(table, record);
	if (stop)
		step->stop = *stop;
}
