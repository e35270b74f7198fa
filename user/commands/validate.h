/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Ferrum's profile parser and rules (profile.rs), and the same for its trace (trace.rs). */
#ifndef FBT_COMMANDS_VALIDATE_H
#define FBT_COMMANDS_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * "ferrum-bpftrace validate": checks each file. An object with "traceEvents" is a trace, and so is
 * an array, unless the file is named *.jsonl or other lines follow the one that holds the whole
 * array; so is one in Perfetto's format. Any other file is a profile. A file named *.partial may
 * end anywhere: it is checked up to its last whole event; the name before .partial counts too.
 * Prints "FILE: N events, ok" to out, or "FILE: message" with ferrum's exact message to err.
 * required_events is a comma-separated list or NULL: ferrum's require_profile_event_groups over
 * each profile. True if all are valid.
 */
bool validate_files(char *const *paths, size_t count, const char *required_events, FILE *out,
		    FILE *err);

#endif
