/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "metrics/tally.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/log.h"

#define RANK_DIGITS 5

struct metrics_tally *metrics_tally__new(void)
{
	struct metrics_tally *tally = calloc(1, sizeof(*tally));

	if (tally)
		histogram_bounds_init(&tally->bounds);
	return tally;
}

void metrics_tally__free(struct metrics_tally *tally)
{
	if (!tally)
		return;
	vec_for_each (series, &tally->series)
		free(*series);
	vec_free(&tally->series);
	free(tally);
}

/* "TP1" at the end of the first length bytes of a title: where it begins; length: there is none. */
static size_t find_place(const char *title, size_t length)
{
	static const char *const words[] = {"TP", "PP", "DP", "EP", "rank", "Rank", "rank_"};
	size_t digits = 0, begin = length;

	while (digits < length && isdigit((unsigned char)title[length - digits - 1]))
		digits++;
	if (!digits || digits > RANK_DIGITS)
		return length;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t size = strlen(words[i]) + digits;

		if (length >= size && !memcmp(title + length - size, words[i], size - digits))
			begin = length - size;
	}
	return begin;
}

/*
 * The rank in a title that an engine gives its process: the number, as in VLLM::Worker_TP1. If
 * there are several (sglang::scheduler_DP1_TP0), only all of them tell such processes apart:
 * DP1_TP0.
 * "": there is none.
 */
static void find_rank(const char *title, char *rank, size_t size)
{
	size_t length = strlen(title), begin = find_place(title, length), before = begin;
	size_t skip = 0;

	*rank = '\0';
	if (begin == length)
		return;
	while (before && title[before - 1] == '_' && find_place(title, before - 1) < before - 1)
		before = find_place(title, before - 1);
	if (before == begin)
		skip = strcspn(title + begin, "0123456789");
	if (length - before - skip < size)
		snprintf(rank, size, "%s", title + before + skip);
}

static void name_series(struct metrics_series *name, const struct window *window, uint32_t tgid,
			uint32_t kind)
{
	const struct process *process = window__process(window, tgid);
	char title[PROCESS_TITLE_MAX];

	log_escape(name->engine, sizeof(name->engine),
		   process && process->comm && *process->comm ? process->comm : "unknown");
	log_escape(name->kind, sizeof(name->kind), window__kind_name(window, kind));
	find_rank(window__process_title(window, tgid, title), name->rank, sizeof(name->rank));
}

static struct metrics_series *find_series(const struct metrics_tally *tally,
					  const struct metrics_series *name)
{
	vec_for_each (series, &tally->series) {
		if (!strcmp((*series)->engine, name->engine) &&
		    !strcmp((*series)->kind, name->kind) && !strcmp((*series)->rank, name->rank))
			return *series;
	}
	return NULL;
}

/* NULL: -ENOMEM. */
static struct metrics_series *touch_series(struct metrics_tally *tally, const struct window *window,
					   uint32_t tgid, uint32_t kind)
{
	struct metrics_series *name = calloc(1, sizeof(*name)), *series;

	if (!name)
		return NULL;
	name_series(name, window, tgid, kind);
	series = find_series(tally, name);
	if (!series && tally->series.count >= METRICS_SERIES_MAX) {
		snprintf(name->engine, sizeof(name->engine), METRICS_OTHER);
		snprintf(name->kind, sizeof(name->kind), METRICS_OTHER);
		name->rank[0] = '\0';
		series = find_series(tally, name);
	}
	if (!series && !vec_push(&tally->series, name))
		return name;
	free(name);
	return series;
}

static bool is_other(const struct metrics_tally *tally, const struct metrics_series *series)
{
	return tally->series.count > METRICS_SERIES_MAX &&
	       tally->series.items[METRICS_SERIES_MAX] == series;
}

/* What probes cost is known for sure at the end of the window. Intervals have none of their own. */
static void count_probes(struct metrics_tally *tally, const struct step *step)
{
	tally->window_steps += step->record.kind != 0;
	if (step_calls_known(step))
		tally->window_calls = add_saturating(tally->window_calls, step_calls(step));
}

static uint64_t estimate_cost_ns(const struct metrics_tally *tally, const struct fbt_cost *cost)
{
	uint64_t call_ps = cost->header.size ? cost->call_ps : tally->call_ps;
	uint64_t steps_ns =
		cost->header.size
			? (uint64_t)((long double)cost->step_ns * (long double)tally->window_steps)
			: tally->probes_ns;

	return add_saturating(steps_ns, (uint64_t)((long double)call_ps *
						   (long double)tally->window_calls / 1000));
}

static void begin_window(struct metrics_tally *tally, uint64_t start_ns)
{
	tally->windows++;
	tally->is_open = true;
	tally->window_start_ns = start_ns;
	memset(tally->window_lost, 0, sizeof(tally->window_lost));
	tally->window_traced_ns = 0;
	tally->window_steps = tally->window_calls = tally->window_cost_ns = 0;
	tally->probes_ns = 0;
	tally->processes = 0;
}

