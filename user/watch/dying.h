/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Children that were told to end and belong to no target any more: killed if they do not. */
#ifndef FBT_WATCH_DYING_H
#define FBT_WATCH_DYING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/vec.h"

/* From SIGTERM to SIGKILL. */
#define DYING_NS UINT64_C(10000000000)

struct dying {
	VEC(struct dying_child {
		pid_t pid;
		unsigned int slot; /* in which it still writes metrics; 0: none */
		uint64_t told_ns;  /* CLOCK_MONOTONIC: of SIGTERM */
	})
	children;
};

/* Without memory for it, it is killed at once. pid 0: nothing. */
void dying_add(struct dying *dying, pid_t pid, unsigned int slot, uint64_t told_ns);

/* Bit N: one of them has slot N. */
uint32_t dying_slots(const struct dying *dying);

/* Call several times a second: kills those that are late. */
void dying_turn(struct dying *dying, uint64_t now_ns);

/* A child has ended. Returns whether it was one of these. */
bool dying_reap(struct dying *dying, pid_t pid);

/* Kills them all, and frees what dying holds. */
void dying_clear(struct dying *dying);

#endif
