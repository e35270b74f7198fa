/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/hangs.h"

#include <stdlib.h>

#include "base/arith.h"
#include "base/clock.h"
#include "kernel/traced.h"
#include "proc/status.h"

/* Between two passes over the slots. */
#define LOOK_NS (100 * NS_PER_MS)

struct hangs {
	const struct shared *shared;
	struct hangs_options options;
	uint64_t looked_ns;
	uint64_t told[]; /* of each slot: when the step began that was told of */
};

struct hangs *hangs__new(const struct shared *shared, const struct hangs_options *options)
{
	struct hangs *hangs =
		calloc(1, sizeof(*hangs) + shared->slot_count * sizeof(hangs->told[0]));

	if (!hangs)
		return NULL;
	hangs->shared = shared;
	hangs->options = *options;
	return hangs;
}

void hangs__free(struct hangs *hangs)
{
	free(hangs);
}

static void add_call(const struct hangs *hangs, const struct fbt_slot *slot, uint64_t call_ns,
		     struct fbt_hang *hang)
{
	if (call_ns && call_ns < hang->time_ns) {
		hangs->options.make_call(hangs->options.ctx, slot, hang->time_ns, &hang->call);
		hang->call.header.type = FBT_EVENT_CALL;
		hang->call.header.size = sizeof(hang->call);
	}
	/* A thread that goes from one short call to the next is in none of them. */
	if (__atomic_load_n(&slot->start_ns, __ATOMIC_ACQUIRE) != call_ns)
		hang->call = (struct fbt_call){0};
}

/* The thread writes its slot meanwhile: what is read counts only if the step is still the same. */
static void look_at_slot(struct hangs *hangs, uint32_t index, uint64_t now_ns, uint64_t patience_ns)
{
	const struct fbt_slot *slot = &hangs->shared->slots[index];
	uint64_t start_ns = __atomic_load_n(&slot->step_start_ns, __ATOMIC_ACQUIRE);
	uint64_t call_ns = __atomic_load_n(&slot->start_ns, __ATOMIC_ACQUIRE);
	struct fbt_hang hang = {.time_ns = now_ns, .step_start_ns = start_ns};
	uint64_t open_ns = sub_saturating(now_ns, start_ns);
	struct thread_status status;

	if (!start_ns || hangs->told[index] == start_ns || slot->state != FBT_SLOT_LIVE ||
	    start_ns > now_ns || open_ns < hangs->options.hang_ns)
		return;
	if (open_ns - hangs->options.hang_ns < patience_ns &&
	    hangs->options.must_wait(hangs->options.ctx, now_ns))
		return;
	hang.tgid = slot->tgid;
	hang.tid = slot->tid;
	hang.kind = slot->step_kind;
	if (!thread_status_read(&status, (struct proc_ref){hang.tgid, hang.tid}))
		hang.state = (uint8_t)status.state;
	add_call(hangs, slot, call_ns, &hang);
	if (__atomic_load_n(&slot->step_start_ns, __ATOMIC_ACQUIRE) != start_ns)
		return;
	hangs->told[index] = start_ns;
	hangs->options.tell(hangs->options.ctx, &hang);
}

static void look_at_all(struct hangs *hangs, uint64_t now_ns, uint64_t patience_ns)
{
	uint32_t used = slots_used(hangs->shared);

	if (!hangs->options.hang_ns)
		return;
	for (uint32_t i = 1; i < used; i++)
		look_at_slot(hangs, i, now_ns, patience_ns);
}

void hangs__turn(struct hangs *hangs, uint64_t now_ns)
{
	if (now_ns < hangs->looked_ns + LOOK_NS)
		return;
	hangs->looked_ns = now_ns;
	look_at_all(hangs, now_ns, HANGS_PATIENCE_NS);
}

void hangs__finish(struct hangs *hangs, uint64_t now_ns)
{
	look_at_all(hangs, now_ns, 0);
}
