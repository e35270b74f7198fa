/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Several readings of the stack of a thread that runs on meanwhile. Pure. */
#ifndef FBT_LOOK_READINGS_H
#define FBT_LOOK_READINGS_H

#include <stdint.h>
#include "stacks/stacks.h"

#define READINGS_MOST 8

/* Each different reading, and how often it was made. All zero: none was. */
struct readings {
	struct stack_codes codes[READINGS_MOST];
	uint32_t times[READINGS_MOST];
	uint32_t count;
};

/* At most READINGS_MOST times. */
void readings_add(struct readings *readings, const struct stack_codes *codes);

/*
 * The reading to be believed, or NULL. Functions that the thread calls between two of its calls may
 * have overwritten a part of its stack, or its script may just be in one of them, so the shortest
 * stack is that of its loop alone. It is believed if at least three readings were this one.
 */
const struct stack_codes *readings_choose(const struct readings *readings);

#endif
