/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "name_table.h"

#include <string.h>
#include <sys/mman.h>

#define POINTERS 16384u /* twice the names, and a power of two */
#define BUCKETS	 16384u

struct name {
	uint32_t offset;
	uint32_t hash;
	uint32_t next; /* id of the next name in the bucket */
	uint32_t sent; /* generation in which it was sent */
};

struct name_table {
	uint32_t count; /* of names; the first has id 1 */
	uint32_t used;	/* bytes of text */
	uint32_t generation;
	struct {
		const char *name;
		uint32_t id;
	} pointers[POINTERS]; /* a direct-mapped cache */
	uint32_t buckets[BUCKETS];
	struct name names[FBT_GPU_NAMES_MAX + 1];
	char text[NAME_TABLE_BYTES];
};

struct name_table *name_table__new(void)
{
	struct name_table *table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (table == MAP_FAILED)
		return NULL;
	table->generation = 1;
	return table;
}

static bool is_equal(const struct name_table *table, uint32_t id, const char *name)
{
	return !strncmp(table->text + table->names[id].offset, name, FBT_GPU_NAME_BYTES_MAX - 1);
}

/* FNV-1a */
static uint32_t hash_text(const char *text, size_t length)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)text[i]) * 16777619u;
	return hash;
}

static uint32_t find(const struct name_table *table, const char *name, uint32_t hash)
{
	uint32_t id = table->buckets[hash % BUCKETS];

	while (id && (table->names[id].hash != hash || !is_equal(table, id, name)))
		id = table->names[id].next;
	return id;
}

static uint32_t add(struct name_table *table, const char *name, size_t length, uint32_t hash)
{
	uint32_t id = table->count + 1;

	if (id > FBT_GPU_NAMES_MAX || length + 1 > NAME_TABLE_BYTES - table->used)
		return 0;
	/* The text is already NUL-terminated: the memory is zero, and each byte is used once. */
	memcpy(table->text + table->used, name, length);
	table->names[id] = (struct name){
		.offset = table->used, .hash = hash, .next = table->buckets[hash % BUCKETS]};
	table->buckets[hash % BUCKETS] = id;
	table->used += length + 1;
	table->count = id;
	return id;
}

uint32_t name_table__intern(struct name_table *table, const char *name)
{
	uint32_t place = (uint32_t)(((uintptr_t)name * 0x9e3779b97f4a7c15ull) >> 40) % POINTERS;
	uint32_t id = table->pointers[place].id;
	uint32_t hash;
	size_t length;

	if (!name)
		return 0;
	if (id && table->pointers[place].name == name && is_equal(table, id, name))
		return id;
	length = strnlen(name, FBT_GPU_NAME_BYTES_MAX - 1);
	hash = hash_text(name, length);
	id = find(table, name, hash);
	if (!id)
		id = add(table, name, length, hash);
	table->pointers[place].name = name;
	table->pointers[place].id = id;
	return id;
}

const char *name_table__text(const struct name_table *table, uint32_t id)
{
	return table->text + table->names[id].offset;
}

bool name_table__is_sent(const struct name_table *table, uint32_t id)
{
	return table->names[id].sent == table->generation;
}

void name_table__set_sent(struct name_table *table, uint32_t id)
{
	table->names[id].sent = table->generation;
}

void name_table__forget(struct name_table *table)
{
	if (table->count > FBT_GPU_NAMES_MAX / 2 || table->used > NAME_TABLE_BYTES / 2)
		memset(table, 0, sizeof(*table));
	table->generation++;
}
