/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Traces in Perfetto's format, as output/perfetto writes them: numbers of fields and clocks are
 * explained there. Of others it reads what has the same form, and says what has not.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/id_map.h"
#include "base/proto_read.h"
#include "base/vec.h"
#include "merge/source.h"

#define PACKET_BYTES_MAX (16u << 20)
#define SEQUENCES_MAX	 8192
/* Texts that are moved to make room for those that do not come in order. */
#define SHIFTS_MAX     (1ull << 28)
#define TEXTS_MAX      (4u << 20) /* of all sequences together */
#define TEXT_BYTES_MAX (16u << 10)
#define TRACKS_MAX     1000000
#define DEPTH_MAX      512

/* Lanes that are no threads: above all thread ids, and all lanes of other formats. */
#define NAMED_LANES 1000000000

enum { TRACE_PACKET_TAG = 0x0a, FIRST_PACKET_TAG = 0x32 };
enum { CLOCK_DELTA = 64, CLOCK_WINDOW = 65, CLOCK_REALTIME_ID = 1 };
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { NAMES, CATEGORIES, KEYS, VALUES, TEXT_KINDS };

struct text {
	uint64_t iid;
	char *text;
};

struct sequence {
	uint32_t id;
	bool has_clock;
	uint64_t track;
	uint64_t now_ns;
	VEC(struct text) texts[TEXT_KINDS]; /* by iid */
};

/* A slice that has begun. */
struct open_slice {
	struct json_object *whole;
	int64_t begin_ns;
	struct json_object *name, *cat; /* inside whole */
};

struct lane {
	uint64_t uuid;
	uint64_t parent;
	int64_t pid, tid;
	char *name;
	VEC(struct open_slice) open;
};

struct reading {
	const struct source_taker *taker;
	struct source_facts *facts;
	char *error;
	VEC(struct sequence) sequences;
	VEC(struct lane *) lanes;
	struct tid_map *by_uuid;
	size_t texts;
	uint64_t shifts;
	uint64_t packets;
};

/* A packet, taken apart. */
struct packet {
	uint64_t timestamp;
	bool has_clock;
	uint64_t clock;
	uint32_t sequence;
	uint64_t flags;
	struct proto_field snapshot, defaults, interned, track, event;
};

struct event {
	uint64_t type, track, name_iid, category_iid, flow, ending_flow;
	bool has_flow, has_ending_flow;
	char *name;
	struct json_object *args;
};

static int refuse(struct reading *reading, const char *reason)
{
	snprintf(reading->error, SOURCE_ERROR, "packet %" PRIu64 ": %s", reading->packets, reason);
	return -EBADMSG;
}

/* Cut: each event that names a text has a copy of it, so a small file could fill the memory. */
static char *copy_text(const struct proto_field *field)
{
	size_t size = field->size < TEXT_BYTES_MAX ? field->size : TEXT_BYTES_MAX;

	return field->data ? strndup((const char *)field->data, size) : NULL;
}

static struct sequence *find_sequence(struct reading *reading, uint32_t id)
{
	/* As ours are numbered. */
	if (id && id <= reading->sequences.count && reading->sequences.items[id - 1].id == id)
		return &reading->sequences.items[id - 1];
	vec_for_each (sequence, &reading->sequences) {
		if (sequence->id == id)
			return sequence;
	}
	if (reading->sequences.count >= SEQUENCES_MAX ||
	    vec_push(&reading->sequences, ((struct sequence){.id = id})))
		return NULL;
	return &reading->sequences.items[reading->sequences.count - 1];
}

static int take_clocks(struct reading *reading, struct sequence *sequence,
		       const struct proto_field *snapshot)
{
	struct proto_reader reader = proto_inner(snapshot);
	struct proto_field field;
	uint64_t realtime = 0, window = 0;

	while (proto_next(&reader, &field)) {
		struct proto_reader inner = proto_inner(&field);
		uint64_t id = 0, time = 0;
		struct proto_field part;

		if (field.number != 1)
			continue;
		while (proto_next(&inner, &part)) {
			if (part.number == 1)
				id = part.value;
			if (part.number == 2)
				time = part.value;
		}
		reader.bad |= inner.bad;
		if (id == CLOCK_DELTA) {
			sequence->has_clock = true;
			sequence->now_ns = time;
		}
		if (id == CLOCK_WINDOW)
			window = time;
		if (id == CLOCK_REALTIME_ID)
			realtime = time;
	}
	if (realtime > window && realtime - window <= SOURCE_BASE_MAX && !reading->facts->base_ns)
		reading->facts->base_ns = realtime - window;
	return reader.bad ? refuse(reading, "a clock snapshot that is no message") : 0;
}

