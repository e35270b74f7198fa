/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/perfetto.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/id_map.h"
#include "base/proto.h"
#include "base/vec.h"
#include "output/trace_slices.h"
#include "output/trace_encoder.h"

/* Numbers of fields, from protos/perfetto/trace/perfetto_trace.proto. */
enum { TRACE_PACKET = 1 };
enum {
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TIMESTAMP_CLOCK = 58,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
};
enum { SNAPSHOT_CLOCKS = 1, SNAPSHOT_PRIMARY = 2, CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };
enum {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
};
enum { PROCESS_PID = 1, PROCESS_NAME = 6, THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { COUNTER_UNIT = 3, UNIT_TIME_NS = 1, UNIT_COUNT = 2 };
enum {
	EVENT_CATEGORY_IIDS = 3,
	EVENT_ANNOTATIONS = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK = 11,
	EVENT_NAME = 23,
	EVENT_COUNTER_VALUE = 30,
	EVENT_FLOWS = 47,
	EVENT_ENDING_FLOWS = 48,
};
enum { TYPE_SLICE_BEGIN = 1, TYPE_SLICE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum {
	ANNOTATION_NAME_IID = 1,
	ANNOTATION_BOOL = 2,
	ANNOTATION_UINT = 3,
	ANNOTATION_INT = 4,
	ANNOTATION_DOUBLE = 5,
	ANNOTATION_STRING = 6,
	ANNOTATION_NAME = 10,
	ANNOTATION_STRING_IID = 17,
};
enum {
	INTERNED_CATEGORIES = 1,
	INTERNED_EVENT_NAMES = 2,
	INTERNED_ANNOTATION_NAMES = 3,
	INTERNED_ANNOTATION_STRINGS = 29,
};
enum { INTERNED_IID = 1, INTERNED_NAME = 2 };
enum { FLAG_STATE_CLEARED = 1, FLAG_NEEDS_STATE = 2 };

#define SEQUENCE 1

/* Of ours: nanoseconds since the window began. 64 to 127 belong to a sequence. */
#define CLOCK_WINDOW 64

/* Beyond that, and of values if they are longer, texts are written out each time. */
#define INTERNED_MAX   65536
#define VALUE_SIZE_MAX 64

struct name {
	char *text;
	uint64_t iid;
};

/* Texts that are written once and then have a number. */
struct names {
	void *tree; /* of struct name, by text; see tsearch(3) */
	uint64_t count;
	uint32_t field; /* of InternedData */
};

enum track_kind { TRACK_OF_PROCESS, TRACK_OF_LANE, TRACK_OF_DURATION, TRACK_OF_ARGUMENT };

struct track {
	enum track_kind kind;
	uint32_t pid;
	uint32_t lane; /* or the kind of step of a counter */
};

struct perfetto {
	struct trace_encoder encoder; /* first */
	FILE *out;
	struct proto packet;
	struct proto interned; /* what the packet is the first to use */
	struct names event_names, categories, keys, values;
	struct tid_map *uuids; /* from a track to its index + 1 in tracks, which is its uuid */
	VEC(struct track) tracks;
	uint64_t flows;
	bool begun;
};

static int compare_names(const void *left, const void *right)
{
	return strcmp(((const struct name *)left)->text, ((const struct name *)right)->text);
}

static void free_name(void *node)
{
	struct name *name = node;

	free(name->text);
	free(name);
}

/* The number of a text, or 0: too many, or no memory. */
static uint64_t intern(struct perfetto *perfetto, struct names *names, const char *text)
{
	struct name key = {.text = (char *)text}, *name;
	struct name **found = tfind(&key, &names->tree, compare_names);
	size_t begun;

	if (found)
		return (*found)->iid;
	if (names->count >= INTERNED_MAX)
		return 0;
	name = malloc(sizeof(*name));
	if (!name)
		return 0;
	*name = (struct name){.text = strdup(text), .iid = names->count + 1};
	if (!name->text || !tsearch(name, &names->tree, compare_names)) {
		free_name(name);
		return 0;
	}
	names->count++;
	begun = proto_begin(&perfetto->interned, names->field);
	proto_uint(&perfetto->interned, INTERNED_IID, name->iid);
	proto_string(&perfetto->interned, INTERNED_NAME, text);
	proto_end(&perfetto->interned, begun);
	return name->iid;
}

/* Ends a packet and writes it. */
static int put_packet(struct perfetto *perfetto)
{
	struct proto *packet = &perfetto->packet;
	struct proto head = {0};
	int err;

	proto_uint(packet, PACKET_SEQUENCE, SEQUENCE);
	proto_uint(packet, PACKET_SEQUENCE_FLAGS,
		   perfetto->begun ? FLAG_NEEDS_STATE : FLAG_STATE_CLEARED);
	perfetto->begun = true;
	if (perfetto->interned.size)
		proto_message(packet, PACKET_INTERNED_DATA, perfetto->interned.data,
			      perfetto->interned.size);
	proto_message(&head, TRACE_PACKET, packet->data, packet->err ? 0 : packet->size);
	if (!head.err && !packet->err && !perfetto->interned.err)
		fwrite(head.data, 1, head.size, perfetto->out);
	else
		head.err = -ENOMEM;
	err = head.err;
	proto_reset(packet);
	proto_reset(&perfetto->interned);
	proto_free(&head);
	return err;
}

static void put_clock(struct proto *packet, uint64_t id, uint64_t timestamp)
{
	size_t clock = proto_begin(packet, SNAPSHOT_CLOCKS);

	proto_uint(packet, CLOCK_ID, id);
	proto_uint(packet, CLOCK_TIMESTAMP, timestamp);
	proto_end(packet, clock);
}

/* The first packet: which clock the others' times are of. */
static int begin(struct perfetto *perfetto, const struct window *window)
{
	struct proto *packet = &perfetto->packet;
	size_t begun;

	if (perfetto->begun)
		return 0;
	begun = proto_begin(packet, PACKET_CLOCK_SNAPSHOT);
	put_clock(packet, CLOCK_WINDOW, 0);
	put_clock(packet, 3 /* BUILTIN_CLOCK_MONOTONIC */, window->record.start_ns);
	put_clock(packet, 1 /* BUILTIN_CLOCK_REALTIME */, window->record.realtime_ns);
	proto_uint(packet, SNAPSHOT_PRIMARY, 3);
	proto_end(packet, begun);
	begun = proto_begin(packet, PACKET_DEFAULTS);
	proto_uint(packet, PACKET_TIMESTAMP_CLOCK, CLOCK_WINDOW);
	proto_end(packet, begun);
	return put_packet(perfetto);
}

static void put_process(struct proto *packet, const struct window *window, uint32_t pid)
{
	char title[PROCESS_TITLE_MAX];
	size_t begun = proto_begin(packet, TRACK_PROCESS);

	proto_uint(packet, PROCESS_PID, pid);
	proto_string(packet, PROCESS_NAME, window__process_title(window, pid, title));
	proto_end(packet, begun);
}

static void put_lane(struct proto *packet, const struct window *window, const struct track *track,
		     uint64_t parent)
{
	char name[LANE_NAME_SIZE];
	const char *comm;
	size_t begun;

	if (lane_name(track->lane, name)) {
		proto_uint(packet, TRACK_PARENT, parent);
		proto_string(packet, TRACK_NAME, name);
		return;
	}
	begun = proto_begin(packet, TRACK_THREAD);
	proto_uint(packet, THREAD_PID, track->pid);
	proto_uint(packet, THREAD_TID, track->lane);
	comm = window__thread_name(window, track->lane);
	if (comm)
		proto_string(packet, THREAD_NAME, comm);
	proto_end(packet, begun);
}

static void put_counter(struct proto *packet, const struct window *window,
			const struct track *track, uint64_t parent)
{
	bool is_duration = track->kind == TRACK_OF_DURATION;
	const char *arg = window->kinds[track->lane].arg_names[0];
	char *name;
	size_t begun;

	if (asprintf(&name, "%s %s", window__kind_name(window, track->lane),
		     is_duration ? "duration"
		     : arg	 ? arg
				 : "argument") < 0) {
		packet->err = -ENOMEM;
		return;
	}
	proto_uint(packet, TRACK_PARENT, parent);
	proto_string(packet, TRACK_NAME, name);
	free(name);
	begun = proto_begin(packet, TRACK_COUNTER);
	proto_uint(packet, COUNTER_UNIT, is_duration ? UNIT_TIME_NS : UNIT_COUNT);
	proto_end(packet, begun);
}

/* A descriptor may be written again when names are known better. */
static int describe(struct perfetto *perfetto, const struct window *window, uint64_t uuid,
		    uint64_t parent)
{
	const struct track *track = &perfetto->tracks.items[uuid - 1];
	struct proto *packet = &perfetto->packet;
	size_t begun = proto_begin(packet, PACKET_TRACK_DESCRIPTOR);

	proto_uint(packet, TRACK_UUID, uuid);
	switch (track->kind) {
	case TRACK_OF_PROCESS:
		put_process(packet, window, track->pid);
		break;
	case TRACK_OF_LANE:
		put_lane(packet, window, track, parent);
		break;
	default:
		put_counter(packet, window, track, parent);
	}
	proto_end(packet, begun);
	return put_packet(perfetto);
}

static uint64_t find_track(const struct perfetto *perfetto, enum track_kind kind, uint32_t pid,
			   uint32_t lane)
{
	/* Process IDs have 22 bits at most (PID_MAX_LIMIT). */
	uint64_t id = (uint64_t)kind << 62 | (uint64_t)pid << 32 | lane;

	return (uint64_t)(uintptr_t)tid_map__get(perfetto->uuids, id);
}

/* The uuid of a track, which is described before its first use; 0: no memory. */
static uint64_t track_of(struct perfetto *perfetto, const struct window *window,
			 enum track_kind kind, uint32_t pid, uint32_t lane)
{
	uint64_t uuid = find_track(perfetto, kind, pid, lane), parent = 0;
	struct track track = {kind, pid, lane};

