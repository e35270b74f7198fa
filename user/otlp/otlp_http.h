/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * POST requests to a collector, one at a time, over libevent's evhttp, which is linked into the
 * static tool too. Only otlp_request__wait waits: names are resolved by evdns, from /etc/hosts and
 * the name servers of /etc/resolv.conf. Certificates are checked (otlp_tls.h), redirects are not
 * followed, proxies are not supported, and an answer is cut off at OTLP_ANSWER_MAX. Each request
 * has a connection of its own. The process must ignore SIGPIPE.
 */
#ifndef FBT_OTLP_HTTP_H
#define FBT_OTLP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "otlp/otlp_endpoint.h"

#define OTLP_ANSWER_MAX 65536

struct otlp_request;

/* How a request ended. Pointers are valid until the next request begins. */
struct otlp_result {
	const char *error; /* why there is no complete answer; NULL: the rest is valid */
	long status;	   /* of HTTP */
	const char *answer;
	size_t answer_size; /* a NUL follows */
	int64_t retry_after_s;
};

/* endpoint is borrowed. 0 or -errno, logged except -ENOMEM. */
int otlp_request__new(struct otlp_request **request, const struct otlp_endpoint *endpoint,
		      long connect_ms, long whole_ms);
void otlp_request__free(struct otlp_request *request);

/* body is allocated by malloc, and owned from here on. 0 or -ENOMEM. */
int otlp_request__begin(struct otlp_request *request, char *body, size_t size);

/* Continues without waiting. true: the request has ended, and *result is set. */
bool otlp_request__go_on(struct otlp_request *request, struct otlp_result *result);

/* Waits until the request can continue, at most ms milliseconds. */
void otlp_request__wait(struct otlp_request *request, int ms);

/*
 * What the answer of a collector means, and how long to wait before the next attempt (OTLP
 * specification 1.x, OTLP/HTTP Response). Pure. An answer may be hostile.
 */
enum otlp_verdict {
	OTLP_TAKEN,   /* except for rejected_spans */
	OTLP_REFUSED, /* must not be retried */
	OTLP_RETRY,   /* 429, 502, 503, 504 */
};

struct otlp_answer {
	enum otlp_verdict verdict;
	uint64_t rejected_spans; /* or data points; claimed: may be any number */
	bool foreign;		 /* accepted, but the answer is not that of a collector */
	char reason[256];	 /* "HTTP 503: message"; "" if there is nothing to say */
};

/* status: HTTP status code. body: size bytes, and a NUL after them. */
void otlp_answer_read(struct otlp_answer *answer, long status, const char *body, size_t size);

/* The longest wait, whatever Retry-After says. */
#define OTLP_RETRY_MAX_NS UINT64_C(600000000000)

/*
 * The wait after a number of failures in a row (1, 2, …): retry_after_s if that is above 0, else
 * exponential from 1 s to 30 s, minus a random part of up to half. random: any number.
 */
uint64_t otlp_retry_ns(uint32_t failures, int64_t retry_after_s, uint32_t random);

#endif
