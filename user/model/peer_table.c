/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/peer_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/arith.h"
#include "model/spins.h"

static bool is_same(const struct fbt_peer *a, const struct fbt_peer *b)
{
	return a->tgid == b->tgid && a->tid == b->tid && a->step_start_ns == b->step_start_ns &&
	       a->peer == b->peer && a->via == b->via;
}

void peer_table_add(struct peer_table *table, const struct fbt_peer *peer)
{
	for (size_t i = 0; i < PEERS_KEPT; i++) {
		if (table->peers[i].header.type == FBT_EVENT_PEER &&
		    is_same(&table->peers[i], peer)) {
			table->peers[i] = *peer;
			return;
		}
	}
	table->peers[table->count++ % PEERS_KEPT] = *peer;
}

static bool is_linked(const struct peer_table *table, uint32_t tgid, uint32_t peer)
{
	for (size_t i = 0; i < PEER_LINKS_KEPT && i < table->link_count; i++) {
		if (table->links[i].tgid == tgid && table->links[i].peer == peer)
			return true;
	}
	return false;
}

void peer_table_add_link(struct peer_table *table, const struct fbt_peer_link *link)
{
	if (!is_linked(table, link->tgid, link->peer))
		table->links[table->link_count++ % PEER_LINKS_KEPT] = *link;
}

static bool is_peer(const struct peer_table *table, uint32_t tgid)
{
	for (size_t i = 0; i < PEER_LINKS_KEPT && i < table->link_count; i++) {
		if (table->links[i].peer == tgid)
			return true;
	}
	return false;
}

static uint32_t longest_nr(const struct step *step)
{
	const struct fbt_call *longest = NULL;

	vec_for_each (call, &step->calls) {
		if (!longest || call_longest_ns(call) > call_longest_ns(longest))
			longest = call;
	}
	return longest ? longest->nr : FBT_PEER_NR_UNKNOWN;
}

/*
 * Polls of a future are not the time of one thread, intervals are not steps, and of a step that an
 * exception left it is not known when it ended.
 */
bool peer_table_wants(const struct peer_table *table, const struct step *step)
{
	const struct fbt_step *record = &step->record;

	return record->kind && !(record->header.flags & FBT_STEP_POLL) && !step_end_is_late(step) &&
	       step_wall_ns(step) >= SPIN_MIN_NS / 2 && is_peer(table, record->tgid);
}

void peer_table_add_step(struct peer_table *table, const struct step *step, const char *comm)
{
	const struct fbt_step *record = &step->record;
	struct peer_own_step *own = &table->steps[table->step_count % PEER_STEPS_KEPT];
	uint64_t left_ns = step_wall_ns(step), cpu_ns = not_negative(record->cpu_ns), spun_ns;
	struct step_parts parts;

	if (!peer_table_wants(table, step))
		return;
	step_split(step, &parts);
	if (!parts.known)
		return;
	/* What it spun on a CPU it did not compute: it waited itself. */
	spun_ns = sub_saturating(step->spins.ns,
				 add_saturating(record->asleep_ns, parts.ns[STEP_CPU_WAIT]));
	*own = (struct peer_own_step){
		.tgid = record->tgid,
		.tid = record->tid,
		.kind = record->kind,
		.nr = longest_nr(step),
		.throttled_periods = record->limits.throttled_periods,
		.start_ns = record->start_ns,
		.end_ns = record->end_ns,
		.stop = step->stop,
	};
	own->delay_ns = take_u64(parts.ns[STEP_CPU_WAIT], &left_ns);
	own->stopped_ns = take_u64(parts.ns[STEP_STOPPED], &left_ns);
	own->cpu_ns = take_u64(sub_saturating(cpu_ns, spun_ns), &left_ns);
	if (spun_ns > cpu_ns / 2)
		own->nr = step->spins.longest.nr;
	own->asleep_ns = left_ns;
	snprintf(own->comm, sizeof(own->comm), "%s", comm);
	table->step_count++;
}

static uint64_t common_ns(const struct fbt_peer *a, const struct fbt_peer *b)
{
	return sub_saturating(min_u64(a->time_ns, b->time_ns), max_u64(a->first_ns, b->first_ns));
}

/* The most that it was held: by a stop, or without a CPU. */
static uint64_t held_ns(const struct fbt_peer *peer)
{
	return max_u64(peer->stopped_ns, peer->delay_ns);
}

/* That for which the peer itself waited, for most of the time for which the step waited. */
static const struct fbt_peer *find_beyond(const struct peer_table *table,
					  const struct fbt_peer *peer)
{
	const struct fbt_peer *best = NULL;

	for (size_t i = 0; i < PEERS_KEPT; i++) {
		const struct fbt_peer *other = &table->peers[i];

		if (other->header.type != FBT_EVENT_PEER || other->tgid != peer->peer ||
		    other->tid != peer->peer_tid || other->peer == peer->tgid ||
		    common_ns(other, peer) < (peer->time_ns - peer->first_ns) / 2)
			continue;
		if (!best || held_ns(other) > held_ns(best))
			best = other;
	}
	return best;
}