	if (uuid)
		return uuid;
	if (kind != TRACK_OF_PROCESS) {
		parent = track_of(perfetto, window, TRACK_OF_PROCESS, pid, 0);
		if (!parent)
			return 0;
	}
	if (vec_push(&perfetto->tracks, track))
		return 0;
	uuid = perfetto->tracks.count;
	if (tid_map__set(perfetto->uuids, (uint64_t)kind << 62 | (uint64_t)pid << 32 | lane,
			 (void *)(uintptr_t)uuid))
		return 0;
	return describe(perfetto, window, uuid, parent) ? 0 : uuid;
}

static uint64_t to_ts(const struct window *window, uint64_t ns)
{
	return sub_saturating(ns, window->record.start_ns);
}

static size_t begin_event(struct perfetto *perfetto, uint64_t ts, unsigned int type, uint64_t track)
{
	struct proto *packet = &perfetto->packet;
	size_t begun;

	proto_uint(packet, PACKET_TIMESTAMP, ts);
	begun = proto_begin(packet, PACKET_TRACK_EVENT);
	proto_uint(packet, EVENT_TYPE, type);
	proto_uint(packet, EVENT_TRACK, track);
	return begun;
}

static int end_event(struct perfetto *perfetto, size_t begun)
{
	proto_end(&perfetto->packet, begun);
	return put_packet(perfetto);
}

static void put_name(struct perfetto *perfetto, const char *name, const char *category)
{
	uint64_t iid = intern(perfetto, &perfetto->event_names, name);

	if (iid)
		proto_uint(&perfetto->packet, EVENT_NAME_IID, iid);
	else
		proto_string(&perfetto->packet, EVENT_NAME, name);
	iid = intern(perfetto, &perfetto->categories, category);
	if (iid)
		proto_uint(&perfetto->packet, EVENT_CATEGORY_IIDS, iid);
}

static void put_value_text(struct perfetto *perfetto, const char *text)
{
	uint64_t iid = strnlen(text, VALUE_SIZE_MAX) < VALUE_SIZE_MAX
			       ? intern(perfetto, &perfetto->values, text)
			       : 0;

	if (iid)
		proto_uint(&perfetto->packet, ANNOTATION_STRING_IID, iid);
	else
		proto_string(&perfetto->packet, ANNOTATION_STRING, text);
}

static void put_args(struct perfetto *perfetto, const struct json_fields *args)
{
	struct proto *packet = &perfetto->packet;

	for (uint32_t i = 0; i < args->count; i++) {
		const struct json_field *field = &args->items[i];
		uint64_t iid = intern(perfetto, &perfetto->keys, field->key);
		size_t begun = proto_begin(packet, EVENT_ANNOTATIONS);

		if (iid)
			proto_uint(packet, ANNOTATION_NAME_IID, iid);
		else
			proto_string(packet, ANNOTATION_NAME, field->key);
		switch (field->type) {
		case JSON_FIELD_UINT:
			proto_uint(packet, ANNOTATION_UINT, field->u);
			break;
		case JSON_FIELD_INT:
			proto_int(packet, ANNOTATION_INT, field->i);
			break;
		case JSON_FIELD_DOUBLE:
			proto_double(packet, ANNOTATION_DOUBLE, field->d);
			break;
		case JSON_FIELD_BOOL:
			proto_uint(packet, ANNOTATION_BOOL, field->b);
			break;
		case JSON_FIELD_STRING:
			put_value_text(perfetto, field->s);
			break;
		}
		proto_end(packet, begun);
	}
}

static int write_slice(struct trace_encoder *encoder, const struct window *window,
		       const struct slice *slice, const struct json_fields *args)
{
	struct perfetto *perfetto = (struct perfetto *)encoder;
	uint64_t start = to_ts(window, slice->start_ns);
	uint64_t end = max_u64(to_ts(window, slice->end_ns), start);
	int err = begin(perfetto, window);
	uint64_t track =
		err ? 0 : track_of(perfetto, window, TRACK_OF_LANE, slice->pid, slice->tid);
	size_t event;

	if (!track)
		return -ENOMEM;
	event = begin_event(perfetto, start, TYPE_SLICE_BEGIN, track);
	put_name(perfetto, slice->name, slice->cat);
	put_args(perfetto, args);
	err = end_event(perfetto, event);
	if (err)
		return err;
	event = begin_event(perfetto, end, TYPE_SLICE_END, track);
	return end_event(perfetto, event);
}

static int put_value(struct perfetto *perfetto, const struct window *window, enum track_kind kind,
		     const struct step *step, int64_t value)
{
	uint64_t track = track_of(perfetto, window, kind, step->record.tgid, step->record.kind);
	size_t event;

	if (!track)
		return -ENOMEM;
	event = begin_event(perfetto, to_ts(window, step->record.start_ns), TYPE_COUNTER, track);
	proto_int(&perfetto->packet, EVENT_COUNTER_VALUE, value);
	return end_event(perfetto, event);
}

/* One end of an arrow. */
static int put_flow(struct perfetto *perfetto, const struct window *window,
		    const struct fbt_wake *wake, bool is_waker, uint32_t lane)
{
	uint64_t track = track_of(perfetto, window, TRACK_OF_LANE, wake->tgid, lane);
	struct json_fields args = {.count = 0};
	size_t event;

	if (!track)
		return -ENOMEM;
	json_fields_uint(&args, "tid", is_waker ? wake->tid : wake->waker_tid);
	json_fields_uint(&args, "waited_us",
			 sub_saturating(wake->wake_ns, wake->start_ns) / NS_PER_US);
	event = begin_event(perfetto, to_ts(window, wake->wake_ns), TYPE_INSTANT, track);
	put_name(perfetto, is_waker ? "ends a wait" : "wait is ended", "wake");
	put_args(perfetto, &args);
	proto_fixed64(&perfetto->packet, is_waker ? EVENT_FLOWS : EVENT_ENDING_FLOWS,
		      perfetto->flows);
	return end_event(perfetto, event);
}

static int write_step(struct trace_encoder *encoder, const struct window *window,
		      const struct step *step, uint32_t lane)
{
	struct perfetto *perfetto = (struct perfetto *)encoder;
	int err = 0;

	if (step->record.kind < FBT_KIND_COUNT)
		err = put_value(perfetto, window, TRACK_OF_DURATION, step,
				(int64_t)step_total_ns(step));
	if (!err && step->record.kind < FBT_KIND_COUNT && step->record.arg_mask & 1)
		err = put_value(perfetto, window, TRACK_OF_ARGUMENT, step, step->record.args[0]);
	vec_for_each (wake, &step->wakes) {
		if (err || !wake->waker_tid)
			continue;
		perfetto->flows++;
		err = put_flow(perfetto, window, wake, true, wake->waker_tid);
		if (!err)
			err = put_flow(perfetto, window, wake, false, lane);
	}
	return err;
}

/* Names that were not yet known when a track began. */
static int finish(struct trace_encoder *encoder, const struct window *window)
{
	struct perfetto *perfetto = (struct perfetto *)encoder;
	int err = begin(perfetto, window);

	for (size_t i = 0; i < perfetto->tracks.count && !err; i++)
		err = describe(
			perfetto, window, i + 1,
			find_track(perfetto, TRACK_OF_PROCESS, perfetto->tracks.items[i].pid, 0));
	return err;
}

static void free_encoder(struct trace_encoder *encoder)
{
	struct perfetto *perfetto = (struct perfetto *)encoder;

	tdestroy(perfetto->event_names.tree, free_name);
	tdestroy(perfetto->categories.tree, free_name);
	tdestroy(perfetto->keys.tree, free_name);
	tdestroy(perfetto->values.tree, free_name);
	tid_map__free(perfetto->uuids);
	vec_free(&perfetto->tracks);
	proto_free(&perfetto->packet);
	proto_free(&perfetto->interned);
	free(perfetto);
}

struct sink *sink_perfetto__new(FILE *out)
{
	struct perfetto *perfetto = calloc(1, sizeof(*perfetto));

	if (!perfetto)
		return NULL;
	perfetto->encoder = (struct trace_encoder){
		.slice = write_slice, .step = write_step, .finish = finish, .free = free_encoder};
	perfetto->out = out;
	perfetto->event_names.field = INTERNED_EVENT_NAMES;
	perfetto->categories.field = INTERNED_CATEGORIES;
	perfetto->keys.field = INTERNED_ANNOTATION_NAMES;
	perfetto->values.field = INTERNED_ANNOTATION_STRINGS;
	perfetto->uuids = tid_map__new();
	if (!perfetto->uuids) {
		free_encoder(&perfetto->encoder);
		return NULL;
	}
	return sink_slices__new(out, &perfetto->encoder);
}
