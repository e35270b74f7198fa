/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A tracer's part of the flight recorder (--flight-fd): it keeps the last minutes of records in
 * memory, tells `watch` of what is worth a dump, and sends one when it is asked to.
 */
#ifndef FBT_TRACE_FLIGHT_H
#define FBT_TRACE_FLIGHT_H

#include <stdbool.h>
#include "options.h"
#include "trace/outputs.h"
#include "trace/session.h"

struct flight;

/* Before the tool is confined. *flight is NULL without --flight-fd. 0 or -errno, logged. */
int flight__new(struct flight **flight, const struct options *options);
void flight__free(struct flight *flight);

/* ctx: a flight, or NULL. Adds its sinks to the outputs of the window. 0 or -errno, logged. */
int flight__add_sinks(void *ctx, struct outputs *outputs);

/*
 * Call every few milliseconds while a window is open; all probes are attached. Returns false when
 * `watch` has ended. flight may be NULL.
 */
bool flight__turn(struct flight *flight, struct session *session, const char *tag);

/* The targets have ended: what was told of and not dumped yet is sent unasked. */
void flight__end(struct flight *flight, struct session *session, const char *tag);

#endif
