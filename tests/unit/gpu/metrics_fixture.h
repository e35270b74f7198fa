/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Scenes that a reader can follow. Times are microseconds from the begin of a step of 1000 us. */
#ifndef FBT_METRICS_FIXTURE_H
#define FBT_METRICS_FIXTURE_H

#include "gpu_scene_fixture.h"

#include <math.h>

#define OTHER_THREAD 8

static inline int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	begin_scene(scene, 1 * MS, 2 * MS);
	*state = scene;
	return 0;
}

static inline int teardown(void **state)
{
	free(*state);
	return 0;
}

static inline uint64_t at(uint64_t us)
{
	return 1 * MS + us * US;
}

static inline struct fbt_gpu_api *launch(struct scene *scene, uint64_t from, uint64_t to)
{
	return add_api(scene, FBT_GPU_API_LAUNCH, SCENE_THREAD, at(from), at(to));
}

static inline struct fbt_gpu_work *kernel(struct scene *scene, const struct fbt_gpu_api *api,
					  uint64_t from, uint64_t to)
{
	return add_kernel(scene, api, at(from), at(to));
}

static inline struct fbt_gpu_api *wait_for(struct scene *scene, uint64_t from, uint64_t to)
{
	return add_api(scene, FBT_GPU_API_SYNC, SCENE_THREAD, at(from), at(to));
}

static inline void check_idle(const struct gpu_figures *figures, uint64_t host_wait,
			      uint64_t launching, uint64_t queue, uint64_t unattributed)
{
	assert_int_equal(figures->host_wait_ns, host_wait * US);
	assert_int_equal(figures->launch_ns, launching * US);
	assert_int_equal(figures->queue_ns, queue * US);
	assert_int_equal(figures->unattributed_ns, unattributed * US);
	assert_int_equal(figures->idle_ns, (host_wait + launching + queue + unattributed) * US);
}

#define MANY 3000

struct many {
	struct fbt_gpu_work works[MANY];
	struct fbt_gpu_api apis[MANY];
	struct gpu_item items[MANY];
};

/*
 * A call of 1 us every 2 us. A kernel of 1 us begins 1 us after each call, on a stream of its own.
 */
static inline struct many *make_many(void)
{
	struct many *many = calloc(1, sizeof(*many));

	assert_non_null(many);
	for (uint32_t i = 0; i < MANY; i++) {
		many->apis[i] = (struct fbt_gpu_api){.tid = SCENE_THREAD,
						     .start_ns = at(2 * i),
						     .end_ns = at(2 * i + 1),
						     .correlation = 1 + i * 64,
						     .api_class = FBT_GPU_API_LAUNCH};
		many->works[i] = (struct fbt_gpu_work){.start_ns = at(2 * i + 2),
						       .end_ns = at(2 * i + 3),
						       .device = i,
						       .context = 1,
						       .stream = i,
						       .correlation = many->apis[i].correlation};
		many->items[i] = (struct gpu_item){
			.work = &many->works[i], .api = &many->apis[i], .mine = true};
	}
	return many;
}

#define SCENE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
