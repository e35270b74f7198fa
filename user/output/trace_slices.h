/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The slices of a window's trace: which there are, in which lanes, with which arguments. They are
 * written in ferrum's own format (ferrum-bench-core trace.rs: one compact JSON array of complete
 * events), or by an encoder in another one.
 */
#ifndef FBT_OUTPUT_TRACE_SLICES_H
#define FBT_OUTPUT_TRACE_SLICES_H

#include <stdio.h>
#include "output/sink.h"
#include "output/trace_encoder.h"

/*
 * out is borrowed. A step is a slice; an escalated step has a second slice with the same times. Its
 * calls are written once they are known to be evidence, which may be some steps later. GPU work has
 * lanes of its own in the target's process: 10,000,000 + 100,000 * device + stream; streams from
 * 99,999 on share that lane. NULL: -ENOMEM.
 */
struct sink *sink_ferrum_trace__new(FILE *out);

/* The same in another format. Owns encoder, also on failure. */
struct sink *sink_slices__new(FILE *out, struct trace_encoder *encoder);

#define LANE_NAME_SIZE 48

/* The name of a lane: "GPU 0 stream 7". false: it is a thread. */
bool lane_name(uint32_t lane, char name[LANE_NAME_SIZE]);

#endif
