/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What a window leaves behind: one export of all its processes, or one of each. An export is what
 * the options ask for: files named by a tag, a report.
 */
#ifndef FBT_EXPORTS_H
#define FBT_EXPORTS_H

#include <stddef.h>
#include "options.h"
#include "record.h"

struct env_host;
struct exports;

/* Processes that have an export of their own; all others share one, with the tag of process 0. */
#define EXPORTS_MAX 64

/*
 * One export, of the process tgid and whatever else is traced, or of no certain process (0). Its
 * files are opened now. options and host, which is for metadata_for_target, are borrowed. 0, or
 * -errno, logged; then nothing was left behind.
 */
int exports__open_one(struct exports **exports, const struct options *options,
		      const struct env_host *host, uint32_t tgid);

/*
 * One export of each process, opened when the process comes (FBT_EVENT_TARGET). One that cannot be
 * opened is told of in the log and by exports__finish; the others go on. 0 or -ENOMEM.
 */
int exports__open_each(struct exports **exports, const struct options *options,
		       const struct env_host *host);

/* Where the records of the window go, one at a time. */
struct record_output exports__records(struct exports *exports);

/* pidPID_MS, of the one export. */
const char *exports__tag(const struct exports *exports);

/* The window's start as unix time in milliseconds, which is in its tags but where other files have
 * them: there a later one is. */
uint64_t exports__unix_ms(const struct exports *exports);

/* How many there are by now. */
size_t exports__count(const struct exports *exports);

/* Work in the background; every few milliseconds. */
void exports__poll(struct exports *exports);

/* The status line, of the first export; once a second. */
void exports__show_status(struct exports *exports, uint64_t now_ns);

/* The window has ended: 0, or the first error that an export had, all of them logged. */
int exports__finish(struct exports *exports);
void exports__free(struct exports *exports);

/* As exports__free where no window began: leaves no files behind. */
void exports__discard(struct exports *exports);

#endif
