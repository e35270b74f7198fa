/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/id_map.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define SLOTS_MIN 64 /* a power of two, as all sizes are */

struct slot {
	void *value; /* NULL: free */
	uint64_t id;
};

/* A hash table with open addressing. */
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
	if (map->slots)
		return map;
	free(map);
	return NULL;
}

void tid_map__free(struct tid_map *map)
{
	if (!map)
		return;
	free(map->slots);
	free(map);
}

/* Numbers are dense; the multiplication spreads neighbours over the table. */
static size_t home_slot(const struct tid_map *map, uint64_t id)
{
	return (id * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (map->size - 1);
}

/* The slot of id, or the free slot where it belongs. At least one slot is always free. */
static struct slot *find_slot(const struct tid_map *map, uint64_t id)
{
	size_t i = home_slot(map, id);

	while (map->slots[i].value && map->slots[i].id != id)
		i = (i + 1) & (map->size - 1);
	return &map->slots[i];
}

void *tid_map__get(const struct tid_map *map, uint64_t id)
{
	return find_slot(map, id)->value;
}

static int grow(struct tid_map *map)
{
	struct tid_map larger = {.size = map->size * 2};

	larger.slots = calloc(larger.size, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < map->size; i++) {
		if (map->slots[i].value)
			*find_slot(&larger, map->slots[i].id) = map->slots[i];
	}
	free(map->slots);
	map->slots = larger.slots;
	map->size = larger.size;
	return 0;
}

int tid_map__set(struct tid_map *map, uint64_t id, void *value)
{
	struct slot *slot = find_slot(map, id);
	int err;

	if (!slot->value) {
		if (map->count >= map->size / 2) {
			err = grow(map);
			if (err)
				return err;
			slot = find_slot(map, id);
		}
		map->count++;
	}
	*slot = (struct slot){value, id};
	return 0;
}

void tid_map__remove(struct tid_map *map, uint64_t id)
{
	struct slot *hole = find_slot(map, id);
	size_t mask = map->size - 1;
	size_t i;

	if (!hole->value)
		return;
	map->count--;
	/* Entries that were pushed past the hole move back, so that no search ends early. */
	i = hole - map->slots;
	for (;;) {
		struct slot *next;

		i = (i + 1) & mask;
		next = &map->slots[i];
		if (!next->value)
			break;
		if (((i - home_slot(map, next->id)) & mask) >= ((size_t)(next - hole) & mask)) {
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

#define PAGE_BITS 8
#define PAGE_IDS  (1u << PAGE_BITS)
#define MARKS_ALL 15u

/* The numbers PAGE_IDS * key and following, two in a byte. */
struct page {
	uint64_t key;
	uint8_t marks[PAGE_IDS / 2];
};

struct id_set {
	struct tid_map *pages; /* by key */
	struct page *last;     /* that was marked; NULL: none */
};

struct id_set *id_set__new(void)
{
	struct id_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	set->pages = tid_map__new();
	if (set->pages)
		return set;
	free(set);
	return NULL;
}

void id_set__free(struct id_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->pages->size; i++)
		free(set->pages->slots[i].value);
	tid_map__free(set->pages);
	free(set);
}

static struct page *find_page(const struct id_set *set, uint64_t key)
{
	return set->last && set->last->key == key ? set->last : tid_map__get(set->pages, key);
}

static struct page *touch_page(struct id_set *set, uint64_t key)
{
	struct page *page = find_page(set, key);

	if (page)
		return page;
	page = calloc(1, sizeof(*page));
	if (!page)
		return NULL;
	page->key = key;
	if (!tid_map__set(set->pages, key, page))
		return page;
	free(page);
	return NULL;
}

static unsigned int page_marks(const struct page *page, unsigned int index)
{
	return page->marks[index / 2] >> (index % 2 * 4) & MARKS_ALL;
}

unsigned int id_set__marks(const struct id_set *set, uint64_t id)
{
	const struct page *page = find_page(set, id >> PAGE_BITS);

	return page ? page_marks(page, (unsigned int)(id % PAGE_IDS)) : 0;
}

int id_set__mark(struct id_set *set, uint64_t id, unsigned int marks)
{
	struct page *page = touch_page(set, id >> PAGE_BITS);
	unsigned int index = (unsigned int)(id % PAGE_IDS);

	if (!page)
		return -ENOMEM;
	set->last = page;
	page->marks[index / 2] |= (uint8_t)((marks & MARKS_ALL) << (index % 2 * 4));
	return 0;
}

bool id_set__find(const struct id_set *set, unsigned int some, unsigned int missing, uint64_t *id)
{
	for (size_t i = 0; i < set->pages->size; i++) {
		const struct page *page = set->pages->slots[i].value;

		for (unsigned int index = 0; page && index < PAGE_IDS; index++) {
			unsigned int marks = page_marks(page, index);

			if (!(marks & some) || (missing && (marks & missing) == missing))
				continue;
			*id = (page->key << PAGE_BITS) + index;
			return true;
		}
	}
	return false;
}
