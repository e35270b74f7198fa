/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Keeps the latest records of processes that steps may wait for, until those steps have come. */
#ifndef FBT_MODEL_PEER_TABLE_H
#define FBT_MODEL_PEER_TABLE_H

#include <stdint.h>
#include "fbt_look.h"
#include "model/step.h"

/* The latest records of so many pairs of a step and a process. */
#define PEERS_KEPT 128

struct peer_table {
	struct fbt_peer peers[PEERS_KEPT];
	uint64_t count; /* of all pairs so far */
};

void peer_table_add(struct peer_table *table, const struct fbt_peer *peer);

/*
 * Gives the step its peers. Where a peer was in a step of its own that waited too, the one that it
 * waited for is beyond. Without memory some are left out.
 */
void peer_table_join(const struct peer_table *table, struct step *step);

#endif
