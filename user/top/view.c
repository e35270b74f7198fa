/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "top/view.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/wrap.h"

#define WIDE_COLUMNS 100
#define HEAD_PARTS   3
/* Parts of less are not named in the headline. */
#define HEAD_PERCENT 0.5
#define HEAD_ALARM   25

const char *top_part_words(enum step_part part, bool calls_known)
{
	static const char *const words[STEP_PARTS] = {
		[STEP_OWN] = "own code",
		[STEP_CPU_WAIT] = "waiting for a CPU",
		[STEP_CALLS + FBT_MMAP] = "mmap",
		[STEP_CALLS + FBT_FUTEX] = "futex",
		[STEP_CALLS + FBT_IOCTL] = "ioctl",
		[STEP_CALLS + FBT_READ] = "read",
		[STEP_CALLS + FBT_WRITE] = "write",
		[STEP_CALLS + FBT_OTHER] = "other calls",
		[STEP_FAULTS] = "page faults",
		[STEP_DISK_WAIT] = "disk",
		[STEP_STOPPED] = "stopped",
		[STEP_OFF_CPU] = "off the CPU",
		[STEP_AWAIT] = "await",
	};

	if (!calls_known && part == STEP_OWN)
		return "on a CPU";
	if (!calls_known && part == STEP_OFF_CPU)
		return "asleep";
	return words[part];
}

const char *top_class_words(const struct top_key *key, char text[TOP_CLASS_SIZE])
{
	uint32_t bits = key->class.bits > 63 ? 63 : key->class.bits;
	uint64_t low = bits ? 1ull << (bits - 1) : 0, high = bits ? (1ull << bits) - 1 : 0;

	*text = '\0';
	if (!key->class.is_known)
		return text;
	if (!key->class.by_argument)
		snprintf(text, TOP_CLASS_SIZE, "work %s", FORMAT_TIME(low));
	else if (low == high)
		snprintf(text, TOP_CLASS_SIZE, "arg %" PRIu64, low);
	else
		snprintf(text, TOP_CLASS_SIZE, "arg %" PRIu64 "-%" PRIu64, low, high);
	return text;
}

int top_paragraph(struct grid *grid, int row, int end, int indent, enum top_style style,
		  const char *text)
{
	size_t width = grid->columns > indent + 1 ? (size_t)(grid->columns - indent - 1) : 1;

	for (text += strspn(text, " "); *text && row < end; text += strspn(text, " ")) {
		size_t bytes = wrap_break(text, width);

		grid_print(grid, row++, indent, style, "%.*s", (int)bytes, text);
		text += bytes;
	}
	return row;
}

/* What is kept by second is of all step functions, whichever is shown. */
static bool shows_all(const struct top_view *view)
{
	return view->state->kind == TOP_ALL_KINDS;
}

static double share(const struct top_sums *sums, uint64_t ns)
{
	return percent_of((double)ns, (double)sums->total_ns);
}

