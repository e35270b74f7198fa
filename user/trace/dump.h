/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The last minute of a window as files, while the window goes on: a trace, a profile, a page and a
 * capture, BASE_TAG.*. It is replayed in slices, so that the rings are drained in between.
 */
#ifndef FBT_TRACE_DUMP_H
#define FBT_TRACE_DUMP_H

#include <stdbool.h>
#include "model/metadata.h"
#include "options.h"
#include "recorder/segments.h"

struct dump;

/* segments and metadata are borrowed; of options what is needed is copied. 0 or -errno, logged. */
int dump__start(struct dump **dump, struct segments *segments, const struct options *options,
		const struct metadata *metadata, uint32_t tgid);

/* Writes a slice. false: the files are complete, or it has failed, which was logged. */
bool dump__turn(struct dump *dump);

/* After that: what was written, for a message; NULL: it has failed. */
const char *dump__result(const struct dump *dump);

/* Files that are not complete are removed. */
void dump__free(struct dump *dump);

#endif
