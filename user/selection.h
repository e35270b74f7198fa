/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which processes come under trace: -p, the children that -f adds, or all for -a. */
#ifndef FBT_SELECTION_H
#define FBT_SELECTION_H

#include "loader.h"
#include "options.h"
#include "steps_found.h"
#include "traced.h"

/* All borrowed. */
struct selection {
	const struct options *options;
	struct loader *loader;
	struct traced_set *traced;
	struct steps_found *found;
	const struct record_output *output;
};

/*
 * Adds the processes there are to traced and looks for their step functions. 0, or -errno, logged;
 * only what -p names can fail, and where a flag opens windows it may be gone. -ENOENT: no function
 * matched --step.
 */
int selection_find(const struct selection *selection);

/*
 * Of the processes found some time ago: looks for step functions in what they have mapped since
 * (with -a, only once they are under trace), and forgets those that are gone. Never fails: what
 * cannot be looked at now, attaching will meet.
 */
void selection_refresh(const struct selection *selection);

/* Probes the step functions found. 0 or -errno, logged; only what --step names can fail. */
int selection_attach(const struct selection *selection);

/*
 * Once the kernel side follows threads: takes the processes found, and those that came meanwhile,
 * under trace: all of them first, as what they do before is not seen. 0 or -errno, logged.
 */
int selection_take(const struct selection *selection);

#endif
