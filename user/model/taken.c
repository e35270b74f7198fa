/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/taken.h"

/* A future has many polls: what is known of one of them says little of the step. */
static bool is_of(const struct fbt_step *record, uint32_t tgid, uint32_t tid, uint64_t start_ns)
{
	return tgid == record->tgid && tid == record->tid && start_ns == record->start_ns &&
	       !(record->header.flags & FBT_STEP_POLL);
}

void taken_join(struct fbt_taken *next, struct step *step)
{
	const struct fbt_step *record = &step->record;

	if (is_of(record, next->tgid, next->tid, next->start_ns))
		step->taken = *next;
	next->header.type = 0;
	next->tid = 0;
}

void samples_join(struct fbt_samples *next, struct step *step)
{
	const struct fbt_step *record = &step->record;

	if (is_of(record, next->tgid, next->tid, next->start_ns))
		step->samples = *next;
	next->header.type = 0;
	next->tid = 0;
}

void fault_sites_join(struct fbt_fault_sites *next, struct step *step)
{
	const struct fbt_step *record = &step->record;

	if (is_of(record, next->tgid, next->tid, next->start_ns))
		step->fault_sites = *next;
	next->header.type = 0;
	next->tid = 0;
}
