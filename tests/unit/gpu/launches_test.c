/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "metrics_fixture.h"

#include "gpu/launches.h"

static void a_graph_is_one_launch(void **state)
{
	struct scene *scene = *state;
	struct fbt_gpu_api *api = add_api(scene, FBT_GPU_API_GRAPH, SCENE_THREAD, at(0), at(50));
	struct step_gpu *gpu;

	for (uint64_t i = 0; i < 10; i++) {
		struct fbt_gpu_work *work = kernel(scene, api, 60 + i * 50, 100 + i * 50);

		work->graph_node = i + 1;
		work->graph = 4;
	}
	gpu = measure_scene(scene);
	assert_int_equal(gpu->all.launches, 1);
	assert_int_equal(gpu->all.graph_launches, 1);
	assert_int_equal(gpu->all.graph_nodes, 10);
	assert_int_equal(gpu->all.kernels, 10);
	assert_int_equal(gpu->all.launch_latency_ns, 10 * US);
	assert_int_equal(gpu->all.work_ns, 400 * US);
	/* The launch is queued until the last node begins, at 510. */
	assert_true(fabs(gpu->all.queue_depth - 0.46) < 1e-9);
	/* 0 to 50 is in the launch; 550 to 1000 is after all of its work. */
	check_idle(&gpu->all, 450, 50, 100, 0);
	assert_true(fabs(gpu->all.idle_empty - 500.0 / 600) < 1e-9);
	end_scene(scene, gpu);
}

static void many_launches_are_told_apart(void **state)
{
	struct many *many = make_many();
	struct gpu_figures figures = {0};
	struct gpu_interval step = {at(0), at(2 * MANY)};

	assert_int_equal(gpu_launches_compute(many->items, MANY, step, &figures), 0);
	assert_int_equal(figures.launches, MANY);
	assert_int_equal(figures.tklqt_ns, MANY * 2 * US);
	assert_int_equal(figures.wait_behind_ns, 0);
	free(many);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(a_graph_is_one_launch),
		SCENE_TEST(many_launches_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
