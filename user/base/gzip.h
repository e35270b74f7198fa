/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Files in gzip's format (RFC 1952), which may have several members: each run appends one. */
#ifndef FBT_BASE_GZIP_H
#define FBT_BASE_GZIP_H

#include <stdbool.h>
#include <stdio.h>

/* Whether a file of that name is compressed. */
bool gzip_is_name(const char *path);

/* One member that is being written. */
struct gzip;

/*
 * Begins a member in fd, which stays the caller's. Whenever the stream is flushed, all that was
 * written so far can be read from the file. NULL: errno tells why.
 */
struct gzip *gzip__new(int fd);

/* The stream that takes what is to be compressed. Owned by gzip. */
FILE *gzip__file(struct gzip *gzip);

/* Ends the member, once. 0, or the -errno of any write so far. */
int gzip__finish(struct gzip *gzip);

/* Also ends the member. */
void gzip__free(struct gzip *gzip);

/*
 * Ends the last member of a file of lines whose writer was killed, so that another can follow. If
 * its last write is incomplete, the file is cut back to the last flush or member before it. fd is
 * open for reading and writing. 0 (also for an empty file); -EBADMSG: the file is no such file, or
 * damaged; or -errno.
 */
int gzip_mend(int fd);

/*
 * fopen(3) for reading: what the file holds, if gzip_is_name or PATH.gz.partial. A member without
 * an end is read as far as it goes. NULL: errno tells why.
 */
FILE *gzip_open_input(const char *path);

#endif
