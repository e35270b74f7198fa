/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Looks at the processes that a late step may wait for: those that map memory which its own process
 * maps too, shared and writable, and those that have the other end of what it reads from. What they
 * do is sampled from outside, by /proc, and only while a step is late.
 */
#ifndef FBT_STREAM_PEERS_H
#define FBT_STREAM_PEERS_H

#include <stdint.h>
#include "stream/peer_links.h"
#include "kernel/shared.h"
#include "model/event.h"
#include "stream/stop_senders.h"

struct peers;

/*
 * shared, output and senders are borrowed; senders may be NULL. asks_sockets: the peers of Unix
 * sockets are asked for, which needs a socket that a confined tool may not open. NULL: no memory.
 */
struct peers *peers__new(const struct shared *shared, const struct record_output *output,
			 struct stop_senders *senders, bool asks_sockets);
void peers__free(struct peers *peers);

/*
 * The step of the thread tid waits for a lock, whose holder was seen in that call. As long as both
 * wait on, and the step itself waits for no process, it waits for those that the holder waits for.
 */
void peers__know_holder(struct peers *peers, uint32_t tid, const struct peer_wait *holder);

/*
 * To be called every few ms. Looks every 5 ms at the peers of each step that has been open for 5 ms
 * and twice as long as usual (20 ms where that is not known), of 8 steps at most, and sends an
 * FBT_EVENT_PEER of each peer that has done anything since another step waited. It takes up to a
 * quarter of a CPU while it looks for peers, up to 0.1 s, and else up to a twentieth.
 */
void peers__look(struct peers *peers, uint64_t now_ns);

#endif
