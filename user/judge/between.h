/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The time between the calls of a step, as far as it belongs to them. Pure. */
#ifndef FBT_JUDGE_BETWEEN_H
#define FBT_JUDGE_BETWEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "judge/calls.h"
#include "model/spins.h"

/* The calls of a step one after the other, and the waits that spin among them. */
struct between {
	struct spin_search search;
	struct spin spin; /* the one that the call is in, or the next one */
	bool has_spin;
	bool is_first;	/* the call is the first of the spin */
	bool is_inside; /* it is one of the spin, but not the first */
	bool goes_on;	/* it is one, but not the last; or a record of several, all short */
	size_t next;
	uint64_t most_ns; /* up to this between two calls belongs to the second one */
	uint64_t last_ns; /* end of the call before; 0: there was none */
};

/* window and step are borrowed. */
void between_begin(struct between *between, const struct window *window, const struct step *step);

/* Moves to the next call of the step. */
void between_next(struct between *between, const struct fbt_call *call);

/*
 * Time since the previous call, as far as it belongs to this one (about a microsecond), and between
 * the calls that one record stands for. Without what lies in a wait that spins: see spin_code_ns.
 * Intervals have many threads, so there it is 0. To be called once for each call.
 */
uint64_t between_ns(struct between *between, const struct step *step, const struct fbt_call *call);

/*
 * The part of the step that the wait for a CPU in the call belongs to. A thread that spins would
 * have waited on in that time, as it did afterwards: it is part of the wait. After the last call it
 * may not have.
 */
enum cause_kind between_delay_part(const struct between *between, const struct call_walk *walk);

/*
 * The sum of between_ns() over the calls of a cause that have a record. claims: as for
 * call_walk_begin().
 */
uint64_t between_sum_ns(const struct window *window, const struct step *step, bool claims,
			enum cause_kind cause);

#endif
