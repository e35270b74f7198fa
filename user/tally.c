/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t add_saturating(uint64_t left, uint64_t right)
{
	uint64_t sum;

	return __builtin_add_overflow(left, right, &sum) ? UINT64_MAX : sum;
}

static uint64_t round_saturating(long double value)
{
	return value >= 0x1p64l ? UINT64_MAX : (uint64_t)value;
}

static uint64_t subtract(uint64_t from, uint64_t what)
{
	return from > what ? from - what : 0;
}

static void free_kind(struct tally_kind *kind)
{
	if (!kind)
		return;
	stats__free(kind->duration);
	stats__free(kind->gap);
	free(kind);
}

static struct tally_kind *new_kind(void)
{
	struct tally_kind *kind = calloc(1, sizeof(*kind));

	if (!kind)
		return NULL;
	kind->duration = stats__new();
	kind->gap = stats__new();
	if (kind->duration && kind->gap)
		return kind;
	free_kind(kind);
	return NULL;
}

static void add_sums(struct tally_kind *kind, const struct fbt_step *record)
{
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		const struct fbt_sum *from = &record->sums[i];
		struct fbt_sum *to = &kind->sums[i];

		to->ns = add_saturating(to->ns, from->ns);
		to->calls = add_saturating(to->calls, from->calls);
		to->errors = add_saturating(to->errors, from->errors);
		if (from->max_ns > to->max_ns)
			to->max_ns = from->max_ns;
	}
}

static void add_args(struct tally_kind *kind, const struct fbt_step *record)
{
	for (int i = 0; i < FBT_ARG_COUNT; i++) {
		struct tally_arg *arg = &kind->args[i];
		int64_t value = record->args[i];

		if (!(record->arg_mask & 1u << i))
			continue;
		if (!arg->count || value < arg->min)
			arg->min = value;
		if (!arg->count || value > arg->max)
			arg->max = value;
		arg->sum += (long double)value;
		arg->count++;
	}
}

static void add_to_slowest(struct tally_kind *kind, const struct window *window,
			   const struct step *step)
{
	const struct fbt_step *record = &step->record;
	struct tally_step entry = {
		.number = step->number,
		.total_ns = step_total_ns(step),
		.start_ns = subtract(record->start_ns, window->record.start_ns),
		.compute_ns = step_compute_ns(step),
		.end = record->end,
		.tgid = record->tgid,
		.tid = record->tid,
		.complete = step->complete,
	};
	int place = TALLY_SLOWEST;

	while (place && (!kind->slowest[place - 1].number ||
			 kind->slowest[place - 1].total_ns < entry.total_ns))
		place--;
	if (place == TALLY_SLOWEST)
		return;
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		if (record->sums[i].ns >= entry.sum.ns) { /* the last of equals, as the seed */
			entry.dominant = i;
			entry.sum = record->sums[i];
		}
	}
	memmove(&kind->slowest[place + 1], &kind->slowest[place],
		(size_t)(TALLY_SLOWEST - 1 - place) * sizeof(entry));
	kind->slowest[place] = entry;
}

int tally_add(struct tally *tally, const struct window *window, const struct step *step)
{
	const struct fbt_step *record = &step->record;
	struct tally_kind *kind;
	uint64_t compute_ns = step_compute_ns(step);

	if (record->kind >= FBT_KIND_COUNT || record->end >= TALLY_ENDS)
		return 0; /* decode lets no such step through */
	if (!tally->kinds[record->kind])
		tally->kinds[record->kind] = new_kind();
	kind = tally->kinds[record->kind];
	if (!kind)
		return -ENOMEM;

	kind->steps++;
	kind->ends[record->end]++;
	kind->incomplete += !step->complete;
	kind->lost_calls = add_saturating(kind->lost_calls, record->lost_calls);
	if (record->end == FBT_END_RETURN)
		stats__add(kind->duration, step_total_ns(step));
	kind->total_ns = add_saturating(kind->total_ns, step_total_ns(step));
	kind->compute_ns = add_saturating(kind->compute_ns, compute_ns);
	if (compute_ns > kind->compute_max_ns)
		kind->compute_max_ns = compute_ns;
	if (!(record->header.flags & FBT_STEP_NO_GAP)) {
		stats__add(kind->gap, record->gap_ns);
		kind->gap_syscall_ns = add_saturating(kind->gap_syscall_ns, record->gap_syscall_ns);
	}
	if (!(record->header.flags & FBT_STEP_OTHER_UNKNOWN)) {
		kind->other_steps++;
		kind->other_ns = add_saturating(kind->other_ns, record->other_syscall_ns);
	}
	if (record->threads > kind->threads_max)
		kind->threads_max = record->threads;
	add_sums(kind, record);
	add_args(kind, record);
	add_to_slowest(kind, window, step);
	return gpu_tally_add(&tally->gpu, step);
}

