/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/taken.h"

void taken_join(struct fbt_taken *next, struct step *step)
{
	const struct fbt_step *record = &step->record;

	if (next->tgid == record->tgid && next->tid == record->tid &&
	    next->start_ns == record->start_ns)
		step->taken = *next;
	next->header.type = 0;
	next->tid = 0;
}

void samples_join(struct fbt_samples *next, struct step *step)
{
	const struct fbt_step *record = &step->record;

	if (next->tgid == record->tgid && next->tid == record->tid &&
	    next->start_ns == record->start_ns)
		step->samples = *next;
	next->header.type = 0;
	next->tid = 0;
}