static void take_defaults(struct sequence *sequence, const struct proto_field *defaults)
{
	struct proto_reader reader = proto_inner(defaults);
	struct proto_field field, part;

	while (proto_next(&reader, &field)) {
		struct proto_reader inner = proto_inner(&field);

		while (field.number == 11 && proto_next(&inner, &part)) {
			if (part.number == 11)
				sequence->track = part.value;
		}
	}
}

static int take_text(struct reading *reading, struct sequence *sequence, int kind,
		     const struct proto_field *entry)
{
	struct proto_reader reader = proto_inner(entry);
	struct text text = {0};
	struct proto_field part;
	size_t at;

	while (proto_next(&reader, &part)) {
		if (part.number == 1)
			text.iid = part.value;
		if (part.number == 2 && !text.text)
			text.text = copy_text(&part);
	}
	at = vec_lower_bound(&sequence->texts[kind], item->iid, text.iid);
	reading->shifts += sequence->texts[kind].count - at;
	if (reader.bad || !text.text || reading->texts++ >= TEXTS_MAX ||
	    reading->shifts > SHIFTS_MAX || vec_insert(&sequence->texts[kind], at, text)) {
		free(text.text);
		return refuse(reading, "an interned text that is none, or too many");
	}
	return 0;
}

static int take_interned(struct reading *reading, struct sequence *sequence,
			 const struct proto_field *interned)
{
	static const uint32_t fields[TEXT_KINDS] = {2, 1, 3, 29};
	struct proto_reader reader = proto_inner(interned);
	struct proto_field field;
	int err = 0;

	while (!err && proto_next(&reader, &field)) {
		for (int kind = 0; kind < TEXT_KINDS && !err; kind++) {
			if (field.number == fields[kind])
				err = take_text(reading, sequence, kind, &field);
		}
	}
	if (!err && reader.bad)
		err = refuse(reading, "interned data that is no message");
	return err;
}

static const char *find_text(const struct sequence *sequence, int kind, uint64_t iid)
{
	size_t at = vec_lower_bound(&sequence->texts[kind], item->iid, iid);

	if (at == sequence->texts[kind].count || sequence->texts[kind].items[at].iid != iid)
		return "";
	return sequence->texts[kind].items[at].text;
}

static struct lane *find_lane(const struct reading *reading, uint64_t uuid)
{
	return tid_map__get(reading->by_uuid, uuid);
}

static struct lane *add_lane(struct reading *reading, uint64_t uuid)
{
	struct lane *lane = calloc(1, sizeof(*lane));

	if (!lane || reading->lanes.count >= TRACKS_MAX || vec_push(&reading->lanes, lane)) {
		free(lane);
		return NULL;
	}
	lane->uuid = uuid;
	return tid_map__set(reading->by_uuid, uuid, lane) ? NULL : lane;
}

static int put(struct reading *reading, char phase, const struct lane *lane, int64_t ts_ns,
	       int64_t dur_ns, struct json_object *whole)
{
	const char text[] = {phase, '\0'};
	struct source_event event = {
		.phase = phase,
		.has_time = phase != 'M',
		.ts_ns = ts_ns,
		.dur_ns = dur_ns,
		.pid = lane->pid,
		.tid = lane->tid,
		.whole = whole,
		.name = json_object_get_string(json_object_object_get(whole, "name")),
		.cat = json_object_get_string(json_object_object_get(whole, "cat")),
	};

	event.name = event.name ? event.name : "";
	event.cat = event.cat ? event.cat : "";
	json_object_object_add(whole, "ph", json_object_new_string(text));
	json_object_object_add(whole, "pid", json_object_new_int64(lane->pid));
	json_object_object_add(whole, "tid", json_object_new_int64(lane->tid));
	reading->facts->events++;
	return reading->taker->take(reading->taker->ctx, &event);
}

static int put_name(struct reading *reading, const struct lane *lane, const char *what,
		    const char *name)
{
	struct json_object *whole = json_object_new_object(), *args = json_object_new_object();
	int err = -ENOMEM;

	if (whole && args) {
		json_object_object_add(args, "name", json_object_new_string(name));
		json_object_object_add(whole, "name", json_object_new_string(what));
		json_object_object_add(whole, "args", args);
		args = NULL;
		err = put(reading, 'M', lane, 0, 0, whole);
	}
	json_object_put(args);
	json_object_put(whole);
	return err;
}

