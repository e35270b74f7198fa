/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* One line a second on a terminal while the window is open: steps/s, p50, share of syscalls, lost.
 */
#ifndef FBT_SINK_STATUS_H
#define FBT_SINK_STATUS_H

#include "sink.h"

struct sink *sink_status__new(void); /* NULL: -ENOMEM */

/* Shows what came since the last call, by log_status; now_ns is CLOCK_MONOTONIC. */
void sink_status__show(struct sink *sink, const struct window *window, uint64_t now_ns);

#endif
