/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/perfetto_file.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"

enum { TRACE_PACKET = 1 };
enum {
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TIMESTAMP_CLOCK = 58,
	PACKET_DEFAULTS = 59,
};
enum { SNAPSHOT_CLOCKS = 1, SNAPSHOT_PRIMARY = 2 };
enum { CLOCK_ID = 1, CLOCK_TIMESTAMP = 2, CLOCK_IS_INCREMENTAL = 3 };
enum { DEFAULTS_TRACK_EVENT = 11, DEFAULTS_TIMESTAMP_CLOCK = 58, EVENT_DEFAULTS_TRACK = 11 };
enum { INTERNED_IID = 1, INTERNED_TEXT = 2 };
enum { FLAG_STATE_CLEARED = 1, FLAG_NEEDS_STATE = 2 };

/* Of InternedData. */
static const uint32_t text_fields[PERFETTO_TEXTS] = {
	[PERFETTO_NAME] = 2,   [PERFETTO_CATEGORY] = 1,	 [PERFETTO_KEY] = 3,
	[PERFETTO_VALUE] = 29, [PERFETTO_FUNCTION] = 5,	 [PERFETTO_SOURCE] = 18,
	[PERFETTO_PATH] = 17,  [PERFETTO_BUILD_ID] = 16, [PERFETTO_MAPPING] = 19,
	[PERFETTO_FRAME] = 6,  [PERFETTO_CALLSTACK] = 7,
};

/* BUILTIN_CLOCK_REALTIME and _MONOTONIC; 64 to 127 belong to a sequence. */
enum { CLOCK_OF_REALTIME = 1, CLOCK_OF_MONOTONIC = 3, CLOCK_DELTA = 64, CLOCK_WINDOW = 65 };

struct numbered {
	char *text;
	uint64_t number;
};

static int compare_texts(const void *left, const void *right)
{
	return strcmp(((const struct numbered *)left)->text,
		      ((const struct numbered *)right)->text);
}

static void free_text(void *node)
{
	struct numbered *entry = node;

	free(entry->text);
	free(entry);
}

int perfetto_file_init(struct perfetto_file *file, FILE *out)
{
	*file = (struct perfetto_file){.out = out};
	return perfetto_file_add(file, 0) < 0 ? -ENOMEM : 0;
}

void perfetto_file_clear(struct perfetto_file *file)
{
	for (int i = 0; i < PERFETTO_TEXTS; i++)
		tdestroy(file->texts[i].tree, free_text);
	vec_for_each (sequence, &file->sequences) {
		for (int i = 0; i < PERFETTO_TEXTS; i++)
			vec_free(&sequence->known[i]);
	}
	vec_free(&file->sequences);
	proto_free(&file->packet);
	proto_free(&file->interned);
	proto_free(&file->head);
}

int perfetto_file_add(struct perfetto_file *file, uint64_t track)
{
	struct perfetto_sequence sequence = {.id = (uint32_t)file->sequences.count + 1,
					     .track = track};

	return vec_push(&file->sequences, sequence) ? -ENOMEM : (int)sequence.id - 1;
}

static uint64_t find_number(struct perfetto_file *file, enum perfetto_text kind, const char *text)
{
	struct perfetto_texts *texts = &file->texts[kind];
	struct numbered key = {.text = (char *)text}, *entry;
	struct numbered **found = tfind(&key, &texts->tree, compare_texts);
	size_t bytes = strlen(text) + 1;

	if (found)
		return (*found)->number;
	if (texts->count >= PERFETTO_TEXTS_MAX ||
	    file->text_bytes + bytes > PERFETTO_TEXT_BYTES_MAX)
		return 0;
	entry = malloc(sizeof(*entry));
	if (!entry)
		return 0;
	*entry = (struct numbered){.text = strdup(text), .number = texts->count + 1};
	if (!entry->text || !tsearch(entry, &texts->tree, compare_texts)) {
		free_text(entry);
		return 0;
	}
	texts->count++;
	file->text_bytes += bytes;
	return entry->number;
}

/* Marks a number as defined. 1: it was not; 0: it was; or -ENOMEM. */
static int learn(struct perfetto_sequence *sequence, enum perfetto_text kind, uint64_t number)
{
	uint64_t bit = 1ull << number % 64;

	while (sequence->known[kind].count <= number / 64) {
		if (vec_push(&sequence->known[kind], 0))
			return -ENOMEM;
	}
	if (sequence->known[kind].items[number / 64] & bit)
		return 0;
	sequence->known[kind].items[number / 64] |= bit;
	return 1;
}

