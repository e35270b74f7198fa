/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "recorder/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/vec.h"
#include "fbt_explain.h"
#include "fbt_gpu.h"
#include "model/event.h"

/* The index in a key has that many bits, and the type the uppermost eight. */
#define SUB_BITS  24
#define TYPE_BITS 56

struct fact {
	uint64_t key;
	struct fbt_header *record; /* NULL: it was removed */
};

struct facts {
	VEC(struct fact) items; /* in the order in which they came first */
	size_t removed;		/* of items */
	struct tid_map *places; /* from a key to its index in items, plus 1 */
	VEC(uint32_t) ended;	/* tgids */
	size_t bytes;
	size_t bytes_max;
	uint64_t dropped;
};

bool facts_is_type(uint32_t type)
{
	switch (type) {
	case FBT_EVENT_WINDOW:
	case FBT_EVENT_OPTIONS:
	case FBT_EVENT_TARGET:
	case FBT_EVENT_THREAD:
	case FBT_EVENT_KIND:
	case FBT_EVENT_TABLE:
	case FBT_EVENT_LOST:
	case FBT_EVENT_UNSEEN:
	case FBT_EVENT_COST:
	case FBT_EVENT_TARGET_EXIT:
	case FBT_EVENT_FILE:
	case FBT_EVENT_GPU_STATE:
	case FBT_EVENT_GPU_NAME:
	case FBT_EVENT_GPU_DEVICE:
	case FBT_EVENT_GPU_FLUSH:
	case FBT_EVENT_SAMPLING:
	case FBT_EVENT_ENDS:
	case FBT_EVENT_CPUS:
	case FBT_EVENT_TAILS:
	case FBT_EVENT_PROBES:
	case FBT_EVENT_PYTHON:
	case FBT_EVENT_CODE:
	case FBT_EVENT_STACKS:
	case FBT_EVENT_LOOKS:
	case FBT_EVENT_EXPLAIN:
	case FBT_EVENT_EXPLAIN_LOST:
	case FBT_EVENT_PEER_LINK:
		return true;
	default:
		return false;
	}
}

static uint64_t process_key(uint32_t tgid, uint32_t sub)
{
	return (uint64_t)tgid << SUB_BITS | (sub & ((1u << SUB_BITS) - 1));
}

/* What two records about the same fact have in common, beside their type. */
static uint64_t subject(const struct fbt_header *record)
{
	const struct fbt_gpu_name *name = (const struct fbt_gpu_name *)record;

	switch (record->type) {
	case FBT_EVENT_THREAD:
		return ((const struct fbt_thread_name *)record)->tid;
	case FBT_EVENT_KIND:
		return ((const struct fbt_kind *)record)->kind;
	case FBT_EVENT_TABLE:
		return process_key(((const struct fbt_table *)record)->tgid,
				   ((const struct fbt_table *)record)->nr);
	case FBT_EVENT_FILE:
		return ((const struct fbt_file *)record)->id;
	case FBT_EVENT_CODE:
		return ((const struct fbt_code *)record)->id;
	case FBT_EVENT_PEER_LINK:
		return process_key(((const struct fbt_peer_link *)record)->tgid,
				   ((const struct fbt_peer_link *)record)->peer);
	case FBT_EVENT_GPU_NAME:
		return process_key(name->tgid, name->kind << (SUB_BITS - 1) |
						       (name->id & ((1u << (SUB_BITS - 1)) - 1)));
	case FBT_EVENT_GPU_DEVICE:
		return process_key(((const struct fbt_gpu_device *)record)->tgid,
				   ((const struct fbt_gpu_device *)record)->id);
	case FBT_EVENT_SAMPLING:
		return ((const struct fbt_sampling *)record)->kind;
	case FBT_EVENT_ENDS:
		return ((const struct fbt_ends *)record)->kind;
	case FBT_EVENT_TAILS:
		return ((const struct fbt_tails *)record)->kind;
	case FBT_EVENT_PROBES:
		return ((const struct fbt_probes *)record)->kind;
	case FBT_EVENT_EXPLAIN:
		return ((const struct fbt_explained *)record)->kind;
	default: /* of a process, or of the window */
		return decode_tgid(record);
	}
}

static uint64_t key_of(const struct fbt_header *record)
{
	return (uint64_t)record->type << TYPE_BITS | subject(record);
}

struct facts *facts__new(size_t bytes_max)
{
	struct facts *facts = calloc(1, sizeof(*facts));

	if (!facts)
		return NULL;
	facts->bytes_max = bytes_max;
	facts->places = tid_map__new();
	if (!facts->places) {
		free(facts);
		return NULL;
	}
	return facts;
}

static void remove_fact(struct facts *facts, struct fact *fact)
{
	facts->bytes -= fact->record->size;
	facts->removed++;
	tid_map__remove(facts->places, fact->key);
	free(fact->record);
	fact->record = NULL;
}

void facts__clear(struct facts *facts)
{
	vec_for_each (fact, &facts->items) {
		if (fact->record)
			remove_fact(facts, fact);
	}
	vec_free(&facts->items);
	vec_free(&facts->ended);
	facts->removed = 0;
	facts->dropped = 0;
}

void facts__free(struct facts *facts)
{
	if (!facts)
		return;
	facts__clear(facts);
	tid_map__free(facts->places);
	free(facts);
}

static struct fact *find(const struct facts *facts, uint64_t key)
{
	uintptr_t place = (uintptr_t)tid_map__get(facts->places, key);

