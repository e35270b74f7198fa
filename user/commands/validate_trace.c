/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/validate_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/json_read.h"
#include "output/kineto_file.h"

/* A member that only Kineto traces of this program have. */
#define OWN_MEMBER "ferrum.mono_base_ns"

/* Marks of a correlation, which is also the id of its arrow. */
#define MARK_HOST  1u
#define MARK_WORK  2u
#define MARK_BEGIN 4u
#define MARK_END   8u

struct reader {
	struct json_reader json;
	char *error;
	size_t error_size;
	uint64_t events;
	struct id_set *ids; /* marks of correlations; NULL: not a Kineto trace of this program */
	bool is_foreign;    /* the events that follow are of PyTorch's profiler */
	char reason[256];   /* of an event */
};

__attribute__((format(printf, 2, 3))) static int refuse(struct reader *reader, const char *format,
							...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reader->error, reader->error_size, format, arguments);
	va_end(arguments);
	return -EBADMSG;
}

/* The same about an event; take_event counts the events. */
__attribute__((format(printf, 2, 3))) static int refuse_event(struct reader *reader,
							      const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reader->reason, sizeof(reader->reason), format, arguments);
	va_end(arguments);
	return -EBADMSG;
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
static int check_seed_event(struct reader *reader, struct json_object *event)
{
	if (!json_object_is_type(event, json_type_object)) {
		json_refuse(event, "an event", reader->reason, sizeof(reader->reason));
		return -EBADMSG;
	}
	json_object_object_foreach(event, key, value)
	{
		for (size_t i = 0; i < EVENT_FIELD_COUNT; i++) {
			if (!strcmp(event_fields[i].name, key) &&
			    !event_fields[i].expect(value, reader->reason, sizeof(reader->reason)))
				return -EBADMSG;
		}
	}
	for (size_t i = 0; i < EVENT_FIELD_COUNT; i++) {
		if (event_fields[i].optional ||
		    json_object_object_get_ex(event, event_fields[i].name, NULL))
			continue;
		return refuse_event(reader, "missing field `%s`", event_fields[i].name);
	}
	return 0;
}

static int check_other_event(struct reader *reader, struct json_object *event)
{
	static const char *const fields[] = {"ph", "name"};

	if (!json_object_is_type(event, json_type_object)) {
		json_refuse(event, "a map", reader->reason, sizeof(reader->reason));
		return -EBADMSG;
	}
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct json_object *value;

		if (!json_object_object_get_ex(event, fields[i], &value)) {
			return refuse_event(reader, "missing field `%s`", fields[i]);
		}
		if (!json_expect_string(value, reader->reason, sizeof(reader->reason)))
			return -EBADMSG;
	}
	return 0;
}

/* NULL: there is none. */
static struct json_object *member(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, name, &value);
	return value;
}

static int need_text(struct reader *reader, struct json_object *event, const char *name,
		     const char **text)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(event, name, &value))
		return refuse_event(reader, "missing field `%s`", name);
	if (!json_expect_string(value, reader->reason, sizeof(reader->reason)))
		return -EBADMSG;
	*text = json_object_get_string(value);
	return 0;
}

static int need_time(struct reader *reader, struct json_object *event, const char *name)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(event, name, &value))
		return refuse_event(reader, "missing field `%s`", name);
	if (!json_object_is_type(value, json_type_double) &&
	    !json_object_is_type(value, json_type_int)) {
		json_refuse(value, "microseconds", reader->reason, sizeof(reader->reason));
		return -EBADMSG;
	}
	if (json_object_get_double(value) < 0)
		return refuse_event(reader, "%s is negative", name);
	return 0;
}

/* Reads a number of the event or of its args. false: it is absent, or no number from least up. */
static bool take_number(struct json_object *object, const char *name, int64_t least, uint64_t *id)
{
	struct json_object *value = member(object, name);

	if (!value || !json_object_is_type(value, json_type_int) ||
	    json_object_get_int64(value) < least)
		return false;
	*id = json_object_get_uint64(value);
	return true;
}

static int need_lane(struct reader *reader, struct json_object *event)
{
	static const char *const names[] = {"pid", "tid"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct json_object *value = member(event, names[i]);

		if (!value)
			return refuse_event(reader, "missing field `%s`", names[i]);
		if (!json_object_is_type(value, json_type_int)) {
			json_refuse(value, "a number", reader->reason, sizeof(reader->reason));
			return -EBADMSG;
		}
	}
	return 0;
}

