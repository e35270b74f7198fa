/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <string.h>

#include "report_format.h"
#include "report_part.h"
#include "syscalls.h"

/* "83 % compute, 11 % futex": compute and the two categories that matter most. */
static void format_shares(const struct tally_kind *kind, char *to, size_t size)
{
	enum fbt_category order[FBT_CATEGORY_COUNT];
	double total = (double)kind->total_ns;
	size_t used;

	if (!kind->total_ns) {
		snprintf(to, size, "no thread left the call it was in");
		return;
	}
	used = (size_t)snprintf(to, size, "%.0f %% compute",
				percent_of((double)kind->compute_ns, total));
	tally_sort_categories(kind, order);
	for (int i = 0; i < 2; i++) {
		double percent = percent_of((double)kind->sums[order[i]].ns, total);

		if (percent >= 1.0)
			used += (size_t)snprintf(to + used, size - used, ", %.0f %% %s", percent,
						 category_name(order[i]));
	}
}

static void format_durations(const struct tally_kind *kind, char *to, size_t size)
{
	char p50[FORMAT_MAX], p99[FORMAT_MAX], max[FORMAT_MAX];
	uint64_t p99_ns = stats__percentile(kind->duration, 0.99);
	uint64_t max_ns = stats__max(kind->duration);

	if (!stats__count(kind->duration)) {
		format_time(max, (double)kind->slowest[0].total_ns);
		snprintf(to, size, "none returned, longest %s so far", max);
		return;
	}
	format_time(p50, (double)stats__percentile(kind->duration, 0.5));
	format_time(p99, (double)p99_ns);
	format_time(max, (double)max_ns);
	if (max_ns / 3 * 2 > p99_ns)
		snprintf(to, size, "p50 %s, p99 %s, max %s", p50, p99, max);
	else
		snprintf(to, size, "p50 %s, p99 %s", p50, p99);
}

static void write_steps(const struct report *report, int index)
{
	const struct tally_kind *kind = report->tally->kinds[index];
	char count[FORMAT_MAX], length[FORMAT_MAX], window[FORMAT_MAX], name[64];
	char durations[4 * FORMAT_MAX], shares[128], first[256];

	format_count(count, kind->steps);
	format_time(window, (double)tally_window_ns(report->window));
	format_shares(kind, shares, sizeof(shares));
	if (index) {
		shorten_name(name, sizeof(name), window__kind_name(report->window, (uint32_t)index),
			     32);
		format_durations(kind, durations, sizeof(durations));
		snprintf(first, sizeof(first), "%s %s of %s in %s: %s;", count,
			 kind->steps == 1 ? "step" : "steps", name, window, durations);
	} else {
		format_time(length, (double)report->window->record.interval_ns);
		snprintf(first, sizeof(first), "%s %s of %s in %s, no step function;", count,
			 kind->steps == 1 ? "interval" : "intervals", length, window);
	}
	fprintf(report->out, "%s%c%s", first,
		strlen(first) + 1 + strlen(shares) > report->width ? '\n' : ' ', shares);
}

void report_headline(const struct report *report)
{
	int kind = tally_main_kind(report->tally);
	char window[FORMAT_MAX];

	if (report->color)
		fputs("\033[1m", report->out);
	if (kind >= 0) {
		write_steps(report, kind);
	} else {
		format_time(window, (double)tally_window_ns(report->window));
		fprintf(report->out, "No step was seen in %s", window);
	}
	fputs(report->color ? "\033[0m\n" : "\n", report->out);
}

static void warn_of_steps(const struct report *report)
{
	const struct window *window = report->window;
	uint64_t open = tally_open_steps(report->tally);
	char count[FORMAT_MAX], of[FORMAT_MAX];

	if (window->incomplete_steps <= open)
		return;
	format_count(count, window->incomplete_steps - open);
	format_count(of, window->steps);
	report_line(report, STYLE_WARN,
		    "! %s of %s steps are incomplete: records of theirs were lost, or their thread "
		    "ended",
		    count, of);
}

static void warn_of_lost(const struct report *report)
{
	static const char *const meaning[FBT_LOST_COUNT] = {
		[FBT_LOST_CALLS] = "calls: missing in the trace, still counted here",
		[FBT_LOST_STEPS] = "steps: missing in all that is said of steps",
		[FBT_LOST_THREADS] = "threads: not followed, their calls are not counted",
		[FBT_LOST_BEGINS] = "step begins: on threads that are not followed",
		[FBT_LOST_NAMES] = "processes: not followed, nothing of theirs is counted",
		[FBT_LOST_FILES] = "names of files: their calls are counted",
	};
	const struct window *window = report->window;
	char count[FORMAT_MAX];

	for (int i = 0; i < FBT_LOST_COUNT; i++) {
		if (!window->lost.count[i])
			continue;
		format_count(count, window->lost.count[i]);
		report_line(report, STYLE_WARN, "! lost %s %s", count, meaning[i]);
	}
	if (window->skipped_records) {
		format_count(count, window->skipped_records);
		report_line(report, STYLE_WARN, "! %s records were damaged or unknown, and skipped",
			    count);
	}
}

static void warn_of_sampling(const struct report *report)
{
	const struct window *window = report->window;
	char name[64], percent[FORMAT_MAX], rate[FORMAT_MAX];

	for (uint32_t i = 1; i < FBT_KIND_COUNT; i++) {
		if (!window->sampling[i].kind)
			continue;
		shorten_name(name, sizeof(name), window__kind_name(window, i), 32);
		format_percent(percent, tally_sampled_percent(window, i));
		format_count(rate, tally_sampled_calls_per_s(window, i));
		report_line(report, STYLE_WARN,
			    "! %s is called %s times a second and more: its steps are a sample, of "
			    "%s of the time",
			    name, rate, percent);
		report_line(report, STYLE_WARN,
			    "  It is hardly a step: --list-steps -p PID shows candidates, --step "
			    "SPEC names one");
	}
}

static void warn_of_processes(const struct report *report)
{
	uint64_t left_out = report->window->processes_left_out;
	char count[FORMAT_MAX], kept[FORMAT_MAX];

	if (!left_out)
		return;
	format_count(count, left_out);
	format_count(kept, WINDOW_PROCESSES_MAX);
	report_line(report, STYLE_WARN,
		    left_out == 1
			    ? "! %s process beyond the first %s: its steps are in the outputs, its "
			      "syscall table is not"
			    : "! %s processes beyond the first %s: their steps are in the outputs, "
			      "their syscall tables are not",
		    count, kept);
}

void report_warnings(const struct report *report)
{
	char end[FORMAT_MAX];

	if (report->window->cut_off) {
		format_time(end, (double)tally_window_ns(report->window));
		report_line(
			report, STYLE_WARN,
			"! The stream was cut off: nothing is known after %s, and totals of the",
			end);
		report_line(report, STYLE_WARN,
			    "  process, lost records and cost may be missing or too small");
	}
	warn_of_lost(report);
	warn_of_processes(report);
	warn_of_sampling(report);
	warn_of_steps(report);
	if (tally_main_kind(report->tally) < 0) {
		report_line(report, STYLE_WARN,
			    "! The step function was not called, or it is not the right one:");
		report_line(report, STYLE_WARN,
			    "  --list-steps -p PID shows candidates, --step SPEC names one");
	}
}
