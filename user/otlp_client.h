/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Sends escalations to a collector: OTLP/HTTP with JSON. A bounded queue (otlp_queue.h), one
 * request at a time (otlp_request.h), retries as the OTLP specification has them. Nothing waits but
 * finish.
 *
 * What goes wrong outside is said once, when it begins; counts tell the rest.
 */
#ifndef FBT_OTLP_CLIENT_H
#define FBT_OTLP_CLIENT_H

#include <stddef.h>
#include <stdint.h>
#include "otlp_endpoint.h"

/* Escalations in a request. */
#define OTLP_BATCH_MAX 64

struct otlp_limits {
	long connect_ms;	   /* 3 s */
	long request_ms;	   /* 10 s, with connecting */
	uint64_t finish_ns;	   /* 5 s */
	uint64_t finish_failed_ns; /* instead if the last attempt before failed: 1 s */
};

struct otlp_limits otlp_default_limits(void);

/* Of what was given to otlp_client__queue. What is not sent waits, or is lost. */
struct otlp_counts {
	uint64_t queued;
	uint64_t sent;
	uint64_t no_room;	 /* the queue was full: the newest are lost */
	uint64_t refused;	 /* by the collector, for good */
	uint64_t rejected_spans; /* of those sent: taken in part */
	uint64_t requests;
	uint64_t failures; /* requests that are to be tried again */
};

struct otlp_client;

/* endpoint is borrowed. NULL: -ENOMEM. */
struct otlp_client *otlp_client__new(const struct otlp_endpoint *endpoint,
				     const struct otlp_limits *limits);
void otlp_client__free(struct otlp_client *client);

/*
 * Takes one object for resourceSpans, as JSON, which holds that many spans. text is malloced and
 * the client's from here on, even if there is no room. 0 or -ENOMEM.
 */
int otlp_client__queue(struct otlp_client *client, char *text, size_t size, uint32_t spans);

/* Goes on with sending, without waiting. now_ns: CLOCK_MONOTONIC. 0 or -errno, then logged, or
 * -ENOMEM. */
int otlp_client__poll(struct otlp_client *client, uint64_t now_ns);

/* Waits until all is sent, or it takes too long. */
void otlp_client__finish(struct otlp_client *client);

const struct otlp_counts *otlp_client__counts(const struct otlp_client *client);

/* Why something was not sent: "Connection refused", "HTTP 400: …"; "" if none has. */
const char *otlp_client__reason(const struct otlp_client *client);

#endif
