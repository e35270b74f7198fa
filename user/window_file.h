/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* One of the files that a window is written to, from its opening to its line in the report. */
#ifndef FBT_WINDOW_FILE_H
#define FBT_WINDOW_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "disk_room.h"
#include "output.h"

struct window_file {
	const char *name;      /* "trace", "profile", "record"; not ours */
	char *path;	       /* as asked for; NULL: there is none */
	struct output *output; /* NULL until it is open */
	char *line;	       /* of the report, once it is settled: "trace    PATH" */
};

/* Whether there is less room on its disk than keep_free (disk_room.h) wants; false if not open. */
bool window_file_is_low(const struct window_file *file, uint64_t keep_free, struct disk_room *room);

/*
 * Commits it, or leaves it as what it is if it did not become whole, and makes its line: where it
 * is now, and what is wrong with it. end_reason: why it ended before its window, or NULL. 0 or
 * -errno, logged; also 0 if it is not open.
 */
int window_file_settle(struct window_file *file, const char *end_reason, bool is_whole);

/* Frees what file holds; close_output is output__free or output__discard. */
void window_file_clear(struct window_file *file, void (*close_output)(struct output *output));

#endif
