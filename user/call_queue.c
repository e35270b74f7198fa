/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "call_queue.h"

#include <stdlib.h>
#include <string.h>

/* Arrays up to this many calls (16 KiB) stay with a thread that has none waiting. */
#define SPARE_CALLS 256

static uint64_t end_of(const struct fbt_call *call)
{
	return call->start_ns + call->duration_ns;
}

static bool is_in_order(const struct call_queue *queue, const struct fbt_call *call)
{
	size_t count = call_queue_count(queue);
	const struct fbt_call *last;

	if (!count)
		return true;
	last = call_queue_at(queue, count - 1);
	return call->start_ns >= last->start_ns && end_of(call) >= end_of(last);
}

int call_queue_push(struct call_queue *queue, const struct fbt_call *call)
{
	bool is_late = !is_in_order(queue, call);
	int err = vec_push(&queue->calls, *call);

	if (!err)
		queue->is_unordered |= is_late;
	return err;
}

/* Once half of the array is of calls that have left, so that each is moved once on average. */
static void close_up(struct call_queue *queue)
{
	call_vec *calls = &queue->calls;
	size_t count = call_queue_count(queue);

	if (queue->first < count)
		return;
	if (count)
		memmove(calls->items, call_queue_at(queue, 0), count * sizeof(*calls->items));
	else
		queue->is_unordered = false;
	calls->count = count;
	queue->first = 0;
	vec_shrink(calls, SPARE_CALLS);
}

void call_queue_drop(struct call_queue *queue, size_t count)
{
	queue->first += count;
	close_up(queue);
}

void call_queue_cut(struct call_queue *queue, size_t count)
{
	queue->calls.count = queue->first + count;
	close_up(queue);
}

void call_queue_clear(struct call_queue *queue)
{
	vec_free(&queue->calls);
	*queue = (struct call_queue){0};
}