static uint64_t overlap_ns(const struct peer_own_step *own, const struct fbt_step *record)
{
	return sub_saturating(min_u64(own->end_ns, record->end_ns),
			      max_u64(own->start_ns, record->start_ns));
}

/* Of a part of its own step that lies in the other one, evenly. */
static uint64_t share_of(uint64_t ns, uint64_t part_ns, uint64_t all_ns)
{
	return all_ns ? (uint64_t)((double)ns * ((double)part_ns / (double)all_ns)) : 0;
}

static struct fbt_peer peer_of_step(const struct peer_own_step *own, const struct fbt_step *record)
{
	uint64_t all_ns = own->end_ns - own->start_ns, part_ns = overlap_ns(own, record);
	uint64_t left_ns = part_ns;
	struct fbt_peer peer = {
		.header = {FBT_EVENT_PEER, FBT_PEER_OF_STEP, sizeof(peer)},
		.tgid = record->tgid,
		.tid = record->tid,
		.step_start_ns = record->start_ns,
		.first_ns = max_u64(own->start_ns, record->start_ns),
		.time_ns = min_u64(own->end_ns, record->end_ns),
		.peer = own->tgid,
		.peer_tid = own->tid,
		.way = FBT_PEER_MEMORY,
		.nr = own->nr,
		.throttled_periods = own->throttled_periods,
		.kind = own->kind,
		.kind_start_ns = own->start_ns,
	};

	peer.delay_ns = take_u64(share_of(own->delay_ns, part_ns, all_ns), &left_ns);
	peer.stopped_ns = take_u64(share_of(own->stopped_ns, part_ns, all_ns), &left_ns);
	peer.cpu_ns = take_u64(share_of(own->cpu_ns, part_ns, all_ns), &left_ns);
	peer.asleep_ns = left_ns;
	if (own->stop.header.type && own->stopped_ns) {
		peer.stop_reason = own->stop.reason;
		peer.tracer = own->stop.tracer;
		memcpy(peer.tracer_comm, own->stop.comm, sizeof(peer.tracer_comm));
	}
	memcpy(peer.comm, own->comm, sizeof(peer.comm));
	return peer;
}

/* The step of the process that had most of its time in the other one; NULL: none had any. */
static const struct peer_own_step *longest_in(const struct peer_table *table, uint32_t tgid,
					      const struct fbt_step *record)
{
	const struct peer_own_step *longest = NULL;
	uint64_t longest_ns = 0;

	for (size_t i = 0; i < PEER_STEPS_KEPT && i < table->step_count; i++) {
		const struct peer_own_step *own = &table->steps[i];

		if (own->tgid != tgid || overlap_ns(own, record) <= longest_ns)
			continue;
		longest = own;
		longest_ns = overlap_ns(own, record);
	}
	return longest;
}

/* With the one that it waited for itself. false: no memory. */
static bool add_peer(const struct peer_table *table, struct step *step, const struct fbt_peer *peer)
{
	const struct fbt_peer *beyond = find_beyond(table, peer);
	struct step_peer joined = {.record = *peer};

	if (beyond)
		joined.beyond = *beyond;
	return !vec_push(&step->peers, joined);
}

/* A process that has ended, or had no step meanwhile, is none of the others. */
static void join_own_steps(const struct peer_table *table, struct step *step)
{
	const struct fbt_step *record = &step->record;
	size_t first = step->peers.count;
	bool is_kept = true;

	for (size_t i = 0; is_kept && i < PEER_LINKS_KEPT && i < table->link_count; i++) {
		const struct peer_own_step *own = NULL;
		struct fbt_peer peer;

		if (table->links[i].tgid == record->tgid)
			own = longest_in(table, table->links[i].peer, record);
		if (!own)
			continue;
		peer = peer_of_step(own, record);
		is_kept = add_peer(table, step, &peer);
	}
	for (size_t i = first; i < step->peers.count; i++)
		step->peers.items[i].record.others = (uint32_t)(step->peers.count - first - 1);
}

void peer_table_join(const struct peer_table *table, struct step *step)
{
	const struct fbt_step *record = &step->record;

	for (size_t i = 0; table->count && i < PEERS_KEPT; i++) {
		const struct fbt_peer *peer = &table->peers[i];

		if (peer->header.type == FBT_EVENT_PEER && peer->tgid == record->tgid &&
		    peer->tid == record->tid && peer->step_start_ns == record->start_ns &&
		    !add_peer(table, step, peer))
			return;
	}
	if (step->record.kind)
		join_own_steps(table, step);
}
