/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/rate_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fbt_shared.h"

/* "Once per call" and "nearly all": up to a tenth more or less. */
#define PART 10

struct ordering {
	const struct fbt_rate_inside *insides;
	const struct rated *sorted;
	size_t count;
	bool *is_placed;
	struct rated *result;
	size_t placed;
};

static bool is_known(const struct rate *rate)
{
	return rate->function->builtin && rate->calls;
}

static uint64_t total_ns(const struct rate *rate)
{
	return rate->calls * rate->mean_ns;
}

static int compare(const void *left, const void *right)
{
	const struct rate *a = &((const struct rated *)left)->rate;
	const struct rate *b = &((const struct rated *)right)->rate;

	if (a->too_often != b->too_often)
		return a->too_often ? 1 : -1;
	if (is_known(a) != is_known(b))
		return is_known(a) ? -1 : 1;
	if (total_ns(a) != total_ns(b))
		return total_ns(a) > total_ns(b) ? -1 : 1;
	if (a->calls != b->calls)
		return a->calls > b->calls ? -1 : 1;
	return 0;
}

/* Whether outer calls inner once per call, which takes nearly all of within_ns for each of them. */
static bool wraps(const struct ordering *order, const struct rated *outer,
		  const struct rated *inner, uint64_t within_ns)
{
	const struct fbt_rate_inside *inside =
		&order->insides[outer->kind * FBT_KIND_COUNT + inner->kind];
	uint64_t calls = outer->rate.ended;

	if (!calls || inner->rate.too_often || is_known(&outer->rate) != is_known(&inner->rate))
		return false;
	return inside->ended >= calls - calls / PART && inside->ended <= calls + calls / PART &&
	       inside->total_ns / inside->ended >= within_ns - within_ns / PART;
}

/* Whether inner is a part of outer: called several times by each call of it, and by nobody else. */
static bool is_part(const struct ordering *order, const struct rated *inner,
		    const struct rated *outer)
{
	const struct fbt_rate_inside *inside =
		&order->insides[outer->kind * FBT_KIND_COUNT + inner->kind];
	uint64_t calls = outer->rate.ended, ended = inner->rate.ended;

	return calls && !outer->rate.too_often &&
	       is_known(&outer->rate) == is_known(&inner->rate) &&
	       inside->ended > calls + calls / PART && inside->ended >= ended - ended / PART;
}

/* What is a part of nothing that still has to be placed: the candidate, or what it is a part of. */
static size_t find_whole(const struct ordering *order, size_t index)
{
	size_t whole = index, at = 0;

	for (size_t level = 0; level < order->count && at < order->count; level++) {
		for (at = 0; at < order->count; at++)
			if (at != whole && !order->is_placed[at] &&
			    is_part(order, &order->sorted[whole], &order->sorted[at]))
				break;
		whole = at < order->count ? at : whole;
	}
	return whole;
}

static void place(struct ordering *order, size_t index)
{
	if (order->is_placed[index])
		return;
	order->is_placed[index] = true;
	order->result[order->placed++] = order->sorted[index];
}

/*
 * Places functions that wrap each other, the innermost first. All are compared with the time of the
 * outermost.
 */
static void place_chain(struct ordering *order, size_t outermost)
{
	size_t chain[FBT_KIND_COUNT], length = 0, at = outermost, next = outermost;
	uint64_t within_ns = order->sorted[outermost].rate.mean_ns;

	while (length < FBT_KIND_COUNT) {
		chain[length++] = at;
		for (next = 0; next < order->count; next++)
			if (next != at && !order->is_placed[next] &&
			    wraps(order, &order->sorted[at], &order->sorted[next], within_ns))
				break;
		if (next == order->count)
			break;
		at = next;
	}
	while (length)
		place(order, chain[--length]);
}

int rate_order(struct rated *rated, size_t count, const struct fbt_rate_inside *insides)
{
	struct ordering order = {.insides = insides, .sorted = rated, .count = count};
	int err = -ENOMEM;

	order.is_placed = calloc(count + 1, sizeof(*order.is_placed));
	order.result = calloc(count + 1, sizeof(*order.result));
	if (order.is_placed && order.result) {
		qsort(rated, count, sizeof(*rated), compare);
		for (size_t i = 0; i < count; i++)
			while (!order.is_placed[i])
				place_chain(&order, find_whole(&order, i));
		memcpy(rated, order.result, count * sizeof(*rated));
		err = 0;
	}
	free(order.is_placed);
	free(order.result);
	return err;
}
