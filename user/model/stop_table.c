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

/* A wait of several calls began before the last of them: as long ago as its parts add up to. */
static uint64_t begin_of_wait(const struct fbt_wake *wake)
{
	uint64_t parts_ns = wake->cpu_ns + wake->delay_ns + wake->call_ns + wake->unknown_ns +
			    wake->fault_wait_ns + wake->off_ns;

	return min_u64(wake->start_ns, sub_saturating(wake->wake_ns, parts_ns));
}

/* Sets stopped_ns of a wake. The kernel side only knows that the thread was off its CPU. */
static const struct fbt_stop *know_wake_stop(const struct stop_table *table, struct fbt_wake *wake)
{
	const struct fbt_stop *stop;

	if (!wake->off_ns)
		return NULL;
	stop = find_stop(table, wake->tgid, wake->waker_tid, begin_of_wait(wake), wake->wake_ns);
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

void stop_table_add_sender(struct stop_table *table, const struct fbt_stop_sender *sender)
{
	table->senders[table->sender_count++ % SENDERS_KEPT] = *sender;
}

/* Sets the sender of the signal by which a process was stopped when it was seen, at time_ns. */
static void know_sender(const struct stop_table *table, uint32_t tgid, uint64_t time_ns,
			struct fbt_stop_sender *to)
{
	for (size_t i = 0; i < SENDERS_KEPT; i++) {
		const struct fbt_stop_sender *sender = &table->senders[i];

		if (sender->header.type == FBT_EVENT_STOP_SENDER && sender->tgid == tgid &&
		    sender->time_ns <= time_ns &&
		    (to->header.type != FBT_EVENT_STOP_SENDER || sender->time_ns >= to->time_ns))
			*to = *sender;
	}
}

struct fbt_stop_sender stop_table_sender(const struct stop_table *table, uint32_t tgid,
					 uint64_t time_ns)
{
	struct fbt_stop_sender sender = {.time_ns = 0};

	know_sender(table, tgid, time_ns, &sender);
	return sender;
}

static void know_stop_sender(const struct stop_table *table, const struct fbt_stop *stop,
			     struct fbt_stop_sender *to)
{
	if (stop->header.type == FBT_EVENT_STOP && stop->reason == FBT_STOP_SIGNAL)
		know_sender(table, stop->tgid, stop->time_ns, to);
}

static void know_peer_sender(const struct stop_table *table, const struct fbt_peer *peer,
			     struct fbt_stop_sender *to)
{
	if (peer->header.type == FBT_EVENT_PEER && peer->stopped_ns &&
	    peer->stop_reason == FBT_STOP_SIGNAL)
		know_sender(table, peer->peer, peer->time_ns, to);
}

void stop_table_join_senders(const struct stop_table *table, struct step *step)
{
	if (!table->sender_count)
		return;
	know_stop_sender(table, &step->stop, &step->stop_sender);
	know_stop_sender(table, &step->gap.stop, &step->gap.sender);
	vec_for_each (peer, &step->peers) {
		know_peer_sender(table, &peer->record, &peer->sender);
		know_peer_sender(table, &peer->beyond, &peer->beyond_sender);
	}
}
