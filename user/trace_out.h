/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The file of a trace while it is written: what a tracer that is killed leaves of it. */
#ifndef FBT_TRACE_OUT_H
#define FBT_TRACE_OUT_H

#include <stdint.h>
#include <stdio.h>

struct trace_out {
	FILE *file;
	uint64_t flushed_ns; /* CLOCK_MONOTONIC of now, not of the window */
};

/*
 * After each piece, errno being cleared before it: passes on what was written, at most once a
 * second, so that all but the last second stays. 0 or -errno.
 */
int trace_out_check(struct trace_out *out);

/* At the end: 0 or -errno. */
int trace_out_flush(struct trace_out *out);

#endif
