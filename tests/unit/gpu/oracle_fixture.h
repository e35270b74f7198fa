/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A scene tick by tick: what runs on a GPU, and what the step thread does. */
#ifndef FBT_ORACLE_FIXTURE_H
#define FBT_ORACLE_FIXTURE_H

#include "random_scene_fixture.h"

/* Each question about a tick concerns the work of one device, or that of all devices. */
#define ALL_DEVICES UINT32_MAX

struct oracle {
	const struct scene *scene;
	uint64_t tick_ns;
	uint32_t device;
	const struct gpu_item *items[SCENE_MAX];
	size_t count;
};

static inline bool is_known(const struct gpu_item *item)
{
	return item->api && item->api->start_ns;
}

static inline bool takes_time(const struct gpu_item *item)
{
	return item->work->start_ns < item->work->end_ns;
}

static inline bool covers_tick(uint64_t start_ns, uint64_t end_ns, uint64_t at)
{
	return start_ns <= at && at < end_ns;
}

static inline void select_items(struct oracle *oracle, const struct scene *scene, uint64_t tick_ns,
				uint32_t device)
{
	*oracle = (struct oracle){.scene = scene, .tick_ns = tick_ns, .device = device};
	for (size_t i = 0; i < scene->item_count; i++) {
		if (device == ALL_DEVICES || scene->items[i].work->device == device)
			oracle->items[oracle->count++] = &scene->items[i];
	}
}

enum what {
	ANY,
	KERNEL,
	MEMCPY,
	MEMSET,
	H2D,
	D2H,
	D2D,
	P2P,
	TRANSFER,
	NOT_KERNEL,
	COMM,
	COMPUTE,
};

static inline bool host_end(uint8_t memory)
{
	return memory == 1 || memory == 2;
}

static inline bool device_end(uint8_t memory)
{
	return memory == 3 || memory == 4;
}

/* H2D, D2H, D2D or P2P; ANY for other work. */
static inline enum what direction(const struct fbt_gpu_work *work)
{
	static const enum what by_kind[] = {ANY, H2D, D2H, H2D, D2H, D2D, D2D, D2D, D2D, ANY, P2P};
	uint8_t from = work->copy.source_memory, to = work->copy.target_memory;

	if (work->kind != FBT_GPU_MEMCPY)
		return ANY;
	if (work->copy.kind)
		return by_kind[work->copy.kind];
	if (host_end(from) && device_end(to))
		return H2D;
	if (device_end(from) && host_end(to))
		return D2H;
	return device_end(from) && device_end(to) ? D2D : ANY;
}

static inline bool is_a(const struct gpu_item *item, enum what what)
{
	enum what way = direction(item->work);

	switch (what) {
	case ANY:
		return true;
	case KERNEL:
		return item->work->kind == FBT_GPU_KERNEL;
	case MEMCPY:
		return item->work->kind == FBT_GPU_MEMCPY;
	case MEMSET:
		return item->work->kind == FBT_GPU_MEMSET;
	case NOT_KERNEL:
		return item->work->kind != FBT_GPU_KERNEL;
	case TRANSFER:
		return way == H2D || way == D2H || way == P2P;
	case COMM:
		return item->work->kind == FBT_GPU_KERNEL && item->comm;
	case COMPUTE:
		return item->work->kind == FBT_GPU_KERNEL && !item->comm;
	default:
		return way == what;
	}
}

static inline bool runs(const struct oracle *oracle, enum what what, uint64_t at)
{
	for (size_t i = 0; i < oracle->count; i++) {
		const struct fbt_gpu_work *work = oracle->items[i]->work;

		if (is_a(oracle->items[i], what) && covers_tick(work->start_ns, work->end_ns, at))
			return true;
	}
	return false;
}

static inline uint64_t step_tick(const struct oracle *oracle, int i)
{
	return (uint64_t)(START + i) * oracle->tick_ns;
}

static inline uint64_t union_ns(const struct oracle *oracle, enum what what, enum what without)
{
	uint64_t ns = 0;

	for (int i = 0; i < TICKS; i++) {
		uint64_t at = step_tick(oracle, i);

		if (runs(oracle, what, at) && (without == ANY || !runs(oracle, without, at)))
			ns += oracle->tick_ns;
	}
	return ns;
}

static inline bool calls_known(const struct step *step)
{
	uint64_t counted = 0, ns = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		counted += step->record.sums[i].calls;
		ns += step->record.sums[i].ns;
	}
	return step->record.kind && !step->record.lost_calls && !step->calls_truncated &&
	       step->calls.count >= counted && (step->calls.count || !ns);
}

static inline const struct fbt_call *call_at(const struct scene *scene, uint64_t at)
{
	vec_for_each (call, &scene->step.calls) {
		if (covers_tick(call->start_ns, call->start_ns + call->duration_ns, at))
			return call;
	}
	return NULL;
}

static inline bool blocks_at(const struct scene *scene, uint64_t at)
{
	const struct fbt_call *call = call_at(scene, at);

	return call && call->header.flags & FBT_CALL_BLOCKED;
}

static inline bool is_sync(const struct scene *scene, const struct fbt_gpu_api *api)
{
	return (!scene->step.record.kind || api->tid == SCENE_THREAD) && api->start_ns &&
	       (api->api_class == FBT_GPU_API_SYNC || api->header.flags & FBT_GPU_API_BLOCKING);
}

static inline bool syncs_at(const struct scene *scene, uint64_t at)
{
	for (size_t i = 0; i < scene->api_count; i++) {
		if (is_sync(scene, &scene->apis[i]) &&
		    covers_tick(scene->apis[i].start_ns, scene->apis[i].end_ns, at))
			return true;
	}
	return false;
}

#endif
