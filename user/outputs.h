/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Options to files, sinks and a pipeline. */
#ifndef FBT_OUTPUTS_H
#define FBT_OUTPUTS_H

#include "metadata.h"
#include "options.h"
#include "pipeline.h"
#include "record.h"

struct outputs;

/*
 * Opens what the options ask for. tag names the default files, in the folder that options name;
 * NULL (replay): there are none.
 * options and metadata are borrowed. 0 or -errno, logged; then nothing was left behind. -EEXIST,
 * not logged: there are files with that tag, so take another.
 */
int outputs__open(struct outputs **outputs, const struct options *options,
		  const struct metadata *metadata, const char *tag);

/* Where records go: the pipeline, and the file of --record. */
struct record_output outputs__records(struct outputs *outputs);

/* Without --record: what --replay feeds. */
void outputs__push(struct outputs *outputs, const void *data, size_t size);

const struct window *outputs__window(const struct outputs *outputs);

/* Lets outputs go on with what they do in the background; every few milliseconds. */
void outputs__poll(struct outputs *outputs);

/* The status line; once a second. */
void outputs__show_status(struct outputs *outputs, uint64_t now_ns);

/* Ends the window and puts the files in their places: 0, or the first error, all of them logged. */
int outputs__finish(struct outputs *outputs);

/* Then: waits for a collector, for seconds. Who loses patience has the files. */
void outputs__wait(struct outputs *outputs);
void outputs__free(struct outputs *outputs);

/* As outputs__free where no window began: leaves no files behind. */
void outputs__discard(struct outputs *outputs);

#endif
