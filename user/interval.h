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

#endif
