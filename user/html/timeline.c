/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "html/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/arith.h"

#define FIRST_WIDTH_NS	1000000
#define BINS_PER_OCTAVE 8
#define FIRST_BIN_NS	1000

/* Places of the sums of a slot. */
enum {
	SUM_GPU_BUSY = STEP_PARTS,
	SUM_GPU_KNOWN, /* time of the steps whose GPU records are complete */
	SUMS,
};

struct slot {
	uint64_t ns[SUMS];
	uint32_t bins[TIMELINE_BINS];
};

struct timeline {
	uint64_t width_ns;
	uint32_t used; /* slots, up to the last one with a step */
	struct slot slots[TIMELINE_SLOTS];
};

struct timeline *timeline__new(void)
{
	struct timeline *timeline = calloc(1, sizeof(*timeline));

	if (timeline)
		timeline->width_ns = FIRST_WIDTH_NS;
	return timeline;
}

void timeline__free(struct timeline *timeline)
{
	free(timeline);
}

/* Linear within an octave, so that a bin's bounds are whole numbers, give or take 1. */
uint64_t timeline_bin_ns(uint32_t bin)
{
	uint32_t octave, step;

	if (!bin)
		return 0;
	octave = (bin - 1) / BINS_PER_OCTAVE;
	step = (bin - 1) % BINS_PER_OCTAVE;
	return ((uint64_t)FIRST_BIN_NS << octave) / BINS_PER_OCTAVE * (BINS_PER_OCTAVE + step);
}

static uint32_t bin_of(uint64_t ns)
{
	uint32_t low = 0, high = TIMELINE_BINS - 1;

	while (low < high) {
		uint32_t middle = (low + high + 1) / 2;

		if (timeline_bin_ns(middle) <= ns)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static void slot_merge(struct slot *into, const struct slot *from)
{
	for (int i = 0; i < SUMS; i++)
		into->ns[i] += from->ns[i];
	for (int i = 0; i < TIMELINE_BINS; i++)
		into->bins[i] += from->bins[i];
}

static void widen(struct timeline *timeline)
{
	for (uint32_t i = 0; i < TIMELINE_SLOTS / 2; i++) {
		struct slot merged = timeline->slots[2 * i];

		slot_merge(&merged, &timeline->slots[2 * i + 1]);
		timeline->slots[i] = merged;
	}
	memset(&timeline->slots[TIMELINE_SLOTS / 2], 0,
	       sizeof(timeline->slots[0]) * (TIMELINE_SLOTS / 2));
	timeline->used = (timeline->used + 1) / 2;
	timeline->width_ns *= 2;
}

/*
 * Gives each slot that a step lies in its share of the step's sums; the last one gets what is left
 * by rounding.
 */
static void spread(struct timeline *timeline, uint64_t start_ns, uint64_t wall_ns,
		   uint64_t ns[SUMS])
{
	uint64_t end_ns = start_ns + wall_ns, at_ns = start_ns;

	while (at_ns / timeline->width_ns < (end_ns - 1) / timeline->width_ns) {
		uint64_t index = at_ns / timeline->width_ns;
		uint64_t next_ns = (index + 1) * timeline->width_ns;

		for (int i = 0; i < SUMS; i++) {
			unsigned __int128 part = ns[i];
			uint64_t given = (uint64_t)(part * (next_ns - at_ns) / (end_ns - at_ns));

			timeline->slots[index].ns[i] += given;
			ns[i] -= given;
		}
		at_ns = next_ns;
	}
	for (int i = 0; i < SUMS; i++)
		timeline->slots[at_ns / timeline->width_ns].ns[i] += ns[i];
}

void timeline__add(struct timeline *timeline, uint64_t start_ns, uint64_t wall_ns,
		   uint64_t total_ns, const struct step_parts *parts, const struct step_gpu *gpu)
{
	uint64_t ns[SUMS] = {0};
	uint32_t last;

	/* A capture may hold any figures. */
	wall_ns = min_u64(max_u64(wall_ns, 1), UINT64_MAX / 2);
	total_ns = min_u64(max_u64(total_ns, 1), UINT64_MAX / 2);
	start_ns = min_u64(start_ns, UINT64_MAX / 2);
	while ((start_ns + wall_ns - 1) / timeline->width_ns >= TIMELINE_SLOTS)
		widen(timeline);
	memcpy(ns, parts->ns, sizeof(parts->ns));
	if (gpu && gpu->complete) {
		ns[SUM_GPU_BUSY] = gpu->all.busy_ns;
		ns[SUM_GPU_KNOWN] = wall_ns;
	}
	spread(timeline, start_ns, wall_ns, ns);
	timeline->slots[start_ns / timeline->width_ns].bins[bin_of(total_ns)]++;
	last = (uint32_t)((start_ns + wall_ns - 1) / timeline->width_ns);
	if (timeline->used <= last)
		timeline->used = last + 1;
}

void timeline__write(const struct timeline *timeline, struct json *json, const char *key)
{
	json_object_begin(json, key);
	json_uint(json, "width", timeline->width_ns);
	json_array_begin(json, "slots");
	for (uint32_t i = 0; i < timeline->used; i++) {
		const struct slot *slot = &timeline->slots[i];

		json_object_begin(json, NULL);
		json_array_begin(json, "parts");
		for (int j = 0; j < STEP_PARTS; j++)
			json_uint(json, NULL, slot->ns[j]);
		json_array_end(json);
		if (slot->ns[SUM_GPU_KNOWN]) {
			json_array_begin(json, "gpu");
			json_uint(json, NULL, slot->ns[SUM_GPU_BUSY]);
			json_uint(json, NULL, slot->ns[SUM_GPU_KNOWN]);
			json_array_end(json);
		}
		json_array_begin(json, "bins");
		for (uint32_t j = 0; j < TIMELINE_BINS; j++) {
			if (!slot->bins[j])
				continue;
			json_array_begin(json, NULL);
			json_uint(json, NULL, j);
			json_uint(json, NULL, slot->bins[j]);
			json_array_end(json);
		}
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}
