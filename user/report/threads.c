/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the threads of a process used. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/format.h"
#include "report/part.h"

#define ROWS_MAX 16

/* Shares, of the window and of the time that threads were ready to run, that are a finding. */
#define FINDING_PERCENT 10

static const char *find_name(const struct report *report, const struct fbt_thread_use *use)
{
	const char *known = window__thread_name(report->window, use->tid);

	if (*use->comm)
		return use->comm;
	return known && *known ? known : "?";
}

static void write_row(const struct report *report, const char *name, const char *tid,
		      const struct fbt_thread_use *use)
{
	bool known = use->header.flags & FBT_USE_CPU_KNOWN;

	fprintf(report->out, "  %-18s %10s %9s %9s", name, tid,
		known ? FORMAT_TIME(use->cpu_ns) : "-", known ? FORMAT_TIME(use->delay_ns) : "-");
	if (window__traces_calls(report->window))
		fprintf(report->out, " %9s %9s", FORMAT_COUNT(use->calls),
			FORMAT_TIME(use->call_ns));
	if (use->header.flags & FBT_USE_STEPS)
		fputs("  steps", report->out);
	if (use->header.flags & FBT_USE_ENDED)
		fputs("  ended", report->out);
	fputc('\n', report->out);
}

static bool is_idle(const struct fbt_thread_use *use)
{
	return !use->calls && !use->cpu_ns && !use->delay_ns;
}

static void write_rows(const struct report *report, const struct thread_table *table,
		       const struct fbt_thread_use *sorted)
{
	struct thread_table rest = {.overflow_count = table->overflow_count, .rest = table->rest};
	char name[64], tid[16];
	size_t shown = 0;

	for (size_t i = 0; i < table->threads.count; i++) {
		if (is_idle(&sorted[i]))
			continue;
		if (shown++ >= ROWS_MAX) {
			thread_table_leave_out(&rest, &sorted[i]);
			continue;
		}
		shorten_text(name, sizeof(name), find_name(report, &sorted[i]), 15);
		snprintf(tid, sizeof(tid), "%" PRIu32, sorted[i].tid);
		write_row(report, name, tid, &sorted[i]);
	}
	if (!rest.overflow_count)
		return;
	snprintf(name, sizeof(name), "%s more", FORMAT_COUNT(rest.overflow_count));
	write_row(report, name, "", &rest.rest);
}

void report_threads(const struct report *report, const struct process *process)
{
	const struct thread_table *table = &process->threads;
	size_t bytes = table->threads.count * sizeof(*table->threads.items);
	struct fbt_thread_use *sorted = bytes ? malloc(bytes) : NULL;
	char comm[32];

	if (!sorted)
		return;
	memcpy(sorted, table->threads.items, bytes);
	qsort(sorted, table->threads.count, sizeof(*sorted), thread_use_compare);
	shorten_text(comm, sizeof(comm), *process->comm ? process->comm : "?", 15);
	fputc('\n', report->out);
	report_line(report, STYLE_BOLD, "Threads of process %" PRIu32 " %s, in steps or not",
		    process->record.tgid, comm);
	report_line(report, STYLE_DIM,
		    window__traces_calls(report->window) ? "  %-18s %10s %9s %9s %9s %9s"
							 : "  %-18s %10s %9s %9s",
		    "thread", "tid", "CPU", "CPU wait", "calls", "in calls");
	write_rows(report, table, sorted);
	free(sorted);
}

/*
 * A step whose workers have no CPU waits for them, perhaps in a loop: then that is its own code.
 * Only of the threads that run no steps: those of the others are a part of their steps.
 */
static void find_starved(const struct report *report, const struct process *process)
{
	const struct thread_table *table = &process->threads;
	uint64_t cpu_ns = table->rest.cpu_ns, delay_ns = table->rest.delay_ns, most_ns = 0;
	const struct fbt_thread_use *worst = NULL;
	double percent;
	char name[64];

	vec_for_each (use, &table->threads) {
		if (use->header.flags & FBT_USE_STEPS)
			continue;
		cpu_ns = add_saturating(cpu_ns, use->cpu_ns);
		delay_ns = add_saturating(delay_ns, use->delay_ns);
		if (use->delay_ns <= most_ns)
			continue;
		worst = use;
		most_ns = use->delay_ns;
	}
	percent = percent_of((double)delay_ns, (double)cpu_ns + (double)delay_ns);
	if (!worst || percent < FINDING_PERCENT ||
	    percent_of((double)delay_ns, (double)tally_window_ns(report->window)) < FINDING_PERCENT)
		return;
	shorten_text(name, sizeof(name), find_name(report, worst), 15);
	report_line(report, STYLE_WARN,
		    "! the other threads of process %" PRIu32
		    " waited for a CPU for %s, %.0f %% of the time that they were ready to run "
		    "(most: %s, tid %" PRIu32 ", %s): %s",
		    process->record.tgid, FORMAT_TIME(delay_ns), percent, name, worst->tid,
		    FORMAT_TIME(most_ns), cause_advice(CAUSE_RUN_QUEUE));
}

void report_starved(const struct report *report)
{
	/* Without steps the headline is about all threads anyway. */
	if (tally_main_kind(report->tally) <= 0)
		return;
	for (size_t i = 0; i < report->window->processes.count; i++)
		find_starved(report, report->window->processes.items[i]);
}
