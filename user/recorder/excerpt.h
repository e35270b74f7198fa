/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The last part of a stream of records, as a stream of its own: a window that begins later. The
 * stream is walked twice: first excerpt_look() finds where the part begins, then excerpt_pass()
 * writes it.
 */
#ifndef FBT_RECORDER_EXCERPT_H
#define FBT_RECORDER_EXCERPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "recorder/facts.h"

struct excerpt {
	/* To be set: */
	const struct facts *facts; /* as they were before the stream; borrowed */
	bool (*write)(void *ctx, const void *data, size_t size); /* false: it failed, see errno */
	void *ctx;
	uint64_t from_ns;  /* steps that end from then on are wanted */
	uint64_t first_ns; /* when the first record of the stream came */
	uint64_t end_ns;

	/* Results: */
	uint64_t start_ns; /* of the window */
	uint64_t records;  /* without facts */
	uint64_t steps;

	/* Its own: */
	struct facts *before;	   /* totals at the begin of the part, and processes; owned */
	struct fbt_header *window; /* a copy of the window's record; owned */
	bool begun;
	bool is_all;	    /* the part is the whole stream */
	uint64_t latest_ns; /* when the last step so far has ended */
	bool failed;	    /* to copy the window's record */
	int err;	    /* for a caller that passes records on from a walk: the first */
};

void excerpt_begin(struct excerpt *excerpt);
void excerpt_look(struct excerpt *excerpt, const struct fbt_header *record);

/*
 * These four write. All facts come first, then all records of the stream. 0, -ENODATA: there was no
 * record of a window; or -errno.
 */
int excerpt_open(struct excerpt *excerpt, const char *tag, uint64_t realtime_ns);
int excerpt_pass(struct excerpt *excerpt, const struct fbt_header *record);
int excerpt_end(struct excerpt *excerpt);
void excerpt_clear(struct excerpt *excerpt);

#endif