static void draw_title(struct grid *grid, const struct top_view *view)
{
	const struct window *window = view->window;
	const struct process *process = window->processes.count ? window->processes.items[0] : NULL;
	char title[PROCESS_TITLE_MAX], name[64], text[256], kind[64] = "", cost[48] = "";
	bool wide = grid->columns >= WIDE_COLUMNS;
	uint64_t up = sub_saturating(view->figures->now_ns, window->record.start_ns) / NS_PER_S;
	bool sound = !view->trust->count;
	int column;

	grid_style(grid, 0, TOP_BOLD);
	column = grid_print(grid, 0, 0, TOP_BOLD, "%s  ", wide ? "ferrum-bpftrace top" : "top");
	if (process) {
		window__process_title(window, process->record.tgid, title);
		shorten_text(name, sizeof(name), title, 20);
		column = grid_print(grid, 0, column, TOP_BOLD, "%s[%" PRIu32 "]", name,
				    process->record.tgid);
	}
	if (window->processes.count > 1)
		column =
			grid_print(grid, 0, column, TOP_BOLD, " +%zu", window->processes.count - 1);
	if (view->figures->row_count)
		shorten_name(kind, sizeof(kind),
			     window__kind_name(window, view->figures->rows[0].key.kind),
			     wide ? 24 : 16);
	column = grid_print(grid, 0, column, TOP_BOLD, " %s", kind);
	if (wide)
		grid_print(grid, 0, column, TOP_BOLD, "  up %02" PRIu64 ":%02" PRIu64 ":%02" PRIu64,
			   up / 3600, up / 60 % 60, up % 60);
	if (view->trust->cost_percent >= 0)
		snprintf(cost, sizeof(cost), "cost %s  ", FORMAT_PART(view->trust->cost_percent));
	snprintf(text, sizeof(text), "  %s%slost %s  %s", view->state->paused ? "PAUSED  " : "",
		 cost, FORMAT_COUNT(view->trust->lost), sound ? "[ok]" : "");
	if (!sound)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "[! %zu: w]",
			 view->trust->count);
	grid_text(grid, 0, grid->columns - (int)strlen(text), -1, sound ? TOP_BOLD : TOP_BAD, text);
}

/* The parts but own code, most time first. Returns how many are not 0. */
static int order_parts(const struct top_sums *sums, enum step_part order[STEP_PARTS])
{
	int count = 0;

	for (int i = 1; i < STEP_PARTS; i++) {
		int at = count;

		if (!sums->parts_ns[i])
			continue;
		for (; at && sums->parts_ns[order[at - 1]] < sums->parts_ns[i]; at--)
			order[at] = order[at - 1];
		order[at] = (enum step_part)i;
		count++;
	}
	return count;
}

/* Without a step: since when, and what hangs. */
static bool draw_silence(struct grid *grid, const struct top_view *view, int row)
{
	const struct top_slow *newest = top_model__slow(view->model, 0);
	uint64_t last_ns = view->figures->last_step_ns;
	uint64_t quiet_ns = sub_saturating(view->figures->now_ns, last_ns);

	if (view->figures->all.sums.count)
		return false;
	if (newest && !newest->number && newest->end_ns > last_ns)
		grid_print(grid, row, 0, TOP_BAD, "HANGS: %s", newest->evidence);
	else if (!last_ns)
		grid_text(grid, row, 0, -1, TOP_WARN, "no step yet");
	else if (!shows_all(view))
		grid_print(grid, row, 0, TOP_WARN, "no step of kind %" PRIu32 " (0 shows all)",
			   view->state->kind);
	else
		grid_print(grid, row, 0, TOP_WARN, "no step for %s",
			   FORMAT_TIME(quiet_ns - quiet_ns % NS_PER_S));
	return true;
}

static void draw_headline(struct grid *grid, const struct top_view *view, int row)
{
	const struct top_sums *all = &view->figures->all.sums;
	enum step_part order[STEP_PARTS];
	bool known = !all->unknown, wide = grid->columns >= WIDE_COLUMNS;
	double own = share(all, all->parts_ns[STEP_OWN]);
	enum top_style style = 100 - own >= HEAD_ALARM ? TOP_WARN : TOP_GOOD;
	int column, count, said = 0;

	if (draw_silence(grid, view, row))
		return;
	column = grid_print(grid, row, 0, style, "%s of step time is not %s",
			    FORMAT_PERCENT(100 - own),
			    !known ? "on a CPU"
			    : wide ? "the engine's own code"
				   : "own code");
	count = order_parts(all, order);
	for (int i = 0; i < count && said < HEAD_PARTS; i++) {
		double percent = share(all, all->parts_ns[order[i]]);

		if (percent < HEAD_PERCENT)
			break;
		column = grid_print(grid, row, column, style, "%s %s %s", said++ ? "," : ":",
				    !wide && order[i] == STEP_CPU_WAIT
					    ? "CPU wait"
					    : top_part_words(order[i], known),
				    FORMAT_PERCENT(percent));
		if (order[i] == STEP_CALLS + FBT_FUTEX && all->gil_ns)
			column = grid_print(grid, row, column, style, " (GIL %s)",
					    FORMAT_PERCENT(share(all, all->gil_ns)));
	}
	if (all->gc_ns)
		column = grid_print(grid, row, column, style, "; garbage collection %s",
				    FORMAT_PERCENT(share(all, all->gc_ns)));
	if (all->gpu_ns)
		column = grid_print(
			grid, row, column, style, "; GPU busy %s",
			FORMAT_PERCENT(percent_of((double)all->gpu_busy_ns, (double)all->gpu_ns)));
	if (!view->figures->rows[0].key.kind)
		grid_text(grid, row, column, -1, style, "; intervals: not judged");
}

