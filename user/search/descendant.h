/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The process with the engine, where the user has named the one that started it. */
#ifndef FBT_SEARCH_DESCENDANT_H
#define FBT_SEARCH_DESCENDANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "options.h"

struct descendant {
	uint32_t tgid;	    /* 0: none */
	uint32_t root_tgid; /* whose descendant it is */
	bool is_child;
	char name[32];
};

struct descendant_roots {
	const uint32_t *tgids;
	size_t count;
};

/*
 * Finds the first descendant of these processes, in their order, that has a step function and that
 * the options do not name. Symbols are read once for all that map the same file: any_file false:
 * only of those that map a file named like an engine's. Ends after two seconds of CPU time, as
 * there may be many descendants.
 */
bool descendant_find(const struct options *options, const struct descendant_roots *roots,
		     bool any_file, struct descendant *found);

/* Whether the process itself has a step function. */
bool process_has_step(const struct options *options, uint32_t tgid);

/* " --step 'NAME'" for each that the options have, to be pasted; as many as fit, each whole. */
void descendant_steps(char *to, size_t size, const struct options *options);

#endif
