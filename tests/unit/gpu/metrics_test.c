/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * GPU figures of scenes that a reader can follow. metrics_oracle_test.c covers the other figures.
 */
#include "metrics_fixture.h"

#include "model/gpu.h"

static void a_synchronization_is_useful_then_a_tail(void **state)
{
	struct scene *scene = *state;
	struct step_gpu *gpu;

	kernel(scene, launch(scene, 0, 10), 10, 600);
	wait_for(scene, 100, 640);
	add_call_at(scene, 1, at(20), at(30), false);
	/* A call of libcuda within the sync does not count as one of the engine. */
	add_call_at(scene, 16, at(300), at(500), true);
	add_call_at(scene, 1, at(700), at(750), false);
	gpu = measure_scene(scene);
	assert_int_equal(gpu->sync_ns, 540 * US);
	assert_int_equal(gpu->sync_useful_ns, 500 * US);
	assert_int_equal(gpu->sync_tail_ns, 40 * US);
	assert_int_equal(gpu->sync_spin_ns, 340 * US);
	assert_int_equal(gpu->cuda_internal_ns, 200 * US);
	assert_int_equal(gpu->overlapped_syscall_ns, 10 * US);
	assert_int_equal(gpu->exposed_syscall_ns, 50 * US);
	assert_int_equal(gpu->gpu_only_ns, 500 * US);
	assert_int_equal(gpu->gpu_host_ns, 90 * US);
	assert_int_equal(gpu->sync_busy.count, 1);
	assert_int_equal(gpu->sync_busy.items[0].start_ns, at(100));
	assert_int_equal(gpu->sync_busy.items[0].end_ns, at(600));
	end_scene(scene, gpu);
}

static uint64_t tail_of(struct scene *scene)
{
	struct step_gpu *gpu = measure_scene(scene);
	uint64_t ns = gpu->sync_tail_ns;

	step_gpu_free(gpu);
	return ns / US;
}

static void a_tail_goes_by_what_was_awaited(void **state)
{
	struct scene *scene = *state;
	struct fbt_gpu_sync *sync = &scene->syncs[0];

	kernel(scene, launch(scene, 0, 10), 10, 300);
	kernel(scene, launch(scene, 10, 20), 20, 400)->stream = 8;
	kernel(scene, launch(scene, 20, 30), 30, 900)->context = 2;
	sync->correlation = wait_for(scene, 100, 450)->correlation;
	sync->stream = FBT_GPU_NO_STREAM;
	sync->context = 1;
	/* Without a sync record, the last work that ended before the sync's end counts. */
	assert_int_equal(tail_of(scene), 50);
	scene->sync_count = 1;
	sync->kind = FBT_GPU_SYNC_EVENT;
	assert_int_equal(tail_of(scene), 50);
	sync->kind = FBT_GPU_SYNC_STREAM;
	sync->stream = 7;
	assert_int_equal(tail_of(scene), 150);
	sync->stream = 8;
	assert_int_equal(tail_of(scene), 50);
	sync->kind = FBT_GPU_SYNC_CONTEXT;
	sync->stream = FBT_GPU_NO_STREAM;
	assert_int_equal(tail_of(scene), 50);
	sync->context = 2;
	assert_int_equal(tail_of(scene), 0);
	/* That context had no work to wait for. */
	sync->context = 3;
	assert_int_equal(tail_of(scene), 350);
}

static void a_copy_awaits_itself(void **state)
{
	struct scene *scene = *state;
	struct fbt_gpu_api *api =
		add_api(scene, FBT_GPU_API_MEMCPY, SCENE_THREAD, at(100), at(300));
	struct step_gpu *gpu;

	api->header.flags = FBT_GPU_API_BLOCKING;
	add_copy(scene, api, FBT_GPU_COPY_D2H, at(110), at(200));
	gpu = measure_scene(scene);
	assert_int_equal(gpu->sync_ns, 200 * US);
	assert_int_equal(gpu->sync_useful_ns, 90 * US);
	assert_int_equal(gpu->sync_tail_ns, 100 * US);
	end_scene(scene, gpu);
}

static void calls_without_times_are_not_known(void **state)
{
	struct scene *scene = *state;
	struct fbt_gpu_api *api = wait_for(scene, 100, 300);
	struct step_gpu *gpu;

	api->start_ns = 0;
	kernel(scene, api, 400, 1000);
	gpu = measure_scene(scene);
	assert_int_equal(gpu->sync_ns, 0);
	check_idle(&gpu->all, 0, 0, 0, 400);
	assert_int_equal(gpu->joined, 1);
	assert_int_equal(gpu->all.launches, 0);
	end_scene(scene, gpu);
}

static void devices_are_told_apart_and_together(void **state)
{
	struct scene *scene = *state;
	struct step_gpu *gpu;

	kernel(scene, launch(scene, 0, 10), 10, 400)->device = 3;
	kernel(scene, launch(scene, 10, 20), 300, 800)->device = 1;
	/* Only the gap at the end of the step depends on this kernel. */
	kernel(scene, launch(scene, 20, 30), 1100, 1200)->device = 5;
	scene->items[2].mine = false;
	gpu = measure_scene(scene);
	assert_int_equal(gpu->devices.count, 2);
	assert_int_equal(gpu->devices.items[0].device, 1);
	assert_int_equal(gpu->devices.items[0].busy_ns, 500 * US);
	assert_int_equal(gpu->devices.items[1].device, 3);
	assert_int_equal(gpu->devices.items[1].busy_ns, 390 * US);
	assert_int_equal(gpu->all.device, 1);
	assert_int_equal(gpu->all.busy_ns, 790 * US);
	assert_int_equal(gpu->all.work_sum_ns, 890 * US);
	check_idle(&gpu->all, 0, 10, 200, 0);
	check_idle(&gpu->devices.items[1], 600, 10, 0, 0);
	end_scene(scene, gpu);
}

static void devices_beyond_the_most_count_with_all_only(void **state)
{
	struct many *many = make_many();
	struct scene *scene = *state;
	struct step_gpu *gpu = calloc(1, sizeof(*gpu));
	const struct gpu_metrics_input input = {
		.step = &scene->step, .items = many->items, .item_count = GPU_DEVICES_MAX + 30};

	assert_non_null(gpu);
	assert_int_equal(gpu_metrics_compute(&input, gpu), 0);
	assert_int_equal(gpu->devices.count, GPU_DEVICES_MAX);
	assert_int_equal(gpu->all.busy_ns, (GPU_DEVICES_MAX + 30) * US);
	end_scene(scene, gpu);
	free(many);
}

static void communication_is_known_by_its_kernels(void **state)
{
	assert_true(gpu_name_is_comm("ncclDevKernel_AllReduce_Sum_bf16"));
	assert_true(gpu_name_is_comm("void ncclKernel_Broadcast(int)"));
	assert_true(gpu_name_is_comm("x::ncclDevKernel"));
	assert_false(gpu_name_is_comm("my_nccl_like"));
	assert_false(gpu_name_is_comm("ncc_init"));
	assert_false(gpu_name_is_comm("gemm"));
	assert_false(gpu_name_is_comm(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(a_synchronization_is_useful_then_a_tail),
		SCENE_TEST(a_tail_goes_by_what_was_awaited),
		SCENE_TEST(a_copy_awaits_itself),
		SCENE_TEST(calls_without_times_are_not_known),
		SCENE_TEST(devices_are_told_apart_and_together),
		SCENE_TEST(devices_beyond_the_most_count_with_all_only),
		SCENE_TEST(communication_is_known_by_its_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
