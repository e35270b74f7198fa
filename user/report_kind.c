/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "report_format.h"
#include "report_part.h"
#include "syscalls.h"

static void write_durations(const struct report *report, const struct tally_kind *kind)
{
	const struct stats *duration = kind->duration;
	const double points[] = {0.5, 0.95, 0.99, 1};
	char cell[FORMAT_MAX];

	report_line(report, STYLE_DIM, "  %10s %9s %9s %9s %9s %9s %9s", "steps", "p50", "p95",
		    "p99", "max", "mean", "CV");
	fprintf(report->out, "  %10s", format_count(cell, kind->steps));
	for (int i = 0; i < 4; i++)
		fprintf(report->out, " %9s",
			format_time(cell, (double)stats__percentile(duration, points[i])));
	fprintf(report->out, " %9s", format_time(cell, stats__mean(duration)));
	fprintf(report->out, " %9s\n", format_percent(cell, stats__cv_percent(duration)));
}

/* Interval steps know of a longest call only if it was the longest so far. */
static const char *format_max(char buffer[FORMAT_MAX], const struct fbt_sum *sum)
{
	if (sum->ns && !sum->max_ns)
		return "-";
	return format_time(buffer, (double)sum->max_ns);
}

/* One row of "where the time went"; sum is NULL for compute. */
static void write_row(const struct report *report, const struct tally_kind *kind, const char *name,
		      uint64_t ns, const struct fbt_sum *sum)
{
	char mean[FORMAT_MAX], share[FORMAT_MAX], total[FORMAT_MAX], calls[FORMAT_MAX];
	char each[FORMAT_MAX], max[FORMAT_MAX], errors[FORMAT_MAX];
	const char *longest;
	double steps = (double)kind->steps;

	format_time(mean, (double)ns / steps);
	format_percent(share, percent_of((double)ns, (double)kind->total_ns));
	format_time(total, (double)ns);
	fprintf(report->out, "  %-9s %9s %8s %9s", name, mean, share, total);
	if (!sum) {
		fprintf(report->out, " %9s %10s %9s %8s\n", "-", "-", "-", "-");
		return;
	}
	format_count(calls, sum->calls);
	if (sum->calls / kind->steps < 1000)
		format_number(each, (double)sum->calls / steps);
	else
		format_count(each, sum->calls / kind->steps);
	longest = format_max(max, sum);
	format_count(errors, sum->errors);
	fprintf(report->out, " %9s %10s %9s %8s\n", calls, each, longest, errors);
}

static void write_categories(const struct report *report, const struct tally_kind *kind, int index)
{
	enum fbt_category order[FBT_CATEGORY_COUNT];
	struct fbt_sum all = {.ns = tally_syscall_ns(kind), .calls = tally_calls(kind)};

	tally_sort_categories(kind, order);
	report_line(report, STYLE_DIM, "  %-9s %9s %8s %9s %9s %10s %9s %8s", "time in", "per step",
		    "share", "total", "calls", "calls/step", "max call", "errors");
	write_row(report, kind, "compute", kind->compute_ns, NULL);
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		const struct fbt_sum *sum = &kind->sums[order[i]];

		all.errors += sum->errors;
		if (sum->max_ns > all.max_ns)
			all.max_ns = sum->max_ns;
		write_row(report, kind, category_name(order[i]), sum->ns, sum);
	}
	write_row(report, kind, "all calls", all.ns, &all);
	write_row(report, kind, index ? "step" : "interval", kind->total_ns, NULL);
}

static void write_gap(const struct report *report, const struct tally_kind *kind)
{
	const struct stats *gap = kind->gap;
	uint64_t count = stats__count(gap);
	char mean[FORMAT_MAX], p99[FORMAT_MAX], max[FORMAT_MAX], calls[FORMAT_MAX];
	char share[FORMAT_MAX];

	if (!count) {
		report_field(report, "  gap before", "not known: no thread ran two steps");
		return;
	}
	format_time(mean, stats__mean(gap));
	format_time(p99, (double)stats__percentile(gap, 0.99));
	format_time(max, (double)stats__max(gap));
	format_time(calls, (double)kind->gap_syscall_ns / (double)count);
	format_percent(share, percent_of((double)kind->gap_syscall_ns, (double)stats__sum(gap)));
	report_field(report, "  gap before", "mean %s, p99 %s, max %s; %s of it in syscalls (%s)",
		     mean, p99, max, calls, share);
}

static void write_others(const struct report *report, const struct tally_kind *kind)
{
	char mean[FORMAT_MAX];

	if (!kind->other_steps) {
		report_field(report, "  other threads", "not measured");
		return;
	}
	format_time(mean, (double)kind->other_ns / (double)kind->other_steps);
	if (kind->threads_max)
		report_field(
			report, "  other threads",
			"%s of syscalls per step, all together (waits included); at most %" PRIu32
			" threads",
			mean, kind->threads_max);
	else
		report_field(report, "  other threads",
			     "%s of syscalls per step, all together (waits included)", mean);
}

static void write_args(const struct report *report, const struct tally_kind *kind, int index)
{
	const struct kind *known = &report->window->kinds[index];
	char count[FORMAT_MAX], mean[FORMAT_MAX], name[64], label[72];

	for (uint32_t i = 0; i < FBT_ARG_COUNT && i < known->record.arg_count; i++) {
		const struct tally_arg *arg = &kind->args[i];

		shorten_text(name, sizeof(name), known->arg_names[i] ? known->arg_names[i] : "?",
			     LABEL_WIDTH - 3);
		snprintf(label, sizeof(label), "  %s", name);
		if (!arg->count) {
			report_field(report, label, "could not be read in any step");
			continue;
		}
		format_number(mean, (double)(arg->sum / (long double)arg->count));
		format_count(count, kind->steps - arg->count);
		if (arg->count < kind->steps)
			report_field(report, label,
				     "min %" PRId64 ", mean %s, max %" PRId64
				     "; not read in %s steps",
				     arg->min, mean, arg->max, count);
		else
			report_field(report, label, "min %" PRId64 ", mean %s, max %" PRId64,
				     arg->min, mean, arg->max);
	}
}

