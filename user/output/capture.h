/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Raw records in a file: for --record and --replay, golden tests, bug reports.
 *
 * The file is a struct capture_header and then records as in fbt_event.h, to the end of the file.
 * The byte order is the writer's; a file of the other order is refused.
 */
#ifndef FBT_OUTPUT_CAPTURE_H
#define FBT_OUTPUT_CAPTURE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "output/sink.h"

#define CAPTURE_MAGIC 0x4c46525455424546ull /* "FEBUTRFL" as bytes on a little-endian machine */
/*
 * Only this version is read. Older versions lack, besides what the later ones lack:
 * - 8: all threads of the process among those that took a CPU
 * - 7: what tracing adds to a call, in the window's record
 * - 5: page faults of threads that steps waited for
 * - 4: the time of other threads and of page faults, and futures
 * - 3: signal handlers and starved threads
 * - 2: cgroup limits
 * - 1: the arguments of calls
 */
#define CAPTURE_VERSION 9

struct capture_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes; /* a later version may append fields */
};

/* 0, or the -errno of the write. */
int capture_write_header(FILE *out);
int capture_write(FILE *out, const void *data, size_t size);

/* The sink of --record, which writes all records as they come. out is borrowed. NULL: -ENOMEM. */
struct sink *sink_capture__new(FILE *out);

/*
 * Reads a whole capture and passes its records on, in blocks of whole records. name is for
 * messages. 0; or, logged as one line: -EBADMSG not a capture, or damaged; -EOPNOTSUPP another
 * version; -errno of a read. A file that was cut off yields all its whole records, a warning, and
 * 0. on_records returns 0, or an error with which the reading ends. The first block has the
 * window's record and its options.
 */
int capture_read(FILE *in, const char *name,
		 int (*on_records)(void *ctx, const void *data, size_t size), void *ctx);

#endif
