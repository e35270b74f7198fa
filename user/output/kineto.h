/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The trace as torch.profiler (Kineto) writes it: what HolisticTraceAnalysis, Chakra's loader and
 * TensorBoard read. The form is that of Kineto's output_json.cpp.
 */
#ifndef FBT_OUTPUT_KINETO_H
#define FBT_OUTPUT_KINETO_H

#include <stdio.h>
#include "output/sink.h"

struct kineto_options {
	uint32_t rank;
	uint32_t world_size;
	const char *path; /* for traceName; borrowed */
};

/* out is borrowed. NULL: -ENOMEM. */
struct sink *sink_kineto__new(FILE *out, const struct kineto_options *options);

/*
 * Adds the events of a trace of PyTorch's profiler, when the sink finishes: at most bytes of more,
 * which is borrowed.
 */
void sink_kineto_add(struct sink *sink, FILE *more, uint64_t bytes);

#endif
