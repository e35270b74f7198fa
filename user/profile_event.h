/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* One event of the seed's profile (profile.rs, parse_profile_event_value). */
#ifndef FBT_PROFILE_EVENT_H
#define FBT_PROFILE_EVENT_H

#include <stdbool.h>
#include <stddef.h>

struct json_object;

/* True if value is an event that keeps all rules, else error holds the seed's message. */
bool profile_event_check(struct json_object *value, char *error, size_t size);

/* The event's family, for example "step_prof"; of a value that has been checked. */
const char *profile_event_name(struct json_object *value);

#endif
