/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "json_expect.h"
#include "kineto_rules.h"
#include "trace_check.h"

#define BLOCK_SIZE 65536
#define ERROR_SIZE 256
#define END	   (-1) /* of the file, where a byte is asked for */

/* A member that only Kineto traces of this program have. */
#define OWN_MEMBER "ferrum.mono_base_ns"

struct reader {
	FILE *in;
	char *error;
	size_t error_size;
	uint64_t events;
	struct kineto_rules *rules; /* NULL: not a Kineto trace of this program */
	struct json_lexer lexer;
	struct json_tokener *tokener;
	uint64_t offset; /* of block in the file */
	size_t at;
	size_t end;
	char block[BLOCK_SIZE];
};

typedef bool (*check_event_fn)(struct json_object *event, char *error, size_t size);

__attribute__((format(printf, 2, 3))) static int refuse(struct reader *reader, const char *format,
							...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reader->error, reader->error_size, format, arguments);
	va_end(arguments);
	return -EBADMSG;
}

static int refuse_json(struct reader *reader, const char *reason, size_t at)
{
	return refuse(reader, "invalid JSON: %s at byte %llu", reason,
		      (unsigned long long)(reader->offset + at + 1));
}

/* Makes sure that a checked byte is there; *is_end if the file has no more. */
static int fill_block(struct reader *reader, bool *is_end)
{
	size_t size;

	*is_end = false;
	if (reader->at < reader->end)
		return 0;
	if (reader->lexer.error)
		return refuse_json(reader, reader->lexer.error, reader->at);
	reader->offset += reader->end;
	reader->at = reader->end = 0;
	size = fread(reader->block, 1, BLOCK_SIZE, reader->in);
	if (!size && ferror(reader->in))
		return errno ? -errno : -EIO;
	reader->end = json_lexer_check(&reader->lexer, reader->block, size);
	if (!size)
		json_lexer_finish(&reader->lexer);
	if (!reader->end && reader->lexer.error)
		return refuse_json(reader, reader->lexer.error, 0);
	*is_end = !size;
	return 0;
}

/* Next byte that is not white space, left where it is; END at the end. */
static int peek_byte(struct reader *reader, int *byte)
{
	bool is_end;
	int err;

	for (;;) {
		err = fill_block(reader, &is_end);
		if (err)
			return err;
		*byte = is_end ? END : (unsigned char)reader->block[reader->at];
		if (is_end || !strchr(" \t\n\r", *byte))
			return 0;
		reader->at++;
	}
}

/* Any JSON value; *value is the caller's. */
static int take_value(struct reader *reader, struct json_object **value)
{
	enum json_tokener_error parse_error;
	bool is_end = false;
	int err;

	json_tokener_reset(reader->tokener);
	do {
		err = fill_block(reader, &is_end);
		if (err)
			return err;
		if (is_end)
			return refuse_json(reader, "EOF while parsing a value", reader->at);
		*value = json_tokener_parse_ex(reader->tokener, reader->block + reader->at,
					       (int)(reader->end - reader->at));
		parse_error = json_tokener_get_error(reader->tokener);
		reader->at += json_tokener_get_parse_end(reader->tokener);
	} while (parse_error == json_tokener_continue);
	if (parse_error != json_tokener_success)
		return refuse_json(reader, json_tokener_error_desc(parse_error), reader->at);
	return 0;
}

/* Behind an item: a comma, which is taken, or close, which is taken and sets *is_closed. */
static int take_separator(struct reader *reader, char close, bool *is_closed)
{
	int byte;
	int err;

	err = peek_byte(reader, &byte);
	if (err)
		return err;
	if (byte != ',' && byte != close) {
		if (close == ']')
			return refuse_json(reader,
					   byte == END ? "EOF while parsing a list"
						       : "expected `,` or `]`",
					   reader->at);
		return refuse_json(
			reader, byte == END ? "EOF while parsing an object" : "expected `,` or `}`",
			reader->at);
	}
	*is_closed = byte == close;
	reader->at++;
	return 0;
}

static int take_event(struct reader *reader, check_event_fn check)
{
	struct json_object *event = NULL;
	char reason[ERROR_SIZE];
	int err;

	err = take_value(reader, &event);
	if (err)
		return err;
	reader->events++;
	if (!check(event, reason, sizeof(reason)))
		err = -EBADMSG;
	else if (reader->rules)
		err = kineto_rules__check(reader->rules, event, reason, sizeof(reason));
	if (err == -EBADMSG)
		refuse(reader, "event %llu: %s", (unsigned long long)reader->events, reason);
	json_object_put(event);
	return err;
}

/* From behind the '[' to behind the ']'. */
static int take_events(struct reader *reader, check_event_fn check)
{
	bool is_closed = false;
	int byte;
	int err;

	err = peek_byte(reader, &byte);
	if (err)
		return err;
	if (byte == ']') {
		reader->at++;
		return 0;
	}
	while (!is_closed) {
		err = take_event(reader, check);
		if (err)
			return err;
		err = take_separator(reader, ']', &is_closed);
		if (err)
			return err;
	}
	return 0;
}

