/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Where the time of steps went: in the headline, in the table of a kind, and of the slowest ones.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/format.h"
#include "model/syscalls.h"
#include "report/part.h"
#include "report/tail.h"

/* Share of the step time above which a part that is neither code nor calls is a finding. */
#define FINDING_PERCENT 10
/* Parts of the extra time of the slowest steps that are named, and their least share of it. */
#define TAIL_PARTS   3
#define TAIL_PERCENT 5

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

/* As words of a sentence. */
static const char *part_words(const struct tally_kind *kind, enum step_part part)
{
	bool traced = tally_calls_known(kind);

	switch (part) {
	case STEP_OWN:
		return kind->parts_known && !traced ? "on a CPU" : report_part(kind, part);
	case STEP_CPU_WAIT:
		return "waiting for a CPU";
	case STEP_FAULTS:
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
			 part_words(kind, STEP_OWN));
	sort_parts(kind, order);
	for (int i = 0; i < 2; i++) {
		percent = percent_of((double)kind->parts_ns[order[i]], total);
		if (percent >= 1.0)
			line_add(&line, ", %.0f %% %s", percent,
				 part_words(kind, (enum step_part)order[i]));
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

	fprintf(report->out, "  %-9s %9s %8s %9s", name, FORMAT_TIME((double)ns / steps),
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

static void write_heading(const struct report *report, const struct tally_kind *kind)
{
	if (tally_calls_known(kind))
		report_line(report, STYLE_DIM, "  %-9s %9s %8s %9s %9s %10s %9s %8s", "time in",
			    "per step", "share", "total", "calls", "calls/step", "max call",
			    "errors");
	else
		report_line(report, STYLE_DIM, "  %-9s %9s %8s %9s", "time in", "per step", "share",
			    "total");
}

/* Calls together; less than the sum of its rows only if the time does not suffice for them. */
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

	write_heading(report, kind);
	write_row(report, kind, report_part(kind, STEP_OWN), kind->parts_ns[STEP_OWN], NULL);
	sort_parts(kind, order);
	for (int i = 0; i < STEP_PARTS - 1; i++) {
		enum step_part part = (enum step_part)order[i];
		const struct fbt_sum *sum = is_call(part) ? &kind->sums[part - STEP_CALLS] : NULL;

		if (kind->parts_ns[part] || (sum && sum->calls))
			write_row(report, kind, report_part(kind, part), kind->parts_ns[part], sum);
	}
	if (traced)
		write_all_calls(report, kind);
	write_row(report, kind, index ? "step" : "interval", kind->total_ns, NULL);
}

void report_tail(const struct report *report, const struct tally_kind *kind)
{
	struct tail_group slowest, median;
	double extra_ns;
	char text[256] = "";
	struct line line = {text, sizeof(text), 0};

	if (!tail__find(kind->tail, &slowest, &median))
		return;
	extra_ns = slowest.total_ns - median.total_ns;
	for (int named = 0; named < TAIL_PARTS; named++) {
		double most_ns = extra_ns * TAIL_PERCENT / 100;
		int most = -1;

		for (int i = 0; i < STEP_PARTS; i++) {
			if (slowest.parts_ns[i] - median.parts_ns[i] > most_ns) {
				most_ns = slowest.parts_ns[i] - median.parts_ns[i];
				most = i;
			}
		}
		if (most < 0)
			break;
		line_add(&line, "%s %s +%s", named ? "," : "",
			 part_words(kind, (enum step_part)most), FORMAT_TIME(most_ns));
		slowest.parts_ns[most] = median.parts_ns[most];
	}
	report_field(report, "  slow steps",
		     "the slowest %s (%s) take %s longer than median ones:%s",
		     FORMAT_PERCENT(percent_of((double)slowest.steps, (double)kind->steps)),
		     FORMAT_COUNT(slowest.steps), FORMAT_TIME(extra_ns), text);
}

/* Time that went where none should, of one step function. */
struct finding {
	int kind;
	enum step_part part;
	uint64_t ns;
};

static int compare_findings(const void *left, const void *right)
{
	const struct finding *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return a->kind != b->kind ? a->kind - b->kind : (int)a->part - (int)b->part;
}

static const char *find_advice(enum step_part part)
{
	switch (part) {
	case STEP_FAULTS:
		return cause_advice(CAUSE_PAGE_FAULTS);
	case STEP_STOPPED:
		return cause_advice(CAUSE_STOPPED);
	case STEP_OFF_CPU:
		return cause_advice(CAUSE_OFF_CPU);
	default:
		return cause_advice(CAUSE_RUN_QUEUE);
	}
}

static void write_finding(const struct report *report, const struct finding *finding)
{
	const struct tally_kind *kind = report->tally->kinds[finding->kind];
	char name[64];

	shorten_name(name, sizeof(name), window__kind_name(report->window, (uint32_t)finding->kind),
		     32);
	report_line(report, STYLE_WARN, "! %.0f %% of the time of %s (%s) was spent %s: %s",
		    percent_of((double)finding->ns, (double)kind->total_ns), name,
		    FORMAT_TIME(finding->ns), part_words(kind, finding->part),
		    find_advice(finding->part));
}

void report_findings(const struct report *report)
{
	static const enum step_part parts[] = {STEP_CPU_WAIT, STEP_FAULTS, STEP_STOPPED,
					       STEP_OFF_CPU};
	struct finding findings[FBT_KIND_COUNT * sizeof(parts) / sizeof(parts[0])];
	size_t count = 0;

	for (int index = 1; index < FBT_KIND_COUNT; index++) {
		const struct tally_kind *kind = report->tally->kinds[index];

		for (size_t i = 0; kind && i < sizeof(parts) / sizeof(parts[0]); i++) {
			uint64_t ns = kind->parts_ns[parts[i]];

			/* A step may well sleep in its calls. */
			if (parts[i] == STEP_OFF_CPU && !tally_calls_known(kind))
				continue;

			if (percent_of((double)ns, (double)kind->total_ns) >= FINDING_PERCENT)
				findings[count++] = (struct finding){index, parts[i], ns};
		}
	}
	qsort(findings, count, sizeof(*findings), compare_findings);
	for (size_t i = 0; i < count; i++)
		write_finding(report, &findings[i]);
}
