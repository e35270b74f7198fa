/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the threads of a process used. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/format.h"
#include "report/part.h"

#define ROWS_MAX 16

const char *report_thread_name(const struct report *report, const struct fbt_thread_use *use)
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

	uint64_t used_ns = add_saturating(use->cpu_ns, use->delay_ns);

	fprintf(report->out, "  %-15s %8s %9s %9s %9s", name, tid,
		known ? FORMAT_TIME(use->cpu_ns) : "-", known ? FORMAT_TIME(use->delay_ns) : "-",
		known && use->traced_ns ? FORMAT_TIME(sub_saturating(use->traced_ns, used_ns))
					: "-");
	if (window__traces_calls(report->window))
		fprintf(report->out, " %7s %9s", FORMAT_COUNT(use->calls),
			FORMAT_TIME(use->call_ns));
	if (use->header.flags & FBT_USE_STEPS)
		fputs(" steps", report->out);
	if (use->header.flags & FBT_USE_ENDED)
		fputs(" ended", report->out);
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
		shorten_text(name, sizeof(name), report_thread_name(report, &sorted[i]), 15);
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
		    window__traces_calls(report->window) ? "  %-15s %8s %9s %9s %9s %7s %9s"
							 : "  %-15s %8s %9s %9s %9s",
		    "thread", "tid", "CPU", "CPU wait", "blocked", "calls", "in calls");
	write_rows(report, table, sorted);
	free(sorted);
}
