/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Where the time of steps went: in the headline, in the table of a kind, and for the slowest steps.
 * In the table "time in", write_heading has the headings, with calls traced and without, write_row
 * the cells of a row, and report_part its name.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/format.h"
#include "model/syscalls.h"
#include "report/part.h"
#include "tally/tail.h"

/* Most parts of the extra time of the slowest steps that are named, and the least share of one. */
#define TAIL_PARTS   3
#define TAIL_PERCENT 5
/* Classes of steps whose slowest ones are described. */
#define CLASSES_SHOWN 3

static bool is_call(enum step_part part)
{
	return part >= STEP_CALLS && part < STEP_CALLS + FBT_CATEGORY_COUNT;
}

const char *report_part(const struct tally_kind *kind, enum step_part part)
{
	bool traced = tally_calls_known(kind);

	switch (part) {
	case STEP_OWN:
		if (kind->parts_known)
			return traced ? "own code" : "on CPU";
		return traced ? "compute" : "rest";
	case STEP_CPU_WAIT:
		return "cpu wait";
	case STEP_FAULTS:
		return "faults";
	case STEP_DISK_WAIT:
		return "disk wait";
	case STEP_STOPPED:
		return "stopped";
	case STEP_OFF_CPU:
		return traced ? "off cpu" : "asleep";
	case STEP_AWAIT:
		return "await";
	default:
		return category_name((enum fbt_category)(part - STEP_CALLS));
	}
}

const char *report_part_words(const struct tally_kind *kind, enum step_part part)
{
	bool traced = tally_calls_known(kind);

	switch (part) {
	case STEP_OWN:
		return kind->parts_known && !traced ? "on a CPU" : report_part(kind, part);
	case STEP_CPU_WAIT:
		return "waiting for a CPU";
	case STEP_FAULTS:
		return "in page faults";
	case STEP_DISK_WAIT:
		return "waiting for pages from a disk";
	case STEP_OFF_CPU:
		return traced ? "off the CPU" : "asleep";
	case STEP_AWAIT:
		return "in await";
	default:
		return report_part(kind, part);
	}
}

static int compare_parts(const void *left, const void *right, void *ctx)
{
	const uint64_t *ns = ctx;
	int a = *(const int *)left, b = *(const int *)right;

	if (ns[a] != ns[b])
		return ns[a] < ns[b] ? 1 : -1;
	return a - b;
}

/* All parts but own code, most time first. */
static void sort_parts(const struct tally_kind *kind, int order[STEP_PARTS - 1])
{
	for (int i = 0; i < STEP_PARTS - 1; i++)
		order[i] = i + 1;
	qsort_r(order, STEP_PARTS - 1, sizeof(*order), compare_parts, (void *)kind->parts_ns);
}

void report_shares(const struct tally_kind *kind, char *to, size_t size)
{
	double total = (double)kind->total_ns;
	struct line line = {to, size, 0};
	int order[STEP_PARTS - 1];
	double percent;

	if (!kind->total_ns) {
		snprintf(to, size, "no thread returned from its system call");
		return;
	}
	if (!tally_calls_known(kind))
		line_add(&line, "system calls not traced%s", kind->parts_known ? ", " : "");
	if (tally_calls_known(kind) || kind->parts_known)
		line_add(&line, "%.0f %% %s", percent_of((double)kind->parts_ns[STEP_OWN], total),
			 report_part_words(kind, STEP_OWN));
	percent = percent_of((double)kind->unmeasured_ns, total);
	if (percent >= 1.0)
		line_add(&line, ", %.0f %% unmeasured", percent);
	sort_parts(kind, order);
	for (int i = 0; i < 2; i++) {
		percent = percent_of((double)kind->parts_ns[order[i]], total);
		if (percent >= 1.0)
			line_add(&line, ", %.0f %% %s", percent,
				 report_part_words(kind, (enum step_part)order[i]));
	}
}

/* An interval step knows its longest call only if that was the longest so far. */
static const char *format_max(char buffer[FORMAT_MAX], const struct fbt_sum *sum)
{
	if (sum->ns && !sum->max_ns)
		return "-";
	return format_time(buffer, (double)sum->max_ns);
}

