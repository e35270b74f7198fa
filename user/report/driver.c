/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The ioctls of the GPU driver, as a table. */
#include <stdlib.h>

#include "base/arith.h"
#include "base/format.h"
#include "report/part.h"

/* Rows in the text. */
#define ROWS_SHOWN 12

static int compare_rows(const void *left, const void *right)
{
	const struct driver_row *const *a = left, *const *b = right;

	if ((*a)->sum.ns != (*b)->sum.ns)
		return (*a)->sum.ns < (*b)->sum.ns ? 1 : -1;
	return *a < *b ? -1 : *a > *b;
}

/* The rows, longest total first. Returns how many. */
static size_t sort_rows(const struct driver_tally *tally,
			const struct driver_row *sorted[DRIVER_ROWS_MAX])
{
	size_t count = 0;

	vec_for_each (row, &tally->rows)
		sorted[count++] = row;
	qsort(sorted, count, sizeof(*sorted), compare_rows);
	return count;
}

void report_driver(const struct report *report)
{
	const struct driver_tally *tally = &report->tally->driver;
	const struct driver_row *sorted[DRIVER_ROWS_MAX];
	size_t count = sort_rows(tally, sorted);
	uint64_t calls = tally->rest.calls;

	if (!count)
		return;
	vec_for_each (row, &tally->rows)
		calls = add_saturating(calls, row->sum.calls);
	fputc('\n', report->out);
	report_line(report, STYLE_BOLD, "GPU driver calls in steps: %s ioctl%s",
		    FORMAT_COUNT(calls), plural(calls));
	if (tally->incomplete)
		report_line(report, STYLE_WARN,
			    "! %s of these steps lost records of calls: the counts are too low",
			    FORMAT_COUNT(tally->incomplete));
	report_line(report, STYLE_DIM, "  %-40s %8s %6s %9s %9s", "ioctl", "calls", "errors",
		    "total", "max");
	for (size_t i = 0; i < count && i < ROWS_SHOWN; i++)
		fprintf(report->out, "  %-40s %8s %6s %9s %9s\n", sorted[i]->name,
			FORMAT_COUNT(sorted[i]->sum.calls), FORMAT_COUNT(sorted[i]->sum.errors),
			FORMAT_TIME(sorted[i]->sum.ns), FORMAT_TIME(sorted[i]->sum.max_ns));
	if (count > ROWS_SHOWN)
		fprintf(report->out, "  and %zu more (--report json has all)\n",
			count - ROWS_SHOWN);
}

static void write_sum(struct json *json, const struct fbt_sum *sum)
{
	json_uint(json, "calls", sum->calls);
	json_uint(json, "errors", sum->errors);
	json_uint(json, "ns", sum->ns);
	json_uint(json, "max_ns", sum->max_ns);
}

void report_json_driver(struct json *json, const struct report *report)
{
	const struct driver_tally *tally = &report->tally->driver;
	const struct driver_row *sorted[DRIVER_ROWS_MAX];
	size_t count = sort_rows(tally, sorted);

	if (!count)
		return;
	json_object_begin(json, "gpu_driver_calls");
	json_uint(json, "incomplete_steps", tally->incomplete);
	json_array_begin(json, "ioctls");
	for (size_t i = 0; i < count; i++) {
		json_object_begin(json, NULL);
		json_string(json, "name", sorted[i]->name);
		write_sum(json, &sorted[i]->sum);
		json_uint(json, "worst_step", sorted[i]->worst_step);
		json_object_end(json);
	}
	json_array_end(json);
	if (tally->rest.calls) {
		json_object_begin(json, "other_ioctls");
		write_sum(json, &tally->rest);
		json_object_end(json);
	}
	json_object_end(json);
}
