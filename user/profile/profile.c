/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "profile/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* The envelope's first member, as ferrum's schema and output/jsonl.c have it. */
#define BEGIN "{\"event\":\""

#define NAME_MAX_SIZE 64
#define SOURCE	      "ferrum-bpftrace"

bool profile_is_begin(const char *text, size_t size)
{
	size_t length = strlen(BEGIN);

	return size >= length && !memcmp(text, BEGIN, length);
}

/* The name of the event at the begin of a line, without parsing it. false: it is not there. */
static bool find_name(const char *line, size_t size, char name[NAME_MAX_SIZE])
{
	const char *from = line + strlen(BEGIN), *end;

	if (!profile_is_begin(line, size))
		return false;
	end = memchr(from, '"', size - strlen(BEGIN));
	if (!end || end - from >= NAME_MAX_SIZE || memchr(from, '\\', (size_t)(end - from)))
		return false;
	memcpy(name, from, (size_t)(end - from));
	name[end - from] = '\0';
	return true;
}

static bool is_object(struct json_object *value)
{
	return json_object_is_type(value, json_type_object);
}

/* Whether a line is an event of ours; its members are then set. */
static bool is_ours(struct json_object *value, struct profile_event *event)
{
	const char *source;

	if (!is_object(value))
		return false;
	source = profile_string(value, "source");
	event->envelope = value;
	event->name = profile_string(value, "event");
	event->shape = json_object_object_get(value, "shape");
	event->stage_us = json_object_object_get(value, "stage_us");
	return source && !strcmp(source, SOURCE) && event->name && is_object(event->shape) &&
	       is_object(event->stage_us);
}

static void count_bad(struct profile_counts *counts, const char *error)
{
	if (counts->bad++)
		return;
	counts->first_bad = counts->lines;
	snprintf(counts->error, sizeof(counts->error), "%s", error);
}

static int take_line(const struct profile_reader *reader, const char *line, size_t size,
		     struct profile_counts *counts)
{
	struct json_object *value = NULL;
	struct profile_event event;
	char error[sizeof(counts->error)], name[NAME_MAX_SIZE];
	int err;

	if (reader->wants && find_name(line, size, name) && !reader->wants(name))
		return 0;
	err = json_read(line, size, &value, error, sizeof(error));
	if (err == -EBADMSG) {
		count_bad(counts, error);
		return 0;
	}
	if (!err && !is_ours(value, &event)) {
		counts->foreign++;
	} else if (!err && (!reader->wants || reader->wants(event.name))) {
		counts->events++;
		err = reader->on_event(reader->ctx, &event);
	}
	json_object_put(value);
	return err;
}

/* A line in a buffer that grows to PROFILE_LINE_MAX; what is beyond that is passed over. */
struct line_buffer {
	char *text;
	size_t size;
	size_t length;
	bool is_long;
	bool has_end;
};

static int keep_byte(struct line_buffer *line, char byte)
{
	if (line->length == line->size) {
		size_t larger = line->size ? 2 * line->size : 4096;
		char *moved;

		if (larger > PROFILE_LINE_MAX) {
			line->is_long = true;
			return 0;
		}
		moved = realloc(line->text, larger);
		if (!moved)
			return -ENOMEM;
		line->text = moved;
		line->size = larger;
	}
	line->text[line->length++] = byte;
	return 0;
}

/* 1: there is a line; 0: the file has ended; or -errno. */
static int next_line(FILE *in, struct line_buffer *line)
{
	int byte, err = 0;

	line->length = 0;
	line->is_long = line->has_end = false;
	flockfile(in);
	while (!err && (byte = getc_unlocked(in)) != EOF && byte != '\n')
		err = line->is_long ? 0 : keep_byte(line, (char)byte);
	funlockfile(in);
	if (err)
		return err;
	line->has_end = byte == '\n';
	if (byte == EOF && ferror(in))
		return errno ? -errno : -EIO;
	return line->has_end || line->length;
}

int profile_read(FILE *in, const char *name, const struct profile_reader *reader,
		 struct profile_counts *counts)
{
	struct line_buffer line = {0};
	uint64_t bad;
	int err;

	*counts = (struct profile_counts){0};
	while ((err = next_line(in, &line)) > 0) {
		counts->lines++;
		bad = counts->bad;
		err = 0;
		if (line.is_long)
			count_bad(counts, "longer than 1 MiB");
		else if (line.length)
			err = take_line(reader, line.text, line.length, counts);
		if (err)
			break;
		counts->is_cut = !line.has_end && counts->bad > bad;
		if (counts->is_cut)
			counts->bad--;
	}
	free(line.text);
	if (err && err != -ENOMEM && ferror(in))
		log_err("%s: %s", name, strerror(-err));
	return err;
}

bool profile_uint(struct json_object *object, const char *key, uint64_t *value)
{
	struct json_object *member = json_object_object_get(object, key);

	if (!json_object_is_type(member, json_type_int))
		return false;
	/* A negative number would be 0, one beyond INT64_MAX is kept. */
	if (json_object_get_int64(member) < 0)
		return false;
	*value = json_object_get_uint64(member);
	return true;
}

bool profile_int(struct json_object *object, const char *key, int64_t *value)
{
	struct json_object *member = json_object_object_get(object, key);

	if (!json_object_is_type(member, json_type_int))
		return false;
	*value = json_object_get_int64(member);
	return true;
}

bool profile_double(struct json_object *object, const char *key, double *value)
{
	struct json_object *member = json_object_object_get(object, key);

	if (!json_object_is_type(member, json_type_int) &&
	    !json_object_is_type(member, json_type_double))
		return false;
	*value = json_object_get_double(member);
	return true;
}

bool profile_bool(struct json_object *object, const char *key, bool *value)
{
	struct json_object *member = json_object_object_get(object, key);

	if (!json_object_is_type(member, json_type_boolean))
		return false;
	*value = json_object_get_boolean(member);
	return true;
}

const char *profile_string(struct json_object *object, const char *key)
{
	struct json_object *member = json_object_object_get(object, key);
	const char *text;

	if (!json_object_is_type(member, json_type_string))
		return NULL;
	text = json_object_get_string(member);
	return strlen(text) == (size_t)json_object_get_string_len(member) ? text : NULL;
}
