/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What the answer of a collector means, and how long to wait before the next attempt (OTLP
 * specification 1.x, OTLP/HTTP Response). Pure. An answer is hostile.
 */
#ifndef FBT_OTLP_ANSWER_H
#define FBT_OTLP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum otlp_verdict {
	OTLP_TAKEN,   /* perhaps but for rejected_spans */
	OTLP_REFUSED, /* shall not be sent again */
	OTLP_RETRY,   /* 429, 502, 503, 504 */
};

struct otlp_answer {
	enum otlp_verdict verdict;
	uint64_t rejected_spans; /* as the collector says: may be any number */
	bool foreign;		 /* taken, but this is not how a collector answers */
	char reason[256];	 /* "HTTP 503: message"; "" if there is nothing to say */
};

/* status: of HTTP. body holds size bytes and a NUL behind them. */
void otlp_answer_read(struct otlp_answer *answer, long status, const char *body, size_t size);

/* Waits are never longer, whatever Retry-After says. */
#define OTLP_RETRY_MAX_NS UINT64_C(600000000000)

/*
 * The wait after a number of failures in a row (1, 2, …): retry_after_s if that is above 0, else
 * exponential from 1 s up to 30 s, of which random (any number) takes away up to half.
 */
uint64_t otlp_retry_ns(uint32_t failures, int64_t retry_after_s, uint32_t random);

#endif