static double rate(const struct top_figures *figures, uint64_t count)
{
	return figures->seconds ? (double)count / (double)figures->seconds : 0;
}

static void draw_rates(struct grid *grid, const struct top_view *view, int row)
{
	const struct top_figures *figures = view->figures;
	int width = grid->columns >= WIDE_COLUMNS ? 24 : 12, column;
	uint64_t most = 1;

	column =
		grid_print(grid, row, 0, TOP_BOLD, "%s/s %-6s",
			   figures->row_count && !figures->rows[0].key.kind ? "intervals" : "steps",
			   FORMAT_NUMBER(rate(figures, figures->all.sums.count)));
	for (int i = TOP_HISTORY - width; i < TOP_HISTORY; i++)
		most = max_u64(most, figures->history[i].steps);
	for (int i = 0; i < width && shows_all(view); i++) {
		uint64_t steps = figures->history[TOP_HISTORY - width + i].steps;

		grid_block(grid, row, column + i, (int)((steps * 8 + most - 1) / most), TOP_PLAIN);
	}
	if (!figures->all.sums.count)
		return;
	grid_print(grid, row, column + width + 1, TOP_BOLD, "p50 %s  p95 %s  p99 %s  max %s",
		   FORMAT_TIME(figures->all.p50_ns), FORMAT_TIME(figures->all.p95_ns),
		   FORMAT_TIME(figures->all.p99_ns), FORMAT_TIME(figures->all.sums.max_ns));
}

/* Where the time goes, as a bar and in figures. */
static void draw_parts(struct grid *grid, const struct top_view *view, int row)
{
	const struct top_sums *all = &view->figures->all.sums;
	enum step_part order[STEP_PARTS];
	int width = grid->columns >= WIDE_COLUMNS ? 24 : 12, count = order_parts(all, order);
	double own = share(all, all->parts_ns[STEP_OWN]);
	double cpu = share(all, all->parts_ns[STEP_CPU_WAIT]);
	int column;

	if (!all->total_ns)
		return;
	column = grid_text(grid, row, 0, -1, TOP_PLAIN, "time ");
	for (int i = 0; i < width; i++) {
		double at = (i + 0.5) * 100 / width;

		if (at < own)
			grid_block(grid, row, column + i, 8, TOP_GOOD);
		else
			grid_block(grid, row, column + i, at < own + cpu ? 4 : 2,
				   at < own + cpu ? TOP_WARN : TOP_BAD);
	}
	column = grid_print(grid, row, column + width + 1, TOP_GOOD, "%s %s",
			    all->unknown ? "on a CPU" : "own", FORMAT_PERCENT(own));
	for (int i = 0; i < count; i++) {
		const char *words = top_part_words(order[i], !all->unknown);
		const char *figure = FORMAT_PERCENT(share(all, all->parts_ns[order[i]]));

		words = order[i] == STEP_CPU_WAIT ? "CPU wait" : words;
		if (column + 3 + (int)strlen(words) + (int)strlen(figure) > grid->columns)
			break;
		column = grid_print(grid, row, column,
				    order[i] == STEP_CPU_WAIT ? TOP_WARN : TOP_BAD, "  %s %s",
				    words, figure);
	}
}

