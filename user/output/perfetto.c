/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/perfetto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/id_map.h"
#include "base/log.h"
#include "base/vec.h"
#include "output/perfetto_file.h"
#include "output/trace_encoder.h"
#include "output/trace_slices.h"

/* Numbers of fields, from protos/perfetto/trace/perfetto_trace.proto. */
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
	EVENT_COUNTER_VALUES = 12,
	EVENT_NAME = 23,
	EVENT_COUNTER_TRACKS = 31,
	EVENT_FLOWS = 47,
	EVENT_ENDING_FLOWS = 48,
	EVENT_CALLSTACK_IID = 56,
};
enum { TYPE_SLICE_BEGIN = 1, TYPE_SLICE_END = 2, TYPE_INSTANT = 3 };
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

/* Values that are longer are written out each time. */
#define VALUE_SIZE_MAX 64

/*
 * A lane with so many slices gets sequences of its own, in which times and the track take less
 * room; names are written again. One is for slices that others are in, and one for those that are
 * in them and come later in the file, so that each goes forward in time. All other lanes share the
 * first sequence.
 */
#define SEQUENCE_SLICES 16
#define SEQUENCES_MAX	4096

enum track_kind { TRACK_OF_PROCESS, TRACK_OF_LANE, TRACK_OF_DURATION, TRACK_OF_ARGUMENT };

struct track {
	enum track_kind kind;
	uint32_t pid;
	uint32_t lane;	     /* or of a counter: counter_lane() */
	uint32_t slices[2];  /* with and without slices in them */
	size_t sequences[2]; /* of these */
};

struct perfetto {
	struct trace_encoder encoder; /* first */
	struct perfetto_file file;
	struct tid_map *uuids; /* from a track to its index + 1 in tracks, which is its uuid */
	VEC(struct track) tracks;
	uint64_t flows;
};

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

/* The kind of step, and which of its arguments. */
static uint32_t counter_lane(uint32_t kind, uint32_t arg)
{
	return arg * FBT_KIND_COUNT + kind;
}

