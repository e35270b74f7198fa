/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* For which other process a step waited, and what that did meanwhile. Pure. */
#ifndef FBT_JUDGE_PEERS_H
#define FBT_JUDGE_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/format.h"
#include "fbt_look.h"
#include "model/step.h"
#include "model/window.h"

/* What a process did for most of the time in which a step waited for it. */
enum peer_did {
	PEER_UNKNOWN = 0,
	PEER_ASLEEP, /* in a call */
	PEER_COMPUTED,
	PEER_NO_CPU,	/* ready to run, but no CPU was free */
	PEER_CPU_LIMIT, /* the same, because of a limit of its cgroup */
	PEER_STOPPED,
	PEER_DID_COUNT,
};

/* "unknown", "asleep", "computed", "no_cpu", "cpu_limit", "stopped". */
const char *peer_did_name(enum peer_did did);

enum peer_did peer_did(const struct fbt_peer *peer);

/* How much of a wait for it that computed; 0 if it did something else for most of the time. */
uint64_t peer_computed_ns(const struct fbt_peer *peer, uint64_t wait_ns);

/* By what it may have kept the step waiting: "memory", "futex", "pipe", "socket"; or "unknown". */
const char *peer_way_name(enum fbt_peer_way way);

/* The time that it spent so. */
uint64_t peer_did_ns(const struct fbt_peer *peer);

/*
 * The process for which the step waited from start_ns to end_ns; NULL: none explains most of that.
 * is_memory: the wait looks at memory again and again, or is one in futex; else it is one for
 * something to read. Of several, one that was held is meant, then one that was in a step of its
 * own. One that slept outside of steps is meant only if there is no other: idle processes sleep
 * too. by_steps: those too that only their own steps tell of (FBT_PEER_OF_STEP).
 */
const struct step_peer *peer_find(const struct step *step, bool is_memory, bool by_steps,
				  uint64_t start_ns, uint64_t end_ns);

/* The same for a thread that held the lock for which the step waited, however it waited itself. */
const struct step_peer *peer_find_of(const struct step *step, uint32_t holder, uint64_t start_ns,
				     uint64_t end_ns);

/*
 * Whether the process waited for peer->beyond: by what it reads from or by a futex; or by memory,
 * if that process was held. One that sleeps may do so for no other one.
 */
bool peer_waited_too(const struct step_peer *peer, enum fbt_arch arch);

/*
 * "worker (pid 29118, in execute_model), which was stopped by a tracer: gdb (pid 4711)", and if it
 * waited for another process itself " and waited for …". The names come from those processes: they
 * are escaped.
 */
void peer_describe(struct line *line, const struct step_peer *peer, const struct window *window);

#endif
