/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>

#include "report_format.h"
#include "report_part.h"
#include "syscalls.h"

#define ROWS_MAX      12
#define PROCESSES_MAX 4

struct entry {
	const struct process *process;
	uint64_t ns;
	uint64_t calls;
};

static bool is_used(const struct fbt_table *row)
{
	return row->sum.calls || row->unfinished;
}

static int compare_rows(const void *left, const void *right)
{
	const struct fbt_table *a = *(const struct fbt_table *const *)left;
	const struct fbt_table *b = *(const struct fbt_table *const *)right;

	if (a->sum.ns != b->sum.ns)
		return a->sum.ns < b->sum.ns ? 1 : -1;
	if (a->sum.calls != b->sum.calls)
		return a->sum.calls < b->sum.calls ? 1 : -1;
	return a < b ? -1 : a > b; /* rows of one table */
}

static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return a->process->record.tgid < b->process->record.tgid ? -1 : 1;
}

static void write_row(const struct report *report, const struct fbt_table *row)
{
	const struct fbt_sum *sum = &row->sum;
	char count[FORMAT_MAX], errors[FORMAT_MAX], total[FORMAT_MAX], mean[FORMAT_MAX];
	char max[FORMAT_MAX], open[FORMAT_MAX], name[24];

	format_count(count, sum->calls);
	format_count(errors, sum->errors);
	format_time(total, (double)sum->ns);
	format_time(mean, sum->calls ? (double)sum->ns / (double)sum->calls : 0);
	format_time(max, (double)sum->max_ns);
	format_count(open, row->unfinished);
	fprintf(report->out, "  %-18s %10s %9s %9s %9s %9s %6s\n",
		syscall_label(report->window->record.arch, row->nr, name), count, errors, total,
		mean, max, open);
}

static void write_process(const struct report *report, const struct entry *entry)
{
	const struct process *process = entry->process;
	const struct fbt_table *rows[FBT_NR_COUNT];
	char comm[32], calls[FORMAT_MAX];
	size_t count = 0;

	vec_for_each (row, &process->table.rows) {
		if (is_used(row))
			rows[count++] = row;
	}
	qsort(rows, count, sizeof(*rows), compare_rows);
	shorten_text(comm, sizeof(comm), *process->comm ? process->comm : "?", 15);
	format_count(calls, entry->calls);
	fputc('\n', report->out);
	report_line(report, STYLE_BOLD,
		    "Syscalls of process %" PRIu32
		    " %s: %s calls, all threads, in steps and outside",
		    process->record.tgid, comm, calls);
	report_line(report, STYLE_DIM, "  %-18s %10s %9s %9s %9s %9s %6s", "syscall", "calls",
		    "errors", "total", "mean", "max", "open");
	for (size_t i = 0; i < count && i < ROWS_MAX; i++)
		write_row(report, rows[i]);
	if (count > ROWS_MAX)
		fprintf(report->out, "  and %zu more (--report json has all)\n", count - ROWS_MAX);
}

void report_processes(const struct report *report)
{
	const struct window *window = report->window;
	size_t count = 0, all = window->processes.count;
	struct entry *entries = calloc(all ? all : 1, sizeof(*entries));

	if (!entries)
		return;
	for (size_t i = 0; i < all; i++) {
		struct entry entry = {.process = window->processes.items[i]};
		bool used = false;

		vec_for_each (row, &entry.process->table.rows) {
			used |= is_used(row);
			entry.ns += row->sum.ns;
			entry.calls += row->sum.calls;
		}
		if (used)
			entries[count++] = entry;
	}
	qsort(entries, count, sizeof(*entries), compare_entries);
	for (size_t i = 0; i < count && i < PROCESSES_MAX; i++)
		write_process(report, &entries[i]);
	if (count > PROCESSES_MAX)
		fprintf(report->out, "\nand %zu more processes (--report json has all)\n",
			count - PROCESSES_MAX);
	free(entries);
}
