/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/woken.h"

#include <sys/stat.h>

/* Shorter waits are not looked at: FBT_LIMIT_MIN_NS of the kernel side. */
#define WOKEN_MIN_NS 1000000

/* It waited until it was woken, neither for a time nor in vain, and no other record says by whom.
 */
static bool wants_waker(const struct call_walk *walk, uint64_t ns)
{
	const struct file *file = window__file(walk->window, walk->call->file);
	bool is_answered = walk->rule->traits & CALL_ANSWERED;

	if (walk->wake || ns < WOKEN_MIN_NS || !(walk->call->header.flags & FBT_CALL_BLOCKED))
		return false;
	/* Of a file on a disk: the disk. */
	if (file && S_ISREG(file->record.mode))
		return false;
	if (walk->call->ret < 0 || (is_answered && !walk->call->ret))
		return false;
	return walk->cause != CAUSE_SLEEP || is_answered;
}

void cause_set_woken(const struct step *step, const struct call_walk *walk, uint64_t ns,
		     struct cause *cause)
{
	const struct file *file = window__file(walk->window, walk->call->file);

	cause->woken.header.type = 0;
	cause->wants_waker = wants_waker(walk, ns);
	if (!cause->wants_waker)
		return;
	vec_for_each (woken, &step->wokens) {
		if (woken->start_ns == walk->call->start_ns)
			cause->woken = *woken;
	}
	/*
	 * Only what arrives by a packet is sent by somebody while an interrupt delivers it. A timer
	 * may interrupt one who sends something to another.
	 */
	if (cause->woken.context == FBT_WOKEN_WHILE_SENDING &&
	    (!(walk->rule->traits & CALL_ANSWERED) || (file && !S_ISSOCK(file->record.mode))))
		cause->woken.context = FBT_WOKEN_BY_INTERRUPT;
}
