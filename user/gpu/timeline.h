/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Records by time, sorted by start. They may come in any order: one that comes late moves a few
 * hundred others at most, so no order of records makes this slow.
 */
#ifndef FBT_GPU_TIMELINE_H
#define FBT_GPU_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu_timeline;

struct gpu_timeline_entry {
	uint64_t start_ns;
	uint64_t end_ns;
	void *record;
};

/* NULL: -ENOMEM. The caller owns what the entries point to. */
struct gpu_timeline *gpu_timeline__new(void);
void gpu_timeline__free(struct gpu_timeline *timeline);

/* Inserts after entries of the same start. 0 or -ENOMEM. */
int gpu_timeline__insert(struct gpu_timeline *timeline, uint64_t start_ns, uint64_t end_ns,
			 void *record);

/* The entry that begins first, NULL if there is none. */
const struct gpu_timeline_entry *gpu_timeline__first(const struct gpu_timeline *timeline);
void gpu_timeline__drop_first(struct gpu_timeline *timeline);

size_t gpu_timeline__count(const struct gpu_timeline *timeline);

/* Overlaps [from_ns, until_ns), or begins in it and takes no time. */
static inline bool gpu_timeline_is_inside(uint64_t start_ns, uint64_t end_ns, uint64_t from_ns,
					  uint64_t until_ns)
{
	return start_ns < until_ns && (end_ns > from_ns || start_ns >= from_ns);
}

/* Iterates over such entries, by start. The timeline must not change meanwhile. */
struct gpu_timeline_cursor {
	const struct gpu_timeline *timeline;
	uint64_t from_ns;
	uint64_t until_ns;
	size_t chunk;
	size_t index;
};

struct gpu_timeline_cursor gpu_timeline__overlapping(const struct gpu_timeline *timeline,
						     uint64_t from_ns, uint64_t until_ns);
const struct gpu_timeline_entry *gpu_timeline__next(struct gpu_timeline_cursor *cursor);

#endif
