/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which processes lacked CPUs in the steps of a function, how often a memory limit was reached, and
 * what the host of a virtual machine took.
 */
#ifndef FBT_TALLY_SHORTAGE_TALLY_H
#define FBT_TALLY_SHORTAGE_TALLY_H

#include <stdint.h>
#include "base/vec.h"
#include "model/step.h"

/* Processes whose waits for a CPU are told apart; those of more are only summed. */
#define SHORTAGE_WAITERS 32
/* Most threads whose hits of a memory limit are. */
#define SHORTAGE_LIMITED 64

struct shortage_waiter {
	uint32_t tgid;
	uint64_t wait_ns; /* of its steps, for a CPU */
};

/* How often a memory limit was reached in the steps of one thread. */
struct shortage_limited {
	uint32_t tid;
	uint64_t hits;
};

struct shortage_tally {
	VEC(struct shortage_waiter) waiters; /* the processes that made the steps */
	/*
	 * The parts of steps whose page faults a memory limit explains (cause_is_memory_limit); and
	 * how often it was reached in these. That counter is one of the cgroup, so steps at the
	 * same time count the same: limited_hits is that of the thread with most, which is less
	 * than all if there are several.
	 */
	uint64_t limited_ns[STEP_PARTS];
	uint64_t limited_hits;
	VEC(struct shortage_limited) limited;
	uint64_t steal_ns; /* that the host took, of the time off the CPU: step_steal_ns() */
};

/* Adds a step. 0 or -ENOMEM. */
int shortage_tally_add(struct shortage_tally *tally, const struct step *step,
		       const struct step_parts *parts);
void shortage_tally_clear(struct shortage_tally *tally);

#endif
