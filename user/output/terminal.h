/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What a terminal shows while the window is open: escalations and a status line. */
#ifndef FBT_OUTPUT_TERMINAL_H
#define FBT_OUTPUT_TERMINAL_H

#include "judge/escalation.h"
#include "output/sink.h"

/*
 * Prints a line on stderr for each escalation, as it happens, and one when the rate limit is
 * exceeded. thresholds are copied. NULL: -ENOMEM.
 */
struct sink *sink_alert__new(const struct escalation_thresholds *thresholds);

/* From here on names the process, also if the window has only one: other windows are open too. */
void sink_alert__name_process(struct sink *sink);

/* The status line, once a second: steps/s, p50, share of syscalls, lost records. */
struct sink *sink_status__new(void); /* NULL: -ENOMEM */

/* Shows the steps since the last call, by log_status. now_ns is CLOCK_MONOTONIC. */
void sink_status__show(struct sink *sink, const struct window *window, uint64_t now_ns);

#endif
