/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A small random scene. All times are multiples of one tick, so that many of them coincide. */
#ifndef FBT_RANDOM_SCENE_FIXTURE_H
#define FBT_RANDOM_SCENE_FIXTURE_H

#include "gpu_scene_fixture.h"

#define START 100 /* of the step */
#define TICKS 60
#define FIRST (START - 20)
#define LAST  (START + TICKS + 20)

struct dice {
	uint64_t seed;
	uint64_t tick_ns;
};

static inline uint64_t roll(struct dice *dice, uint64_t sides)
{
	return random_below(&dice->seed, sides);
}

static inline uint64_t tick(struct dice *dice, uint64_t from, uint64_t to)
{
	return (from + roll(dice, to - from + 1)) * dice->tick_ns;
}

static inline struct fbt_gpu_api *roll_api(struct dice *dice, struct scene *scene, bool mine)
{
	static const enum fbt_gpu_api_class classes[] = {FBT_GPU_API_LAUNCH, FBT_GPU_API_GRAPH,
							 FBT_GPU_API_MEMCPY, FBT_GPU_API_OTHER};
	uint64_t start =
		mine ? tick(dice, START, START + TICKS - 1) : tick(dice, FIRST, START + TICKS - 1);
	uint64_t end = start + roll(dice, 6) * dice->tick_ns;
	struct fbt_gpu_api *api = add_api(scene, classes[roll(dice, 4)],
					  (uint32_t)(SCENE_THREAD + roll(dice, 3) / 2), start, end);

	if (!roll(dice, 5))
		api->header.flags |= FBT_GPU_API_BLOCKING;
	if (!roll(dice, 20))
		api->start_ns = api->end_ns = 0;
	return api;
}

static inline void roll_kind(struct dice *dice, struct fbt_gpu_work *work)
{
	work->kind = (uint32_t)roll(dice, FBT_GPU_WORK_KIND_COUNT);
	if (work->kind == FBT_GPU_KERNEL)
		return;
	work->copy.bytes = roll(dice, 1000);
	if (work->kind == FBT_GPU_MEMSET)
		return;
	work->copy.kind = (uint32_t)roll(dice, FBT_GPU_COPY_KIND_COUNT);
	work->copy.source_memory = (uint8_t)roll(dice, 8);
	work->copy.target_memory = (uint8_t)roll(dice, 8);
}

static inline void roll_work(struct dice *dice, struct scene *scene, const struct fbt_gpu_api *api,
			     bool mine)
{
	bool late = roll(dice, 3) && api && api->start_ns;
	uint64_t start = tick(dice, START - 5, LAST - 10), end;
	struct fbt_gpu_work *work;

	/* Most work begins soon after its call. */
	if (late)
		start = api->start_ns + roll(dice, 10) * dice->tick_ns;
	end = start + roll(dice, 7) * dice->tick_ns;
	/*
	 * Work of others is kept only if it overlaps the step or was launched before the step's
	 * end.
	 */
	if (!mine && end <= START * dice->tick_ns)
		return;
	if (!mine && start >= (START + TICKS) * dice->tick_ns && !api)
		return;
	work = add_kernel(scene, api, start, end);
	scene->items[scene->item_count - 1].mine = mine;
	scene->items[scene->item_count - 1].comm = !roll(dice, 4);
	work->device = (uint32_t)roll(dice, 3) / 2 * 3;
	work->context = work->device + 1;
	work->stream = 7 + (uint32_t)roll(dice, 2);
	roll_kind(dice, work);
	if (roll(dice, 2)) {
		work->graph = (uint32_t)roll(dice, 2);
		work->graph_node = roll(dice, 3);
	}
}

static inline void roll_syncs(struct dice *dice, struct scene *scene)
{
	/* Waits of one thread do not overlap; those of two threads may. */
	uint64_t from = FIRST;

	while (from < START + TICKS && roll(dice, 3)) {
		uint64_t start = from + roll(dice, 20), end = start + 1 + roll(dice, 20);
		struct fbt_gpu_api *api = add_api(scene, FBT_GPU_API_SYNC,
						  (uint32_t)(SCENE_THREAD + roll(dice, 4) / 3),
						  start * dice->tick_ns, end * dice->tick_ns);

		from = end;
		if (roll(dice, 3))
			continue;
		scene->syncs[scene->sync_count++] = (struct fbt_gpu_sync){
			.correlation = api->correlation,
			.kind = (uint32_t)roll(dice, FBT_GPU_SYNC_KIND_COUNT),
			.start_ns = api->start_ns,
			.end_ns = api->end_ns,
			.context = roll(dice, 4) ? 1 : 4,
			.stream = roll(dice, 2) ? FBT_GPU_NO_STREAM : 7 + (uint32_t)roll(dice, 2)};
	}
}

static inline void roll_calls(struct dice *dice, struct scene *scene)
{
	uint64_t from = START;

	while (from < START + TICKS && roll(dice, 8)) {
		uint64_t start = from + roll(dice, 6), end = start + roll(dice, 8);

		if (end > START + TICKS)
			end = START + TICKS;
		if (start > end)
			start = end;
		add_call_at(scene, (uint32_t)roll(dice, 6), start * dice->tick_ns,
			    end * dice->tick_ns, roll(dice, 2));
		/* Sometimes two records overlap, as faulty records do. */
		from = roll(dice, 10) ? end : start;
	}
	if (!roll(dice, 8))
		scene->step.record.lost_calls = 1;
	if (!roll(dice, 8))
		scene->step.calls_truncated = true;
	if (!roll(dice, 10))
		scene->step.record.kind = 0;
	if (!roll(dice, 10))
		scene->step.calls.count /= 2;
}

static inline void roll_scene(struct dice *dice, struct scene *scene)
{
	uint64_t launches = roll(dice, 8);

	begin_scene(scene, START * dice->tick_ns, (START + TICKS) * dice->tick_ns);
	for (uint64_t i = 0; i < launches; i++) {
		bool mine = roll(dice, 3);
		const struct fbt_gpu_api *api = roll(dice, 8) ? roll_api(dice, scene, mine) : NULL;
		uint64_t nodes = roll(dice, 3) ? 1 : 1 + roll(dice, 4);

		while (nodes--)
			roll_work(dice, scene, api, mine);
	}
	roll_syncs(dice, scene);
	roll_calls(dice, scene);
	for (uint64_t i = roll(dice, 4); i--;) {
		uint64_t start = tick(dice, FIRST, START + TICKS);

		scene->overheads[scene->overhead_count++] = (struct fbt_gpu_overhead){
			.kind = roll(dice, 4) ? FBT_GPU_OVERHEAD_BUFFER_FLUSH
					      : FBT_GPU_OVERHEAD_COMMAND_BUFFER_FULL,
			.start_ns = start,
			.end_ns = start + roll(dice, 5) * dice->tick_ns};
	}
}

#endif
