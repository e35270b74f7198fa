/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* An output that writes nothing: it knows when the others have written enough for a look. */
#ifndef FBT_SINK_ROOM_H
#define FBT_SINK_ROOM_H

#include "sink.h"

/* So many slices are some MiB of a trace. */
#define SINK_ROOM_ITEMS 16384

/*
 * Calls look(ctx) after so many steps, calls and GPU records, at the end too. To be added behind
 * the others. NULL: -ENOMEM.
 */
struct sink *sink_room__new(void (*look)(void *ctx), void *ctx);

#endif
