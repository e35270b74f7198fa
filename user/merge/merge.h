/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * "ferrum-bpftrace merge TRACE... -o OUT": the traces of several hosts or ranks on one clock, in
 * one file, and which rank was late. Two passes over each file; memory is bounded by the
 * collectives and steps that are kept (32 MB a file at most).
 */
#ifndef FBT_MERGE_MERGE_H
#define FBT_MERGE_MERGE_H

#include <stddef.h>
#include <stdio.h>

/*
 * The first file's clock is the common one. Writes path in the Trace Event Format (an object with
 * traceEvents, as Perfetto and chrome://tracing read it; compressed if it ends with .gz) and prints
 * the clocks and the late ranks to out. count is two at least. 0, or -errno, logged.
 */
int merge_traces(char *const *paths, size_t count, const char *path, FILE *out);

#endif
