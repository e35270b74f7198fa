/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "escalation_tally.h"

static uint64_t add_saturating(uint64_t left, uint64_t right)
{
	uint64_t sum;

	return __builtin_add_overflow(left, right, &sum) ? UINT64_MAX : sum;
}

static uint64_t subtract(uint64_t from, uint64_t what)
{
	return from > what ? from - what : 0;
}

static void add_to_cause(struct cause_tally *to, const struct window *window,
			 const struct step *step, const struct escalation *escalation)
{
	const struct cause *cause = &escalation->cause;
	uint64_t extra_ns = 0;

	if (cause->usual_known)
		extra_ns = subtract(cause->time_ns, cause->usual_ns);
	/* Found by its share of the step, however usual that is. */
	if (cause->kind == CAUSE_GPU_TRANSFER)
		extra_ns = cause->time_ns;
	to->steps++;
	to->usual_known += cause->usual_known;
	to->extra_ns = add_saturating(to->extra_ns, extra_ns);
	to->estimated |= cause->estimated && cause->usual_known;
	if (to->worst_step && extra_ns <= to->worst_extra_ns)
		return;
	to->worst_step = step->number;
	to->worst_extra_ns = extra_ns;
	to->worst_total_ns = step_total_ns(step);
	cause_describe(cause, window, to->worst_evidence, sizeof(to->worst_evidence));
}

static int add_entry(struct escalation_tally *tally, const struct window *window,
		     const struct step *step, const struct escalation *escalation)
{
	const struct fbt_step *record = &step->record;
	struct escalation_entry entry = {
		.number = escalation->number,
		.step = step->number,
		.start_ns = subtract(record->start_ns, window->record.start_ns),
		.total_ns = step_total_ns(step),
		.budget_ns = escalation->budget_ns,
		.usual_ns = escalation->usual_ns,
		.cause_ns = escalation->cause.time_ns,
		.cause_usual_ns = escalation->cause.usual_ns,
		.kind = record->kind,
		.tgid = record->tgid,
		.tid = record->tid,
		.fired = escalation->fired,
		.reason = escalation->result.reason,
		.cause = escalation->cause.kind,
		.judged = escalation->judged,
		.cause_usual_known = escalation->cause.usual_known,
		.complete = step->complete,
	};
	int err = 0;

	if (tally->entries.count < ESCALATIONS_LISTED)
		err = vec_push(&tally->entries, entry);
	else
		tally->entries.items[tally->shown % ESCALATIONS_LISTED] = entry;
	if (!err)
		tally->shown++;
	return err;
}

int escalation_tally_add(struct escalation_tally *tally, const struct window *window,
			 const struct step *step, const struct escalation *escalation)
{
	if ((uint32_t)escalation->cause.kind < CAUSE_COUNT)
		add_to_cause(&tally->causes[escalation->cause.kind], window, step, escalation);
	return escalation_is_shown(escalation) ? add_entry(tally, window, step, escalation) : 0;
}

void escalation_tally_clear(struct escalation_tally *tally)
{
	vec_free(&tally->entries);
	*tally = (struct escalation_tally){0};
}

static bool is_dearer(const struct cause_tally *left, const struct cause_tally *right)
{
	if (left->extra_ns != right->extra_ns)
		return left->extra_ns > right->extra_ns;
	return left->steps > right->steps;
}

int escalation_tally_sort(const struct escalation_tally *tally, enum cause_kind order[CAUSE_COUNT])
{
	const struct cause_tally *causes = tally->causes;
	int count = 0;

	for (int i = 0; i < CAUSE_COUNT; i++) {
		int place = count;

		if (!causes[i].steps)
			continue;
		while (place && is_dearer(&causes[i], &causes[order[place - 1]])) {
			order[place] = order[place - 1];
			place--;
		}
		order[place] = (enum cause_kind)i;
		count++;
	}
	return count;
}

const struct escalation_entry *escalation_tally_entry(const struct escalation_tally *tally,
						      size_t index)
{
	size_t count = tally->entries.count;

	if (index >= count)
		return NULL;
	if (count == ESCALATIONS_LISTED)
		index = (index + tally->shown) % ESCALATIONS_LISTED;
	return &tally->entries.items[index];
}