	return place ? &facts->items.items[place - 1] : NULL;
}

const struct fbt_header *facts__find(const struct facts *facts, const struct fbt_header *record)
{
	const struct fact *fact = find(facts, key_of(record));

	return fact ? fact->record : NULL;
}

/* Closes the holes that removed facts have left. Places that exist already need no memory. */
static void compact(struct facts *facts)
{
	size_t kept = 0;

	vec_for_each (fact, &facts->items) {
		if (!fact->record)
			continue;
		facts->items.items[kept++] = *fact;
		(void)tid_map__set(facts->places, facts->items.items[kept - 1].key, (void *)kept);
	}
	facts->items.count = kept;
	facts->removed = 0;
	vec_shrink(&facts->items, 1024);
}

/*
 * Names, those first that are dropped first. Code is last: what has been sent once is never sent
 * again, and all processes that map the same file share it.
 */
static const uint32_t names[] = {FBT_EVENT_FILE, FBT_EVENT_THREAD, FBT_EVENT_GPU_NAME,
				 FBT_EVENT_CODE};

/* Drops names, to an eighth below the limit, so that not every record walks all facts. */
static void make_room(struct facts *facts, size_t size)
{
	size_t goal = facts->bytes_max - facts->bytes_max / 8;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		vec_for_each (fact, &facts->items) {
			if (facts->bytes + size <= goal)
				break;
			if (!fact->record || fact->record->type != names[i])
				continue;
			remove_fact(facts, fact);
			facts->dropped++;
		}
	}
	compact(facts);
}

/* As in model/window: the record of an execve has no parent and a later time. */
static void keep_parent(const struct facts *facts, struct fbt_target *target)
{
	const struct fbt_target *first =
		(const struct fbt_target *)facts__find(facts, &target->header);

	if (!first || target->parent_tgid)
		return;
	target->parent_tgid = first->parent_tgid;
	target->start_ns = first->start_ns;
}

static int add(struct facts *facts, uint64_t key, struct fbt_header *copy)
{
	struct fact fact = {.key = key, .record = copy};
	struct fact *old = find(facts, key);
	int err;

	if (old) {
		facts->bytes = facts->bytes - old->record->size + copy->size;
		free(old->record);
		old->record = copy;
		return 0;
	}
	err = vec_push(&facts->items, fact);
	if (err)
		return err;
	err = tid_map__set(facts->places, key, (void *)facts->items.count);
	if (err) {
		facts->items.count--;
		return err;
	}
	facts->bytes += copy->size;
	return 0;
}

static bool has_ended(const struct facts *facts, uint32_t tgid)
{
	vec_for_each (ended, &facts->ended) {
		if (*ended == tgid)
			return true;
	}
	return false;
}

/* A step function, and code, are those of other processes too. */
static bool is_of_process(const struct fact *fact)
{
	return fact->record && fact->record->type != FBT_EVENT_KIND &&
	       fact->record->type != FBT_EVENT_CODE;
}

static void forget_process(struct facts *facts, uint32_t tgid)
{
	vec_for_each (fact, &facts->items) {
		if (is_of_process(fact) && decode_tgid(fact->record) == tgid)
			remove_fact(facts, fact);
	}
	compact(facts);
}

static int compare_tgids(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static bool is_among(const struct facts *facts, uint32_t tgid)
{
	return bsearch(&tgid, facts->ended.items, facts->ended.count, sizeof(tgid), compare_tgids);
}

/* One walk for all: a server may have started a program for each request. */
void facts__forget_ended(struct facts *facts)
{
	if (!facts->ended.count)
		return;
	vec_sort(&facts->ended, compare_tgids);
	vec_for_each (fact, &facts->items) {
		if (is_of_process(fact) && is_among(facts, decode_tgid(fact->record)))
			remove_fact(facts, fact);
	}
	compact(facts);
	vec_free(&facts->ended);
}

static int note_end(struct facts *facts, uint32_t tgid)
{
	return has_ended(facts, tgid) ? 0 : vec_push(&facts->ended, tgid);
}

/* A process has begun whose PID is that of one that has ended. */
static void forget_namesake(struct facts *facts, uint32_t tgid)
{
	vec_for_each (ended, &facts->ended) {
		if (*ended != tgid)
			continue;
		*ended = facts->ended.items[--facts->ended.count];
		forget_process(facts, tgid);
		return;
	}
}

int facts__put(struct facts *facts, const struct fbt_header *record)
{
	struct fbt_header *copy;
	int err = 0;

	if (record->type == FBT_EVENT_TARGET)
		forget_namesake(facts, decode_tgid(record));
	if (facts->bytes + record->size > facts->bytes_max)
		make_room(facts, record->size);
	if (facts->bytes + record->size > facts->bytes_max) {
		facts->dropped++;
		return 0;
	}
	copy = malloc(record->size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, record, record->size);
	if (copy->type == FBT_EVENT_TARGET)
		keep_parent(facts, (struct fbt_target *)copy);
	err = add(facts, key_of(copy), copy);
	if (err)
		free(copy);
	else if (record->type == FBT_EVENT_TARGET_EXIT)
		err = note_end(facts, decode_tgid(record));
	return err;
}

const struct fbt_header *facts__at(const struct facts *facts, size_t index)
{
	return index < facts->items.count ? facts->items.items[index].record : NULL;
}

size_t facts__bytes(const struct facts *facts)
{
	return facts->bytes;
}

uint64_t facts__dropped(const struct facts *facts)
{
	return facts->dropped;
}
