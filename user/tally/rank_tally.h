/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The iterations of Python engines, summed up: which rank was late, how often and why. */
#ifndef FBT_TALLY_RANK_TALLY_H
#define FBT_TALLY_RANK_TALLY_H

#include <stdbool.h>
#include <stdint.h>
#include "base/stats.h"
#include "base/vec.h"
#include "ranks/iterations.h"

/* A rank in the iterations in which it was the late one. */
struct rank_tally {
	uint32_t tgid;
	uint64_t late; /* number of these */
	uint64_t late_ns;
	uint64_t where_ns[LATE_WHERE_COUNT]; /* the sum is late_ns */
	uint64_t cause_ns[TICK_PARTS + 1];   /* by enum tick_part */
	uint64_t cause_count[TICK_PARTS + 1];
	/* The one in which it was latest: */
	struct late worst;
	uint64_t worst_number;
	uint64_t worst_step;
	uint64_t worst_ns; /* begin, since the window began */
};

/* The ranks of one engine, or one process. */
struct team_tally {
	uint32_t parent;
	char *name;
	uint64_t iterations;
	uint64_t unmatched;
	uint64_t late; /* iterations with a late rank */
	struct stats *duration;
	uint64_t engine_seen; /* iterations with a step of the engine's process … */
	uint64_t within;      /* … within which all ranks began, and the first one ended */
	uint32_t engine_kind;
	bool calls_known;
	/* Of the ticks of all ranks: */
	uint64_t tick_ns;
	uint64_t between_ns;
	struct tick_kind kinds[TICK_KINDS];
	VEC(struct rank_tally) ranks; /* by tgid */
};

struct iteration_tally {
	VEC(struct team_tally *) teams; /* by number */
};

/* 0 or -ENOMEM. */
int iteration_tally_add(struct iteration_tally *tally, const struct window *window,
			const struct iteration *iteration);
void iteration_tally_clear(struct iteration_tally *tally);

/*
 * Whether there is something to tell: several ranks, of whose ticks most were joined, or one whose
 * iterations have several parts.
 */
bool team_tally_is_shown(const struct team_tally *team);

#endif
