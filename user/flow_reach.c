/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "flow_reach.h"

#include <errno.h>
#include <stdlib.h>

struct spot {
	size_t piece;
	size_t index;
};

struct walk {
	const flow_vec *const *pieces;
	size_t count;
	bool **reached; /* per piece, per instruction */
	VEC(struct spot) todo;
};

/* Marks the instruction at address and lists it to be followed. Addresses elsewhere do not count.
 */
static int mark(struct walk *walk, uint64_t address)
{
	for (size_t i = 0; i < walk->count; i++) {
		const flow_vec *flows = walk->pieces[i];
		size_t low = 0, high = flows->count;
		struct spot spot = {.piece = i};

		while (low < high) {
			size_t middle = low + (high - low) / 2;

			if (flows->items[middle].address < address)
				low = middle + 1;
			else
				high = middle;
		}
		if (low == flows->count || flows->items[low].address != address)
			continue;
		if (walk->reached[i][low])
			return 0;
		walk->reached[i][low] = true;
		spot.index = low;
		return vec_push(&walk->todo, spot);
	}
	return 0;
}

static int follow(struct walk *walk, const struct flow *flow)
{
	int err = 0;

	if (flow->kind == FLOW_JUMP || flow->kind == FLOW_BRANCH)
		err = mark(walk, flow->target);
	if (!err && (flow->kind == FLOW_NEXT || flow->kind == FLOW_NOP || flow->kind == FLOW_CALL ||
		     flow->kind == FLOW_BRANCH))
		err = mark(walk, flow->address + flow->size);
	return err;
}

static bool is_all_reached(const struct walk *walk)
{
	for (size_t i = 0; i < walk->count; i++)
		for (size_t j = 0; j < walk->pieces[i]->count; j++)
			if (!walk->reached[i][j] && walk->pieces[i]->items[j].kind != FLOW_NOP)
				return false;
	return true;
}

int flow_reach(const flow_vec *const *pieces, size_t count, bool *all)
{
	struct walk walk = {.pieces = pieces, .count = count};
	int err = -ENOMEM;

	walk.reached = calloc(count, sizeof(*walk.reached));
	if (!walk.reached)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		walk.reached[i] = calloc(pieces[i]->count + 1, sizeof(**walk.reached));
		if (!walk.reached[i])
			goto out;
	}
	err = pieces[0]->count ? mark(&walk, pieces[0]->items[0].address) : 0;
	while (!err && walk.todo.count) {
		struct spot spot = walk.todo.items[--walk.todo.count];

		err = follow(&walk, &pieces[spot.piece]->items[spot.index]);
	}
	if (!err)
		*all = is_all_reached(&walk);
out:
	for (size_t i = 0; i < count; i++)
		free(walk.reached[i]);
	free(walk.reached);
	vec_free(&walk.todo);
	return err;
}
