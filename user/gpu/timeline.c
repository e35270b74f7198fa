/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu/timeline.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define CHUNK_ENTRIES 256

struct chunk {
	size_t first; /* those before it have been dropped */
	size_t end;
	struct gpu_timeline_entry entries[CHUNK_ENTRIES];
};

/* What a search needs to know of a chunk, next to that of the next chunk. */
struct place {
	uint64_t start_ns; /* of its first entry */
	uint64_t end_ns;   /* the latest of its entries', of dropped ones too */
	struct chunk *chunk;
};

struct gpu_timeline {
	VEC(struct place) places; /* no chunk is empty */
	size_t count;
};

struct gpu_timeline *gpu_timeline__new(void)
{
	return calloc(1, sizeof(struct gpu_timeline));
}

void gpu_timeline__free(struct gpu_timeline *timeline)
{
	if (!timeline)
		return;
	vec_for_each (place, &timeline->places)
		free(place->chunk);
	vec_free(&timeline->places);
	free(timeline);
}

size_t gpu_timeline__count(const struct gpu_timeline *timeline)
{
	return timeline->count;
}

/* Index of the chunk that an entry belongs in; there is at least one chunk. */
static size_t find_chunk(const struct gpu_timeline *timeline, uint64_t start_ns)
{
	const struct place *places = timeline->places.items;
	size_t later, last = timeline->places.count - 1;

	/* Records mostly come in order. */
	if (places[last].start_ns <= start_ns)
		return last;
	later = first_index(i, last, places[i].start_ns > start_ns);
	return later ? later - 1 : 0;
}

static size_t find_entry(const struct chunk *chunk, uint64_t start_ns)
{
	if (chunk->entries[chunk->end - 1].start_ns <= start_ns)
		return chunk->end;
	return chunk->first + first_index(i, chunk->end - chunk->first,
					  chunk->entries[chunk->first + i].start_ns > start_ns);
}

/* Inserts an empty chunk, which the caller must fill, at an index. NULL: -ENOMEM. */
static struct chunk *add_chunk(struct gpu_timeline *timeline, size_t index)
{
	struct chunk *chunk = malloc(sizeof(*chunk));
	struct place place = {.chunk = chunk};

	if (!chunk)
		return NULL;
	if (vec_insert(&timeline->places, index, place)) {
		free(chunk);
		return NULL;
	}
	chunk->first = chunk->end = 0;
	return chunk;
}

static void measure(struct place *place)
{
	const struct chunk *chunk = place->chunk;

	place->start_ns = chunk->entries[chunk->first].start_ns;
	place->end_ns = 0;
	for (size_t i = chunk->first; i < chunk->end; i++) {
		if (chunk->entries[i].end_ns > place->end_ns)
			place->end_ns = chunk->entries[i].end_ns;
	}
}

static int split(struct gpu_timeline *timeline, size_t index)
{
	struct chunk *later = add_chunk(timeline, index + 1);
	struct chunk *chunk = timeline->places.items[index].chunk;
	size_t half = CHUNK_ENTRIES / 2;

	if (!later)
		return -ENOMEM;
	memcpy(later->entries, &chunk->entries[half],
	       (chunk->end - half) * sizeof(*chunk->entries));
	later->end = chunk->end - half;
	chunk->end = half;
	measure(&timeline->places.items[index]);
	measure(&timeline->places.items[index + 1]);
	return 0;
}

/* Makes room for an entry in the chunk at an index, or in the next one. */
static int make_room(struct gpu_timeline *timeline, size_t index, uint64_t start_ns)
{
	struct chunk *chunk = timeline->places.items[index].chunk;

	if (chunk->end < CHUNK_ENTRIES)
		return 0;
	if (chunk->first) {
		chunk->end -= chunk->first;
		memmove(chunk->entries, &chunk->entries[chunk->first],
			chunk->end * sizeof(*chunk->entries));
		chunk->first = 0;
		return 0;
	}
	/* As records mostly come in order, full chunks are left as they are. */
	if (index + 1 == timeline->places.count &&
	    chunk->entries[chunk->end - 1].start_ns <= start_ns)
		return add_chunk(timeline, index + 1) ? 0 : -ENOMEM;
	return split(timeline, index);
}

int gpu_timeline__insert(struct gpu_timeline *timeline, uint64_t start_ns, uint64_t end_ns,
			 void *record)
{
	struct gpu_timeline_entry entry = {start_ns, end_ns, record};
	size_t index, position, chunks = timeline->places.count;
	struct place *place;
	struct chunk *chunk;

	if (!chunks && !add_chunk(timeline, 0))
		return -ENOMEM;
	index = chunks ? find_chunk(timeline, start_ns) : 0;
	if (chunks && make_room(timeline, index, start_ns))
		return -ENOMEM;
	place = &timeline->places.items[index];
	if (timeline->places.count > chunks && chunks &&
	    (!place[1].chunk->end || place[1].start_ns <= start_ns))
		place++;
	chunk = place->chunk;
	position = chunk->end ? find_entry(chunk, start_ns) : 0;
	memmove(&chunk->entries[position + 1], &chunk->entries[position],
		(chunk->end - position) * sizeof(entry));
	chunk->entries[position] = entry;
	chunk->end++;
	place->start_ns = chunk->entries[chunk->first].start_ns;
	if (end_ns > place->end_ns)
		place->end_ns = end_ns;
	timeline->count++;
	return 0;
}

const struct gpu_timeline_entry *gpu_timeline__first(const struct gpu_timeline *timeline)
{
	const struct chunk *chunk;

	if (!timeline->places.count)
		return NULL;
	chunk = timeline->places.items[0].chunk;
	return &chunk->entries[chunk->first];
}

void gpu_timeline__drop_first(struct gpu_timeline *timeline)
{
	struct place *place = timeline->places.items;
	struct chunk *chunk = place->chunk;

	timeline->count--;
	if (++chunk->first < chunk->end) {
		place->start_ns = chunk->entries[chunk->first].start_ns;
		return;
	}
	free(chunk);
	timeline->places.count--;
	memmove(place, place + 1, timeline->places.count * sizeof(*place));
}

struct gpu_timeline_cursor gpu_timeline__overlapping(const struct gpu_timeline *timeline,
						     uint64_t from_ns, uint64_t until_ns)
{
	return (struct gpu_timeline_cursor){timeline, from_ns, until_ns, 0, 0};
}

const struct gpu_timeline_entry *gpu_timeline__next(struct gpu_timeline_cursor *cursor)
{
	const struct gpu_timeline *timeline = cursor->timeline;

	for (; cursor->chunk < timeline->places.count; cursor->chunk++, cursor->index = 0) {
		const struct place *place = &timeline->places.items[cursor->chunk];
		const struct chunk *chunk = place->chunk;

		if (place->start_ns >= cursor->until_ns)
			return NULL;
		/* All its entries end before. */
		if (place->end_ns < cursor->from_ns)
			continue;
		if (cursor->index < chunk->first)
			cursor->index = chunk->first;
		while (cursor->index < chunk->end) {
			const struct gpu_timeline_entry *entry = &chunk->entries[cursor->index++];

			if (entry->start_ns >= cursor->until_ns)
				return NULL;
			if (gpu_timeline_is_inside(entry->start_ns, entry->end_ns, cursor->from_ns,
						   cursor->until_ns))
				return entry;
		}
	}
	return NULL;
}
