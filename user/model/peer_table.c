/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/peer_table.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/arith.h"

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

void peer_table_join(const struct peer_table *table, struct step *step)
{
	const struct fbt_step *record = &step->record;

	for (size_t i = 0; table->count && i < PEERS_KEPT; i++) {
		const struct fbt_peer *peer = &table->peers[i], *beyond;
		struct step_peer joined = {.record = *peer};

		if (peer->header.type != FBT_EVENT_PEER || peer->tgid != record->tgid ||
		    peer->tid != record->tid || peer->step_start_ns != record->start_ns)
			continue;
		beyond = find_beyond(table, peer);
		if (beyond)
			joined.beyond = *beyond;
		if (vec_push(&step->peers, joined))
			return;
	}
}