static int sort_by(const struct top_row *a, const struct top_row *b, enum top_sort sort)
{
	double left, right;

	switch (sort) {
	case TOP_BY_RATE:
		left = (double)a->sums.count;
		right = (double)b->sums.count;
		break;
	case TOP_BY_P99:
		left = (double)a->p99_ns;
		right = (double)b->p99_ns;
		break;
	case TOP_BY_WAIT:
		left = -share(&a->sums, a->sums.parts_ns[STEP_OWN]);
		right = -share(&b->sums, b->sums.parts_ns[STEP_OWN]);
		break;
	default:
		left = (double)a->sums.total_ns;
		right = (double)b->sums.total_ns;
	}
	return left < right ? 1 : left > right ? -1 : 0;
}

/* Sorted by insertion: there are 64 at most, nearly in order. */
static void order_rows(const struct top_view *view, const struct top_row *order[TOP_CLASSES])
{
	for (size_t i = 0; i < view->figures->row_count; i++) {
		const struct top_row *row = &view->figures->rows[i];
		size_t at = i;

		for (; at && sort_by(order[at - 1], row, view->state->sort) > 0; at--)
			order[at] = order[at - 1];
		order[at] = row;
	}
}

static void draw_label(struct grid *grid, const struct top_view *view, const struct top_row *row,
		       int at)
{
	const char *name = row->key.kind == TOP_ALL_KINDS
				   ? "others"
				   : window__kind_name(view->window, row->key.kind);
	char words[TOP_CLASS_SIZE], shown[64], pid[16] = "";
	int column;

	if (view->window->processes.count > 1 && row->key.kind != TOP_ALL_KINDS)
		snprintf(pid, sizeof(pid), "%" PRIu32 " ", row->key.tgid);
	top_class_words(&row->key, words);
	shorten_name(shown, sizeof(shown), name, *pid ? 8 : 12);
	column = grid_print(grid, at, 0, TOP_PLAIN, "%s%s ", pid, shown);
	grid_text(grid, at, column, 27 - column, TOP_PLAIN, words);
}

static void put_percent(struct grid *grid, int row, int end, double percent, enum top_style style)
{
	char text[16];

	snprintf(text, sizeof(text), "%.0f%%", percent);
	grid_text(grid, row, end - (int)strlen(text), -1, percent < 10 ? TOP_PLAIN : style, text);
}

static void put_right(struct grid *grid, int row, int end, const char *text)
{
	grid_text(grid, row, end - (int)strlen(text), -1, TOP_PLAIN, text);
}

static void draw_row_wide(struct grid *grid, const struct top_row *row, int at)
{
	const struct top_sums *sums = &row->sums;
	const uint64_t *ns = sums->parts_ns;
	uint64_t calls_ns = 0, named_ns;

	put_right(grid, at, 54, FORMAT_TIME(row->p95_ns));
	put_right(grid, at, 63, FORMAT_TIME(row->p99_ns));
	put_percent(grid, at, 68, share(sums, ns[STEP_OWN]), TOP_PLAIN);
	put_percent(grid, at, 74, share(sums, ns[STEP_CPU_WAIT]), TOP_WARN);
	if (sums->unknown) {
		/* What calls were not traced took is in no column of theirs. */
		grid_text(grid, at, 76, -1, TOP_PLAIN, "   -    -     -   -   -");
		return;
	}
	put_percent(grid, at, 80, share(sums, ns[STEP_CALLS + FBT_FUTEX]), TOP_BAD);
	put_percent(grid, at, 85, share(sums, ns[STEP_CALLS + FBT_MMAP]), TOP_BAD);
	put_percent(grid, at, 91, share(sums, ns[STEP_CALLS + FBT_IOCTL]), TOP_BAD);
	named_ns = ns[STEP_OWN] + ns[STEP_CPU_WAIT] + ns[STEP_CALLS + FBT_FUTEX] +
		   ns[STEP_CALLS + FBT_MMAP] + ns[STEP_CALLS + FBT_IOCTL];
	calls_ns = ns[STEP_CALLS + FBT_READ] + ns[STEP_CALLS + FBT_WRITE];
	put_percent(grid, at, 95, share(sums, calls_ns), TOP_BAD);
	put_percent(grid, at, 100, share(sums, sub_saturating(sums->total_ns, named_ns + calls_ns)),
		    TOP_BAD);
}

