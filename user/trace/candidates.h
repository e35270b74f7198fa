/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The functions of a process that may be its step function, and how often each is called. */
#ifndef FBT_TRACE_CANDIDATES_H
#define FBT_TRACE_CANDIDATES_H

#include "kernel/rates.h"
#include "options.h"

#define CANDIDATES_MAX 16

struct candidates {
	function_vec functions;
	struct rate rates[CANDIDATES_MAX]; /* one for each function, likeliest first */
};

/*
 * Finds candidates and measures their calls for two seconds. 0 or -errno, logged. Call
 * candidates_clear in any case.
 */
int candidates_measure(struct candidates *candidates, const struct options *options, uint32_t tgid);
void candidates_clear(struct candidates *candidates);

double rate_per_second(const struct rate *rate);

#endif
