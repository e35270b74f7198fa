/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/short_calls.h"

#include <string.h>

/* Of more stacks, those that came first count. */
#define STACKS_MOST 64

struct stacks_of {
	const struct fbt_stack *stacks[STACKS_MOST];
	size_t count;
};

static void add(struct stacks_of *of, const struct step *step, const struct fbt_stack *stack)
{
	bool is_own = stack->tid == step->record.tid && stack->count &&
		      !(stack->header.flags & (FBT_STACK_WAKER | FBT_STACK_SAMPLED));

	if (is_own && of->count < STACKS_MOST)
		of->stacks[of->count++] = stack;
}

static void drop(struct stacks_of *of, uint64_t start_ns)
{
	for (size_t i = of->count; i-- > 0;)
		if (of->stacks[i]->start_ns == start_ns)
			of->stacks[i] = of->stacks[--of->count];
}

/*
 * Calls of one number may be of several causes, as reads of files and of sockets are. Those of the
 * cause's other calls count only if there is none of the number.
 */
static void find(struct stacks_of *of, const struct window *window, const struct step *step,
		 bool claims, enum cause_kind cause, uint32_t nr)
{
	struct call_walk walk;

	vec_for_each (stack, &step->stacks)
		if (stack->nr == nr)
			add(of, step, stack);
	call_walk_begin(&walk, window, step, claims);
	while (of->count && call_walk_next(&walk))
		if (walk.cause != cause)
			drop(of, walk.call->start_ns);
	if (of->count || !step->stacks.count)
		return;
	call_walk_begin(&walk, window, step, claims);
	while (call_walk_next(&walk)) {
		if (walk.cause != cause)
			continue;
		vec_for_each (stack, &step->stacks)
			if (stack->start_ns == walk.call->start_ns)
				add(of, step, stack);
	}
}

static bool is_same(const struct fbt_stack *one, const struct fbt_stack *other)
{
	return one->count == other->count &&
	       !memcmp(one->codes, other->codes, one->count * sizeof(one->codes[0]));
}

bool short_calls_stack(const struct window *window, const struct step *step, bool claims,
		       enum cause_kind cause, uint32_t nr, struct fbt_stack *stack)
{
	struct stacks_of of = {.count = 0};
	uint32_t most = 0;

	find(&of, window, step, claims, cause, nr);
	for (size_t i = 0; i < of.count; i++) {
		uint32_t times = 0;

		for (size_t j = 0; j < of.count; j++)
			times += is_same(of.stacks[i], of.stacks[j]);
		if (times <= most)
			continue;
		most = times;
		*stack = *of.stacks[i];
	}
	return most != 0;
}
