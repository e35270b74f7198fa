/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Measures how often functions are called. A function that is called so often that its probes slow
 * the process down is detached at once.
 */
#ifndef FBT_KERNEL_RATES_H
#define FBT_KERNEL_RATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "steps/find.h"

struct rates;

struct rate {
	const struct step_function *function; /* borrowed */
	uint64_t calls;			      /* in since_ns */
	uint64_t mean_ns;		      /* 0 if no call has ended */
	uint64_t since_ns;		      /* how long it was probed */
	bool too_often;			      /* it was detached by rates__check() */
};

/* Probes functions, which are borrowed, in process tgid. 0 or -errno, logged. */
int rates__open(struct rates **rates, struct step_function *const *functions, size_t count,
		uint32_t tgid, bool perf_uprobes);

/* Detaches functions that are called too often. To be called about every 20 ms. */
void rates__check(struct rates *rates);

/*
 * Detaches all functions and fills result, which has the count entries of rates__open(). The
 * likeliest step functions come first: those of the built-in table that were called, then the
 * others by total time. Functions that were called too often come last.
 */
void rates__finish(struct rates *rates, struct rate *result);
void rates__free(struct rates *rates);

#endif