static void draw_row_narrow(struct grid *grid, const struct top_row *row, int at)
{
	const struct top_sums *sums = &row->sums;
	enum step_part order[STEP_PARTS];
	int count = order_parts(sums, order), i = 0;

	put_right(grid, at, 54, FORMAT_TIME(row->p99_ns));
	put_percent(grid, at, 59, share(sums, sums->parts_ns[STEP_OWN]), TOP_PLAIN);
	put_percent(grid, at, 64, share(sums, sums->parts_ns[STEP_CPU_WAIT]), TOP_WARN);
	while (i < count && order[i] == STEP_CPU_WAIT)
		i++;
	if (i < count)
		grid_print(grid, at, 66, TOP_PLAIN, "%s %.0f%%",
			   top_part_words(order[i], !sums->unknown),
			   share(sums, sums->parts_ns[order[i]]));
}

static int draw_classes(struct grid *grid, const struct top_view *view, int row, int most)
{
	static const char *const sorts[] = {"time", "steps/s", "p99", "not own"};
	const struct top_row *order[TOP_CLASSES];
	bool wide = grid->columns >= WIDE_COLUMNS;
	size_t count = view->figures->row_count;

	grid_style(grid, row, TOP_HEAD);
	grid_print(grid, row, 0, TOP_HEAD, "classes by %s", sorts[view->state->sort]);
	grid_text(grid, row, 27, -1, TOP_HEAD,
		  wide ? "steps/s      p50      p95      p99  own CPUwt futex mmap ioctl r/w other"
		       : "steps/s      p50      p99  own CPUwt worst other");
	order_rows(view, order);
	for (size_t i = 0; i < count && (int)i < most; i++) {
		int at = row + 1 + (int)i;

		draw_label(grid, view, order[i], at);
		put_right(grid, at, 34, FORMAT_NUMBER(rate(view->figures, order[i]->sums.count)));
		put_right(grid, at, 45, FORMAT_TIME(order[i]->p50_ns));
		if (wide)
			draw_row_wide(grid, order[i], at);
		else
			draw_row_narrow(grid, order[i], at);
	}
	if ((int)count > most)
		grid_print(grid, row, grid->columns - 8, TOP_HEAD, "+%zu", count - (size_t)most);
	return row + 1 + ((int)count < most ? (int)count : most);
}

/* Of a strip of rows rows with values from low to high, eighths of a cell that a value reaches. */
static int level_of(double value, double low, double high, int rows)
{
	double level = log(value / low) / log(high / low) * rows * 8;

	return level < 1 ? 1 : level > rows * 8 ? rows * 8 : (int)level;
}

#define STRIP_LABEL 10

static void draw_strip(struct grid *grid, const struct top_view *view, int row, int rows)
{
	const struct top_second *history = view->figures->history;
	int width = grid->columns - STRIP_LABEL - 2;
	double low = 1e18, high = 1;

	width = width > TOP_HISTORY ? TOP_HISTORY : width;
	for (int i = TOP_HISTORY - width; i < TOP_HISTORY; i++) {
		if (!history[i].p99_ns)
			continue;
		low = fmin(low, (double)history[i].p99_ns);
		high = fmax(high, (double)history[i].p99_ns);
	}
	if (low > high)
		return;
	high = fmax(high, low * 10);
	low /= 1.5;
	for (int i = 0; i < rows; i++)
		put_right(grid, row + i, STRIP_LABEL - 1,
			  FORMAT_TIME(low * pow(high / low, (double)(rows - i) / rows)));
	grid_print(grid, row + rows - 1, 0, TOP_PLAIN, "%-*s", STRIP_LABEL,
		   shows_all(view) ? "p99" : "p99 of all");
	for (int i = 0; i < width; i++) {
		const struct top_second *second = &history[TOP_HISTORY - width + i];
		enum top_style style = second->slow ? TOP_BAD : TOP_GOOD;
		int level;

		if (!second->p99_ns)
			continue;
		level = level_of((double)second->p99_ns, low, high, rows);
		for (int k = 0; k < rows; k++)
			grid_block(grid, row + rows - 1 - k, STRIP_LABEL + i, level - 8 * k, style);
	}
}

