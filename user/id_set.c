/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "id_set.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define PAGE_BITS   8
#define PAGE_IDS    (1u << PAGE_BITS)
#define SLOTS_LEAST 64
#define MARKS_ALL   15u

/* The numbers PAGE_IDS * key and following, two in a byte. */
struct page {
	uint64_t key;
	uint8_t marks[PAGE_IDS / 2];
};

/* Open addressing; NULL is a free slot. */
struct id_set {
	struct page **slots;
	size_t slot_count; /* a power of two */
	size_t page_count;
	struct page *last; /* that was marked; NULL: none */
};

struct id_set *id_set__new(void)
{
	struct id_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	set->slot_count = SLOTS_LEAST;
	set->slots = calloc(set->slot_count, sizeof(struct page *));
	if (set->slots)
		return set;
	free(set);
	return NULL;
}

void id_set__free(struct id_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->slot_count; i++)
		free(set->slots[i]);
	free(set->slots);
	free(set);
}

/* splitmix64's last steps: keys that follow each other must not fill neighbouring slots. */
static uint64_t mix(uint64_t key)
{
	key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9ull;
	key = (key ^ key >> 27) * 0x94d049bb133111ebull;
	return key ^ key >> 31;
}

/* The slot of the page, or the free one where it belongs. */
static struct page **find_slot(struct page **slots, size_t slot_count, uint64_t key)
{
	size_t at = (size_t)mix(key) & (slot_count - 1);

	while (slots[at] && slots[at]->key != key)
		at = (at + 1) & (slot_count - 1);
	return &slots[at];
}

static struct page *find_page(const struct id_set *set, uint64_t key)
{
	if (set->last && set->last->key == key)
		return set->last;
	return *find_slot(set->slots, set->slot_count, key);
}

static int grow(struct id_set *set)
{
	size_t larger = set->slot_count * 2;
	struct page **slots;

	if (set->page_count < set->slot_count / 2)
		return 0;
	slots = calloc(larger, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < set->slot_count; i++) {
		if (set->slots[i])
			*find_slot(slots, larger, set->slots[i]->key) = set->slots[i];
	}
	free(set->slots);
	set->slots = slots;
	set->slot_count = larger;
	return 0;
}

static struct page *touch_page(struct id_set *set, uint64_t key)
{
	struct page *page = find_page(set, key);

	if (page || grow(set))
		return page;
	page = calloc(1, sizeof(*page));
	if (!page)
		return NULL;
	page->key = key;
	*find_slot(set->slots, set->slot_count, key) = page;
	set->page_count++;
	return page;
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
	for (size_t i = 0; i < set->slot_count; i++) {
		const struct page *page = set->slots[i];

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
