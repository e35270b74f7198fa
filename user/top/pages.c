/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Slow steps: their list, and a page of one of them; and the pages of text. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/format.h"
#include "top/view.h"

static const char *time_of_day(const struct top_slow *slow, char text[16])
{
	time_t seconds = (time_t)(slow->realtime_ns / NS_PER_S);
	struct tm local;

	if (!slow->realtime_ns || !localtime_r(&seconds, &local) ||
	    !strftime(text, 16, "%H:%M:%S", &local))
		snprintf(text, 16, "--:--:--");
	return text;
}

static void draw_slow_line(struct grid *grid, const struct top_slow *slow, int row, bool selected)
{
	char time[16], words[CAUSE_WORDS_SIZE], times[16] = "";
	enum top_style style = selected ? TOP_SELECTED : TOP_PLAIN;
	enum top_style loud = selected ? TOP_SELECTED : TOP_BAD;
	int column;

	if (selected)
		grid_style(grid, row, TOP_SELECTED);
	column = grid_print(grid, row, 0, style, "%s ", time_of_day(slow, time));
	if (!slow->number) {
		grid_print(grid, row, column, loud, "HANG %s", slow->evidence);
		return;
	}
	if (slow->times > 0)
		snprintf(times, sizeof(times), "x%.*f", slow->times < 9.95, slow->times);
	column = grid_print(grid, row, column, style, "#%-6" PRIu64 " ", slow->number);
	column = grid_print(grid, row, column, loud, "%8s %-6s ", FORMAT_TIME(slow->total_ns),
			    times);
	column = grid_print(grid, row, column, loud, "%s%s ", slow->complete ? "" : "incomplete, ",
			    cause_words(slow->cause, words));
	grid_text(grid, row, column, -1, style, slow->evidence);
}

void top_draw_slow(struct grid *grid, const struct top_view *view, int row, int end)
{
	const struct top_slow *list[TOP_SLOW];
	size_t count = top_list(view->state, view->model, list), first = 0, at;
	const struct top_slow *newest = top_model__slow(view->model, 0);
	uint64_t total = view->figures->slow_total;
	bool wide = grid->rows >= 28;
	int column;

	if (row >= end)
		return;
	/* The list is newer than the figures. */
	if (newest && newest->sequence > total)
		total = newest->sequence;
	grid_style(grid, row, TOP_HEAD);
	column = grid_print(grid, row, 0, TOP_HEAD, "SLOW STEPS %s first, %s of %s",
			    view->state->slowest_first ? "slowest" : "newest", FORMAT_COUNT(count),
			    FORMAT_COUNT(total));
	if (*view->state->filter)
		grid_print(grid, row, column, TOP_HEAD, "  filter: %s", view->state->filter);
	row++;
	for (at = 0; at < count && list[at]->sequence != view->state->selected; at++)
		;
	if (at < count && (int)at >= (end - row) / 2)
		first = at - (size_t)(end - row) / 2;
	for (size_t i = first; i < count && row < end; i++) {
		bool is_selected = list[i]->sequence == view->state->selected;

		draw_slow_line(grid, list[i], row++, is_selected);
		/* The first one, or the one under the cursor, says where it was. */
		if (!wide || !(is_selected || (!view->state->selected && i == 0)))
			continue;
		if (*list[i]->stack && row < end)
			grid_print(grid, row++, 9, TOP_DIM, "in %s", list[i]->stack);
		if (*list[i]->waker_stack && row < end)
			grid_print(grid, row++, 9, TOP_DIM, "ended in %s", list[i]->waker_stack);
	}
}

static const struct top_slow *selected_step(const struct top_view *view)
{
	const struct top_slow *slow;

	for (size_t i = 0; (slow = top_model__slow(view->model, i)); i++) {
		if (slow->sequence == view->state->selected)
			return slow;
	}
	return NULL;
}

static int draw_breakdown(struct grid *grid, const struct top_slow *slow, int row, int end)
{
	for (int i = 0; i < STEP_PARTS && row < end; i++) {
		uint64_t ns = slow->parts.ns[i];
		double percent = percent_of((double)ns, (double)slow->total_ns);

		if (!ns)
			continue;
		grid_print(grid, row, 2, TOP_PLAIN, "%-18s %10s %4.0f%%",
			   top_part_words((enum step_part)i, slow->calls_known), FORMAT_TIME(ns),
			   percent);
		for (int k = 0; k < (int)(percent / 100 * 36 + 0.5); k++)
			grid_block(grid, row, 40 + k, 8, i == STEP_OWN ? TOP_GOOD : TOP_BAD);
		row++;
	}
	return row;
}

static int draw_facts(struct grid *grid, const struct top_slow *slow, int row)
{
	int column = grid_print(grid, row, 2, TOP_PLAIN, "gap before it %s",
				slow->gap_known ? FORMAT_TIME(slow->gap_ns) : "not known");

	if (slow->minor_faults || slow->major_faults)
		column = grid_print(grid, row, column, TOP_PLAIN, ", page faults %s (disk %s)",
				    FORMAT_COUNT(slow->minor_faults),
				    FORMAT_COUNT(slow->major_faults));
	if (slow->gil_known)
		column = grid_print(grid, row, column, TOP_PLAIN, ", GIL %s",
				    FORMAT_TIME(slow->gil_ns));
	if (slow->gc_ns)
		column = grid_print(grid, row, column, TOP_PLAIN, ", garbage collection %s",
				    FORMAT_TIME(slow->gc_ns));
	if (slow->gpu_busy_ns != UINT64_MAX)
		grid_print(grid, row, column, TOP_PLAIN, ", GPU busy %s",
			   FORMAT_TIME(slow->gpu_busy_ns));
	return row + 1;
}

