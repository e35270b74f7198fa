/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The only file that knows the order of the stages: decode, assemble, merge, classify, sinks. */
#ifndef FBT_PIPELINE_H
#define FBT_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include "merge.h"
#include "sink.h"

struct pipeline;

struct pipeline_options {
	struct classify_options classify;
	uint32_t context; /* see evidence.h */
	struct merge_options merge;
};

/* options are copied. NULL: -ENOMEM. */
struct pipeline *pipeline__new(const struct pipeline_options *options);

/* Takes the sink over, on failure too. 0 or -ENOMEM. */
int pipeline__add_sink(struct pipeline *pipeline, struct sink *sink);

/*
 * Takes size bytes that hold whole records. A record that is not sound is counted and skipped. A
 * sink that fails is reported once, put out of use, and remembered; the others go on.
 */
void pipeline__push(struct pipeline *pipeline, const void *data, size_t size);

/*
 * Ends a sink before its window, with err, about which the caller has told: it gets nothing more.
 * With finish, what it has written becomes a whole document. False if it had ended before.
 */
bool pipeline__end_sink(struct pipeline *pipeline, const struct sink *sink, int err, bool finish);

/* Why a sink ended before its window, for a message; NULL: it did not, or is none of ours. */
const char *pipeline__end_reason(const struct pipeline *pipeline, const struct sink *sink);

/* Lets sinks go on with what they do in the background. */
void pipeline__poll(struct pipeline *pipeline);

/* Ends the window and finishes all sinks: 0, or the first error any of them had. */
int pipeline__finish(struct pipeline *pipeline);

/* Behind pipeline__finish, once the files are in their places: may take seconds. */
void pipeline__wait(struct pipeline *pipeline);
const struct window *pipeline__window(const struct pipeline *pipeline);
bool pipeline__has_failed(const struct pipeline *pipeline);
void pipeline__free(struct pipeline *pipeline);

#endif
