/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The pipeline: the only file that knows the order of the stages, which are decode, assemble,
 * merge, classify, iterations, sinks.
 */
#ifndef FBT_OUTPUT_PIPELINE_H
#define FBT_OUTPUT_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include "gpu/merge.h"
#include "output/sink.h"

struct pipeline;

struct pipeline_options {
	struct classify_options classify;
	uint32_t context; /* see evidence.h */
	struct merge_options merge;
	bool is_endless; /* no sink names processes at the end of the window (window.h) */
};

/* options are copied. NULL: -ENOMEM. */
struct pipeline *pipeline__new(const struct pipeline_options *options);

/* Owns the sink from here on, even on failure. 0 or -ENOMEM. */
int pipeline__add_sink(struct pipeline *pipeline, struct sink *sink);

/* About 2 MiB of a trace. */
#define PIPELINE_WATCH_ITEMS 16384

/* Called each time the sinks have been given that many steps, calls and GPU records. */
struct pipeline_watch {
	void (*look)(void *ctx);
	void *ctx;
};

void pipeline__watch(struct pipeline *pipeline, struct pipeline_watch watch);

/*
 * Takes size bytes of whole records. A malformed record is counted and skipped. If a sink fails,
 * that is logged once and remembered, and the sink is no longer used; the others continue.
 */
void pipeline__push(struct pipeline *pipeline, const void *data, size_t size);

/*
 * Ends a sink before its window because of err, which the caller has logged. The sink gets nothing
 * more, and a document is completed. false: the sink had already ended.
 */
bool pipeline__end_sink(struct pipeline *pipeline, const struct sink *sink, int err);

/*
 * Why a sink ended before its window, for a message. NULL: it did not, or it is not of this
 * pipeline.
 */
const char *pipeline__end_reason(const struct pipeline *pipeline, const struct sink *sink);

/* Lets sinks continue their background work. */
void pipeline__poll(struct pipeline *pipeline);

/* Ends the window and finishes the sinks that write files, so that a report can name the files. */
void pipeline__finish_files(struct pipeline *pipeline);

/* After pipeline__finish_files: finishes the other sinks. 0, or the first error of any sink. */
int pipeline__finish(struct pipeline *pipeline);

/* After pipeline__finish, when the files are in place. May take seconds. */
void pipeline__wait(struct pipeline *pipeline);
const struct window *pipeline__window(const struct pipeline *pipeline);
bool pipeline__has_failed(const struct pipeline *pipeline);
void pipeline__free(struct pipeline *pipeline);

#endif
