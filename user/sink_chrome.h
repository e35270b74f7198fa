/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The seed's trace (ferrum-bench-core trace.rs): one compact JSON array of complete events. */
#ifndef FBT_SINK_CHROME_H
#define FBT_SINK_CHROME_H

#include <stdio.h>
#include "sink.h"

/*
 * Writes to out, which stays the caller's. A step is a slice, and an escalated one two of the same
 * time; calls come when it is known that they are evidence, which may be some steps later. Work of
 * GPUs has lanes of its own in the target's process: 10,000,000 + 100,000 * device + stream;
 * streams from 99,999 on share that one. NULL: -ENOMEM.
 */
struct sink *sink_chrome__new(FILE *out);

#endif
