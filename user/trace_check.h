/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Checks a Chrome trace without holding more than one event, and its correlations, in memory. */
#ifndef FBT_TRACE_CHECK_H
#define FBT_TRACE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A bare array is the seed's form: every event needs the fields of trace.rs with their types. An
 * object with "traceEvents" is a Kineto trace of this program where "ferrum.mono_base_ns" comes
 * before them, and has to keep kineto_rules.h; else it is another tool's: its events need a name
 * and a phase. *is_trace is false, and nothing else is said, if in is neither. 0; -EBADMSG with
 * error filled; -ENOMEM or -errno of a read.
 */
int trace_check(FILE *in, bool *is_trace, uint64_t *events, char *error, size_t size);

#endif
