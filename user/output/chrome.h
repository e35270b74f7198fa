/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The trace in ferrum's own format (ferrum-bench-core trace.rs): one compact JSON array of complete
 * events.
 */
#ifndef FBT_OUTPUT_CHROME_H
#define FBT_OUTPUT_CHROME_H

#include <stdio.h>
#include "output/sink.h"
#include "output/trace_encoder.h"

/*
 * out is borrowed. A step is a slice; an escalated step has a second slice with the same times. Its
 * calls are written once they are known to be evidence, which may be some steps later. GPU work has
 * lanes of its own in the target's process: 10,000,000 + 100,000 * device + stream; streams from
 * 99,999 on share that lane. NULL: -ENOMEM.
 */
struct sink *sink_chrome__new(FILE *out);

/* The same in another format. Owns encoder, also on failure. */
struct sink *sink_slices__new(FILE *out, struct trace_encoder *encoder);

#define CHROME_LANE_NAME 48

/* The name of a lane: "GPU 0 stream 7". false: it is a thread. */
bool chrome_lane_name(uint32_t lane, char name[CHROME_LANE_NAME]);

#endif
