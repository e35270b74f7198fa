/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "tid_map.h"

#include <errno.h>
#include <stdlib.h>

#define SLOTS_MIN 64 /* a power of two, as all sizes are */

struct slot {
	void *value; /* NULL: free */
	uint32_t tid;
};

struct tid_map {
	struct slot *slots;
	size_t size;
	size_t count;
};

struct tid_map *tid_map__new(void)
{
	struct tid_map *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	map->size = SLOTS_MIN;
	map->slots = calloc(map->size, sizeof(*map->slots));
	if (!map->slots) {
		free(map);
		return NULL;
	}
	return map;
}

void tid_map__free(struct tid_map *map)
{
	if (!map)
		return;
	free(map->slots);
	free(map);
}

/* Thread numbers are dense: a multiplication spreads those of one process over the table. */
static size_t home_slot(const struct tid_map *map, uint32_t tid)
{
	return (tid * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (map->size - 1);
}

/* The slot that holds tid, or the free one where it belongs. One slot at least is always free. */
static struct slot *find_slot(const struct tid_map *map, uint32_t tid)
{
	size_t i = home_slot(map, tid);

	while (map->slots[i].value && map->slots[i].tid != tid)
		i = (i + 1) & (map->size - 1);
	return &map->slots[i];
}

void *tid_map__get(const struct tid_map *map, uint32_t tid)
{
	return find_slot(map, tid)->value;
}

static int grow(struct tid_map *map)
{
	struct tid_map larger = {.size = map->size * 2};

	larger.slots = calloc(larger.size, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < map->size; i++) {
		if (map->slots[i].value)
			*find_slot(&larger, map->slots[i].tid) = map->slots[i];
	}
	free(map->slots);
	map->slots = larger.slots;
	map->size = larger.size;
	return 0;
}

int tid_map__set(struct tid_map *map, uint32_t tid, void *value)
{
	struct slot *slot = find_slot(map, tid);
	int err;

	if (!slot->value) {
		if (map->count >= map->size / 2) {
			err = grow(map);
			if (err)
				return err;
			slot = find_slot(map, tid);
		}
		map->count++;
	}
	slot->value = value;
	slot->tid = tid;
	return 0;
}

void tid_map__remove(struct tid_map *map, uint32_t tid)
{
	struct slot *hole = find_slot(map, tid);
	size_t mask = map->size - 1;
	size_t i;

	if (!hole->value)
		return;
	map->count--;
	/* Whoever was pushed past the hole moves back into it, so that no search ends early. */
	i = hole - map->slots;
	for (;;) {
		struct slot *next;

		i = (i + 1) & mask;
		next = &map->slots[i];
		if (!next->value)
			break;
		if (((i - home_slot(map, next->tid)) & mask) >= ((size_t)(next - hole) & mask)) {
			*hole = *next;
			hole = next;
		}
	}
	hole->value = NULL;
}

size_t tid_map__count(const struct tid_map *map)
{
	return map->count;
}
