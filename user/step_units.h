/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Sets of step kinds, a bit for each; and units: the kinds that are probed together or not at all,
 * because a step of one may go on in another (step_probes_are_joined). Pure.
 */
#ifndef FBT_STEP_UNITS_H
#define FBT_STEP_UNITS_H

#include <stdint.h>
#include "fbt_event.h"
#include "step_function.h"

_Static_assert(FBT_KIND_COUNT <= 64, "a set of kinds is one word");

struct step_units {
	uint64_t of[FBT_KIND_COUNT]; /* the unit that a kind is in */
};

static inline uint64_t kind_bit(uint32_t kind)
{
	return UINT64_C(1) << kind;
}

/* The next of a set above the one before, from 0 on; 0 behind the last: kind 0 has no probes. */
static inline uint32_t kind_next(uint64_t set, uint32_t before)
{
	uint64_t rest = before < 63 ? set & ~(kind_bit(before + 1) - 1) : 0;

	return rest ? (uint32_t)__builtin_ctzll(rest) : 0;
}

/* functions[i] is kind i + 1; all but the last are in units already. */
void step_units_add(struct step_units *units, const function_vec *functions, uint32_t last);

#endif
