/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * An output that writes nothing: it knows when the others have written enough for a look, and when
 * all of it is written.
 */
#ifndef FBT_SINK_ROOM_H
#define FBT_SINK_ROOM_H

#include "sink.h"

/* So many slices are some MiB of a trace. */
#define SINK_ROOM_ITEMS 16384

/*
 * Calls look(ctx) after so many steps, calls and GPU records, and settle(ctx) when the window has
 * ended. To be added behind those that write files, and before the report, which says what came of
 * them. NULL: -ENOMEM.
 */
struct sink *sink_room__new(void (*look)(void *ctx), void (*settle)(void *ctx), void *ctx);

#endif