struct track {
	uint64_t uuid, parent;
	bool is_process, is_thread;
	int64_t pid, tid;
	char *name;
};

static void take_track_part(struct track *track, const struct proto_field *field)
{
	struct proto_reader inner = proto_inner(field);
	struct proto_field part;
	uint32_t name_field = field->number == 3 ? 6 : 5;

	track->is_process |= field->number == 3;
	track->is_thread |= field->number == 4;
	while (proto_next(&inner, &part)) {
		if (part.number == 1)
			track->pid = (int32_t)part.value;
		if (part.number == 2 && track->is_thread)
			track->tid = (int64_t)part.value;
		if (part.number == name_field && !track->name)
			track->name = copy_text(&part);
	}
}

static int take_track(struct reading *reading, const struct proto_field *message)
{
	struct proto_reader reader = proto_inner(message);
	struct track track = {0};
	struct proto_field field;
	struct lane *lane, *parent;
	int err = 0;

	while (proto_next(&reader, &field)) {
		if (field.number == 1)
			track.uuid = field.value;
		if (field.number == 5)
			track.parent = field.value;
		if (field.number == 2 && !track.name)
			track.name = copy_text(&field);
		if (field.number == 3 || field.number == 4)
			take_track_part(&track, &field);
	}
	lane = find_lane(reading, track.uuid);
	parent = find_lane(reading, track.parent);
	if (!lane)
		lane = add_lane(reading, track.uuid);
	if (reader.bad || !lane) {
		free(track.name);
		return refuse(reading, "a track that is none, or too many");
	}
	lane->pid = track.is_process || track.is_thread ? track.pid : parent ? parent->pid : 0;
	lane->tid = track.is_thread	    ? track.tid
		    : track.is_process	    ? track.pid
		    : track.uuid < 1u << 30 ? NAMED_LANES + (int64_t)track.uuid
					    : NAMED_LANES;
	if (track.name && *track.name)
		err = put_name(reading, lane, track.is_process ? "process_name" : "thread_name",
			       track.name);
	free(lane->name);
	lane->name = track.name;
	return err;
}

static struct json_object *take_value(const struct sequence *sequence,
				      const struct proto_field *field)
{
	double number;

	switch (field->number) {
	case 2:
		return json_object_new_boolean(field->value != 0);
	case 3:
		return json_object_new_uint64(field->value);
	case 4:
		return json_object_new_int64((int64_t)field->value);
	case 5:
		memcpy(&number, &field->value, sizeof(number));
		return json_object_new_double(number);
	case 6:
		return field->data ? json_object_new_string_len(
					     (const char *)field->data,
					     field->size < INT32_MAX ? (int)field->size : INT32_MAX)
				   : NULL;
	case 17:
		return json_object_new_string(find_text(sequence, VALUES, field->value));
	default:
		return NULL;
	}
}

static void take_annotation(struct event *event, const struct sequence *sequence,
			    const struct proto_field *message)
{
	struct proto_reader reader = proto_inner(message);
	struct json_object *value = NULL;
	struct proto_field field;
	char *name = NULL;

	while (proto_next(&reader, &field)) {
		if (field.number == 1 && !name)
			name = strdup(find_text(sequence, KEYS, field.value));
		else if (field.number == 10 && !name)
			name = copy_text(&field);
		else if (!value)
			value = take_value(sequence, &field);
	}
	if (!event->args)
		event->args = json_object_new_object();
	if (name && value && event->args) {
		json_object_object_add(event->args, name, value);
		value = NULL;
	}
	json_object_put(value);
	free(name);
}

static bool read_event(struct event *event, const struct sequence *sequence,
		       const struct proto_field *message)
{
	struct proto_reader reader = proto_inner(message);
	struct proto_field field;

	event->track = sequence->track;
	while (proto_next(&reader, &field)) {
		switch (field.number) {
		case 3:
			event->category_iid = field.value;
			break;
		case 4:
			take_annotation(event, sequence, &field);
			break;
		case 9:
			event->type = field.value;
			break;
		case 10:
			event->name_iid = field.value;
			break;
		case 11:
			event->track = field.value;
			break;
		case 23:
			if (!event->name)
				event->name = copy_text(&field);
			break;
		case 47:
			event->flow = field.value;
			event->has_flow = true;
			break;
		case 48:
			event->ending_flow = field.value;
			event->has_ending_flow = true;
			break;
		}
	}
	return !reader.bad;
}

/* The members that all events have; args are handed over. */
static struct json_object *make_whole(struct event *event, const struct sequence *sequence)
{
	struct json_object *whole = json_object_new_object();