static int draw_text(struct grid *grid, int row, int end, const char *label, const char *text)
{
	if (!*text || row >= end)
		return row;
	grid_text(grid, row++, 0, -1, TOP_HEAD, label);
	return top_paragraph(grid, row, end, 2, TOP_PLAIN, text);
}

/* From a row, which may be above or below the screen, up to end. Returns the row after it. */
static int draw_step(struct grid *grid, const struct top_slow *slow, int row, int end)
{
	char time[16], words[CAUSE_WORDS_SIZE], class[TOP_CLASS_SIZE];
	int column;

	column = grid_print(grid, row, 0, TOP_BOLD, "%s  %s %s", time_of_day(slow, time),
			    slow->kind, top_class_words(&slow->key, class));
	if (slow->number)
		column = grid_print(grid, row, column, TOP_BOLD, "  #%" PRIu64 "  %s", slow->number,
				    FORMAT_TIME(slow->total_ns));
	if (slow->times > 0)
		grid_print(grid, row, column, TOP_BOLD, ", %.*fx usual", slow->times < 9.95,
			   slow->times);
	grid_print(grid, ++row, 0, TOP_PLAIN, "process %" PRIu32 ", thread %" PRIu32 ", %s%s%s",
		   slow->key.tgid, slow->tid, slow->reason,
		   slow->complete ? "" : ", incomplete: records were lost or cut off",
		   slow->suppressed ? ", over the rate limit" : "");
	row += 2;
	row = draw_text(grid, row, end, slow->number ? cause_words(slow->cause, words) : "hang",
			slow->evidence);
	row = draw_text(grid, row, end, "in", slow->stack);
	row = draw_text(grid, row, end, "ended in", slow->waker_stack);
	row = draw_text(grid, row, end, "held in", slow->holder_stack);
	row = draw_text(grid, row, end, slow->number ? "meanwhile" : "threads", slow->others);
	if (!slow->number)
		return row;
	row = draw_text(grid, row, end, "what to do",
			cause_advice_beside(slow->cause, slow->names_culprit,
					    slow->cause_calls_known, slow->detail));
	if (row + 1 < end)
		grid_text(grid, row++, 0, -1, TOP_HEAD, "where its time went");
	row = draw_breakdown(grid, slow, row, end);
	return row < end ? draw_facts(grid, slow, row) : row;
}

/* Draws it once below the screen, to see how long it is: it scrolls to its end and no further. */
void top_draw_step(struct grid *grid, const struct top_view *view)
{
	const struct top_slow *slow = selected_step(view);
	int end = grid->rows - 1, below = grid->rows, more, scroll = view->state->scroll;

	if (!slow) {
		grid_text(grid, 2, 0, -1, TOP_WARN,
			  "this step is not kept any more: Esc goes back to the list");
		return;
	}
	more = draw_step(grid, slow, below, INT_MAX) - below - (end - 2);
	more = more < 0 ? 0 : more;
	grid->top = 2;
	draw_step(grid, slow, 2 - (scroll < more ? scroll : more), end);
	grid->top = 0;
}

void top_draw_trust(struct grid *grid, const struct top_view *view)
{
	int row = 2, end = grid->rows - 1;

	grid_text(grid, row++, 0, -1, TOP_HEAD, "CAN THESE NUMBERS BE TRUSTED?");
	if (view->trust->cost_percent >= 0)
		grid_print(grid, row++, 0, TOP_PLAIN,
			   "tracing adds %s to the time of the steps, by what its probes "
			   "cost here",
			   FORMAT_MOST(view->trust->cost_percent));
	if (view->cpu_percent >= 0)
		grid_print(grid, row++, 0, TOP_PLAIN, "this tool uses %s of a CPU",
			   FORMAT_PERCENT(view->cpu_percent));
	if (!view->trust->count)
		grid_text(grid, row, 0, -1, TOP_GOOD,
			  "yes: nothing was lost, and nothing was estimated from a part");
	for (size_t i = (size_t)view->state->scroll; i < view->trust->count && row < end; i++)
		row = top_paragraph(grid, row, end, 0, TOP_WARN, view->trust->lines[i]);
}

void top_draw_help(struct grid *grid)
{
	static const char *const lines[] = {
		"q, Ctrl-C     quit             Ctrl-Z  suspend; fg comes back",
		"p, space      pause: the page stands still, tracing goes on",
		"s             sort classes by time, steps/s, p99, share that is not own code",
		"o             slow steps: newest or slowest first",
		"f, /          show slow steps whose cause, evidence or stack has a text",
		"1-9, 0        show steps of one step function only, or of all",
		"up, down      choose a slow step     e, Enter  all about it     Esc  back",
		"w             which numbers cannot be trusted, and why; warnings",
		"d             write the last minute to files: trace, profile, page, capture",
		"",
		"Rates, percentiles and shares are of the last 10 whole seconds; the strip is",
		"the 99th percentile of each second, red if a step was slow in it; causes are of",
		"5 minutes: time more than usual, and steps. own: the engine's code on a CPU.",
		"CPUwt: ready to run, but no CPU was free. A class is steps with like work.",
		"cost: time that tracing adds to the steps, as a share. [!]: press w.",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines) && (int)i + 1 < grid->rows - 1; i++)
		grid_text(grid, (int)i + 1, 0, -1, TOP_PLAIN, lines[i]);
}
