/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Finds the processes that have mapped code since they were searched, as by dlopen(3), where there
 * are too many of them to read the mappings of each every second (-a).
 */
#ifndef FBT_TARGETS_LATE_FILES_H
#define FBT_TARGETS_LATE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernel/traced.h"

/* So many processes are looked at in a second. A look takes some 20 us and holds nothing up. */
#define LATE_FILES_LOOKS 200

struct late_files {
	uint64_t open_ns;  /* of the first turn */
	uint64_t begin_ns; /* of this turn */
	uint64_t turns;
	uint32_t looks; /* in this turn */
	size_t new_at;	/* index at which to look for processes that are new */
	size_t at;	/* index of the one whose turn it is */
	size_t left;	/* how many have not had their turn */
};

/* To be called before a process is searched: what it maps from now on is late. */
void late_files_note(struct traced *traced);

/* Begins a turn, if the last one began a second ago or more. */
bool late_files_begin(struct late_files *late, const struct traced_set *set, uint64_t now_ns);

/*
 * The next process of this turn that has mapped code since late_files_note(): of those that have
 * begun in the last ten seconds, because they still load their libraries, and of all in turn. NULL:
 * there is none, or what a turn may take has been used.
 */
struct traced *late_files_next(struct late_files *late, struct traced_set *set, uint64_t now_ns);

#endif
