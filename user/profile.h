/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The seed's profile parser and rules (profile.rs), and the same for its trace (trace.rs). */
#ifndef FBT_PROFILE_H
#define FBT_PROFILE_H

#include <stddef.h>
#include <stdio.h>

/*
 * "ferrum-bpftrace validate": checks each file. A file whose first non-blank character is '[' or
 * that is one object with "traceEvents" is a trace, else it is a profile. Prints "FILE: N events,
 * ok" to out, or "FILE: message" with the seed's exact message to err. required_events is a
 * comma-separated list or NULL: the seed's require_profile_event_groups over each profile. Returns
 * 0 if all are valid, else 1.
 */
int profile_validate_files(char *const *paths, size_t count, const char *required_events, FILE *out,
			   FILE *err);

#endif
