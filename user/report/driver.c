/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/format.h"
#include "report/part.h"

/* Rows in the text. */
#define ROWS_SHOWN 12

static void add_to(struct fbt_sum *sum, const struct fbt_call *call)
{
	sum->calls++;
	sum->errors += call->ret < 0 && !(call->header.flags & FBT_CALL_UNFINISHED);
	sum->ns = add_saturating(sum->ns, call->duration_ns);
	sum->max_ns = max_u64(sum->max_ns, call->duration_ns);
}

/* NULL with *err 0: there are too many. */
static struct driver_row *find_row(struct driver_tally *tally, const struct file *file,
				   const struct fbt_call *call, int *err)
{
	struct driver_row row = {.command = call->args[1],
				 .is_uvm = !strcmp(file->path, "/dev/nvidia-uvm")};

	*err = 0;
	vec_for_each (known, &tally->rows) {
		if (known->command == row.command && known->is_uvm == row.is_uvm)
			return known;
	}
	if (tally->rows.count == DRIVER_ROWS_MAX)
		return NULL;
	driver_call_name(file, row.command, row.name);
	*err = vec_push(&tally->rows, row);
	return *err ? NULL : &tally->rows.items[tally->rows.count - 1];
}

int driver_tally_add(struct driver_tally *tally, const struct window *window,
		     const struct step *step)
{
	char name[DRIVER_CALL_NAME];
	bool has_calls = false;
	int err;

	vec_for_each (call, &step->calls) {
		const struct file *file = NULL;
		struct driver_row *row;

		if (driver_call_has_command(window, call))
			file = window__file(window, call->file);
		if (!file || !driver_call_name(file, call->args[1], name))
			continue;
		has_calls = true;
		row = find_row(tally, file, call, &err);
		if (err)
			return err;
		if (row && (!row->sum.calls || call->duration_ns > row->sum.max_ns))
			row->worst_step = step->number;
		add_to(row ? &row->sum : &tally->rest, call);
	}
	tally->incomplete += has_calls && !step->complete;
	return 0;
}

void driver_tally_clear(struct driver_tally *tally)
{
	vec_free(&tally->rows);
	*tally = (struct driver_tally){0};
}

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
