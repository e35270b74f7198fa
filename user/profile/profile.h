/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Reading a profile (output/jsonl.h): JSON Lines, an event a line, whose first member names it.
 * Lines of other programs in the same file are passed over. Nothing in it is trusted.
 */
#ifndef FBT_PROFILE_PROFILE_H
#define FBT_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "base/json_read.h"

/* A longer line is a bad one. Ours have a few KiB. */
#define PROFILE_LINE_MAX (1u << 20)

/* An event of ours. All is borrowed until the callback returns. */
struct profile_event {
	const char *name;	      /* "step_prof" … */
	struct json_object *envelope; /* the whole line */
	struct json_object *shape;    /* an object, as is stage_us */
	struct json_object *stage_us;
};

struct profile_reader {
	/* Lines of other events are not even parsed. NULL: all are wanted. */
	bool (*wants)(const char *name);
	/* 0, or -errno, which ends the reading. */
	int (*on_event)(void *ctx, const struct profile_event *event);
	void *ctx;
};

/* What was read. */
struct profile_counts {
	uint64_t lines;
	uint64_t events;    /* passed on */
	uint64_t foreign;   /* not of this program */
	uint64_t bad;	    /* neither: damaged */
	uint64_t first_bad; /* number of the first such line */
	char error[128];    /* what is wrong with it, or "" */
	bool is_cut; /* the last line has no end, so its writer was killed: not counted as bad */
};

/*
 * Reads to the end of in. 0; -errno of a read or of the callback; -ENOMEM. name is for messages:
 * only errors of reading are logged.
 */
int profile_read(FILE *in, const char *name, const struct profile_reader *reader,
		 struct profile_counts *counts);

/* Whether text, the begin of a file, may be a profile: it begins with an object that is an event.
 */
bool profile_is_begin(const char *text, size_t size);

/* A member of shape or stage_us. false: it is missing, or not of that type; *value then stays. */
bool profile_uint(struct json_object *object, const char *key, uint64_t *value);
bool profile_int(struct json_object *object, const char *key, int64_t *value);
bool profile_double(struct json_object *object, const char *key, double *value);
bool profile_bool(struct json_object *object, const char *key, bool *value);

/* NULL: it is missing, no string, or has a NUL. Borrowed. */
const char *profile_string(struct json_object *object, const char *key);

#endif