/* A row of the table; sum is NULL if it is about no calls. */
static void write_row(const struct report *report, const struct tally_kind *kind, const char *name,
		      uint64_t ns, const struct fbt_sum *sum)
{
	char each[FORMAT_MAX], max[FORMAT_MAX];
	const char *longest;
	double steps = (double)kind->steps;
	/* "unmeasured" reaches into the next column, which is never full. */
	int width = strlen(name) > 9 ? 18 - (int)strlen(name) : 9;

	fprintf(report->out, "  %-9s %*s %8s %9s", name, width, FORMAT_TIME((double)ns / steps),
		FORMAT_PERCENT(percent_of((double)ns, (double)kind->total_ns)), FORMAT_TIME(ns));
	if (!tally_calls_known(kind)) {
		fputc('\n', report->out);
		return;
	}
	if (!sum) {
		fprintf(report->out, " %9s %10s %9s %8s\n", "-", "-", "-", "-");
		return;
	}
	if (sum->calls / kind->steps < 1000)
		format_number(each, (double)sum->calls / steps);
	else
		format_count(each, sum->calls / kind->steps);
	longest = format_max(max, sum);
	fprintf(report->out, " %9s %10s %9s %8s\n", FORMAT_COUNT(sum->calls), each, longest,
		FORMAT_COUNT(sum->errors));
}

static void write_heading(const struct report *report, const struct tally_kind *kind, bool steps)
{
	const char *each = steps ? "per step" : "each";

	if (tally_calls_known(kind))
		report_line(report, STYLE_DIM, "  %-9s %9s %8s %9s %9s %10s %9s %8s", "time in",
			    each, "share", "total", "calls", steps ? "calls/step" : "calls each",
			    "max call", "errors");
	else
		report_line(report, STYLE_DIM, "  %-9s %9s %8s %9s", "time in", each, "share",
			    "total");
}

/* What CPython did in the part of the row above. */
static void write_stalls(const struct report *report, const struct tally_kind *kind,
			 enum step_part part)
{
	const struct tally_stalls *stalls = &kind->stalls;
	struct fbt_sum collections = {.calls = stalls->gc_count, .max_ns = stalls->gc_longest_ns};

	if (part == STEP_OWN && (stalls->gc_ns || stalls->gc_count))
		write_row(report, kind, "of it GC", stalls->gc_ns, &collections);
	if (part == STEP_CALLS + FBT_FUTEX && stalls->gil_ns)
		write_row(report, kind, "of it GIL", stalls->gil_ns, NULL);
}

/* All categories of calls together. */
static void write_all_calls(const struct report *report, const struct tally_kind *kind)
{
	struct fbt_sum all = {.calls = tally_calls(kind)};

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		all.ns = add_saturating(all.ns, kind->parts_ns[STEP_CALLS + i]);
		all.errors += kind->sums[i].errors;
		all.max_ns = max_u64(all.max_ns, kind->sums[i].max_ns);
	}
	write_row(report, kind, "all calls", all.ns, &all);
}

void report_times(const struct report *report, int index)
{
	const struct tally_kind *kind = report->tally->kinds[index];
	bool traced = tally_calls_known(kind);
	int order[STEP_PARTS - 1];

	write_heading(report, kind, index);
	write_row(report, kind, report_part(kind, STEP_OWN), kind->parts_ns[STEP_OWN], NULL);
	write_stalls(report, kind, STEP_OWN);
	if (kind->unmeasured_ns)
		write_row(report, kind, "unmeasured", kind->unmeasured_ns, NULL);
	sort_parts(kind, order);
	for (int i = 0; i < STEP_PARTS - 1; i++) {
		enum step_part part = (enum step_part)order[i];
		const struct fbt_sum *sum = is_call(part) ? &kind->sums[part - STEP_CALLS] : NULL;

		if (kind->parts_ns[part] || (sum && sum->calls))
			write_row(report, kind, report_part(kind, part), kind->parts_ns[part], sum);
		write_stalls(report, kind, part);
	}
	if (traced)
		write_all_calls(report, kind);
	write_row(report, kind, index ? "step" : "interval", kind->total_ns, NULL);
}

/* "the slowest 1 % (21 steps) took 131 ms longer than median ones: futex +71.3 ms, own code …" */
static void describe_tail(const struct tally_kind *kind, const struct tail_group *slowest,
			  const struct tail_group *median, struct line *line)
{
	double extra_ns = slowest->total_ns - median->total_ns;
	struct tail_group left = *slowest;

	line_add(line, "the slowest 1 %% (%s step%s) took %s longer than median ones:",
		 FORMAT_COUNT(slowest->steps), plural(slowest->steps), FORMAT_TIME(extra_ns));
	for (int named = 0; named < TAIL_PARTS; named++) {
		double most_ns = extra_ns * TAIL_PERCENT / 100;
		int most = -1;

		for (int i = 0; i < STEP_PARTS; i++) {
			if (left.parts_ns[i] - median->parts_ns[i] > most_ns) {
				most_ns = left.parts_ns[i] - median->parts_ns[i];
				most = i;
			}
		}
		if (most < 0)
			break;
		line_add(line, "%s %s +%s", named ? "," : "",
			 report_part_words(kind, (enum step_part)most), FORMAT_TIME(most_ns));
		left.parts_ns[most] = median->parts_ns[most];
	}
}

