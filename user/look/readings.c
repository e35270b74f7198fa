/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "look/readings.h"

#include <string.h>

#define AGREE_LEAST 3

/* What cannot be true of the whole stack comes last. */
static uint32_t rank_of(const struct stack_codes *codes)
{
	if (!codes->count)
		return UINT32_MAX;
	if (codes->flags & FBT_STACK_LOST)
		return 2 * FBT_STACK_FRAMES + codes->count;
	if (codes->flags & (FBT_STACK_APART | FBT_STACK_MOVED))
		return FBT_STACK_FRAMES + codes->count;
	return codes->count;
}

void readings_add(struct readings *readings, const struct stack_codes *codes)
{
	for (uint32_t i = 0; i < readings->count; i++) {
		const struct stack_codes *known = &readings->codes[i];

		if (rank_of(known) == rank_of(codes) &&
		    !memcmp(known->codes, codes->codes, codes->count * sizeof(codes->codes[0]))) {
			readings->times[i]++;
			return;
		}
	}
	readings->times[readings->count] = 1;
	readings->codes[readings->count++] = *codes;
}

const struct stack_codes *readings_choose(const struct readings *readings)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < readings->count; i++) {
		uint32_t rank = rank_of(&readings->codes[i]),
			 least = rank_of(&readings->codes[best]);

		if (rank < least || (rank == least && readings->times[i] > readings->times[best]))
			best = i;
	}
	return readings->count && readings->codes[best].count &&
			       readings->times[best] >= AGREE_LEAST
		       ? &readings->codes[best]
		       : NULL;
}
