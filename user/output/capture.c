/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/capture.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "model/event.h"
#include "output/file.h"

/* Twice the longest record, so that a full buffer always has a whole one. */
#define BUFFER_BYTES (2 * DECODE_RECORD_MAX)

/* More than the header of any later version will need. */
#define HEADER_BYTES_MAX 4096

struct reader {
	FILE *in;
	const char *name;
	char *buffer;
	size_t size; /* bytes in buffer */
	bool at_end;
	bool begun; /* the first record has been checked */
};

int capture_write(FILE *out, const void *data, size_t size)
{
	int err;

	errno = 0;
	if (size && fwrite(data, size, 1, out) != 1) {
		err = errno ? -errno : -EIO;
		return err;
	}
	return 0;
}

int capture_write_header(FILE *out)
{
	const struct capture_header header = {
		.magic = CAPTURE_MAGIC,
		.version = CAPTURE_VERSION,
		.header_bytes = sizeof(header),
	};

	return capture_write(out, &header, sizeof(header));
}

struct capture_sink {
	struct sink sink;
	struct writer writer;
	int header_err;
};

static int write_records(struct sink *sink, const void *data, size_t size)
{
	struct capture_sink *capture = (struct capture_sink *)sink;
	int err = capture->header_err;

	writer_begin(&capture->writer);
	if (!err)
		err = capture_write(capture->writer.file, data, size);
	return err ? err : writer_end(&capture->writer);
}

static int poll_writer(struct sink *sink)
{
	return writer_poll(&((struct capture_sink *)sink)->writer);
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	struct capture_sink *capture = (struct capture_sink *)sink;

	return capture->header_err ? capture->header_err : writer_finish(&capture->writer);
}

static void free_sink(struct sink *sink)
{
	free(sink);
}

struct sink *sink_capture__new(FILE *out)
{
	struct capture_sink *capture = calloc(1, sizeof(*capture));

	if (!capture)
		return NULL;
	capture->sink = (struct sink){
		.name = "record",
		.is_file = true,
		.is_document = true,
		.write_records = write_records,
		.poll = poll_writer,
		.finish = finish,
		.free = free_sink,
	};
	capture->writer.file = out;
	capture->header_err = capture_write_header(out);
	return &capture->sink;
}

/* Reads until the buffer is full or the file ends. */
static int fill(struct reader *reader)
{
	int err;

	while (!reader->at_end && reader->size < BUFFER_BYTES) {
		errno = 0;
		reader->size += fread(reader->buffer + reader->size, 1, BUFFER_BYTES - reader->size,
				      reader->in);
		if (ferror(reader->in)) {
			err = errno ? -errno : -EIO;
			log_err("%s: %s", reader->name, strerror(-err));
			return err;
		}
		reader->at_end = feof(reader->in);
	}
	return 0;
}

static void drop(struct reader *reader, size_t size)
{
	memmove(reader->buffer, reader->buffer + size, reader->size - size);
	reader->size -= size;
}

static int refuse(const struct reader *reader, const char *reason)
{
	log_err("%s: %s", reader->name, reason);
	return -EBADMSG;
}

static int read_header(struct reader *reader)
{
	struct capture_header header;
	int err;

	err = fill(reader);
	if (err)
		return err;
	if (!reader->size)
		return refuse(reader, "not a capture: the file is empty");
	memset(&header, 0, sizeof(header));
	memcpy(&header, reader->buffer,
	       reader->size < sizeof(header) ? reader->size : sizeof(header));
	if (reader->size >= sizeof(header.magic) &&
	    header.magic == __builtin_bswap64(CAPTURE_MAGIC))
		return refuse(reader, "a capture from a machine of the other byte order; replay it "
				      "on such a machine");
	if (reader->size >= sizeof(header.magic) && header.magic != CAPTURE_MAGIC)
		return refuse(reader, "not a capture; name a file that --record wrote");
	if (reader->size < sizeof(header))
		return refuse(reader, "not a capture, or cut off before its first record");
	if (header.version > CAPTURE_VERSION) {
		log_err("%s: capture format %u is newer than this program's %u; use the version of "
			"ferrum-bpftrace that wrote it",
			reader->name, header.version, CAPTURE_VERSION);
		return -EOPNOTSUPP;
	}
	if (header.version && header.version < CAPTURE_VERSION) {
		log_err("%s: capture format %u is older than this program's %u; use the version of "
			"ferrum-bpftrace that wrote it, or record again",
			reader->name, header.version, CAPTURE_VERSION);
		return -EOPNOTSUPP;
	}
	if (header.version == 0 || header.header_bytes < sizeof(header) ||
	    header.header_bytes > HEADER_BYTES_MAX || header.header_bytes % 8)
		return refuse(reader, "damaged: invalid header");
	if (reader->size < header.header_bytes)
		return refuse(reader, "cut off before its first record");
	drop(reader, header.header_bytes);
	return 0;
}

/*
 * Length of the whole records at the start of the buffer. *damaged: what follows them cannot be a
 * record. Their contents are checked by decode_event later.
 */
static size_t whole_records(const struct reader *reader, bool *damaged)
{
	size_t position = 0;

	*damaged = false;
	while (reader->size - position >= sizeof(struct fbt_header)) {
		const struct fbt_header *header =
			(const struct fbt_header *)(reader->buffer + position);

		if (header->size < sizeof(*header) || header->size % 8 ||
		    header->size > DECODE_RECORD_MAX) {
			*damaged = true;
			break;
		}
		if (header->size > reader->size - position)
			break;
		position += header->size;
	}
	return position;
}

static bool begins_with_window(const struct reader *reader)
{
	return ((const struct fbt_header *)reader->buffer)->type == FBT_EVENT_WINDOW;
}

static int read_records(struct reader *reader,
			int (*on_records)(void *ctx, const void *data, size_t size), void *ctx)
{
	bool damaged;
	size_t whole;
	int err;

	do {
		err = fill(reader);
		if (err)
			return err;
		whole = whole_records(reader, &damaged);
		if (!reader->begun && whole && !begins_with_window(reader))
			return refuse(reader, "damaged: it does not begin with a window");
		reader->begun |= whole > 0;
		err = whole ? on_records(ctx, reader->buffer, whole) : 0;
		if (err)
			return err;
		drop(reader, whole);
		if (damaged)
			return refuse(reader,
				      "damaged: the records before the damage are used, the "
				      "rest is not");
	} while (!reader->at_end);

	if (reader->size || !reader->begun)
		log_warn("%s: cut off; all whole records are used", reader->name);
	return 0;
}

int capture_read(FILE *in, const char *name,
		 int (*on_records)(void *ctx, const void *data, size_t size), void *ctx)
{
	struct reader reader = {.in = in, .name = name};
	int err;

	reader.buffer = malloc(BUFFER_BYTES);
	if (!reader.buffer) {
		log_err("%s: %s", name, strerror(ENOMEM));
		return -ENOMEM;
	}
	err = read_header(&reader);
	if (!err)
		err = read_records(&reader, on_records, ctx);
	free(reader.buffer);
	return err;
}
