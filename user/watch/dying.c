/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "watch/dying.h"

#include <signal.h>

#include "base/arith.h"

void dying_add(struct dying *dying, pid_t pid, unsigned int slot, uint64_t told_ns)
{
	const struct dying_child child = {pid, slot, told_ns};

	if (pid && vec_push(&dying->children, child))
		kill(pid, SIGKILL);
}

uint32_t dying_slots(const struct dying *dying)
{
	uint32_t slots = 0;

	vec_for_each (child, &dying->children)
		slots |= child->slot ? UINT32_C(1) << child->slot : 0;
	return slots;
}

/* It is not reaped yet, so the PID is still its own. */
void dying_turn(struct dying *dying, uint64_t now_ns)
{
	vec_for_each (child, &dying->children) {
		if (now_ns > add_saturating(child->told_ns, DYING_NS))
			kill(child->pid, SIGKILL);
	}
}

bool dying_reap(struct dying *dying, pid_t pid)
{
	for (size_t i = 0; i < dying->children.count; i++) {
		if (dying->children.items[i].pid != pid)
			continue;
		dying->children.items[i] = dying->children.items[--dying->children.count];
		return true;
	}
	return false;
}

void dying_clear(struct dying *dying)
{
	vec_for_each (child, &dying->children)
		kill(child->pid, SIGKILL);
	vec_free(&dying->children);
}
