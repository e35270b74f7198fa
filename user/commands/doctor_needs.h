/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What one process of a trace must have, and not each: those that are named, with -f those that
 * descend from them, and else those of their Python engines.
 */
#ifndef FBT_COMMANDS_DOCTOR_NEEDS_H
#define FBT_COMMANDS_DOCTOR_NEEDS_H

#include <stdbool.h>
#include "options.h"

struct doctor_needs {
	bool has_shim;	 /* one has a shim that works; read only for --gpu require */
	bool has_python; /* one has libferrum_python.so, or would get it */
};

/* Whether a trace looks for Python functions: all of --step are such, or there is none. */
bool doctor_wants_python(const struct options *options);

/* Reads /proc; nothing is stopped. */
void doctor_needs_read(struct doctor_needs *needs, const struct options *options);

/*
 * The options to judge one process by: what is required, and is met by any of them, is not required
 * of each.
 */
struct options doctor_needs_ease(const struct doctor_needs *needs, const struct options *options);

#endif
