/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/short_calls.h"

#include <string.h>

static bool is_of(const struct fbt_stack *stack, const struct step *step, uint32_t nr)
{
	return stack->nr == nr && stack->tid == step->record.tid && stack->count &&
	       !(stack->header.flags & (FBT_STACK_WAKER | FBT_STACK_SAMPLED));
}

static bool is_same(const struct fbt_stack *one, const struct fbt_stack *other)
{
	return one->count == other->count &&
	       !memcmp(one->codes, other->codes, one->count * sizeof(one->codes[0]));
}

bool short_calls_stack(const struct step *step, uint32_t nr, struct fbt_stack *stack)
{
	uint32_t most = 0;

	vec_for_each (one, &step->stacks) {
		uint32_t times = 0;

		if (!is_of(one, step, nr))
			continue;
		vec_for_each (other, &step->stacks)
			times += is_of(other, step, nr) && is_same(one, other);
		if (times <= most)
			continue;
		most = times;
		*stack = *one;
	}
	return most != 0;
}
