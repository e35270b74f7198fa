/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "otlp_queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "json.h"

int otlp_queue_push(struct otlp_queue *queue, char *text, size_t size, uint32_t spans)
{
	struct otlp_item item = {text, size, spans};
	int err = -ENOSPC;

	if (queue->bytes + size <= OTLP_QUEUE_BYTES && queue->spans + spans <= OTLP_QUEUE_SPANS)
		err = vec_push(&queue->items, item);
	if (err) {
		free(text);
		return err;
	}
	queue->bytes += size;
	queue->spans += spans;
	return 0;
}

uint64_t otlp_queue_count_spans(const struct otlp_queue *queue, size_t count)
{
	uint64_t spans = 0;

	for (size_t i = 0; i < count; i++)
		spans += queue->items.items[i].spans;
	return spans;
}

int otlp_queue_make_body(const struct otlp_queue *queue, size_t count, char **body, size_t *size)
{
	struct json json = {.out = open_memstream(body, size)};
	bool failed;

	if (!json.out)
		return -ENOMEM;
	json_object_begin(&json, NULL);
	json_array_begin(&json, "resourceSpans");
	for (size_t i = 0; i < count; i++)
		json_raw(&json, NULL, queue->items.items[i].text);
	json_array_end(&json);
	json_object_end(&json);
	failed = ferror(json.out);
	if (!fclose(json.out) && !failed)
		return 0;
	free(*body);
	*body = NULL;
	return -ENOMEM;
}

void otlp_queue_drop(struct otlp_queue *queue, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct otlp_item *item = &queue->items.items[i];

		queue->bytes -= item->size;
		queue->spans -= item->spans;
		free(item->text);
	}
	queue->items.count -= count;
	if (queue->items.count)
		memmove(queue->items.items, queue->items.items + count,
			queue->items.count * sizeof(queue->items.items[0]));
}

void otlp_queue_clear(struct otlp_queue *queue)
{
	otlp_queue_drop(queue, queue->items.count);
	vec_free(&queue->items);
}