uint64_t perfetto_file_number(struct perfetto_file *file, enum perfetto_text kind, const char *text,
			      bool *is_new)
{
	uint64_t number = find_number(file, kind, text);
	int learnt = number ? learn(&file->sequences.items[file->current], kind, number) : 0;

	*is_new = learnt > 0;
	return learnt < 0 ? 0 : number;
}

size_t perfetto_file_define(struct perfetto_file *file, enum perfetto_text kind, uint64_t number)
{
	size_t begun = proto_begin(&file->interned, text_fields[kind]);

	proto_uint(&file->interned, INTERNED_IID, number);
	return begun;
}

uint64_t perfetto_file_text(struct perfetto_file *file, enum perfetto_text kind, const char *text)
{
	bool is_new;
	uint64_t number = perfetto_file_number(file, kind, text, &is_new);
	size_t begun;

	if (!is_new)
		return number;
	begun = perfetto_file_define(file, kind, number);
	proto_string(&file->interned, INTERNED_TEXT, text);
	proto_end(&file->interned, begun);
	return number;
}

static void put_clock(struct proto *packet, uint64_t id, uint64_t timestamp, bool is_incremental)
{
	size_t clock = proto_begin(packet, SNAPSHOT_CLOCKS);

	proto_uint(packet, CLOCK_ID, id);
	proto_uint(packet, CLOCK_TIMESTAMP, timestamp);
	if (is_incremental)
		proto_uint(packet, CLOCK_IS_INCREMENTAL, true);
	proto_end(packet, clock);
}

/*
 * The first packet of a sequence: its clocks and its defaults. Each tells the same moment, the
 * begin of the window, because a reader refuses snapshots in which the trace's clock goes back.
 */
static int begin_sequence(struct perfetto_file *file, const struct window *window)
{
	struct perfetto_sequence *sequence = &file->sequences.items[file->current];
	struct proto *packet = &file->packet;
	size_t begun = proto_begin(packet, PACKET_CLOCK_SNAPSHOT);

	put_clock(packet, CLOCK_DELTA, 0, true);
	put_clock(packet, CLOCK_WINDOW, 0, false);
	put_clock(packet, CLOCK_OF_MONOTONIC, window->record.start_ns, false);
	if (sequence->id == 1)
		put_clock(packet, CLOCK_OF_REALTIME, window->record.realtime_ns, false);
	proto_uint(packet, SNAPSHOT_PRIMARY, CLOCK_OF_MONOTONIC);
	proto_end(packet, begun);
	begun = proto_begin(packet, PACKET_DEFAULTS);
	proto_uint(packet, DEFAULTS_TIMESTAMP_CLOCK, CLOCK_DELTA);
	if (sequence->track) {
		size_t event = proto_begin(packet, DEFAULTS_TRACK_EVENT);

		proto_uint(packet, EVENT_DEFAULTS_TRACK, sequence->track);
		proto_end(packet, event);
	}
	proto_end(packet, begun);
	return perfetto_file_end(file);
}

int perfetto_file_begin(struct perfetto_file *file, const struct window *window, size_t sequence)
{
	file->current = sequence;
	return file->sequences.items[sequence].begun ? 0 : begin_sequence(file, window);
}

void perfetto_file_time(struct perfetto_file *file, uint64_t ns, bool moves_clock)
{
	struct perfetto_sequence *sequence = &file->sequences.items[file->current];

	if (moves_clock && ns >= sequence->last_ns) {
		proto_uint(&file->packet, PACKET_TIMESTAMP, ns - sequence->last_ns);
		sequence->last_ns = ns;
		return;
	}
	proto_uint(&file->packet, PACKET_TIMESTAMP, ns);
	proto_uint(&file->packet, PACKET_TIMESTAMP_CLOCK, CLOCK_WINDOW);
}

int perfetto_file_end(struct perfetto_file *file)
{
	struct perfetto_sequence *sequence = &file->sequences.items[file->current];
	struct proto *packet = &file->packet, *head = &file->head;
	int err = 0;

	proto_uint(packet, PACKET_SEQUENCE, sequence->id);
	proto_uint(packet, PACKET_SEQUENCE_FLAGS,
		   sequence->begun ? FLAG_NEEDS_STATE : FLAG_STATE_CLEARED);
	sequence->begun = true;
	if (file->interned.size)
		proto_message(packet, PACKET_INTERNED_DATA, file->interned.data,
			      file->interned.size);
	if (!packet->err)
		proto_message(head, TRACE_PACKET, packet->data, packet->size);
	if (!head->err && !packet->err && !file->interned.err)
		fwrite(head->data, 1, head->size, file->out);
	else
		err = -ENOMEM;
	proto_reset(packet);
	proto_reset(&file->interned);
	proto_reset(head);
	return err;
}
