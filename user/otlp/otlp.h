/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Sends each escalation that is shown to a collector: OTLP/HTTP with JSON, a bounded queue, one
 * request at a time, retries as in the OTLP specification. A failing collector is never an error of
 * this sink: the failure is logged once, counted, and reported at the end. Only wait waits.
 */
#ifndef FBT_OTLP_H
#define FBT_OTLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/json.h"
#include "base/vec.h"
#include "judge/classify.h"
#include "model/step.h"
#include "model/window.h"
#include "otlp/otlp_endpoint.h"
#include "output/sink.h"

/* What the clients of one collector share about it. All zero at first. */
struct otlp_health {
	uint64_t gave_up_ns; /* when a client last waited in vain; 0: not since a success */
};

/*
 * endpoint, health and service (as for otlp_span_write) are borrowed. hurry: wait takes one second
 * instead of five, because another window may begin in the meantime. NULL: -ENOMEM.
 */
struct sink *sink_otlp__new(const struct otlp_endpoint *endpoint, struct otlp_health *health,
			    const char *service, bool hurry);

/* Number of escalations in a request. */
#define OTLP_BATCH_MAX 64

struct otlp_limits {
	long connect_ms;	   /* 3 s */
	long request_ms;	   /* 10 s, including connecting */
	uint64_t finish_ns;	   /* 5 s */
	uint64_t finish_failed_ns; /* if the last attempt before that failed: 1 s */
};

struct otlp_limits otlp_default_limits(void);

/* Limits all waits to the one that the user has set. */
void otlp_limits_shorten(struct otlp_limits *limits, long timeout_ms);

/* Counts of items given to otlp_client__queue. Items that are not sent are waiting or lost. */
struct otlp_counts {
	uint64_t queued;
	uint64_t sent;
	uint64_t no_room;	 /* the queue was full: the newest are lost */
	uint64_t refused;	 /* refused by the collector; not retried */
	uint64_t rejected_spans; /* spans of sent items that the collector did not accept */
	uint64_t requests;
	uint64_t failures; /* requests to be retried */
};

struct otlp_client;

/* endpoint and health are borrowed. NULL: -ENOMEM. */
struct otlp_client *otlp_client__new(const struct otlp_endpoint *endpoint,
				     struct otlp_health *health, const struct otlp_limits *limits);
void otlp_client__free(struct otlp_client *client);

/*
 * Queues one JSON object for resourceSpans, with that many spans. text is allocated by malloc, and
 * owned from here on, even if the queue is full. 0 or -ENOMEM.
 */
int otlp_client__queue(struct otlp_client *client, char *text, size_t size, uint32_t spans);

/* Continues sending, without waiting. now_ns: CLOCK_MONOTONIC. 0, -ENOMEM, or -errno, logged. */
int otlp_client__poll(struct otlp_client *client, uint64_t now_ns);

/* Waits until everything is sent or the limits are reached. */
void otlp_client__finish(struct otlp_client *client);

const struct otlp_counts *otlp_client__counts(const struct otlp_client *client);

/* Why something was not sent: "Connection refused", "HTTP 400: …"; "" if everything was. */
const char *otlp_client__reason(const struct otlp_client *client);

/* The queue of escalations to be sent, oldest first. It is bounded: a full queue refuses more. */
#define OTLP_QUEUE_SPANS 2048
#define OTLP_QUEUE_BYTES (4u << 20)

/* All zero: empty. */
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
 * Owns text, allocated by malloc, from here on, and frees it on an error. 0; -ENOSPC the queue is
 * full; -ENOMEM.
 */
int otlp_queue_push(struct otlp_queue *queue, char *text, size_t size, uint32_t spans);

/* The number of spans in the first count items. */
uint64_t otlp_queue_count_spans(const struct otlp_queue *queue, size_t count);

/*
 * Makes an ExportTraceServiceRequest of the first count items. The caller frees *body. 0 or
 * -ENOMEM.
 */
int otlp_queue_make_body(const struct otlp_queue *queue, size_t count, char **body, size_t *size);

/* Removes the first count items. */
void otlp_queue_drop(struct otlp_queue *queue, size_t count);
void otlp_queue_clear(struct otlp_queue *queue);

/*
 * An escalation as OTLP/JSON (OTLP specification 1.x, JSON Protobuf Encoding): a span for the step,
 * and a child span for each category above 5 % of it. Pure.
 *
 * A category is a sum of calls, so its child span cannot show when the calls were. It begins with
 * the step, lasts as long as the sum but never longer than the step, and has syscall.aggregated
 * set.
 *
 * If it is known where the longest call of the cause was made, or ended, the span has an event
 * "ferrum.cause" at the begin of that call, with the stacks.
 */

/* Random; none is all zeros. */
struct otlp_span_ids {
	uint8_t trace[16];
	uint8_t span[8];
	uint8_t children[FBT_CATEGORY_COUNT][8];
};

/*
 * Writes one object of resourceSpans and returns its number of spans. service is service.name; NULL
 * or "": the name of the process.
 */
uint32_t otlp_span_write(struct json *json, const struct window *window, const struct step *step,
			 const struct escalation *escalation, const char *service,
			 const struct otlp_span_ids *ids);

/*
 * A step that hangs, as one span named "hang": from the begin of the step to the time at which that
 * was noticed. The rest as above; ids.children are not used.
 */
uint32_t otlp_hang_write(struct json *json, const struct window *window,
			 const struct fbt_hang *hang, const char *service,
			 const struct otlp_span_ids *ids);

#endif
