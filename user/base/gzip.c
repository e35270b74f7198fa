/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/gzip.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include <zlib.h>

#include "base/timed_write.h"

#define BUFFER_BYTES (256 * 1024)
#define GZIP_WINDOW  (15 + 16) /* of deflateInit2 and inflateInit2: with gzip's header */

struct gzip {
	z_stream stream;
	FILE *file;
	int fd;
	bool may_wait; /* fd is a pipe or the like */
	bool is_finished;
	int err;
	unsigned char out[64 * 1024];
	char buffer[BUFFER_BYTES]; /* of file: glibc ignores a size without a buffer */
};

bool gzip_is_name(const char *path)
{
	size_t size = strlen(path);

	return size > 3 && !strcmp(path + size - 3, ".gz");
}

static int write_out(struct gzip *gzip, size_t size)
{
	uint64_t wait_ns = timed_write_in_window() ? TIMED_WRITE_WINDOW_NS : TIMED_WRITE_NO_LIMIT;
	size_t written = 0;

	if (gzip->may_wait)
		return timed_write(gzip->fd, gzip->out, size, wait_ns, &written);
	while (written < size) {
		ssize_t count = write(gzip->fd, gzip->out + written, size - written);

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return count < 0 ? -errno : -EIO;
		written += (size_t)count;
	}
	return 0;
}

/* Compresses what the stream has been given, up to a point from which all of it can be read. */
static int compress_all(struct gzip *gzip, int flush)
{
	int result;

	do {
		gzip->stream.next_out = gzip->out;
		gzip->stream.avail_out = sizeof(gzip->out);
		result = deflate(&gzip->stream, flush);
		if (result == Z_STREAM_ERROR)
			return -EIO;
		gzip->err = write_out(gzip, sizeof(gzip->out) - gzip->stream.avail_out);
	} while (!gzip->err && gzip->stream.avail_out == 0);
	return gzip->err;
}

static ssize_t take(void *cookie, const char *data, size_t size)
{
	struct gzip *gzip = cookie;

	if (gzip->err || gzip->is_finished) {
		errno = gzip->err ? -gzip->err : EBADF;
		return 0;
	}
	gzip->stream.next_in = (unsigned char *)data;
	gzip->stream.avail_in = (uInt)size;
	if (compress_all(gzip, Z_SYNC_FLUSH)) {
		errno = -gzip->err;
		return 0;
	}
	return (ssize_t)size;
}

struct gzip *gzip__new(int fd)
{
	const cookie_io_functions_t functions = {.write = take};
	struct gzip *gzip = calloc(1, sizeof(*gzip));

