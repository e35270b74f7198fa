/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Raw records in a file: --record and --replay, golden tests, bug reports.
 *
 * struct capture_header, then records as in fbt_event.h to the end of the file. Byte order is the
 * writer's; a file from the other is refused.
 */
#ifndef FBT_CAPTURE_H
#define FBT_CAPTURE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CAPTURE_MAGIC	0x4c46525455424546ull /* "FEBUTRFL" as bytes on a little-endian machine */
#define CAPTURE_VERSION 2		      /* 1: calls without arguments */

struct capture_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes; /* a later version may append fields */
};

/* 0 or -errno of the write. */
int capture_write_header(FILE *out);
int capture_write(FILE *out, const void *data, size_t size);

/*
 * Reads a whole capture and hands on its records in blocks of whole records. name is for messages.
 * 0; -EBADMSG not a capture or damaged, -EOPNOTSUPP another version, -errno of a read: logged as
 * one line. A file that is cut off gives all whole records, a warning, and 0.
 */
int capture_read(FILE *in, const char *name,
		 void (*on_records)(void *ctx, const void *data, size_t size), void *ctx);

#endif