static int need_args(struct reader *reader, struct json_object *event, struct json_object **args)
{
	*args = member(event, "args");
	if (!*args)
		return refuse_event(reader, "missing field `args`");
	return json_expect_map(*args, reader->reason, sizeof(reader->reason)) ? 0 : -EBADMSG;
}

static bool is_one_of(const char *text, const char *const *names)
{
	for (; *names; names++) {
		if (!strcmp(text, *names))
			return true;
	}
	return false;
}

/* cat: kernel, gpu_memcpy, gpu_memset, or kernel_uncorrelated. */
static int check_work(struct reader *reader, const char *cat, struct json_object *args)
{
	uint64_t stream, correlation;

	if (!take_number(args, "stream", 0, &stream))
		return refuse_event(reader, "%s without args.stream", cat);
	if (!strcmp(cat, "kernel_uncorrelated")) {
		if (member(args, "correlation"))
			return refuse_event(reader, "%s with args.correlation", cat);
		return 0;
	}
	if (!take_number(args, "correlation", 1, &correlation))
		return refuse_event(reader, "%s without args.correlation", cat);
	return id_set__mark(reader->ids, correlation, MARK_WORK);
}

static int check_host(struct reader *reader, const char *name, struct json_object *args)
{
	uint64_t correlation;

	if (member(args, "stream"))
		return refuse_event(reader, "args.stream on %s, which is no work of a device",
				    name);
	if (!member(args, "correlation"))
		return 0;
	if (!take_number(args, "correlation", 1, &correlation))
		return refuse_event(reader, "args.correlation of %s is no number above 0", name);
	if (id_set__marks(reader->ids, correlation) & MARK_HOST)
		return refuse_event(reader, "correlation %llu is on two host events",
				    (unsigned long long)correlation);
	return id_set__mark(reader->ids, correlation, MARK_HOST);
}

static int check_slice(struct reader *reader, struct json_object *event, const char *name)
{
	static const char *const work[] = {"kernel", "gpu_memcpy", "gpu_memset",
					   "kernel_uncorrelated", NULL};
	struct json_object *args = NULL;
	const char *cat = "";
	int err = need_text(reader, event, "cat", &cat);

	if (!err)
		err = need_time(reader, event, "dur");
	if (!err)
		err = need_args(reader, event, &args);
	if (err)
		return err;
	if (is_one_of(cat, work))
		return check_work(reader, cat, args);
	/* A sync may have the correlation of its call. */
	if (!strcmp(cat, "cuda_sync") && !member(args, "stream"))
		return 0;
	return check_host(reader, name, args);
}

static int check_arrow(struct reader *reader, struct json_object *event, char phase)
{
	const char *cat = "";
	uint64_t id;
	int err = need_text(reader, event, "cat", &cat);

	if (err)
		return err;
	if (!take_number(event, "id", 1, &id))
		return refuse_event(reader, "an arrow without an id");
	return id_set__mark(reader->ids, id, phase == 's' ? MARK_BEGIN : MARK_END);
}

/* A trace of torch.profiler's form that this program wrote. */
static int check_own_event(struct reader *reader, struct json_object *event)
{
	struct json_object *args;
	const char *name = "", *phase = "";
	int err = need_text(reader, event, "name", &name);

	if (!err)
		err = need_text(reader, event, "ph", &phase);
	if (!err && (strlen(phase) != 1 || !strchr("XMsfi", *phase)))
		err = refuse_event(reader, "unknown phase \"%s\"", phase);
	if (!err)
		err = need_time(reader, event, "ts");
	if (!err)
		err = need_lane(reader, event);
	if (err)
		return err;
	switch (*phase) {
	case 'X':
		return check_slice(reader, event, name);
	case 'M':
		reader->is_foreign = !strcmp(name, KINETO_FOREIGN);
		return need_args(reader, event, &args);
	case 's':
	case 'f':
		return check_arrow(reader, event, *phase);
	}
	return 0;
}

