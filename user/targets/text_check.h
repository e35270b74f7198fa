/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Checks functions that are steps by a text of theirs only, because nothing could be measured when
 * they were found: the engine was idle, or the window was open already. After the first two seconds
 * with calls it warns, once, if they are not called as one step function is.
 */
#ifndef FBT_TRACE_TEXT_CHECK_H
#define FBT_TRACE_TEXT_CHECK_H

#include <stdbool.h>
#include "fbt_event.h"
#include "targets/steps_found.h"

/* How the steps of a kind went. */
struct text_use {
	uint64_t steps;
	uint64_t total_ns;
};

/* Whether the functions with steps are not one step function. */
bool text_uses_are_doubtful(const struct text_use *uses, size_t count);

struct text_check {
	const struct steps_found *found; /* borrowed */
	struct text_use uses[FBT_KIND_COUNT];
	uint64_t first_ns; /* begin of the first step that is looked at; 0: there was none */
	bool done;
};

/* Takes a step that has ended. */
void text_check_take(struct text_check *check, const struct fbt_step *step);

#endif
