/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Goes through the calls of a step and says of each which part of the step it is. Pure. */
#ifndef FBT_CALL_WALK_H
#define FBT_CALL_WALK_H

#include <stdbool.h>
#include "call_rule.h"
#include "step.h"
#include "window.h"

struct call_walk {
	/* Of the current call. */
	const struct fbt_call *call;
	const struct call_rule *rule;
	uint64_t ns;	       /* that it took in the step (call_walk_ns), without … */
	uint64_t covered_ns;   /* … waiting for the GPU while that worked: that is work */
	enum cause_kind part;  /* that it is of by itself */
	enum cause_kind cause; /* the same, or CAUSE_THREAD_CHURN where a thread claims it */

	/* The walk's own. */
	const struct window *window;
	const struct step *step;
	const struct call_rule *rules;
	size_t next;
	size_t busy; /* where to look in step->gpu */
	size_t sync_busy;
	uint32_t file; /* the latest one that was looked up */
	bool file_is_socket;
	bool claims;
	uint32_t joins;	 /* of made threads that no wait is charged to yet */
	uint32_t stacks; /* … and no unmapping */
};

/*
 * window and step are borrowed. claims: calls that threads made in the step cost beside the clone,
 * at most one of each per thread, are CAUSE_THREAD_CHURN: mapping and protecting the stack before
 * it, unmapping it and one blocked wait on a futex (the join) after it.
 */
void call_walk_begin(struct call_walk *walk, const struct window *window, const struct step *step,
		     bool claims);

/* To the next call; false behind the last. */
bool call_walk_next(struct call_walk *walk);

/*
 * Waiting is being blocked, or being inside of a call that waits for the GPU. Without GPU records,
 * and of an interval, nothing is covered.
 *
 * What a call took in a step: all of it, but of an interval only what lies between its edges: its
 * calls are those that returned in it, whenever they began.
 */
uint64_t call_walk_ns(const struct step *step, const struct fbt_call *call);

/* The current call made a thread or process. */
bool call_walk_made_thread(const struct call_walk *walk);

#endif
