/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Where the time of the slowest steps went, and of the median ones: sums of the parts of all steps
 * by length, in classes of 1/32 of a power of two. 3 KiB for each power of two that occurs.
 */
#ifndef FBT_REPORT_TAIL_H
#define FBT_REPORT_TAIL_H

#include <stdbool.h>
#include <stdint.h>
#include "model/step.h"

struct tail;

struct tail *tail__new(void); /* NULL: no memory */
void tail__free(struct tail *tail);

/* A step whose parts are known. 0, or -ENOMEM: not added. */
int tail__add(struct tail *tail, const struct step_parts *parts, uint64_t total_ns);

/* Some of the steps, and the mean of them. */
struct tail_group {
	uint64_t steps;
	double total_ns;
	double parts_ns[STEP_PARTS];
};

/*
 * The slowest of the steps, one in a hundred, and the middle tenth of them. Where the border of a
 * group lies in a class of lengths, which is at most 3 % wide, the mean of that class stands for
 * the steps on this side of it; all else is exact. False: there is no tail, because there are less
 * than 100 steps, more than a tenth are in the classes of the slowest, or the slowest take less
 * than 1.1 times as long as the middle ones.
 */
bool tail__find(const struct tail *tail, struct tail_group *slowest, struct tail_group *median);

#endif
