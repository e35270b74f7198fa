/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Whether the thread of a slot spins: makes one short call after the other that model/spins.h knows
 * as a wait. Its records tell that only when the step has ended, so the slot is read at each turn.
 * What is missed between two turns makes no difference: what was seen is shown only if the records
 * have a row at that time. Pure.
 */
#ifndef FBT_STREAM_SPIN_ROW_H
#define FBT_STREAM_SPIN_ROW_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_event.h"
#include "fbt_shared.h"

struct spin_row {
	uint64_t step_ns;    /* when its step began; 0: it is in none */
	uint64_t start_ns;   /* the turn at which it was seen first; 0: there is no row */
	uint64_t turn_ns;    /* the last turn at which calls had been made, … */
	uint64_t calls;	     /* … how many the step had made by then, … */
	uint64_t busy_ns;    /* … and how long the thread had been in them */
	uint64_t longest_ns; /* row of the step so far */
	uint64_t usual_ns;   /* of the steps before */
};

/* To be called at each turn, for a slot with a thread. */
void spin_row_turn(struct spin_row *row, const volatile struct fbt_slot *slot, enum fbt_arch arch,
		   uint64_t now_ns);

/* Whether there is a row that is so long, and twice as long as the longest of a step usually is. */
bool spin_row_is_long(const struct spin_row *row, uint64_t least_ns, uint64_t now_ns);

#endif