	if (!gzip)
		return NULL;
	gzip->fd = fd;
	gzip->may_wait = timed_write_may_block(fd);
	if (deflateInit2(&gzip->stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(gzip);
		errno = ENOMEM;
		return NULL;
	}
	gzip->file = fopencookie(gzip, "w", functions);
	if (!gzip->file) {
		deflateEnd(&gzip->stream);
		free(gzip);
		return NULL;
	}
	(void)setvbuf(gzip->file, gzip->buffer, _IOFBF, sizeof(gzip->buffer));
	return gzip;
}

FILE *gzip__file(struct gzip *gzip)
{
	return gzip->file;
}

int gzip__finish(struct gzip *gzip)
{
	if (gzip->is_finished)
		return gzip->err;
	if (fflush(gzip->file) && !gzip->err)
		gzip->err = -errno;
	gzip->is_finished = true;
	gzip->stream.avail_in = 0;
	return gzip->err ? gzip->err : compress_all(gzip, Z_FINISH);
}

void gzip__free(struct gzip *gzip)
{
	if (!gzip)
		return;
	(void)gzip__finish(gzip);
	(void)fclose(gzip->file);
	deflateEnd(&gzip->stream);
	free(gzip);
}

/* A point up to which a file can be kept: after a member, or after a flush of one. */
struct whole {
	off_t at;
	uint32_t crc;
	uint32_t size; /* modulo 2^32, as RFC 1952 has it */
	bool is_open;  /* a member has begun and not ended */
	bool is_line;  /* what it holds so far ends with a newline */
};

/* What was read of a file with members. */
struct reading {
	z_stream stream;
	int fd;
	struct whole now;
	struct whole last; /* of all that came before now */
	unsigned char in[64 * 1024];
	unsigned char out[64 * 1024];
};

/*
 * After a flush a member ends with an empty stored block (RFC 1951, 3.2.4), on a whole byte. The
 * bits of data_type are those of inflate() with Z_BLOCK.
 */
static bool is_flushed(const struct reading *reading)
{
	const int block_end = 128, last_block = 64, bits = 7;
	unsigned char end[4];

	return (reading->stream.data_type & (block_end | last_block | bits)) == block_end &&
	       pread(reading->fd, end, sizeof(end), reading->now.at - 4) == sizeof(end) &&
	       !memcmp(end, "\0\0\xff\xff", 4);
}

/* What inflate() has given. */
static void take_text(struct reading *reading)
{
	size_t size = sizeof(reading->out) - reading->stream.avail_out;

	reading->now.crc = (uint32_t)crc32(reading->now.crc, reading->out, (uInt)size);
	reading->now.size += (uint32_t)size;
	if (size)
		reading->now.is_line = reading->out[size - 1] == '\n';
}

/* Takes what is in stream.avail_in, which ends at that offset of the file. 0 or -EBADMSG. */
static int inflate_all(struct reading *reading, off_t end)
{
	z_stream *stream = &reading->stream;
	int result;

	do {
		stream->next_out = reading->out;
		stream->avail_out = sizeof(reading->out);
		reading->now.is_open |= stream->avail_in > 0;
		result = inflate(stream, Z_BLOCK);
		if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
			return -EBADMSG;
		take_text(reading);
		reading->now.at = end - stream->avail_in;
		if (result == Z_STREAM_END) {
			reading->now.is_open = false;
			reading->now.crc = reading->now.size = 0;
			if (inflateReset(stream) != Z_OK)
				return -EBADMSG;
		}
		if (result == Z_STREAM_END || (result == Z_OK && is_flushed(reading)))
			reading->last = reading->now;
	} while (stream->avail_in || stream->avail_out == 0);
	return 0;
}

/* The last block, empty or with the newline that its last line lacks, and the member's trailer. */
static int end_member(const struct reading *reading)
{
	const struct whole *last = &reading->last;
	static const unsigned char empty[] = {0x03, 0x00};
	static const unsigned char newline[] = {0x01, 0x01, 0x00, 0xfe, 0xff, '\n'};
	bool adds = last->size && !last->is_line;
	size_t size = adds ? sizeof(newline) : sizeof(empty);
	uint32_t crc = adds ? (uint32_t)crc32(last->crc, newline + 5, 1) : last->crc;
	unsigned char end[sizeof(newline) + 8];

	memcpy(end, adds ? newline : empty, size);
	for (int i = 0; i < 4; i++) {
		end[size + (size_t)i] = (unsigned char)(crc >> 8 * i);
		end[size + 4 + (size_t)i] = (unsigned char)((last->size + adds) >> 8 * i);
	}
	size += 8;
	errno = 0;
	if (lseek(reading->fd, 0, SEEK_END) < 0 || write(reading->fd, end, size) != (ssize_t)size)
		return errno ? -errno : -EIO;
	return 0;
}

static int read_members(struct reading *reading)
{
	off_t at = 0;
	ssize_t count;
	int err = 0;

	while (!err && (count = pread(reading->fd, reading->in, sizeof(reading->in), at)) != 0) {
		if (count < 0)
			return -errno;
		at += count;
		reading->stream.next_in = reading->in;
		reading->stream.avail_in = (uInt)count;
		err = inflate_all(reading, at);
	}
	if (err || !reading->now.is_open)
		return err;
	/* Of a write that was cut off nothing can be used. */
	if (reading->last.at < at && ftruncate(reading->fd, reading->last.at))
		return -errno;
	if (!reading->last.is_open)
		return lseek(reading->fd, 0, SEEK_END) < 0 ? -errno : 0;
	return end_member(reading);
}

int gzip_mend(int fd)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	int err;

	if (!reading)
		return -ENOMEM;
	reading->fd = fd;
	if (inflateInit2(&reading->stream, GZIP_WINDOW) != Z_OK) {
		free(reading);
		return -ENOMEM;
	}
	err = read_members(reading);
	inflateEnd(&reading->stream);
	free(reading);
	return err;
}

static ssize_t give(void *cookie, char *data, size_t size)
{
	int count = gzread(cookie, data, size < INT32_MAX ? (unsigned int)size : INT32_MAX);
	int error;

	if (count >= 0)
		return count;
	(void)gzerror(cookie, &error);
	/* The last member has no end: what was read of it is whole, as checked by its reader. */
	if (error == Z_BUF_ERROR)
		return 0;
	errno = error == Z_ERRNO ? errno : EBADMSG;
	return -1;
}

static int close_input(void *cookie)
{
	return gzclose(cookie) == Z_OK ? 0 : -1;
}

static bool is_partial(const char *path)
{
	static const char suffix[] = ".gz.partial";
	size_t size = strlen(path);

	return size >= sizeof(suffix) && !strcmp(path + size - (sizeof(suffix) - 1), suffix);
}

FILE *gzip_open_input(const char *path)
{
	const cookie_io_functions_t functions = {.read = give, .close = close_input};
	gzFile in;
	FILE *file;

	if (!gzip_is_name(path) && !is_partial(path))
		return fopen(path, "re");
	errno = ENOMEM;
	in = gzopen(path, "rbe");
	if (!in)
		return NULL;
	file = fopencookie(in, "r", functions);
	if (!file)
		gzclose(in);
	return file;
}
