/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which rank of an iteration is late, by how much, and why. Pure.
 *
 * A rank begins late if it begins after the first one, for no other reason than what it did in the
 * gap before, beyond what each other rank did there: what is left of its last tick's lateness is
 * not counted again. It ends late if it ends after the first one, beyond what it began late. Where
 * ranks wait for each other within their steps, all end together; then the late one is the rank
 * that was held: stopped, without a CPU, in page faults, in a collection, without the GIL, or in
 * calls in which nobody waits for another rank. What the others spend more of meanwhile is waiting:
 * in loops that spin (own code), or in calls. So a rank that only has more own code than others is
 * late if those waited in calls, and cannot be told from them if they spun.
 */
#ifndef FBT_RANKS_LATE_H
#define FBT_RANKS_LATE_H

#include <stddef.h>
#include <stdint.h>
#include "ranks/tick.h"

/* Less is noise, and so is less than a tenth of the iteration. */
#define LATE_MIN_NS  100000
#define LATE_PERCENT 10

enum late_where {
	LATE_BEGINS = 0, /* late */
	LATE_WITHIN = 1, /* held, while the others waited for it */
	LATE_ENDS = 2,	 /* late */
	LATE_WHERE_COUNT = 3,
};

/* How late one rank is, against those of the same iteration. */
struct late {
	uint64_t ns[LATE_WHERE_COUNT];
	uint64_t total_ns;     /* the sum */
	uint64_t carried_ns;   /* it began so much later because its tick before ended late */
	enum late_where where; /* the largest of ns */
	enum tick_part cause;  /* most of that, or TICK_PARTS: not known */
	uint64_t cause_ns;     /* by that */
	struct fbt_stop stop;  /* of STEP_STOPPED, if it was seen; header.type 0: none */
	struct fbt_stop_sender stop_sender; /* header.type 0: not known */
};

/* lates[i] is about ranks[i]. Of one rank all is 0. */
void late_find(const struct tick *ranks, size_t count, struct late *lates);

/* The index of the rank that is late, or count: none is. */
size_t late_choose(const struct late *lates, size_t count, uint64_t iteration_ns);

/* "begins", "within", "ends". */
const char *late_where_name(enum late_where where);

/* As step_part_name; "gc", "gil", "cpu_limit", "between", and "unknown" for TICK_PARTS. */
const char *late_cause_name(enum tick_part cause, bool calls_known);

/* The same as words of a sentence: "waiting for a CPU". */
const char *late_cause_words(enum tick_part cause, bool calls_known);

#endif
