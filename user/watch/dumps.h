/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The files of dumps: their names, and which of them are deleted. A dump is all files whose names
 * begin with its stem, ferrum_watch_<UTC time>_<pid>_<reason>; nothing else is ever touched.
 */
#ifndef FBT_WATCH_DUMPS_H
#define FBT_WATCH_DUMPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DUMP_STEM_MAX 96

/* ferrum_watch_20261125T220327123Z_4711_hang */
void dump_stem(char stem[DUMP_STEM_MAX], uint64_t realtime_ns, uint32_t tgid, const char *reason);

/*
 * The length of the stem in the name of a file of a dump; 0: it is none. *is_partial: the file was
 * not completed.
 */
size_t dump_stem_of(const char *name, bool *is_partial);

struct dump_limits {
	uint32_t dumps;
	uint64_t bytes;
	uint64_t keep_free; /* of the disk; see disk_room_of */
};

/* What is in the directory. */
struct dump_usage {
	uint32_t dumps;
	uint64_t bytes;
	uint32_t deleted; /* dumps that were deleted by this call */
};

/*
 * Deletes dumps in a directory, the oldest ones of escalations first, then the oldest others, until
 * the limits are met with bytes and one dump more: what is about to be written; with neither, those
 * of dumps and bytes themselves. The dump keep
 * (NULL: none) is not deleted. Only regular files of ours are, and no link is followed. 0, -ENOSPC:
 * that much will not fit (-EDQUOT: without using what is to be kept free), and if it would not even
 * alone, nothing is deleted; or -errno, logged.
 */
int dumps_make_room(const char *dir, const struct dump_limits *limits, uint64_t bytes,
		    const char *keep, struct dump_usage *usage);

/*
 * A dump is written into this folder in the directory, and moved from there when it is complete: a
 * writer that is killed leaves nothing that looks like a dump.
 */
#define DUMPS_FOLDER "ferrum_watch_unfinished"

/*
 * Moves files from the folder to the directory: all, or only captures; those of the dump stem, or
 * with NULL those of any. 0, -EEXIST: there is one of that name, and what was to be moved stays; or
 * -errno, logged.
 */
int dumps_publish(const char *dir, const char *stem, bool only_captures);

/* Deletes what was not completed, of the dump stem, or with NULL of any. */
void dumps_sweep(const char *dir, const char *stem);

/*
 * Says to others who write dumps to the directory that we do, until the descriptor that it returns
 * is closed. Without others, what a watch has left that was killed is published (its captures) or
 * deleted. -errno, logged with what to do: dumps cannot be written there.
 */
int dumps_enter(const char *dir);

#endif
