/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The calls of one thread, in the order in which they came: taken from the front at no cost. */
#ifndef FBT_CALL_QUEUE_H
#define FBT_CALL_QUEUE_H

#include "step.h"

/* All 0 is an empty one. */
struct call_queue {
	call_vec calls;
	size_t first;	   /* of calls; those before it have left */
	bool is_unordered; /* a call came that began or returned before the one before it did */
};

static inline size_t call_queue_count(const struct call_queue *queue)
{
	return queue->calls.count - queue->first;
}

static inline struct fbt_call *call_queue_at(const struct call_queue *queue, size_t index)
{
	return &queue->calls.items[queue->first + index];
}

/* 0 or -ENOMEM. */
int call_queue_push(struct call_queue *queue, const struct fbt_call *call);

/* The oldest count calls leave; or all but the oldest count. */
void call_queue_drop(struct call_queue *queue, size_t count);
void call_queue_cut(struct call_queue *queue, size_t count);

void call_queue_clear(struct call_queue *queue);

#endif
