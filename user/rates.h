/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Measures how often functions are called. A function that is called so often that probing it would
 * slow its process down is let go at once.
 */
#ifndef FBT_RATES_H
#define FBT_RATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "target.h"

struct rates;

struct rate {
	const struct step_function *function; /* the caller's */
	uint64_t calls;
	uint64_t mean_ns;  /* 0: none ended */
	uint64_t since_ns; /* how long it was watched */
	bool too_often;	   /* let go: calls is what it did in since_ns */
};

/* Probes functions in tgid, which are borrowed. 0 or -errno, logged. */
int rates__open(struct rates **rates, struct step_function *const *functions, size_t count,
		uint32_t tgid, bool perf_uprobes);

/* Lets go of what is called too often; every 20 ms or so. */
void rates__check(struct rates *rates);

/*
 * Detaches, and fills result (count of rates__open entries), likeliest step first: one of the
 * built-in table that is called, then what takes most time.
 */
void rates__finish(struct rates *rates, struct rate *result);
void rates__free(struct rates *rates);

#endif