static void write_ends(const struct report *report, const struct tally_kind *kind)
{
	char unwound[FORMAT_MAX], open[FORMAT_MAX], exited[FORMAT_MAX], returned[FORMAT_MAX];
	uint64_t others = kind->steps - kind->ends[FBT_END_RETURN];

	if (!others)
		return;
	format_count(returned, kind->ends[FBT_END_RETURN]);
	format_count(unwound, kind->ends[FBT_END_UNWOUND]);
	format_count(open, kind->ends[FBT_END_TRUNCATED]);
	format_count(exited, kind->ends[FBT_END_EXITED]);
	report_field(report, "  ended by",
		     "return %s; exception or longjmp %s, thread exit %s, end of window %s: those "
		     "are left out of the percentiles, mean and CV",
		     returned, unwound, exited, open);
}

static void write_sampling(const struct report *report, uint32_t index)
{
	const struct fbt_sampling *sampling = &report->window->sampling[index];
	char on[FORMAT_MAX], all[FORMAT_MAX], percent[FORMAT_MAX], calls[FORMAT_MAX];
	char cut[FORMAT_MAX], rate[FORMAT_MAX];

	if (!sampling->kind)
		return;
	format_time(on, (double)sampling->watched_ns);
	format_time(all, (double)sampling->watched_ns + (double)sampling->off_ns);
	format_percent(percent, tally_sampled_percent(report->window, index));
	format_count(calls, sampling->calls);
	format_count(rate, tally_sampled_calls_per_s(report->window, index));
	format_count(cut, sampling->cut_steps);
	report_field(report, "  sampled",
		     "its probes were on for %s of %s (%s): %s calls of it in that time, %s a "
		     "second; steps cut by the switch: %s",
		     on, all, percent, calls, rate, cut);
	report_field(
		report, "",
		"what a step took holds for those that were seen, probes included; numbers, sums "
		"and gaps are not those of all calls of it. The table of syscalls has all");
}

static void write_incomplete(const struct report *report, const struct tally_kind *kind)
{
	const char *noun = kind->incomplete == 1 ? "step" : "steps";
	char count[FORMAT_MAX], calls[FORMAT_MAX];

	format_count(count, kind->incomplete);
	format_count(calls, kind->lost_calls);
	if (kind->lost_calls)
		report_field(report, "  incomplete", "%s %s; %s call records of steps lost", count,
			     noun, calls);
	else if (kind->incomplete)
		report_field(report, "  incomplete", "%s %s", count, noun);
}

/* Why the length of a step is not to be trusted, or "". */
static const char *find_doubt(const struct tally_step *step)
{
	switch (step->end) {
	case FBT_END_UNWOUND:
		return "* unwound, end is late";
	case FBT_END_TRUNCATED:
		return "* still open";
	case FBT_END_EXITED:
		return "* thread exited";
	case FBT_END_RETURN:
		break;
	}
	return step->complete ? "" : "* incomplete";
}

static void write_slowest(const struct report *report, const struct tally_kind *kind)
{
	report_line(report, STYLE_DIM, "  %-10s %9s %9s %9s  %-17s %9s %8s", "slowest", "at",
		    "took", "compute", "most of the rest", "max call", "thread");
	for (int i = 0; i < TALLY_SLOWEST && kind->slowest[i].number; i++) {
		const struct tally_step *step = &kind->slowest[i];
		char number[FORMAT_MAX + 1], at[FORMAT_MAX], took[FORMAT_MAX], compute[FORMAT_MAX];
		char time[FORMAT_MAX], rest[2 * FORMAT_MAX] = "-", max[FORMAT_MAX] = "-";

		snprintf(number, sizeof(number), "#%" PRIu64, step->number);
		format_time(at, (double)step->start_ns);
		format_time(took, (double)step->total_ns);
		format_time(compute, (double)step->compute_ns);
		if (step->sum.ns) {
			snprintf(rest, sizeof(rest), "%-7s %9s", category_name(step->dominant),
				 format_time(time, (double)step->sum.ns));
			format_max(max, &step->sum);
		}
		fprintf(report->out, "  %-10s %9s %9s %9s  %-17s %9s %8" PRIu32 "%s%s\n", number,
			at, took, compute, rest, max, step->tid, *find_doubt(step) ? "  " : "",
			find_doubt(step));
	}
}

void report_kind(const struct report *report, int index)
{
	const struct tally_kind *kind = report->tally->kinds[index];
	char name[128];

	shorten_name(name, sizeof(name), window__kind_name(report->window, (uint32_t)index), 80);
	fputc('\n', report->out);
	report_line(report, STYLE_BOLD, "%s%s", name, index ? "" : ", time of all threads");
	if (stats__count(kind->duration))
		write_durations(report, kind);
	write_categories(report, kind, index);
	write_slowest(report, kind);
	if (index) {
		write_gap(report, kind);
		write_others(report, kind);
		write_args(report, kind, index);
		write_ends(report, kind);
		write_sampling(report, (uint32_t)index);
	}
	write_incomplete(report, kind);
	report_gpu_kind(report, index);
}
