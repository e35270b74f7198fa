/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "class_table.h"

#include <stdlib.h>

#define CHAINS 2048 /* a power of two */
#define NONE   UINT32_MAX

struct entry {
	uint64_t key;
	uint64_t used; /* when it was asked for last, in questions */
	struct class_history *history;
	uint32_t next; /* in its chain */
};

struct class_table {
	uint32_t window_steps;
	uint32_t limit;
	uint32_t count;
	uint64_t questions;
	uint32_t chains[CHAINS]; /* first entry */
	struct entry entries[CLASSES_MAX];
};

struct class_table *class_table__new(uint32_t window_steps)
{
	struct class_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->window_steps = window_steps;
	table->limit = CLASS_STEPS_MAX / window_steps;
	if (table->limit > CLASSES_MAX)
		table->limit = CLASSES_MAX;
	for (uint32_t i = 0; i < CHAINS; i++)
		table->chains[i] = NONE;
	return table;
}

void class_table__free(struct class_table *table)
{
	if (!table)
		return;
	for (uint32_t i = 0; i < table->count; i++)
		class_history__free(table->entries[i].history);
	free(table);
}

static uint32_t *chain_of(struct class_table *table, uint64_t key)
{
	return &table->chains[(key * UINT64_C(0x9e3779b97f4a7c15) >> 40) % CHAINS];
}

struct class_history *class_table__find(struct class_table *table, uint64_t key)
{
	for (uint32_t i = *chain_of(table, key); i != NONE; i = table->entries[i].next) {
		struct entry *entry = &table->entries[i];

		if (entry->key != key)
			continue;
		entry->used = ++table->questions;
		return entry->history;
	}
	return NULL;
}

/* Takes the entry that was not used for longest out of its chain and empties it: its index. */
static uint32_t evict(struct class_table *table)
{
	uint32_t oldest = 0;
	uint32_t *link;

	for (uint32_t i = 1; i < table->count; i++) {
		if (table->entries[i].used < table->entries[oldest].used)
			oldest = i;
	}
	link = chain_of(table, table->entries[oldest].key);
	while (*link != oldest)
		link = &table->entries[*link].next;
	*link = table->entries[oldest].next;
	class_history__free(table->entries[oldest].history);
	return oldest;
}

struct class_history *class_table__add(struct class_table *table, uint64_t key)
{
	struct class_history *history = class_history__new(table->window_steps);
	uint32_t *chain = chain_of(table, key);
	uint32_t index;

	if (!history)
		return NULL;
	index = table->count < table->limit ? table->count++ : evict(table);
	table->entries[index] = (struct entry){
		.key = key, .used = ++table->questions, .history = history, .next = *chain};
	*chain = index;
	return history;
}