/* Both columns, and their difference. */
static void write_tail_table(const struct report *report, const struct tally_kind *kind,
			     const struct tail_group *slowest, const struct tail_group *median)
{
	report_line(report, STYLE_DIM, "  %-13s %11s %11s %11s", "slow steps", "slowest 1 %",
		    "median", "longer by");
	for (int i = 0; i < STEP_PARTS; i++) {
		double more_ns = slowest->parts_ns[i] - median->parts_ns[i];

		if (slowest->parts_ns[i] <= 0 && median->parts_ns[i] <= 0)
			continue;
		fprintf(report->out, "  %-13s %11s %11s %s%*s\n",
			report_part(kind, (enum step_part)i), FORMAT_TIME(slowest->parts_ns[i]),
			FORMAT_TIME(median->parts_ns[i]), more_ns < 0 ? "-" : " ", 10,
			FORMAT_TIME(more_ns < 0 ? -more_ns : more_ns));
	}
	fprintf(report->out, "  %-13s %11s %11s %11s\n", "step", FORMAT_TIME(slowest->total_ns),
		FORMAT_TIME(median->total_ns), FORMAT_TIME(slowest->total_ns - median->total_ns));
}

void report_class_span(const struct step_class *class, uint64_t *from, uint64_t *to)
{
	*from = class->bits ? UINT64_C(1) << (class->bits - 1) : 0;
	*to = class->bits ? *from - 1 + *from : 0;
}

/* argument: the one by which steps of the kind have their classes, or NULL. */
static void describe_class(const struct step_class *class, const char *argument, struct line *line)
{
	uint64_t from, to;
	char name[64];

	report_class_span(class, &from, &to);
	if (class->by_argument && argument) {
		shorten_text(name, sizeof(name), argument, 16);
		line_add(line, "of steps with %s %s to %s: ", name, FORMAT_COUNT(from),
			 FORMAT_COUNT(to));
	} else {
		line_add(line, "of steps with %s to %s of work: ", FORMAT_TIME(from),
			 FORMAT_TIME(to));
	}
}

static int compare_classes(const void *left, const void *right)
{
	const struct tally_class *a = *(const struct tally_class *const *)left;
	const struct tally_class *b = *(const struct tally_class *const *)right;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	return a < b ? -1 : a > b;
}

/*
 * The tails of single classes: where steps differ in work, the slowest of all may just be those
 * with the most work. label is that of the first line.
 */
static void write_class_tails(const struct report *report, int index, const char *label)
{
	const char *argument =
		classifier__class_by(report->classifier, report->window, (uint32_t)index);
	const struct tally_kind *kind = report->tally->kinds[index];
	const struct tally_class *order[TALLY_CLASSES];
	struct tail_group slowest, median;
	size_t count = 0;
	int shown = 0;

	vec_for_each (class, &kind->classes)
		order[count++] = class;
	qsort(order, count, sizeof(order[0]), compare_classes);
	for (size_t i = 0; count > 1 && i < count && shown < CLASSES_SHOWN; i++) {
		char text[320] = "";
		struct line line = {text, sizeof(text), 0};

		if (!tail__find(order[i]->tail, &slowest, &median))
			continue;
		describe_class(&order[i]->class, argument, &line);
		describe_tail(kind, &slowest, &median, &line);
		report_field(report, shown++ ? "" : label, "%s", text);
	}
}

void report_tail(const struct report *report, int index)
{
	const struct tally_kind *kind = report->tally->kinds[index];
	struct tail_group slowest, median;
	const char *label = "  slow steps";
	char text[256] = "";
	struct line line = {text, sizeof(text), 0};

	if (tail__find(kind->tail, &slowest, &median)) {
		if (report->verbose)
			write_tail_table(report, kind, &slowest, &median);
		describe_tail(kind, &slowest, &median, &line);
		report_field(report, report->verbose ? "" : label, "%s", text);
		label = "";
	}
	write_class_tails(report, index, label);
}
