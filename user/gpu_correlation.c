/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_correlation.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define SLOTS_MIN 256 /* a power of two, as all sizes are */
#define BLOCK_IDS 8

struct join_map {
	struct join_ids *slots; /* free: no calls, and nothing waits */
	size_t size;
	size_t count;
	uint64_t factor;
};

bool join_call_is_launch(const struct join_call *call)
{
	const struct fbt_gpu_api *api = &call->api;

	if (!api->correlation || api->result || api->header.flags & FBT_GPU_API_NESTED)
		return false;
	return api->api_class == FBT_GPU_API_LAUNCH || api->api_class == FBT_GPU_API_GRAPH ||
	       api->api_class == FBT_GPU_API_MEMCPY || api->api_class == FBT_GPU_API_MEMSET;
}

void join_call_give_work(struct join_call *call, struct join_work *work, uint32_t turn)
{
	work->call = call;
	LIST_INSERT_HEAD(&call->works, work, in_list);
	call->has_work = true;
	call->news = turn;
	if (work->work.end_ns > call->works_end_ns)
		call->works_end_ns = work->work.end_ns;
}

static void nest(struct join_call *inner, struct join_call *outer, uint32_t turn)
{
	inner->outer = outer;
	inner->api.header.flags |= FBT_GPU_API_NESTED;
	outer->has_work |= inner->has_work;
	while (!LIST_EMPTY(&inner->works)) {
		struct join_work *work = LIST_FIRST(&inner->works);

		LIST_REMOVE(work, in_list);
		join_call_give_work(outer, work, turn);
	}
}

static bool is_driver(const struct join_call *call)
{
	return call->api.header.flags & FBT_GPU_API_DRIVER;
}

static void nest_if_inside(struct join_call *inner, struct join_call *outer, uint32_t turn)
{
	if (!is_driver(inner) || is_driver(outer) || inner->outer)
		return;
	if (inner->api.start_ns >= outer->api.start_ns && inner->api.end_ns <= outer->api.end_ns)
		nest(inner, outer, turn);
}

void join_ids_forget(struct join_ids *ids, struct join_call *call)
{
	struct join_call **link = &ids->calls;

	while (*link) {
		if ((*link)->outer == call)
			(*link)->outer = NULL;
		if (*link == call) {
			*link = call->older;
			ids->call_count--;
		} else {
			link = &(*link)->older;
		}
	}
	call->older = NULL;
	call->outer = NULL;
}

static struct join_call *oldest_of(const struct join_ids *ids)
{
	struct join_call *call = ids->calls;

	while (call->older)
		call = call->older;
	return call;
}

void join_ids_add(struct join_ids *ids, struct join_call *call, uint32_t turn)
{
	struct join_call **link, *oldest;

	for (link = &ids->calls; *link; link = &(*link)->older) {
		if ((*link)->api.start_ns < call->api.start_ns)
			break;
	}
	call->older = *link;
	*link = call;
	if (++ids->call_count > JOIN_CALLS_MAX) {
		oldest = oldest_of(ids);
		join_ids_forget(ids, oldest);
		if (oldest == call)
			return;
	}
	for (struct join_call *known = ids->calls; known; known = known->older) {
		nest_if_inside(call, known, turn);
		nest_if_inside(known, call, turn);
	}
}

struct join_call *join_ids_pick(const struct join_ids *ids, uint64_t time_ns)
{
	struct join_call *call = ids->calls;

	while (call->api.start_ns > time_ns && call->older)
		call = call->older;
	return call->outer ? call->outer : call;
}

struct join_map *join_map__new(void)
{
	struct join_map *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	/* The process chooses the ids: not even it may know which of them meet in a slot. */
	if (getrandom(&map->factor, sizeof(map->factor), GRND_NONBLOCK) < 0)
		map->factor = UINT64_C(0x9e3779b97f4a7c15);
	map->factor |= 1;
	map->size = SLOTS_MIN;
	map->slots = calloc(map->size, sizeof(*map->slots));
	if (!map->slots) {
		free(map);
		return NULL;
	}
	return map;
}

void join_map__free(struct join_map *map)
{
	if (!map)
		return;
	free(map->slots);
	free(map);
}

static bool is_free(const struct join_ids *ids)
{
	return !ids->calls && LIST_EMPTY(&ids->waiting);
}

/* Ids that follow each other are asked for together: so many of them stay side by side. */
static size_t home_slot(const struct join_map *map, uint32_t correlation)
{
	size_t block = correlation / BLOCK_IDS * map->factor >> 32;

	return (block * BLOCK_IDS + correlation % BLOCK_IDS) & (map->size - 1);
}

/* The slot of it, or the free one where it belongs. One slot at least is always free. */
static struct join_ids *find_slot(const struct join_map *map, uint32_t correlation)
{
	size_t i = home_slot(map, correlation);

	while (!is_free(&map->slots[i]) && map->slots[i].correlation != correlation)
		i = (i + 1) & (map->size - 1);
	return &map->slots[i];
}

/* The first of a list points back to its head. */
static void move_slot(struct join_ids *to, struct join_ids *from)
{
	*to = *from;
	if (!LIST_EMPTY(&to->waiting))
		LIST_FIRST(&to->waiting)->in_list.le_prev = &LIST_FIRST(&to->waiting);
	*from = (struct join_ids){0};
}

static int grow(struct join_map *map)
{
	struct join_map larger = *map;

	larger.size = map->size * 2;
	larger.slots = calloc(larger.size, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < map->size; i++) {
		if (!is_free(&map->slots[i]))
			move_slot(find_slot(&larger, map->slots[i].correlation), &map->slots[i]);
	}
	free(map->slots);
	*map = larger;
	return 0;
}

struct join_ids *join_map__find(const struct join_map *map, uint32_t correlation)
{
	struct join_ids *ids = find_slot(map, correlation);

	return is_free(ids) ? NULL : ids;
}

struct join_ids *join_map__touch(struct join_map *map, uint32_t correlation)
{
	struct join_ids *ids = find_slot(map, correlation);

	if (!is_free(ids))
		return ids;
	if (map->count >= map->size / 2) {
		if (grow(map))
			return NULL;
		ids = find_slot(map, correlation);
	}
	map->count++;
	*ids = (struct join_ids){.correlation = correlation};
	return ids;
}

void join_map__settle(struct join_map *map, struct join_ids *hole)
{
	size_t mask = map->size - 1;
	size_t i = hole - map->slots;

	if (!is_free(hole))
		return;
	map->count--;
	/* Whoever was pushed past the hole moves back into it, so that no search ends early. */
	for (;;) {
		struct join_ids *next;

		i = (i + 1) & mask;
		next = &map->slots[i];
		if (is_free(next))
			return;
		if (((i - home_slot(map, next->correlation)) & mask) >=
		    ((size_t)(next - hole) & mask)) {
			move_slot(hole, next);
			hole = next;
		}
	}
}
