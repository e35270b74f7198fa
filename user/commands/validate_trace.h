/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Checks a Chrome trace without holding more than one event, and its correlations, in memory. */
#ifndef FBT_COMMANDS_VALIDATE_TRACE_H
#define FBT_COMMANDS_VALIDATE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct trace_facts {
	bool is_trace;	 /* else nothing is said */
	bool is_partial; /* it ends in the middle */
	uint64_t events; /* whole ones */
};

/*
 * A bare array is ferrum's form: every event needs the fields of trace.rs with their types. An
 * object with "traceEvents" is a Kineto trace of this program where "ferrum.mono_base_ns" comes
 * before them; else it is another tool's: its events need a name and a phase.
 *
 * A Kineto trace of this program holds what HolisticTraceAnalysis and Chakra's loader rely on:
 * events with the fields of their phase; one host event a correlation; work of devices, and nothing
 * else, with args.stream; work with a correlation only where its call is in the file; arrows with
 * both ends.
 *
 * may_be_partial: the end of the file may come anywhere. 0; -EBADMSG with error filled; -ENOMEM or
 * -errno of a read.
 */
int validate_trace(FILE *in, bool may_be_partial, struct trace_facts *facts, char *error,
		   size_t size);

#endif
