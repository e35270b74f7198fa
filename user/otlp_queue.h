/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Escalations that wait to be sent, oldest first. Bounded; full, it takes no more. */
#ifndef FBT_OTLP_QUEUE_H
#define FBT_OTLP_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "vec.h"

#define OTLP_QUEUE_SPANS 2048
#define OTLP_QUEUE_BYTES (4u << 20)

/* Zero-initialised is empty. */
struct otlp_queue {
	VEC(struct otlp_item {
		char *text; /* one object of resourceSpans, as JSON */
		size_t size;
		uint32_t spans; /* in it */
	})
	items;
	size_t bytes;
	uint64_t spans;
};

/*
 * text is malloced and the queue's from here on. 0; -ENOSPC: no room; -ENOMEM. After an error it
 * was freed.
 */
int otlp_queue_push(struct otlp_queue *queue, char *text, size_t size, uint32_t spans);

/* How many spans the first count items hold. */
uint64_t otlp_queue_count_spans(const struct otlp_queue *queue, size_t count);

/* The first count items as an ExportTraceServiceRequest; *body is the caller's. 0 or -ENOMEM. */
int otlp_queue_make_body(const struct otlp_queue *queue, size_t count, char **body, size_t *size);

/* Takes the first count items away. */
void otlp_queue_drop(struct otlp_queue *queue, size_t count);
void otlp_queue_clear(struct otlp_queue *queue);

#endif
