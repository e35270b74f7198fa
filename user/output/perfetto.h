/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The trace as Perfetto's protobuf (https://perfetto.dev/docs/reference/trace-packet-proto): as
 * output/trace_slices has it, but in nanoseconds, with the names of processes and threads, with
 * arrows from the thread that ended a wait to the one that waited, and with counters of each step
 * function: the length of its steps, and their first argument.
 */
#ifndef FBT_OUTPUT_PERFETTO_H
#define FBT_OUTPUT_PERFETTO_H

#include <stdio.h>
#include "output/sink.h"

/* out is borrowed. NULL: -ENOMEM. */
struct sink *sink_perfetto__new(FILE *out);

#endif