static void put_counter(struct proto *packet, const struct window *window,
			const struct track *track, uint64_t parent)
{
	bool is_duration = track->kind == TRACK_OF_DURATION;
	uint32_t kind = track->lane % FBT_KIND_COUNT;
	const char *arg = window->kinds[kind].arg_names[track->lane / FBT_KIND_COUNT];
	char *name;
	size_t begun;

	if (asprintf(&name, "%s %s", window__kind_name(window, kind),
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
	struct proto *packet = &perfetto->file.packet;
	size_t begun;

	if (perfetto_file_begin(&perfetto->file, window, 0))
		return -ENOMEM;
	begun = proto_begin(packet, PERFETTO_TRACK_DESCRIPTOR);
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
	return perfetto_file_end(&perfetto->file);
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
	struct track track = {.kind = kind, .pid = pid, .lane = lane};

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

/* The sequence for a slice of a track. */
static size_t sequence_of(struct perfetto *perfetto, uint64_t uuid, bool is_leaf)
{
	struct track *track = &perfetto->tracks.items[uuid - 1];
	int sequence;

	if (track->sequences[is_leaf] || track->slices[is_leaf]++ < SEQUENCE_SLICES ||
	    perfetto->file.sequences.count >= SEQUENCES_MAX)
		return track->sequences[is_leaf];
	sequence = perfetto_file_add(&perfetto->file, uuid);
	/* Without memory it stays where it is. */
	track->sequences[is_leaf] = sequence < 0 ? 0 : (size_t)sequence;
	return track->sequences[is_leaf];
}

struct event {
	size_t sequence;
	unsigned int type;
	uint64_t track;
	uint64_t ts;	  /* nanoseconds since the window began */
	bool moves_clock; /* the next one in this sequence is hardly before it */
	size_t begun;
};

static int begin_event(struct perfetto *perfetto, const struct window *window, struct event *event)
{
	struct perfetto_file *file = &perfetto->file;
	struct proto *packet = &file->packet;

	if (perfetto_file_begin(file, window, event->sequence))
		return -ENOMEM;
	perfetto_file_time(file, event->ts, event->moves_clock);
	event->begun = proto_begin(packet, PERFETTO_TRACK_EVENT);
	proto_uint(packet, EVENT_TYPE, event->type);
	if (file->sequences.items[event->sequence].track != event->track)
		proto_uint(packet, EVENT_TRACK, event->track);
	return 0;
}

static int end_event(struct perfetto *perfetto, const struct event *event)
{
	proto_end(&perfetto->file.packet, event->begun);
	return perfetto_file_end(&perfetto->file);
}

static void put_name(struct perfetto *perfetto, const char *name, const char *category)
{
	struct proto *packet = &perfetto->file.packet;
	uint64_t iid = perfetto_file_text(&perfetto->file, PERFETTO_NAME, name);

	if (iid)
		proto_uint(packet, EVENT_NAME_IID, iid);
	else
		proto_string(packet, EVENT_NAME, name);
	iid = perfetto_file_text(&perfetto->file, PERFETTO_CATEGORY, category);
	if (iid)
		proto_uint(packet, EVENT_CATEGORY_IIDS, iid);
}

static void put_value_text(struct perfetto *perfetto, const char *text)
{
	struct proto *packet = &perfetto->file.packet;
	uint64_t iid = strnlen(text, VALUE_SIZE_MAX) < VALUE_SIZE_MAX
			       ? perfetto_file_text(&perfetto->file, PERFETTO_VALUE, text)
			       : 0;

	if (iid)
		proto_uint(packet, ANNOTATION_STRING_IID, iid);
	else
		proto_string(packet, ANNOTATION_STRING, text);
}

/*
 * Most sums of a step are 0: they are left out, as parts below a microsecond are in all formats.
 */
static void put_args(struct perfetto *perfetto, const struct json_fields *args, bool are_sums)
{
	struct proto *packet = &perfetto->file.packet;

	for (uint32_t i = 0; i < args->count; i++) {
		const struct json_field *field = &args->items[i];
		uint64_t iid;
		size_t begun;

		if (are_sums && field->type == JSON_FIELD_UINT && !field->u)
			continue;
		iid = perfetto_file_text(&perfetto->file, PERFETTO_KEY, field->key);
		begun = proto_begin(packet, EVENT_ANNOTATIONS);
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

static void put_stack(struct perfetto *perfetto, const struct window *window,
		      const struct fbt_stack *stack)
{
	uint64_t iid = stack ? perfetto_file_stack(&perfetto->file, window, stack) : 0;

	if (iid)
		proto_uint(&perfetto->file.packet, EVENT_CALLSTACK_IID, iid);
}

/* The counters of a step: its length, and the first argument that it has. */
struct counters {
	uint64_t tracks[2];
	int64_t values[2];
	int count;
};

/* Writes descriptors of tracks, so no packet is begun yet. 0 or -ENOMEM. */
static int find_counters(struct perfetto *perfetto, const struct window *window,
			 const struct step *step, struct counters *counters)
{
	const struct fbt_step *record = &step->record;
	uint64_t *tracks = counters->tracks;
	uint32_t arg = 0;

	counters->count = 0;
	if (record->kind >= FBT_KIND_COUNT)
		return 0;
	tracks[0] = track_of(perfetto, window, TRACK_OF_DURATION, record->tgid,
			     counter_lane(record->kind, 0));
	counters->values[0] = (int64_t)step_total_ns(step);
	counters->count = 1;
	if (!record->arg_mask)
		return tracks[0] ? 0 : -ENOMEM;
	while (!(record->arg_mask >> arg & 1))
		arg++;
	tracks[1] = track_of(perfetto, window, TRACK_OF_ARGUMENT, record->tgid,
			     counter_lane(record->kind, arg));
	counters->values[1] = record->args[arg];
	counters->count = 2;
	return tracks[0] && tracks[1] ? 0 : -ENOMEM;
}

/* Counters take the time of the event that has them. */
static void put_counters(struct perfetto *perfetto, const struct counters *counters)
{
	struct proto *packet = &perfetto->file.packet;

	for (int i = 0; i < counters->count; i++)
		proto_uint(packet, EVENT_COUNTER_TRACKS, counters->tracks[i]);
	for (int i = 0; i < counters->count; i++)
		proto_int(packet, EVENT_COUNTER_VALUES, counters->values[i]);
}

static int write_slice(struct trace_encoder *encoder, const struct window *window,
		       const struct slice *slice, const struct json_fields *args)
{
	struct perfetto *perfetto = (struct perfetto *)encoder;
	uint64_t start = to_ts(window, slice->start_ns);
	uint64_t end = max_u64(to_ts(window, slice->end_ns), start);
	uint64_t track = track_of(perfetto, window, TRACK_OF_LANE, slice->pid, slice->tid);
	struct event event = {.track = track, .ts = start, .moves_clock = true};
	struct counters counters = {.count = 0};
	int err = track ? 0 : -ENOMEM;

	if (!err && slice->step)
		err = find_counters(perfetto, window, slice->step, &counters);
	if (err)
		return err;
	event.sequence = sequence_of(perfetto, track, slice->is_leaf);
	event.type = TYPE_SLICE_BEGIN;
	err = begin_event(perfetto, window, &event);
	if (err)
		return err;
	put_name(perfetto, slice->name, slice->cat);
	put_counters(perfetto, &counters);
	put_args(perfetto, args, slice->step != NULL);
	put_stack(perfetto, window, slice->stack);
	err = end_event(perfetto, &event);
	event.type = TYPE_SLICE_END;
	event.ts = end;
	if (!err)
		err = begin_event(perfetto, window, &event);
	return err ? err : end_event(perfetto, &event);
}

/* Of the thread that ended a wait; NULL: none was taken. */
static const struct fbt_stack *find_waker(const struct step *step, const struct fbt_wake *wake)
{
	vec_for_each (stack, &step->stacks) {
		if (stack->start_ns == wake->start_ns && stack->tid == wake->tid &&
		    stack->owner == wake->waker_tid && stack->header.flags & FBT_STACK_WAKER)
			return stack;
	}
	return NULL;
}

/* One end of an arrow; stack may be NULL. */
static int put_flow(struct perfetto *perfetto, const struct window *window,
		    const struct fbt_wake *wake, const struct fbt_stack *stack, bool is_waker,
		    uint32_t lane)
{
	uint64_t track = track_of(perfetto, window, TRACK_OF_LANE, wake->tgid, lane);
	struct event event = {
		.type = TYPE_INSTANT, .track = track, .ts = to_ts(window, wake->wake_ns)};
	struct json_fields args = {.count = 0};

	if (!track || begin_event(perfetto, window, &event))
		return -ENOMEM;
	json_fields_uint(&args, "tid", is_waker ? wake->tid : wake->waker_tid);
	json_fields_uint(&args, "waited_us",
			 sub_saturating(wake->wake_ns, wake->start_ns) / NS_PER_US);
	put_name(perfetto, is_waker ? "ends a wait" : "wait is ended", "wake");
	put_args(perfetto, &args, false);
	proto_fixed64(&perfetto->file.packet, is_waker ? EVENT_FLOWS : EVENT_ENDING_FLOWS,
		      perfetto->flows);
	put_stack(perfetto, window, stack);
	return end_event(perfetto, &event);
}

static int write_step(struct trace_encoder *encoder, const struct window *window,
		      const struct step *step, uint32_t lane)
{
	struct perfetto *perfetto = (struct perfetto *)encoder;
	int err = 0;

	vec_for_each (wake, &step->wakes) {
		if (err || !wake->waker_tid)
			continue;
		perfetto->flows++;
		err = put_flow(perfetto, window, wake, find_waker(step, wake), true,
			       wake->waker_tid);
		if (!err)
			err = put_flow(perfetto, window, wake, NULL, false, lane);
	}
	return err;
}

/* Names that were not yet known when a track began. */
static int finish(struct trace_encoder *encoder, const struct window *window)
{
	struct perfetto *perfetto = (struct perfetto *)encoder;
	int err = perfetto_file_begin(&perfetto->file, window, 0);

	for (size_t i = 0; i < perfetto->tracks.count && !err; i++)
		err = describe(
			perfetto, window, i + 1,
			find_track(perfetto, TRACK_OF_PROCESS, perfetto->tracks.items[i].pid, 0));
	if (perfetto->file.lost_stacks)
		log_warn("trace: %s stacks are not in it: too many different ones",
			 FORMAT_COUNT(perfetto->file.lost_stacks));
	return err;
}

static void free_encoder(struct trace_encoder *encoder)
{
	struct perfetto *perfetto = (struct perfetto *)encoder;

	perfetto_file_clear(&perfetto->file);
	tid_map__free(perfetto->uuids);
	vec_free(&perfetto->tracks);
	free(perfetto);
}

struct sink *sink_perfetto__new(FILE *out)
{
	struct perfetto *perfetto = calloc(1, sizeof(*perfetto));

	if (!perfetto)
		return NULL;
	perfetto->encoder = (struct trace_encoder){
		.slice = write_slice, .step = write_step, .finish = finish, .free = free_encoder};
	perfetto->uuids = tid_map__new();
	if (perfetto_file_init(&perfetto->file, out) || !perfetto->uuids) {
		free_encoder(&perfetto->encoder);
		return NULL;
	}
	return sink_slices__new(out, &perfetto->encoder);
}
