/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "merge/source.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/gzip.h"

/* 2000 and 2100 in milliseconds: a tag with another time is none. */
#define TAG_MS_MIN 946684800000ull
#define TAG_MS_MAX 4102444800000ull

/* Times beyond that, in microseconds, are since 1970: torch.profiler before it had a base. */
#define EPOCH_US 1e14

/* A slice that begins and lasts that long, in microseconds, still has an end in nanoseconds. */
#define MICROS_MAX 4e15

struct json_source {
	struct json_reader json;
	const struct source_taker *taker;
	struct source_facts *facts;
	bool is_absolute;
	char *error;
	char reason[128];
};

static int refuse(char *error, uint64_t number, const char *reason)
{
	snprintf(error, SOURCE_ERROR, "event %" PRIu64 ": %s", number, reason);
	return -EBADMSG;
}

/* Microseconds as nanoseconds. false: it is no time. */
static bool take_micros(struct json_object *value, int64_t *ns)
{
	double micros;

	if (json_object_is_type(value, json_type_int)) {
		int64_t whole = json_object_get_int64(value);

		if (whole < 0 || whole > (int64_t)MICROS_MAX)
			return false;
		*ns = whole * (int64_t)NS_PER_US;
		return true;
	}
	if (!json_object_is_type(value, json_type_double))
		return false;
	micros = json_object_get_double(value);
	if (!isfinite(micros) || micros < 0 || micros > MICROS_MAX)
		return false;
	*ns = (int64_t)llround(micros * (double)NS_PER_US);
	return true;
}

static const char *text_of(struct json_object *event, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(event, key, &value) ||
	    !json_object_is_type(value, json_type_string))
		return "";
	return json_object_get_string(value);
}

/* PyTorch has lanes with names instead of numbers: they are lanes of process 0. */
static int64_t number_of(struct json_object *event, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(event, key, &value) ||
	    !json_object_is_type(value, json_type_int))
		return 0;
	return json_object_get_int64(value);
}

static int take_event(struct json_source *source, struct json_object *value)
{
	struct source_event event = {.whole = value};
	struct json_object *time;
	uint64_t number = ++source->facts->events;
	const char *phase;

	if (!json_object_is_type(value, json_type_object))
		return refuse(source->error, number, "no object");
	phase = text_of(value, "ph");
	if (strlen(phase) != 1)
		return refuse(source->error, number, "no phase (\"ph\")");
	event.phase = *phase;
	event.name = text_of(value, "name");
	event.cat = text_of(value, "cat");
	event.pid = number_of(value, "pid");
	event.tid = number_of(value, "tid");
	if (json_object_object_get_ex(value, "ts", &time)) {
		event.has_time = take_micros(time, &event.ts_ns);
		if (!event.has_time)
			return refuse(source->error, number, "ts is no time in microseconds");
		source->is_absolute |= event.ts_ns > (int64_t)(EPOCH_US * NS_PER_US);
	}
	if (json_object_object_get_ex(value, "dur", &time) && !take_micros(time, &event.dur_ns))
		return refuse(source->error, number, "dur is no time in microseconds");
	if (event.phase == 'X' && !event.has_time)
		return refuse(source->error, number, "a slice without ts");
	return source->taker->take(source->taker->ctx, &event);
}

static int take_events(struct json_source *source)
{
	bool is_last = json_reader__peek(&source->json) == ']';
	int err = 0;

	if (is_last)
		json_reader__skip(&source->json);
	while (!err && !is_last) {
		struct json_object *value = NULL;

		err = json_reader__value(&source->json, &value);
		if (!err)
			err = take_event(source, value);
		json_object_put(value);
		if (!err)
			err = json_reader__separator(&source->json, ']', &is_last);
	}
	return err;
}

static void take_rank(struct json_source *source, struct json_object *value)
{
	struct json_object *rank;

	if (!json_object_is_type(value, json_type_object) ||
	    !json_object_object_get_ex(value, "rank", &rank) ||
	    !json_object_is_type(rank, json_type_int))
		return;
	source->facts->has_rank =
		json_object_get_int64(rank) >= 0 && json_object_get_int64(rank) <= INT32_MAX;
	source->facts->rank = (uint32_t)json_object_get_int64(rank);
}