/* After all events. */
static int check_pairs(struct reader *reader)
{
	uint64_t id;

	if (id_set__find(reader->ids, MARK_WORK, MARK_HOST, &id))
		return refuse(reader, "no host event has correlation %llu, which work has",
			      (unsigned long long)id);
	if (id_set__find(reader->ids, MARK_END, MARK_BEGIN, &id))
		return refuse(reader, "arrow %llu ends and does not begin", (unsigned long long)id);
	if (id_set__find(reader->ids, MARK_BEGIN, MARK_END, &id))
		return refuse(reader, "arrow %llu begins and does not end", (unsigned long long)id);
	return 0;
}

static int take_event(struct reader *reader, bool of_seed)
{
	struct json_object *event = NULL;
	int err = json_reader__value(&reader->json, &event);

	if (err)
		return err;
	reader->events++;
	err = of_seed ? check_seed_event(reader, event) : check_other_event(reader, event);
	if (!err && reader->ids && !reader->is_foreign)
		err = check_own_event(reader, event);
	if (err == -EBADMSG)
		refuse(reader, "event %" PRIu64 ": %s", reader->events, reader->reason);
	json_object_put(event);
	return err;
}

/* From after the '[' to after the ']'. */
static int take_events(struct reader *reader, bool of_seed)
{
	bool is_closed = json_reader__peek(&reader->json) == ']';
	int err = 0;

	if (is_closed)
		json_reader__skip(&reader->json);
	while (!err && !is_closed) {
		err = take_event(reader, of_seed);
		if (!err)
			err = json_reader__separator(&reader->json, ']', &is_closed);
	}
	return err;
}

/* A member of the outer object; *is_trace is set when it is traceEvents. */
static int take_member(struct reader *reader, bool *is_trace)
{
	struct json_object *value = NULL;
	int err = json_reader__key(&reader->json);
	const char *key = reader->json.text.items;

	if (err)
		return err;
	if (!strcmp(key, OWN_MEMBER) && !reader->ids) {
		reader->ids = id_set__new();
		if (!reader->ids)
			return -ENOMEM;
	}
	if (strcmp(key, "traceEvents") != 0) {
		err = json_reader__value(&reader->json, &value);
		json_object_put(value);
		return err;
	}
	*is_trace = true;
	if (json_reader__peek(&reader->json) != '[')
		return refuse(reader, "traceEvents must be an array");
	json_reader__skip(&reader->json);
	reader->json.depth++;
	return take_events(reader, false);
}

/* From after the '{' to after the '}'. */
static int take_object(struct reader *reader, bool *is_trace)
{
	bool is_closed = false;
	int err = 0;

	while (!err && !is_closed) {
		err = take_member(reader, is_trace);
		if (!err)
			err = json_reader__separator(&reader->json, '}', &is_closed);
	}
	if (!err && reader->ids)
		err = check_pairs(reader);
	return err;
}

static int take_trace(struct reader *reader, bool *is_trace)
{
	int byte = json_reader__peek(&reader->json), err;

	*is_trace = byte == '[';
	if (byte != '[' && byte != '{')
		return byte < JSON_END ? byte : 0;
	json_reader__skip(&reader->json);
	reader->json.depth++;
	if (byte == '[')
		err = take_events(reader, true);
	else
		err = take_object(reader, is_trace);
	if (!err && *is_trace && json_reader__peek(&reader->json) != JSON_END)
		err = json_reader__refuse(&reader->json, "trailing characters");
	if (err == -EBADMSG && *reader->json.error)
		refuse(reader, "invalid JSON: %s at byte %" PRIu64, reader->json.error,
		       reader->json.taken + 1);
	return err;
}

int validate_trace(FILE *in, bool may_be_partial, struct trace_facts *facts, char *error,
		   size_t size)
{
	struct reader reader = {.json.in = in, .error_size = size};
	bool is_trace = false;
	int err;

	reader.error = error;
	err = take_trace(&reader, &is_trace);

	*facts = (struct trace_facts){
		.is_trace = is_trace,
		.is_partial = err == -EBADMSG && may_be_partial && *reader.json.error &&
			      json_reader__peek(&reader.json) == JSON_END,
		.events = reader.events,
	};
	id_set__free(reader.ids);
	json_reader__clear(&reader.json);
	/* What is no trace has no faults as a trace. */
	return err == -EBADMSG && (!is_trace || facts->is_partial) ? 0 : err;
}
