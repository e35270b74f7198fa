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

bool woken_find(const struct call_walk *walk, uint64_t ns, struct fbt_woken *woken)
{
	const struct file *file = window__file(walk->window, walk->call->file);

	*woken = (struct fbt_woken){.header = {.type = 0}};
	if (!wants_waker(walk, ns))
		return false;
	vec_for_each (other, &walk->step->wokens) {
		if (other->start_ns == walk->call->start_ns)
			*woken = *other;
	}
	/*
	 * Only what arrives by a packet is sent by somebody while an interrupt delivers it. A timer
	 * may interrupt one who sends something to another.
	 */
	if (woken->context == FBT_WOKEN_WHILE_SENDING &&
	    (!(walk->rule->traits & CALL_ANSWERED) || (file && !S_ISSOCK(file->record.mode))))
		woken->context = FBT_WOKEN_BY_INTERRUPT;
	return true;
}
