/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A flight recorder: the last minutes of a stream of records, in memory files. It is bounded in
 * bytes and in time: the oldest segment is dropped whole, and what was dropped is counted. What
 * later records refer to is kept (facts.h), so that a part of the stream is a capture that --replay
 * reads.
 */
#ifndef FBT_RECORDER_SEGMENTS_H
#define FBT_RECORDER_SEGMENTS_H

#include <stdint.h>
#include <stdio.h>
#include "output/sink.h"

#define SEGMENTS_COUNT 16

/* The least that makes sense: each segment holds at least one of the longest records. */
#define SEGMENTS_BYTES_MIN (SEGMENTS_COUNT * (UINT64_C(2) << 20))

struct segments_options {
	uint64_t bytes;	  /* of all segments; at least SEGMENTS_BYTES_MIN. A quarter is added for
			     facts at most */
	uint64_t span_ns; /* what is older is dropped; 0: only bytes limit it */
};

struct segments;

/*
 * Takes memory as records come. Opens SEGMENTS_COUNT descriptors, which a confined process may
 * write to. 0 or -errno, logged.
 */
int segments__new(struct segments **segments, const struct segments_options *options);
void segments__free(struct segments *segments);

/*
 * Takes size bytes of whole records, which came at now_ns (CLOCK_MONOTONIC). A record of a window
 * begins everything anew. 0 or -errno, after which records are missing, which are counted.
 */
int segments__push(struct segments *segments, const void *data, size_t size, uint64_t now_ns);

/* Drops what has become too old though nothing came. Call about once a second. */
void segments__turn(struct segments *segments, uint64_t now_ns);

/* A sink that pushes what comes; segments is borrowed. NULL: -ENOMEM. */
struct sink *sink_segments__new(struct segments *segments);

struct segments_figures {
	uint64_t records; /* in the segments, without facts that are kept */
	uint64_t steps;
	uint64_t bytes;
	uint64_t oldest_ns;	  /* when the oldest record came; 0: there is none */
	uint64_t dropped_records; /* ever: too old */
	uint64_t crowded_records; /* ever: dropped while they were younger than span_ns */
	uint64_t crowded_ns;	  /* when the youngest of them came; 0: there are none */
	uint64_t failed_records;  /* ever: no memory; told once */
	uint64_t dropped_names;	  /* as in facts__put, to stay within the bytes */
};

struct segments_figures segments__figures(const struct segments *segments);

struct segments_cut {
	const char *tag;      /* of the capture's window */
	uint64_t last_ns;     /* for how long before end_ns; UINT64_MAX: all that there is */
	uint64_t end_ns;      /* CLOCK_MONOTONIC, now: where the window ends */
	uint64_t realtime_ns; /* CLOCK_REALTIME at end_ns */
};

struct segments_written {
	uint64_t start_ns; /* where the window begins */
	uint64_t steps;
	uint64_t records;
	bool crowded; /* it begins later than asked for, because older records found no room */
};

/*
 * Writes the last part of the stream to out as a capture, a window of its own. It begins early
 * enough for all steps that ended in that time, or hang, to be in it whole; totals (of lost
 * records, of the tool's cost) count from there on. The stream goes on. 0; -ENODATA: no window has
 * begun; or -errno. written may be NULL.
 */
int segments__write(struct segments *segments, FILE *out, const struct segments_cut *cut,
		    struct segments_written *written);

#endif