static void draw_causes(struct grid *grid, const struct top_view *view, int row)
{
	const struct top_figures *figures = view->figures;
	int column = grid_print(grid, row, 0, TOP_HEAD, "CAUSES %s%s",
				FORMAT_TIME(figures->history_seconds * NS_PER_S),
				shows_all(view) ? "" : " of all functions");
	char words[CAUSE_WORDS_SIZE];

	for (size_t i = 0; i < figures->cause_count && column < grid->columns; i++)
		column = grid_print(grid, row, column, TOP_PLAIN, "%s %s %s x%" PRIu64,
				    i ? " |" : " ", cause_words(figures->causes[i].kind, words),
				    FORMAT_TIME(figures->causes[i].extra_ns),
				    figures->causes[i].steps);
	if (!figures->cause_count)
		grid_text(grid, row, column, -1, TOP_PLAIN, "  none: no step was slow");
}

static void draw_footer(struct grid *grid, const struct top_view *view)
{
	int row = grid->rows - 1;

	grid_style(grid, row, TOP_DIM);
	if (view->state->typing)
		grid_print(grid, row, 0, TOP_BOLD, "filter: %s_  (Enter: done, Esc: none)",
			   view->state->filter);
	else if (*view->notice)
		grid_text(grid, row, 0, -1, TOP_BOLD, view->notice);
	else
		grid_text(grid, row, 0, -1, TOP_DIM,
			  "q quit  d dump 60 s  p pause  s sort  f filter  e expand  w trust  h "
			  "help");
}

static void draw_main(struct grid *grid, const struct top_view *view)
{
	int tall = grid->rows >= 28, row = 2;
	int classes = grid->rows >= 40 ? 10 : grid->rows >= 28 ? 5 : grid->rows >= 22 ? 4 : 2;
	int strip = grid->rows >= 40 ? 6 : grid->rows >= 28 ? 4 : grid->rows >= 22 ? 3 : 1;

	draw_headline(grid, view, 1);
	draw_rates(grid, view, row++);
	draw_parts(grid, view, row++);
	row = draw_classes(grid, view, row + tall, classes) + tall;
	draw_strip(grid, view, row, strip);
	top_draw_slow(grid, view, row + strip + tall, grid->rows - 2);
	draw_causes(grid, view, grid->rows - 2);
}

void top_draw(struct grid *grid, const struct top_view *view)
{
	if (grid->rows < TOP_ROWS_LEAST || grid->columns < TOP_COLUMNS_LEAST) {
		grid_print(grid, 0, 0, TOP_BOLD, "%dx%d is too small: %dx%d at least (q quits)",
			   grid->columns, grid->rows, TOP_COLUMNS_LEAST, TOP_ROWS_LEAST);
		return;
	}
	draw_title(grid, view);
	switch (view->state->page) {
	case TOP_PAGE_STEP:
		top_draw_step(grid, view);
		break;
	case TOP_PAGE_TRUST:
		top_draw_trust(grid, view);
		break;
	case TOP_PAGE_HELP:
		top_draw_help(grid);
		break;
	case TOP_PAGE_MAIN:
		draw_main(grid, view);
	}
	draw_footer(grid, view);
}
