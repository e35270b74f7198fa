/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The input of gpu_metrics_compute(): a step with GPU work, CUDA API calls and syscalls. */
#ifndef FBT_GPU_SCENE_FIXTURE_H
#define FBT_GPU_SCENE_FIXTURE_H

#include "judged_fixture.h"

#include "gpu/metrics.h"

#define SCENE_MAX    64
#define SCENE_THREAD 7

struct scene {
	struct step step;
	struct fbt_gpu_work works[SCENE_MAX];
	struct fbt_gpu_api apis[SCENE_MAX]; /* by start, those that overlap the step */
	struct fbt_gpu_sync syncs[SCENE_MAX];
	struct fbt_gpu_overhead overheads[SCENE_MAX];
	struct gpu_item items[SCENE_MAX];
	const struct fbt_gpu_api *api_list[SCENE_MAX];
	const struct fbt_gpu_sync *sync_list[SCENE_MAX];
	const struct fbt_gpu_overhead *overhead_list[SCENE_MAX];
	size_t item_count, api_count, listed, sync_count, overhead_count;
};

/* Starts a scene: a step of kind 1 on thread 7. */
static inline void begin_scene(struct scene *scene, uint64_t start_ns, uint64_t end_ns)
{
	memset(scene, 0, sizeof(*scene));
	scene->step = make_step(end_ns - start_ns);
	scene->step.record.start_ns = start_ns;
	scene->step.record.end_ns = end_ns;
}

static inline struct fbt_gpu_api *add_api(struct scene *scene, enum fbt_gpu_api_class class,
					  uint32_t tid, uint64_t start_ns, uint64_t end_ns)
{
	struct fbt_gpu_api *api = &scene->apis[scene->api_count++];

	assert_true(scene->api_count <= SCENE_MAX);
	*api = (struct fbt_gpu_api){.tgid = 7,
				    .tid = tid,
				    .start_ns = start_ns,
				    .end_ns = end_ns,
				    .correlation = (uint32_t)scene->api_count,
				    .api_class = class};
	return api;
}

/*
 * Adds a kernel on device 0 and stream 7 that the step launched by api. NULL: the launch is
 * unknown.
 */
static inline struct fbt_gpu_work *add_kernel(struct scene *scene, const struct fbt_gpu_api *api,
					      uint64_t start_ns, uint64_t end_ns)
{
	struct fbt_gpu_work *work = &scene->works[scene->item_count];

	*work = (struct fbt_gpu_work){.tgid = 7,
				      .start_ns = start_ns,
				      .end_ns = end_ns,
				      .context = 1,
				      .stream = 7,
				      .correlation = api ? api->correlation : 0};
	scene->items[scene->item_count++] =
		(struct gpu_item){.work = work, .api = api, .mine = true};
	assert_true(scene->item_count <= SCENE_MAX);
	return work;
}

static inline struct fbt_gpu_work *add_copy(struct scene *scene, const struct fbt_gpu_api *api,
					    enum fbt_gpu_copy_kind kind, uint64_t start_ns,
					    uint64_t end_ns)
{
	struct fbt_gpu_work *work = add_kernel(scene, api, start_ns, end_ns);

	work->kind = FBT_GPU_MEMCPY;
	work->copy.kind = kind;
	return work;
}

static inline struct fbt_call *add_call_at(struct scene *scene, uint32_t nr, uint64_t start_ns,
					   uint64_t end_ns, bool blocked)
{
	struct fbt_call *call = add_nr(&scene->step, nr, end_ns - start_ns);

	call->start_ns = start_ns;
	call->header.flags = FBT_CALL_ARGS | (blocked ? FBT_CALL_BLOCKED : 0);
	return call;
}

static inline int compare_items(const void *a, const void *b)
{
	const struct gpu_item *left = a, *right = b;

	if (left->work->start_ns != right->work->start_ns)
		return left->work->start_ns < right->work->start_ns ? -1 : 1;
	return (left->work > right->work) - (left->work < right->work);
}

static inline int compare_apis(const void *a, const void *b)
{
	const struct fbt_gpu_api *left = *(const struct fbt_gpu_api *const *)a;
	const struct fbt_gpu_api *right = *(const struct fbt_gpu_api *const *)b;

	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	return (left > right) - (left < right);
}

static inline void sort_scene(struct scene *scene)
{
	const struct fbt_step *record = &scene->step.record;

	qsort(scene->items, scene->item_count, sizeof(scene->items[0]), compare_items);
	scene->listed = 0;
	for (size_t i = 0; i < scene->api_count; i++) {
		const struct fbt_gpu_api *api = &scene->apis[i];

		if (api->start_ns < record->end_ns && api->end_ns > record->start_ns)
			scene->api_list[scene->listed++] = api;
	}
	qsort(scene->api_list, scene->listed, sizeof(scene->api_list[0]), compare_apis);
	for (size_t i = 0; i < SCENE_MAX; i++) {
		scene->sync_list[i] = &scene->syncs[i];
		scene->overhead_list[i] = &scene->overheads[i];
	}
}

/* Free the result with step_gpu_free(). */
static inline struct step_gpu *measure_scene(struct scene *scene)
{
	struct step_gpu *gpu = calloc(1, sizeof(*gpu));
	struct gpu_metrics_input input;

	assert_non_null(gpu);
	sort_scene(scene);
	input = (struct gpu_metrics_input){
		.step = &scene->step,
		.items = scene->items,
		.item_count = scene->item_count,
		.apis = scene->api_list,
		.api_count = scene->listed,
		.syncs = scene->sync_list,
		.sync_count = scene->sync_count,
		.overheads = scene->overhead_list,
		.overhead_count = scene->overhead_count,
	};
	assert_int_equal(gpu_metrics_compute(&input, gpu), 0);
	return gpu;
}

static inline void end_scene(struct scene *scene, struct step_gpu *gpu)
{
	step_gpu_free(gpu);
	vec_free(&scene->step.calls);
}

#endif
