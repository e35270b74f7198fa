/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "tally/driver_tally.h"

#include <errno.h>
#include <string.h>

#include "base/arith.h"

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
	tally->incomplete += has_calls && (step->record.lost_calls || step->calls_truncated);
	return 0;
}

void driver_tally_clear(struct driver_tally *tally)
{
	vec_free(&tally->rows);
	*tally = (struct driver_tally){0};
}