/* A member of the outer object. */
static int take_member(struct json_source *source, bool *has_events)
{
	struct json_object *value = NULL;
	char key[32];
	int err = json_reader__key(&source->json);

	if (err)
		return err;
	snprintf(key, sizeof(key), "%s", source->json.text.items);
	if (!strcmp(key, "traceEvents") && json_reader__peek(&source->json) == '[') {
		json_reader__skip(&source->json);
		*has_events = true;
		source->json.depth++;
		err = take_events(source);
		source->json.depth--;
		return err;
	}
	err = json_reader__value(&source->json, &value);
	if (!err && !strcmp(key, "baseTimeNanoseconds") &&
	    json_object_is_type(value, json_type_int) && json_object_get_int64(value) > 0 &&
	    json_object_get_int64(value) <= SOURCE_BASE_MAX)
		source->facts->base_ns = json_object_get_uint64(value);
	if (!err && !strcmp(key, "distributedInfo"))
		take_rank(source, value);
	json_object_put(value);
	return err;
}

static int take_object(struct json_source *source)
{
	bool is_last = false, has_events = false;
	int err = 0;

	while (!err && !is_last) {
		err = take_member(source, &has_events);
		if (!err)
			err = json_reader__separator(&source->json, '}', &is_last);
	}
	if (!err && !has_events) {
		snprintf(source->error, SOURCE_ERROR, "no trace: it has no traceEvents");
		return -EBADMSG;
	}
	return err;
}

static int read_json(FILE *in, const struct source_taker *taker, struct source_facts *facts,
		     char *error)
{
	struct json_source source = {.json.in = in, .taker = taker, .facts = facts, .error = error};
	int byte = json_reader__peek(&source.json), err;

	facts->format = byte == '[' ? SOURCE_FERRUM : SOURCE_KINETO;
	if (byte != '[' && byte != '{') {
		snprintf(error, SOURCE_ERROR,
			 "no trace: neither JSON (an array, or an object with traceEvents) nor "
			 "Perfetto's format");
		err = byte < JSON_END ? byte : -EBADMSG;
	} else {
		json_reader__skip(&source.json);
		source.json.depth++;
		err = byte == '[' ? take_events(&source) : take_object(&source);
	}
	if (err == -EBADMSG && *source.json.error)
		snprintf(error, SOURCE_ERROR, "invalid JSON: %s at byte %" PRIu64,
			 source.json.error, source.json.taken + 1);
	/* All times are since 1970. */
	if (!facts->base_ns && source.is_absolute)
		facts->base_ns = 1;
	json_reader__clear(&source.json);
	return err;
}

/* The unix time in the name that a trace has by default, see exports.c; 0: it has another name. */
static uint64_t named_time(const char *path)
{
	const char *name = strrchr(path, '/'), *tag;
	unsigned long long pid, ms;

	name = name ? name + 1 : path;
	tag = strstr(name, "pid");
	if (!tag || sscanf(tag, "pid%llu_%13llu.", &pid, &ms) != 2 || ms < TAG_MS_MIN ||
	    ms > TAG_MS_MAX)
		return 0;
	return ms * NS_PER_MS;
}

int source_read(const char *path, const struct source_taker *taker, struct source_facts *facts,
		char error[SOURCE_ERROR])
{
	FILE *in = gzip_open_input(path);
	int err;

	*facts = (struct source_facts){.format = SOURCE_FERRUM};
	*error = '\0';
	if (!in)
		return -errno;
	if (source_is_perfetto(in))
		err = source_read_perfetto(in, taker, facts, error);
	else
		err = read_json(in, taker, facts, error);
	if (!facts->base_ns)
		facts->base_ns = named_time(path);
	if (!err && !facts->events) {
		snprintf(error, SOURCE_ERROR, "it has no events");
		err = -EBADMSG;
	}
	fclose(in);
	return err;
}