	if (!whole)
		return NULL;
	json_object_object_add(
		whole, "name",
		json_object_new_string(event->name ? event->name
						   : find_text(sequence, NAMES, event->name_iid)));
	json_object_object_add(
		whole, "cat",
		json_object_new_string(find_text(sequence, CATEGORIES, event->category_iid)));
	if (event->args)
		json_object_object_add(whole, "args", event->args);
	event->args = NULL;
	return whole;
}

static int begin_slice(struct reading *reading, struct lane *lane, struct json_object *whole,
		       int64_t ts_ns)
{
	struct open_slice slice = {.whole = whole, .begin_ns = ts_ns};

	if (lane->open.count < DEPTH_MAX && !vec_push(&lane->open, slice))
		return 0;
	json_object_put(whole);
	return refuse(reading, "too many slices of a track are open");
}

static int end_slice(struct reading *reading, struct lane *lane, int64_t ts_ns)
{
	struct open_slice slice;
	int64_t dur_ns;
	int err;

	if (!lane->open.count)
		return refuse(reading, "a slice ends that has not begun");
	slice = lane->open.items[--lane->open.count];
	dur_ns = ts_ns > slice.begin_ns ? ts_ns - slice.begin_ns : 0;
	err = put(reading, 'X', lane, slice.begin_ns, dur_ns, slice.whole);
	json_object_put(slice.whole);
	return err;
}

/* An instant, and the end of an arrow if it is one. */
static int put_instant(struct reading *reading, const struct lane *lane, const struct event *event,
		       struct json_object *whole, int64_t ts_ns)
{
	struct json_object *flow;
	int err;

	json_object_object_add(whole, "s", json_object_new_string("t"));
	err = put(reading, 'i', lane, ts_ns, 0, whole);
	if (err || (!event->has_flow && !event->has_ending_flow))
		return err;
	flow = json_object_new_object();
	if (!flow)
		return -ENOMEM;
	json_object_object_add(flow, "name", json_object_new_string("wake"));
	json_object_object_add(flow, "cat", json_object_new_string("wake"));
	json_object_object_add(
		flow, "id",
		json_object_new_uint64(event->has_flow ? event->flow : event->ending_flow));
	if (!event->has_flow)
		json_object_object_add(flow, "bp", json_object_new_string("e"));
	err = put(reading, event->has_flow ? 's' : 'f', lane, ts_ns, 0, flow);
	json_object_put(flow);
	return err;
}

static int take_event(struct reading *reading, const struct sequence *sequence,
		      const struct packet *packet, int64_t ts_ns)
{
	struct event event = {0};
	struct json_object *whole = NULL;
	struct lane *lane = NULL;
	int err = 0;

	if (!read_event(&event, sequence, &packet->event))
		err = refuse(reading, "an event that is no message");
	if (!err) {
		lane = find_lane(reading, event.track);
		err = lane ? 0 : refuse(reading, "an event on a track that is not described");
	}
	if (!err && event.type == TYPE_END)
		err = end_slice(reading, lane, ts_ns);
	else if (!err && (event.type == TYPE_BEGIN || event.type == TYPE_INSTANT))
		whole = make_whole(&event, sequence);
	if (whole && event.type == TYPE_BEGIN) {
		err = begin_slice(reading, lane, whole, ts_ns);
		whole = NULL;
	} else if (whole) {
		err = put_instant(reading, lane, &event, whole, ts_ns);
	}
	json_object_put(whole);
	json_object_put(event.args);
	free(event.name);
	return err;
}

static bool read_packet(struct packet *packet, const unsigned char *data, size_t size)
{
	struct proto_reader reader = {data, data + size, false};
	struct proto_field field;

	while (proto_next(&reader, &field)) {
		switch (field.number) {
		case 6:
			packet->snapshot = field;
			break;
		case 8:
			packet->timestamp = field.value;
			break;
		case 10:
			packet->sequence = (uint32_t)field.value;
			break;
		case 11:
			packet->event = field;
			break;
		case 12:
			packet->interned = field;
			break;
		case 13:
			packet->flags = field.value;
			break;
		case 58:
			packet->clock = field.value;
			packet->has_clock = true;
			break;
		case 59:
			packet->defaults = field;
			break;
		case 60:
			packet->track = field;
			break;
		}
	}
	return !reader.bad;
}

