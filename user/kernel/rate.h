/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* How often a candidate for a step function is called, and how long its calls take. */
#ifndef FBT_KERNEL_RATE_H
#define FBT_KERNEL_RATE_H

#include <stdbool.h>
#include <stdint.h>
#include "steps/resolve.h"

struct rate {
	const struct step_function *function; /* borrowed */
	/*
	 * In since_ns. A call that the function makes of itself is a part of the outer one and not
	 * counted, unless too_often.
	 */
	uint64_t calls;
	uint64_t ended;	  /* calls whose begin and end were seen */
	uint64_t mean_ns; /* of these; 0: not known, because ended is 0 */
	/* The thread that spent most time in such calls, and that time; 0: none was timed. */
	uint32_t busiest_tid;
	uint64_t busiest_ns;
	uint64_t since_ns;	 /* how long it was probed */
	bool too_often;		 /* it was detached by rates__check() */
	unsigned int call_sites; /* probed, where it has no exits to probe */
	bool shared_site;	 /* so many others pass a call site that it was given up */
};

#endif
