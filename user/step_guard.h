/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Sees to it that step probes do not harm: counts what they cost, has those of a function that is
 * called too often on for short times only (rate_guard.h), and says so, to the user and in the
 * stream. Functions that are probed together or not at all are one to it.
 */
#ifndef FBT_STEP_GUARD_H
#define FBT_STEP_GUARD_H

#include "loader.h"
#include "options.h"
#include "record.h"
#include "steps_found.h"
#include "stream.h"
#include "traced.h"

struct step_guard;

struct step_guard_parts {
	const struct options *options;
	struct loader *loader;
	struct traced_set *traced;
	struct steps_found *found;
	struct stream *stream;
	const struct record_output *output;
};

/* What parts point to is borrowed. NULL: -ENOMEM. */
struct step_guard *step_guard__new(const struct step_guard_parts *parts);
void step_guard__free(struct step_guard *guard);

/* step_ns: what a step's two probes take; 0: not measured. Every few milliseconds. */
void step_guard__turn(struct step_guard *guard, uint64_t now_ns, uint64_t step_ns);

/* At the end of the window. */
void step_guard__finish(struct step_guard *guard, uint64_t now_ns);

/* Whether it has switched any probes off. */
bool step_guard__has_acted(const struct step_guard *guard);

#endif