/* Declaration order of trace.rs: the first that is missing is the one that is named. */
static const struct {
	const char *name;
	bool (*expect)(struct json_object *value, char *error, size_t size);
	bool optional;
} event_fields[] = {
	{"name", json_expect_string, false}, {"cat", json_expect_string, false},
	{"ph", json_expect_char, false},     {"ts", json_expect_u64, false},
	{"dur", json_expect_u64, false},     {"pid", json_expect_u32, false},
	{"tid", json_expect_u32, false},     {"args", json_expect_map, true},
};
#define EVENT_FIELD_COUNT (sizeof(event_fields) / sizeof(event_fields[0]))

/* As serde: types in the order of the text, then what is missing. */
static bool check_seed_event(struct json_object *event, char *error, size_t size)
{
	if (!json_object_is_type(event, json_type_object)) {
		json_refuse_type(event, "struct TraceEvent", error, size);
		return false;
	}
	json_object_object_foreach(event, key, value)
	{
		for (size_t i = 0; i < EVENT_FIELD_COUNT; i++) {
			if (!strcmp(event_fields[i].name, key) &&
			    !event_fields[i].expect(value, error, size))
				return false;
		}
	}
	for (size_t i = 0; i < EVENT_FIELD_COUNT; i++) {
		if (event_fields[i].optional ||
		    json_object_object_get_ex(event, event_fields[i].name, NULL))
			continue;
		snprintf(error, size, "missing field `%s`", event_fields[i].name);
		return false;
	}
	return true;
}

static bool check_other_event(struct json_object *event, char *error, size_t size)
{
	static const char *const fields[] = {"ph", "name"};

	if (!json_object_is_type(event, json_type_object)) {
		json_refuse_type(event, "a map", error, size);
		return false;
	}
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct json_object *value;

		if (!json_object_object_get_ex(event, fields[i], &value)) {
			snprintf(error, size, "missing field `%s`", fields[i]);
			return false;
		}
		if (!json_expect_string(value, error, size))
			return false;
	}
	return true;
}

/* A member of the outer object; *is_trace is set when it is traceEvents. */
static int take_member(struct reader *reader, bool *is_trace)
{
	struct json_object *key = NULL, *value = NULL;
	int byte;
	int err;

	err = take_value(reader, &key);
	if (err)
		return err;
	if (!json_object_is_type(key, json_type_string)) {
		err = refuse_json(reader, "key must be a string", reader->at);
		goto out;
	}
	err = peek_byte(reader, &byte);
	if (err)
		goto out;
	if (byte != ':') {
		err = refuse_json(reader, "expected `:`", reader->at);
		goto out;
	}
	reader->at++;
	if (!strcmp(json_object_get_string(key), OWN_MEMBER) && !reader->rules) {
		reader->rules = kineto_rules__new();
		if (!reader->rules) {
			err = -ENOMEM;
			goto out;
		}
	}
	if (strcmp(json_object_get_string(key), "traceEvents")) {
		err = take_value(reader, &value);
		json_object_put(value);
		goto out;
	}
	*is_trace = true;
	err = peek_byte(reader, &byte);
	if (!err && byte != '[')
		err = refuse(reader, "traceEvents must be an array");
	if (err)
		goto out;
	reader->at++;
	err = take_events(reader, check_other_event);
out:
	json_object_put(key);
	return err;
}

/* From behind the '{'. Stops behind the '}'. */
static int take_object(struct reader *reader, bool *is_trace)
{
	bool is_closed = false;
	int err = 0;

	while (!err && !is_closed) {
		err = take_member(reader, is_trace);
		if (!err)
			err = take_separator(reader, '}', &is_closed);
	}
	if (!err && reader->rules)
		err = kineto_rules__finish(reader->rules, reader->error, reader->error_size);
	return err;
}

static int take_trace(struct reader *reader, bool *is_trace)
{
	int byte;
	int err;

	err = peek_byte(reader, &byte);
	if (err)
		return err;
	*is_trace = byte == '[';
	if (byte != '[' && byte != '{')
		return 0;
	reader->at++;
	if (byte == '[')
		err = take_events(reader, check_seed_event);
	else
		err = take_object(reader, is_trace);
	if (err || !*is_trace)
		return err;
	err = peek_byte(reader, &byte);
	if (!err && byte != END)
		err = refuse_json(reader, "trailing characters", reader->at);
	return err;
}

int trace_check(FILE *in, bool *is_trace, uint64_t *events, char *error, size_t size)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	int err = -ENOMEM;

	*is_trace = false;
	*events = 0;
	if (!reader)
		return -ENOMEM;
	reader->in = in;
	reader->error = error;
	reader->error_size = size;
	reader->tokener = json_tokener_new_ex(JSON_READ_DEPTH + 1);
	if (!reader->tokener)
		goto out;
	json_tokener_set_flags(reader->tokener,
			       JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS);
	err = take_trace(reader, is_trace);
	*events = reader->events;
	/* What is no trace has no faults as a trace. */
	if (err == -EBADMSG && !*is_trace)
		err = 0;
out:
	if (reader->tokener)
		json_tokener_free(reader->tokener);
	kineto_rules__free(reader->rules);
	free(reader);
	return err;
}