/* The time of a packet's event. */
static int take_time(struct reading *reading, struct sequence *sequence,
		     const struct packet *packet, int64_t *ts_ns)
{
	uint64_t ns = packet->timestamp;

	if (!sequence->has_clock)
		return refuse(reading, "its sequence has no clock of ours: only traces that "
				       "ferrum-bpftrace wrote can be read");
	if (!packet->has_clock || packet->clock == CLOCK_DELTA) {
		sequence->now_ns += ns;
		ns = sequence->now_ns;
	} else if (packet->clock != CLOCK_WINDOW) {
		return refuse(reading, "an unknown clock");
	}
	if (ns > INT64_MAX / 4)
		return refuse(reading, "a time that is none");
	*ts_ns = (int64_t)ns;
	return 0;
}

static int take_packet(struct reading *reading, const unsigned char *data, size_t size)
{
	struct packet packet = {0};
	struct sequence *sequence;
	int64_t ts_ns;
	int err = 0;

	reading->packets++;
	if (!read_packet(&packet, data, size))
		return refuse(reading, "no message");
	sequence = find_sequence(reading, packet.sequence);
	if (!sequence)
		return refuse(reading, "too many sequences");
	if (packet.snapshot.data)
		err = take_clocks(reading, sequence, &packet.snapshot);
	if (!err && packet.defaults.data)
		take_defaults(sequence, &packet.defaults);
	if (!err && packet.interned.data)
		err = take_interned(reading, sequence, &packet.interned);
	if (!err && packet.track.data)
		err = take_track(reading, &packet.track);
	if (!err && packet.event.data)
		err = take_time(reading, sequence, &packet, &ts_ns);
	if (!err && packet.event.data)
		err = take_event(reading, sequence, &packet, ts_ns);
	return err;
}

static int refuse_cut(struct reading *reading)
{
	reading->facts->is_cut = true;
	return refuse(reading, "the file ends within the next one");
}

/* The length before a packet. 1: it was read; 0: the file ends; or -EBADMSG. */
static int take_length(struct reading *reading, FILE *in, uint64_t *size)
{
	int byte = getc(in);

	if (byte == EOF)
		return 0;
	*size = 0;
	if (byte != TRACE_PACKET_TAG)
		return refuse(reading, "what follows is no packet");
	for (unsigned int shift = 0; shift < 35; shift += 7) {
		byte = getc(in);
		if (byte == EOF)
			return refuse_cut(reading);
		*size |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return *size <= PACKET_BYTES_MAX ? 1 : refuse(reading, "too large");
	}
	return refuse(reading, "what follows is no packet");
}

static void clear(struct reading *reading)
{
	vec_for_each (sequence, &reading->sequences) {
		for (int kind = 0; kind < TEXT_KINDS; kind++) {
			vec_for_each (text, &sequence->texts[kind])
				free(text->text);
			vec_free(&sequence->texts[kind]);
		}
	}
	vec_for_each (lane, &reading->lanes) {
		vec_for_each (slice, &(*lane)->open)
			json_object_put(slice->whole);
		vec_free(&(*lane)->open);
		free((*lane)->name);
		free(*lane);
	}
	vec_free(&reading->sequences);
	vec_free(&reading->lanes);
	tid_map__free(reading->by_uuid);
}

int source_read_perfetto(FILE *in, const struct source_taker *taker, struct source_facts *facts,
			 char error[SOURCE_ERROR])
{
	struct reading reading = {.taker = taker, .facts = facts, .by_uuid = tid_map__new()};
	unsigned char *data = malloc(PACKET_BYTES_MAX);
	uint64_t size;
	int err = data && reading.by_uuid ? 1 : -ENOMEM;

	reading.error = error;
	facts->format = SOURCE_PERFETTO;
	while (err > 0) {
		err = take_length(&reading, in, &size);
		if (err <= 0)
			break;
		if (fread(data, 1, (size_t)size, in) != size)
			err = refuse_cut(&reading);
		else
			err = take_packet(&reading, data, (size_t)size);
		err = err ? err : 1;
	}
	if (!err && ferror(in))
		err = -EIO;
	clear(&reading);
	free(data);
	return err;
}

/* The first packet has a clock snapshot. In JSON no number follows a line that is otherwise empty.
 */
bool source_is_perfetto(FILE *in)
{
	int bytes[3];

	for (int i = 0; i < 3; i++)
		bytes[i] = getc(in);
	for (int i = 2; i >= 0; i--) {
		if (bytes[i] != EOF)
			ungetc(bytes[i], in);
	}
	return bytes[0] == TRACE_PACKET_TAG && bytes[2] == FIRST_PACKET_TAG;
}
