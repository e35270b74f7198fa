/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "window_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool window_file_is_low(const struct window_file *file, uint64_t keep_free, struct disk_room *room)
{
	if (!file->output || !keep_free)
		return false;
	*room = disk_room_of(output__fd(file->output), keep_free);
	return disk_room_is_low(room);
}

/* err is what output__commit has told of. */
static const char *commit_text(int err)
{
	switch (err) {
	case -ENOENT:
		return "it was removed";
	case -EEXIST:
		return "something else has come there";
	case -ESTALE:
		return "another user has put something else there";
	default:
		return strerror(-err);
	}
}

/* For one who has not seen stderr. NULL: no memory, and one line less. */
static char *new_line(const struct window_file *file, const char *end_reason, int err)
{
	const char *where = output__where(file->output);
	const char *reason = end_reason ? end_reason : commit_text(err);
	char *line = NULL;
	int size;

	if (!where)
		size = asprintf(&line, "%-8s %s (not there: %s)", file->name, file->path,
				end_reason || err ? reason : "nothing was written");
	else if (end_reason)
		size = asprintf(&line, "%-8s %s (ended early: %s)", file->name, where, reason);
	else if (err)
		size = asprintf(&line, "%-8s %s (not in its place: %s)", file->name, where, reason);
	else
		size = asprintf(&line, "%-8s %s", file->name, where);
	return size < 0 ? NULL : line;
}

int window_file_settle(struct window_file *file, const char *end_reason, bool is_whole)
{
	int err;

	if (!file->output)
		return 0;
	err = is_whole ? output__commit(file->output) : output__leave(file->output);
	file->line = new_line(file, end_reason, err);
	return err;
}

void window_file_clear(struct window_file *file, void (*close_output)(struct output *output))
{
	close_output(file->output);
	free(file->path);
	free(file->line);
}
