/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Writes dumps, one after the other, and keeps the directory within its limits. */
#ifndef FBT_WATCH_WRITER_H
#define FBT_WATCH_WRITER_H

#include <stdbool.h>
#include "watch/target.h"

struct writer;

/* dir is borrowed. NULL: -ENOMEM. */
struct writer *writer__new(const char *dir);
void writer__free(struct writer *writer); /* what is not written yet is lost, and said; a whole
					     capture is kept */

/*
 * Owns the job's descriptor from now on. All engines may have one at once: there is room for a dump
 * of each and a part of each, and dumps are written before parts, calls before samples. What finds
 * no room is dropped, and said.
 */
void writer__take(struct writer *writer, const struct dump_job *job);

/* Starts the next one, if none is being written; ends one that takes too long. */
void writer__turn(struct writer *writer, const struct options *options, uint64_t now_ns);

/* A child of watch has ended. Returns whether it was the writer's. */
bool writer__reap(struct writer *writer, const struct options *options, pid_t pid, int status);

bool writer__is_idle(const struct writer *writer);

/* Dumps that were written so far. */
uint64_t writer__written(const struct writer *writer);

#endif
