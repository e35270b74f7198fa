/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Who ended a wait of a step, and what that thread did meanwhile. Pure. */
#ifndef FBT_STREAM_WAKES_H
#define FBT_STREAM_WAKES_H

#include "fbt_shared.h"

/*
 * Splits the time from the begin of a wait until the wake by what the waker did. The calls of its
 * history are exact, and so is its time outside of calls between two of them. Of a stretch without
 * long calls that began before the wait, the short calls and the waits for a CPU are taken in
 * proportion. What is older than the history is unknown. A wait for the GIL begins with the first
 * of its calls, or when the waker took the GIL.
 */
void wake_split(const struct fbt_ring_wake *from, struct fbt_wake *wake);

#endif
