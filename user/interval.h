/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Steps of fixed length, for a process in which no step function is known. */
#ifndef FBT_INTERVAL_H
#define FBT_INTERVAL_H

#include "traced.h"

/*
 * Sends the step from the last boundary of this process to now_ns; the first call only sets the
 * boundary. truncated marks the rest at the end of the window. 0 or -ENOMEM.
 */
int interval_send(struct traced_set *set, struct traced *traced, uint64_t now_ns, bool truncated,
		  const struct record_output *output);

/* The intervals of a window. */
struct intervals {
	uint64_t length_ns;
	uint64_t next_ns; /* boundary; 0: there are none, a step function is probed */
	uint64_t steps;	  /* that were sent */
};

/* The same for all processes, up to steps_max steps, 0: no limit; then sets the next boundary. */
void interval_send_all(struct intervals *intervals, struct traced_set *set, uint64_t now_ns,
		       bool truncated, uint64_t steps_max, const struct record_output *output);

#endif
