/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * POST requests to a collector, one at a time, over libcurl's multi interface. Only wait waits.
 * Certificates are checked, redirects are not followed, an answer is cut off at OTLP_ANSWER_MAX.
 * Proxies are those of the environment, as libcurl reads it (http_proxy, HTTPS_PROXY, ALL_PROXY,
 * NO_PROXY). SIGPIPE must be ignored by the process.
 */
#ifndef FBT_OTLP_REQUEST_H
#define FBT_OTLP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "otlp_endpoint.h"

#define OTLP_ANSWER_MAX 65536

struct otlp_request;

/* How a request ended; pointers are valid until the next begins. */
struct otlp_result {
	const char *error; /* no answer, or half of one: why; NULL: what follows holds */
	long status;	   /* of HTTP */
	const char *answer;
	size_t answer_size; /* a NUL follows */
	int64_t retry_after_s;
};

/* endpoint is borrowed. 0 or -errno, logged but for -ENOMEM. */
int otlp_request__new(struct otlp_request **request, const struct otlp_endpoint *endpoint,
		      long connect_ms, long whole_ms);
void otlp_request__free(struct otlp_request *request);

/* body is malloced and the request's from here on. 0 or -ENOMEM. */
int otlp_request__begin(struct otlp_request *request, char *body, size_t size);

/* Does what can be done at once. True: it has ended, and *result tells how. */
bool otlp_request__go_on(struct otlp_request *request, struct otlp_result *result);

/* Ends it without a result; nothing if there is none. */
void otlp_request__cancel(struct otlp_request *request);

/* Until something happens to it, at most ms milliseconds. */
void otlp_request__wait(struct otlp_request *request, int ms);

#endif
