/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Puts candidates for a step function in order, likeliest first:
 *
 * 1. Functions of the built-in table that were called: an engine's documented interface. Functions
 *    that are called too often to be probed come last.
 * 2. Then by the total time of their calls. Those whose time is not known follow those whose is.
 *    One that another candidate calls several times per call, and nobody else, is a part of that
 *    one and comes after it: their total times differ by less than they are known.
 * 3. But a wrapper comes after what it wraps. A function wraps another candidate if it calls that
 *    one once per call and nearly all of its time passes there. Of several that wrap each other the
 *    innermost is the one that does the work: its name says more, and its time has nothing else in
 *    it. A built-in function is never put after one that is not.
 */
#ifndef FBT_KERNEL_RATE_ORDER_H
#define FBT_KERNEL_RATE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "fbt_shared.h"
#include "steps/resolve.h"

/* How often a candidate is called, and how long its calls take. */
struct rate {
	const struct step_function *function; /* borrowed */
	/*
	 * Calls within since_ns. A recursive call is a part of the outer one and not counted,
	 * unless too_often.
	 */
	uint64_t calls;
	uint64_t ended;			 /* calls whose begin and end were seen */
	uint64_t mean_ns;		 /* of these; 0: not known, because ended is 0 */
	uint64_t delay_ns;		 /* of all these together, waiting for a CPU */
	uint64_t lasted[FBT_RATE_SPANS]; /* these by their durations without delay_ns */
	/* The thread that spent most time in such calls, and that time; 0: none was timed. */
	uint32_t busiest_tid;
	uint64_t busiest_ns;
	uint64_t since_ns;	 /* how long it was probed */
	bool too_often;		 /* it was detached by rates__check() */
	unsigned int call_sites; /* probed, where it has no exits to probe */
	bool shared_site; /* a call site was given up, because other code passes it too often */
};

/* A candidate and its kind, by which insides is indexed (OUTER * FBT_KIND_COUNT + INNER). */
struct rated {
	struct rate rate;
	uint32_t kind;
};

/* 0, or -ENOMEM: then the order has not changed. */
int rate_order(struct rated *rated, size_t count, const struct fbt_rate_inside *insides);

#endif