void tally_clear(struct tally *tally)
{
	for (int i = 0; i < FBT_KIND_COUNT; i++)
		free_kind(tally->kinds[i]);
	escalation_tally_clear(&tally->escalations);
	gpu_tally_clear(&tally->gpu);
	*tally = (struct tally){0};
}

int tally_main_kind(const struct tally *tally)
{
	int best = -1;

	for (int i = 0; i < FBT_KIND_COUNT; i++) {
		if (!tally->kinds[i])
			continue;
		if (best < 0 || tally->kinds[i]->total_ns > tally->kinds[best]->total_ns)
			best = i;
	}
	return best;
}

uint64_t tally_syscall_ns(const struct tally_kind *kind)
{
	uint64_t sum = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		sum = add_saturating(sum, kind->sums[i].ns);
	return sum;
}

uint64_t tally_calls(const struct tally_kind *kind)
{
	uint64_t sum = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		sum = add_saturating(sum, kind->sums[i].calls);
	return sum;
}

uint64_t tally_open_steps(const struct tally *tally)
{
	uint64_t count = 0;

	for (int i = 0; i < FBT_KIND_COUNT; i++)
		if (tally->kinds[i])
			count += tally->kinds[i]->ends[FBT_END_TRUNCATED];
	return count;
}

void tally_sort_categories(const struct tally_kind *kind,
			   enum fbt_category order[FBT_CATEGORY_COUNT])
{
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		int place = i;

		while (place && kind->sums[order[place - 1]].ns < kind->sums[i].ns) {
			order[place] = order[place - 1];
			place--;
		}
		order[place] = i;
	}
}

uint64_t tally_window_ns(const struct window *window)
{
	return subtract(window->end_ns, window->record.start_ns);
}

uint64_t tally_process_ns(const struct window *window, const struct process *process)
{
	uint64_t end_ns = process->exit_ns ? process->exit_ns : window->end_ns;
	uint64_t start_ns = process->record.start_ns;

	if (start_ns < window->record.start_ns)
		start_ns = window->record.start_ns;
	return subtract(end_ns, start_ns);
}

double tally_sampled_percent(const struct window *window, uint32_t kind)
{
	const struct fbt_sampling *sampling = &window->sampling[kind];
	double watched_ns = (double)sampling->watched_ns, off_ns = (double)sampling->off_ns;

	return sampling->kind ? watched_ns * 100 / (watched_ns + off_ns + 1) : 0;
}

uint64_t tally_sampled_calls_per_s(const struct window *window, uint32_t kind)
{
	const struct fbt_sampling *sampling = &window->sampling[kind];

	if (!sampling->watched_ns)
		return 0;
	return round_saturating((long double)sampling->calls * 1e9l /
				(long double)sampling->watched_ns);
}

void tally_cost(const struct tally *tally, const struct window *window, struct tally_cost *cost)
{
	uint64_t step_calls = 0;
	long double in_steps_ns = 0, added_ns, call_ns = (long double)window->cost.call_ps / 1000;

	*cost = (struct tally_cost){0};
	for (int i = 0; i < FBT_KIND_COUNT; i++) {
		if (!tally->kinds[i])
			continue;
		step_calls = add_saturating(step_calls, tally_calls(tally->kinds[i]));
		in_steps_ns += (long double)tally->kinds[i]->total_ns;
		if (i) /* intervals have no probes */
			cost->steps += tally->kinds[i]->steps;
	}
	for (size_t i = 0; i < window->processes.count; i++) {
		const struct process *process = window->processes.items[i];

		vec_for_each (row, &process->table.rows)
			cost->calls = add_saturating(cost->calls, row->sum.calls);
		cost->traced_ns =
			add_saturating(cost->traced_ns, tally_process_ns(window, process));
	}
	/* A stream that was cut off has no table. */
	if (cost->calls < step_calls)
		cost->calls = step_calls;
	cost->call_ns = round_saturating(call_ns * (long double)cost->calls);
	cost->step_ns =
		round_saturating((long double)window->cost.step_ns * (long double)cost->steps);
	added_ns = (long double)cost->call_ns + (long double)cost->step_ns;
	if (cost->traced_ns)
		cost->percent = (double)(added_ns * 100 / (long double)cost->traced_ns);
	added_ns = call_ns * (long double)step_calls + (long double)cost->step_ns;
	if (in_steps_ns > 0)
		cost->step_percent = (double)(added_ns * 100 / in_steps_ns);
}
