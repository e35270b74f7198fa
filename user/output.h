/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Files we write. Made under a temporary name beside the final one and renamed when complete; mode
 * 0600; owned by the user behind sudo (SUDO_UID, SUDO_GID); never through a symbolic link, never
 * over something that is not a regular file of ours or the user's. Character devices, FIFOs and
 * /dev/stdout, /dev/stderr, /dev/fd/N are written to as they are, without a temporary name.
 */
#ifndef FBT_OUTPUT_H
#define FBT_OUTPUT_H

#include <stdio.h>

struct output;

/*
 * Opens PATH for one whole document. Missing parent folders are made. 0, or -errno, logged as
 * "PATH: reason". The temporary name is PATH with ".partial" behind it; -EBUSY if another
 * ferrum-bpftrace is writing it.
 */
int output__create(struct output **output, const char *path);

/*
 * As output__create and output__append, for a name that we made up: -EEXIST, not logged, if there
 * is such a file, or another ferrum-bpftrace is writing it.
 */
int output__create_new(struct output **output, const char *path);
int output__append_new(struct output **output, const char *path);

/*
 * Opens PATH for appending lines (O_APPEND, no temporary name); made if missing. A last line that
 * was cut off is ended first, so that the next one is whole.
 */
int output__append(struct output **output, const char *path);

FILE *output__file(struct output *output); /* NULL for output__append */
int output__fd(struct output *output);

/*
 * Flushes, syncs to the file system's own buffers and renames: 0 or -errno, logged. On an error the
 * temporary file is left, readable, and named in the message: also if something has come meanwhile
 * that may not be replaced. Only output__free may follow.
 */
int output__commit(struct output *output);

/*
 * Instead of output__commit for what did not become a whole document: the temporary file stays, and
 * the message names it. -EIO.
 */
int output__leave(struct output *output);

/*
 * The path of the file that holds what was written, behind one of these two: the final one, or the
 * temporary one. NULL if there is none: it was removed or replaced, or nothing was written. Lives
 * as long as output.
 */
const char *output__where(const struct output *output);

/* Nothing came of it: as output__free, and leaves no file behind that was not there before. */
void output__discard(struct output *output);

/* Without commit, the temporary file stays, unless it is empty. */
void output__free(struct output *output);

#endif
