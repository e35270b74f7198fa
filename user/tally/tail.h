/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Where the time of the slowest steps went, compared with that of median steps. The parts of steps
 * are summed by the length of the step, in classes of 1/32 of a power of two. A power of two that
 * occurs takes 3 KiB.
 */
#ifndef FBT_TALLY_TAIL_H
#define FBT_TALLY_TAIL_H

#include <stdbool.h>
#include <stdint.h>
#include "model/step.h"

struct tail;

struct tail *tail__new(void); /* NULL: no memory */
void tail__free(struct tail *tail);

/* A step whose parts are known. 0, or -ENOMEM: not added. */
int tail__add(struct tail *tail, const struct step_parts *parts, uint64_t total_ns);

/* A group of steps, and their mean. */
struct tail_group {
	uint64_t steps;
	double total_ns;
	double parts_ns[STEP_PARTS];
};

/*
 * Finds the slowest 1 % of the steps, and the middle tenth. Where the border of a group lies within
 * a class of lengths, which is at most 3 % wide, the mean of that class is used for its steps in
 * the group; all else is exact. False: there is no tail, because there are fewer than 100 steps,
 * the classes of the slowest hold more than a tenth of all steps, or the slowest take less than 1.1
 * times as long as the middle ones.
 */
bool tail__find(const struct tail *tail, struct tail_group *slowest, struct tail_group *median);

#endif
