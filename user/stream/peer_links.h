/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which processes a thread may wait for, by what it waits in. Found by a search through /proc,
 * which is made in small pieces, and kept for a while.
 */
#ifndef FBT_STREAM_PEER_LINKS_H
#define FBT_STREAM_PEER_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "fbt_look.h"
#include "fbt_shared.h"

#define PEERS_MAX 8 /* of one link; more are counted */

struct peer_links;

/* A process at the other side. */
struct peer_process {
	uint32_t tgid;
	uint64_t start_ticks; /* see thread_stat */
	/* The time on a CPU of all its threads at the end of the last wait, and when that was. */
	uint64_t cpu_ns;
	uint64_t seen_ns;
};

struct peer_link {
	enum fbt_peer_way way;
	struct peer_process processes[PEERS_MAX];
	size_t count;
	size_t more; /* found beyond these; the process of the wait, if it has the far end too */
};

/* asks_sockets: see peers__new. NULL: no memory. */
struct peer_links *peer_links__new(bool asks_sockets);
void peer_links__free(struct peer_links *links);

/* What a thread waits in: the call that is open, or was last. */
struct peer_wait {
	uint32_t tgid;
	uint32_t tid;
	uint32_t nr;
	uint64_t call_ns; /* when the call began */
	bool may_spin;	  /* it may look at memory, again and again */
	uint64_t args[2];
};

/*
 * The link of a wait, with what is known of it so far; NULL: it waits for no other process, as far
 * as can be seen. Valid until the next call of this function.
 */
struct peer_link *peer_links__find(struct peer_links *links, const struct peer_wait *wait,
				   uint64_t now_ns);

/* Whether a wait may be a row of such calls, with code of the thread between them. */
bool peer_links__may_repeat(const struct peer_links *links, uint32_t nr);

/* Whether it is a call that waits for nothing in particular, as sched_yield, so for memory perhaps.
 */
bool peer_links__is_nap(const struct peer_links *links, uint32_t nr);

/* Searches on for that link, for so much CPU time of the tool; at least one process. */
void peer_link_search(struct peer_link *link, uint64_t most_ns);

/* Whether the search of a link has not ended. */
bool peer_link_is_open(const struct peer_link *link);

#endif
