/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Where the time of the slowest steps went, and of the median ones: sums of the parts of all steps
 * by length, in classes of a twelfth of a power of two. 75 KiB.
 */
#ifndef FBT_REPORT_TAIL_H
#define FBT_REPORT_TAIL_H

#include <stdbool.h>
#include <stdint.h>
#include "model/step.h"

struct tail;

struct tail *tail__new(void); /* NULL: no memory */
void tail__free(struct tail *tail);

/* A step whose parts are known. */
void tail__add(struct tail *tail, const struct step_parts *parts, uint64_t total_ns);

/* Some of the steps, and the mean of them. */
struct tail_group {
	uint64_t steps;
	double total_ns;
	double parts_ns[STEP_PARTS];
};

/*
 * Finds the slowest steps, and those in the class of the median. The slowest are one in a hundred,
 * and the rest of the class that the last of these is in. False: there is no tail, because there
 * are fewer than 200 steps, more than a tenth are of the slowest class, or the slowest take less
 * than 1.3 times as long as the median.
 */
bool tail__find(const struct tail *tail, struct tail_group *slowest, struct tail_group *median);

#endif
