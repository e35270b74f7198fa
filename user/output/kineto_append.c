/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/kineto_append.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_read.h"
#include "base/log.h"

struct append {
	struct kineto_file *file;
	struct json_reader reader;
	uint64_t limit;
	int64_t ahead_ns; /* of file's base: what is added to times */
};

static const char *text_of(struct json_object *event, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(event, key, &value) &&
			       json_object_is_type(value, json_type_string)
		       ? json_object_get_string(value)
		       : "";
}

/* What our own file says better, or says already. */
static bool is_left_out(struct json_object *event)
{
	const char *name = text_of(event, "name");

	return (!strcmp(text_of(event, "ph"), "M") && !strncmp(name, "process_", 8)) ||
	       !strcmp(name, "Record Window End");
}

/* Times are in microseconds, with decimals. */
static void move_time(const struct append *append, struct json_object *event)
{
	struct json_object *ts;
	double us;

	if (!append->ahead_ns || !json_object_object_get_ex(event, "ts", &ts))
		return;
	us = json_object_get_double(ts) + (double)append->ahead_ns / NS_PER_US;
	json_object_object_add(event, "ts", json_object_new_double(us > 0 ? us : 0));
}

static int append_event(struct append *append)
{
	struct json *json = &append->file->json;
	struct json_object *event;
	int err = json_reader__value(&append->reader, &event);

	if (err)
		return err;
	if (append->reader.taken > append->limit)
		err = json_reader__refuse(&append->reader, "it grows while it is read");
	else if (!json_object_is_type(event, json_type_object))
		err = json_reader__refuse(&append->reader, "an event is no object");
	if (!err && !is_left_out(event)) {
		move_time(append, event);
		json_newline(json);
		json_write_value(json, NULL, event);
	}
	json_object_put(event);
	return err;
}

/* Takes the byte that a value must begin with. */
static int expect(struct json_reader *reader, char byte)
{
	int next = json_reader__peek(reader);

	if (next < JSON_END)
		return next;
	if (next != byte)
		return json_reader__refuse(reader, "it is no trace of Kineto");
	json_reader__skip(reader);
	return 0;
}

static int append_events(struct append *append)
{
	struct json_reader *reader = &append->reader;
	int err = expect(reader, '[');
	bool is_last = false;

	if (!err && json_reader__peek(reader) == ']') {
		json_reader__skip(reader);
		return 0;
	}
	reader->depth++;
	while (!err && !is_last) {
		err = append_event(append);
		if (!err)
			err = json_reader__separator(reader, ']', &is_last);
	}
	reader->depth--;
	return err;
}

/* Before the events, as Kineto writes it; without it times are those of the clock. */
static int take_base(struct append *append)
{
	struct json_object *base;
	int err = json_reader__value(&append->reader, &base);

	if (!err)
		append->ahead_ns = json_object_get_int64(base) - (int64_t)append->file->base_ns;
	json_object_put(base);
	return err;
}

static int append_members(struct append *append)
{
	struct json_reader *reader = &append->reader;
	int err = expect(reader, '{');
	bool is_last = false, done = false;

	reader->depth++;
	while (!err && !is_last && !done) {
		struct json_object *other = NULL;

		err = json_reader__key(reader);
		if (err)
			break;
		done = !strcmp(reader->text.items, "traceEvents");
		if (done)
			err = append_events(append);
		else if (!strcmp(reader->text.items, "baseTimeNanoseconds"))
			err = take_base(append);
		else
			err = json_reader__value(reader, &other);
		json_object_put(other);
		if (!err && !done)
			err = json_reader__separator(reader, '}', &is_last);
	}
	return !err && !done ? json_reader__refuse(reader, "it has no events") : err;
}

int kineto_append(struct kineto_file *file, const struct window *window, FILE *in, uint64_t limit)
{
	struct append append = {
		.file = file,
		.reader.in = in,
		.limit = limit,
		.ahead_ns = -(int64_t)file->base_ns,
	};
	int err;

	kineto_file_begin_foreign(file, window);
	err = append_members(&append);
	if (err == -EBADMSG)
		log_err("%s: the trace of PyTorch's profiler: %s", file->path, append.reader.error);
	json_reader__clear(&append.reader);
	return err;
}
