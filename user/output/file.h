/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The files that we write, from opening to their line in the report. A file is written under a
 * temporary name next to the final one and renamed when it is complete. Its mode is 0600, and its
 * owner is the user who called sudo (SUDO_UID, SUDO_GID). A symbolic link is never followed, and
 * nothing is replaced but a regular file of ours or of that user. Character devices, FIFOs and
 * /dev/stdout, /dev/stderr, /dev/fd/N are written to directly, without a temporary name.
 *
 * A file whose name ends with .gz is compressed. What is appended to one is a member of its own.
 */
#ifndef FBT_OUTPUT_FILE_H
#define FBT_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct output;

/*
 * Opens PATH for one whole document. Missing parent directories are created. The temporary name is
 * PATH.partial. 0; or -errno, logged as "PATH: reason"; -EBUSY: another ferrum-bpftrace is writing
 * the file.
 */
int output__create(struct output **output, const char *path);

/*
 * Opens PATH for appending lines (O_APPEND, no temporary name), and creates it if it is missing. If
 * the last line has no newline, it gets one first. Errors as output__create; -EBUSY only for names
 * that end with .gz, as others may append to the same lines.
 */
int output__append(struct output **output, const char *path);

/*
 * As the two above, for names that we have made up. -EEXIST, not logged: such a file exists, or
 * another ferrum-bpftrace is writing it.
 */
int output__create_new(struct output **output, const char *path);
int output__append_new(struct output **output, const char *path);

/* NULL for output__append, unless the name ends with .gz. */
FILE *output__file(struct output *output);
int output__fd(struct output *output);

/*
 * Flushes and renames the file. 0 or -errno, logged. On an error the temporary file is kept,
 * readable, and the message names it; also if something that may not be replaced has taken the
 * final name. Only output__where and output__free may follow.
 */
int output__commit(struct output *output);

/*
 * The path of the file that holds what was written: the final or the temporary one. NULL: the file
 * was removed or replaced, or nothing was written. Valid as long as output.
 */
const char *output__where(const struct output *output);

/* output__free, but removes a file that was not there before. */
void output__discard(struct output *output);

/* Without output__commit the temporary file is kept, unless it is empty. */
void output__free(struct output *output);

/*
 * A stream and its first error, since stdio itself only remembers that there was one. What is
 * written between writer_begin and writer_end is a piece.
 */
struct writer {
	FILE *file;    /* not owned */
	int err;       /* 0 or -errno */
	bool has_more; /* pieces that were not flushed */
	uint64_t flushed_ns;
};

void writer_begin(struct writer *writer);

/*
 * Ends a piece. At most once a second it also flushes the stream, so that a tracer that is killed
 * loses only the last second. 0, or the stream's first error.
 */
int writer_end(struct writer *writer);

/*
 * Between pieces, now and then: flushes what writer_end has not, once a second has passed, since
 * the next piece may be long in coming. 0, or the stream's first error.
 */
int writer_poll(struct writer *writer);

/* Ends the last piece and flushes the stream. 0, or the stream's first error. */
int writer_finish(struct writer *writer);

/* A value of keep_bytes: 5 % of the file system, at most 1 GiB. */
#define DISK_ROOM_DEFAULT UINT64_MAX

/*
 * The free space of a file system, and how much of it outputs must leave: the server's logs may be
 * there.
 */
struct disk_room {
	uint64_t free_bytes; /* for plain users (f_bavail); UINT64_MAX: unknown or no limit */
	uint64_t keep_bytes; /* to keep free; 0: none */
};

/*
 * The room on the file system of fd, a regular file or a directory. keep_bytes: how much to keep
 * free; 0: nothing. Other files (a pipe, a terminal, a device) have no limit.
 */
struct disk_room disk_room_of(int fd, uint64_t keep_bytes);

/* Whether less is free than must be kept free. */
bool disk_room_is_low(const struct disk_room *room);

/*
 * Logs that the disk of name is nearly full, the consequence (so: "", or ": ..."), and what to do.
 */
void disk_room_tell(const struct disk_room *room, const char *name, const char *so);

/* A file of a window. */
struct window_file {
	const char *name;      /* "trace", "profile", "record"; not owned */
	char *path;	       /* as requested; NULL: there is no such file */
	struct output *output; /* NULL until it is open */
	char *line;	       /* its line in the report, once it is settled: "trace PATH" */
};

/*
 * Whether the file's disk has less than keep_free (as keep_bytes) left; false if the file is not
 * open.
 */
bool window_file_is_low(const struct window_file *file, uint64_t keep_free, struct disk_room *room);

/*
 * Commits a complete file, leaves an incomplete one, and words its line: where the file is now, and
 * what is wrong with it. end_reason: why it ended before its window, or NULL. 0 or -errno, logged;
 * 0 if the file is not open.
 */
int window_file_settle(struct window_file *file, const char *end_reason, bool is_whole);

/* Frees what file holds; close_output is output__free or output__discard. */
void window_file_clear(struct window_file *file, void (*close_output)(struct output *output));

#endif
