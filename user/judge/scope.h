/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which calls of a step are evidence of its cause. Pure. */
#ifndef FBT_JUDGE_SCOPE_H
#define FBT_JUDGE_SCOPE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/stats.h"
#include "judge/calls.h"

/* window and step are borrowed. */
struct scope {
	const struct window *window;
	const struct step *step;
	enum cause_kind cause; /* the part */
	bool claims;	       /* as of call_walk_begin */
	bool writes;	       /* only those that wrote */
	bool has_command;
	uint64_t command; /* only those with it */
	bool has_lock;
	uint64_t lock; /* none that waited at another address: see scope_has_other_lock */
};

/* Walks the calls of the step, and moves to the next one that is evidence. */
void scope_begin(const struct scope *scope, struct call_walk *walk);
bool scope_next(const struct scope *scope, struct call_walk *walk);

enum share_key { BY_NUMBER, BY_FILE, BY_COMMAND, BY_LOCK };

/* What most of the time of these calls was for, with the time and the number of its calls. */
struct top_key scope_share(const struct scope *scope, enum share_key by);

/* The current call of any walk has waited for another lock: who held that one explains nothing. */
bool scope_has_other_lock(const struct scope *scope, const struct call_walk *walk);

#endif
