/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * GPU records by time: sorted by start whatever the order they come in. A record that comes late
 * moves a few hundred others at most, so no order of records makes this slow.
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

/* NULL: -ENOMEM. What the entries point to stays the caller's. */
struct gpu_timeline *gpu_timeline__new(void);
void gpu_timeline__free(struct gpu_timeline *timeline);

/* Behind those of the same start. 0 or -ENOMEM. */
int gpu_timeline__insert(struct gpu_timeline *timeline, uint64_t start_ns, uint64_t end_ns,
			 void *record);

/* The one that begins first, NULL if there is none. */
const struct gpu_timeline_entry *gpu_timeline__first(const struct gpu_timeline *timeline);
void gpu_timeline__drop_first(struct gpu_timeline *timeline);

size_t gpu_timeline__count(const struct gpu_timeline *timeline);

/* What has a part in [from_ns, until_ns), or begins in it and takes no time. */
static inline bool gpu_timeline_is_inside(uint64_t start_ns, uint64_t end_ns, uint64_t from_ns,
					  uint64_t until_ns)
{
	return start_ns < until_ns && (end_ns > from_ns || start_ns >= from_ns);
}

/* Such entries, by start. The timeline may not change meanwhile. */
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
