/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Keeps the latest records of processes that steps may wait for, until those steps have come: what
 * was seen of them from outside, and what their own steps did.
 */
#ifndef FBT_MODEL_PEER_TABLE_H
#define FBT_MODEL_PEER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "fbt_look.h"
#include "model/step.h"

/* The latest records of so many pairs of a step and a process. */
#define PEERS_KEPT 128
/* So many pairs of processes of which one may wait for the other. */
#define PEER_LINKS_KEPT 256
/* The latest steps of the processes for which others may wait. */
#define PEER_STEPS_KEPT 128

/* A step of a process for which others may wait. The parts sum up to end_ns - start_ns. */
struct peer_own_step {
	uint32_t tgid;
	uint32_t tid;
	uint32_t kind;
	uint32_t nr; /* of its longest call that is known; FBT_PEER_NR_UNKNOWN */
	uint32_t throttled_periods;
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t cpu_ns;
	uint64_t delay_ns;
	uint64_t stopped_ns;
	uint64_t asleep_ns;
	struct fbt_stop stop; /* header.type 0: none was seen */
	char comm[16];
};

struct peer_table {
	struct fbt_peer peers[PEERS_KEPT];
	uint64_t count; /* of all pairs so far */
	struct fbt_peer_link links[PEER_LINKS_KEPT];
	uint64_t link_count; /* of all links so far; beyond the limit new ones replace old ones */
	struct peer_own_step steps[PEER_STEPS_KEPT];
	uint64_t step_count; /* of all steps so far */
};

void peer_table_add(struct peer_table *table, const struct fbt_peer *peer);
void peer_table_add_link(struct peer_table *table, const struct fbt_peer_link *link);

/*
 * To be called for each step after it was joined. Keeps it, if it is wanted: another process may
 * wait for its process, and it is long enough to explain a wait. Its spins must be known then.
 * comm: of the process, without a limit.
 */
bool peer_table_wants(const struct peer_table *table, const struct step *step);
void peer_table_add_step(struct peer_table *table, const struct step *step, const char *comm);

/*
 * Gives the step its peers. Where a peer was in a step of its own that waited too, the one that it
 * waited for is beyond. A process that is linked to that of the step is a peer also by its own
 * step, the one that had most of its time in this step (FBT_PEER_OF_STEP). Without memory some are
 * left out.
 */
void peer_table_join(const struct peer_table *table, struct step *step);

#endif