/* false: it is not begun, or older than the latest one. */
static bool touch_window(struct metrics_tally *tally, uint64_t start_ns)
{
	if (!start_ns || (tally->windows && start_ns < tally->window_start_ns))
		return false;
	if (!tally->windows || start_ns > tally->window_start_ns)
		begin_window(tally, start_ns);
	return true;
}

static void end_step(struct metrics_series *series, const struct window *window,
		     const struct step *step)
{
	if (step->record.end_ns < series->last_end_ns)
		return;
	series->last_end_ns = step->record.end_ns;
	series->last_step_ns = window__unix_ns(window, series->last_end_ns);
}

/*
 * Whether it is known how long the step took. One that an exception has left is over when the next
 * one begins, and an idle engine does not begin one for hours; a window's end cuts others off. In a
 * profile readers can leave them out, but not in a sum.
 */
static bool is_timed(const struct step *step)
{
	return !step_end_is_late(step) && step->record.end != FBT_END_TRUNCATED &&
	       step->record.end != FBT_END_EXITED;
}

/* That of steps whose calls are known is apart from that of others. */
static void add_time(struct metrics_series *series, const struct histogram_bounds *bounds,
		     const struct step *step)
{
	uint64_t *sums_ns = series->parts_ns[step_calls_known(step)];
	struct step_parts parts;

	histogram_add(&series->duration, bounds, step_total_ns(step));
	step_split(step, &parts);
	for (int i = 0; i < STEP_PARTS; i++)
		sums_ns[i] = add_saturating(sums_ns[i], parts.ns[i]);
}

int metrics_tally__add_step(struct metrics_tally *tally, const struct window *window,
			    const struct step *step)
{
	struct metrics_series *series =
		touch_series(tally, window, step->record.tgid, step->record.kind);

	if (!series)
		return -ENOMEM;
	touch_window(tally, window->record.start_ns);
	count_probes(tally, step);
	end_step(series, window, step);
	/* PyTorch's profiler made it longer. */
	if (step_is_profiled(step))
		return 0;
	series->steps++;
	if (is_timed(step))
		add_time(series, &tally->bounds, step);
	if (is_other(tally, series))
		tally->folded_steps++;
	if (!step->complete)
		series->incomplete++;
	if (!(step->record.header.flags & FBT_STEP_NO_GAP))
		series->gap_ns = add_saturating(series->gap_ns, step->record.gap_ns);
	return 0;
}

int metrics_tally__add_escalation(struct metrics_tally *tally, const struct window *window,
				  const struct step *step, const struct escalation *escalation)
{
	struct metrics_series *series =
		touch_series(tally, window, step->record.tgid, step->record.kind);
	const struct cause *cause = &escalation->cause;

	if (!series)
		return -ENOMEM;
	series->escalations[escalation->result.reason]++;
	if (!escalation_is_shown(escalation))
		series->not_shown++;
	series->unsteady += escalation->repeated || escalation->as_usual;
	series->cause_steps[cause->kind]++;
	/* One that is as usual had less work instead; and the parts do not have one without an end.
	 */
	if (!escalation->as_usual && is_timed(step))
		series->cause_extra_ns[cause->kind] =
			add_saturating(series->cause_extra_ns[cause->kind], cause_cost_ns(cause));
	return 0;
}

int metrics_tally__add_hang(struct metrics_tally *tally, const struct window *window,
			    const struct fbt_hang *hang)
{
	struct metrics_series *series = touch_series(tally, window, hang->tgid, hang->kind);

	if (!series)
		return -ENOMEM;
	series->hangs++;
	return 0;
}

/* Adds what seen has more than before. */
static void grow(uint64_t *sum, uint64_t *before, uint64_t seen)
{
	if (seen <= *before)
		return;
	*sum = add_saturating(*sum, seen - *before);
	*before = seen;
}

/*
 * The clock may have been set back since the last step. That it has been set on is not told from a
 * suspend, after which the time of the step is still right.
 */
static void set_back(struct metrics_tally *tally, const struct window *window)
{
	vec_for_each (item, &tally->series) {
		uint64_t unix_ns = window__unix_ns(window, (*item)->last_end_ns);

		if (unix_ns < (*item)->last_step_ns)
			(*item)->last_step_ns = unix_ns;
	}
}

void metrics_tally__see(struct metrics_tally *tally, const struct window *window, uint64_t *skipped,
			uint64_t now_ns)
{
	uint64_t start_ns = window->record.start_ns;

	if (!touch_window(tally, start_ns))
		return;
	set_back(tally, window);
	for (int i = 0; i < FBT_LOST_COUNT; i++)
		grow(&tally->lost[i], &tally->window_lost[i], window->lost.count[i]);
	grow(&tally->probe_cost_ns, &tally->window_cost_ns, estimate_cost_ns(tally, &window->cost));
	grow(&tally->skipped, skipped,
	     add_saturating(window->skipped_records, window->unkept_records));
	grow(&tally->traced_ns, &tally->window_traced_ns,
	     sub_saturating(window->end_ns ? window->end_ns : now_ns, start_ns));
}

void metrics_tally__close(struct metrics_tally *tally)
{
	tally->is_open = false;
	tally->processes = 0;
}
