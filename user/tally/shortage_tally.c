/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "tally/shortage_tally.h"

#include <errno.h>

#include "base/arith.h"
#include "judge/cause.h"

static int count_hits(struct shortage_tally *tally, const struct fbt_step *record)
{
	const struct shortage_limited fresh = {.tid = record->tid};
	struct shortage_limited *thread = NULL;

	vec_for_each (known, &tally->limited) {
		if (known->tid == record->tid)
			thread = known;
	}
	if (!thread && tally->limited.count >= SHORTAGE_LIMITED)
		return 0;
	if (!thread && vec_push(&tally->limited, fresh))
		return -ENOMEM;
	if (!thread)
		thread = &tally->limited.items[tally->limited.count - 1];
	thread->hits = add_saturating(thread->hits, record->limits.memory_hits);
	tally->limited_hits = max_u64(tally->limited_hits, thread->hits);
	return 0;
}

static int add_limited(struct shortage_tally *tally, const struct fbt_step *record,
		       const struct step_parts *parts)
{
	uint64_t faults = (uint64_t)record->minor_faults + record->major_faults;

	if (!cause_is_memory_limit(&record->limits, faults))
		return 0;
	for (int i = 0; i < STEP_PARTS; i++)
		tally->limited_ns[i] = add_saturating(tally->limited_ns[i], parts->ns[i]);
	return count_hits(tally, record);
}

static int add_waiter(struct shortage_tally *tally, uint32_t tgid, uint64_t wait_ns)
{
	struct shortage_waiter fresh = {.tgid = tgid, .wait_ns = wait_ns};

	vec_for_each (waiter, &tally->waiters) {
		if (waiter->tgid != tgid)
			continue;
		waiter->wait_ns = add_saturating(waiter->wait_ns, wait_ns);
		return 0;
	}
	return tally->waiters.count < SHORTAGE_WAITERS ? vec_push(&tally->waiters, fresh) : 0;
}

int shortage_tally_add(struct shortage_tally *tally, const struct step *step,
		       const struct step_parts *parts)
{
	int err = add_waiter(tally, step->record.tgid, parts->ns[STEP_CPU_WAIT]);

	tally->steal_ns = add_saturating(tally->steal_ns, step_steal_ns(step, parts));
	return err ? err : add_limited(tally, &step->record, parts);
}

void shortage_tally_clear(struct shortage_tally *tally)
{
	vec_free(&tally->waiters);
	vec_free(&tally->limited);
}
