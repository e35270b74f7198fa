/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * GPU figures of scenes that a reader can follow. metrics_oracle_test.c covers the other figures.
 */
#include "metrics_fixture.h"

#include "model/gpu.h"

/* --- the step thread ------------------------------------------------------------------------ */

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

/* --- the verdict ---------------------------------------------------------------------------- */

static void check_bound(struct scene *scene, enum gpu_bound expected)
{
	struct step_gpu *gpu = measure_scene(scene);

	if (gpu->bound != expected)
		fail_msg("%s, not %s", gpu_bound_name(gpu->bound), gpu_bound_name(expected));
	end_scene(scene, gpu);
	begin_scene(scene, 1 * MS, 2 * MS);
}
/* Ten kernels of ns each, each launched in 50 us. None is launched ahead. */
static void many_kernels(struct scene *scene, uint64_t ns)
{
	for (uint64_t i = 0; i < 10; i++)
		add_kernel(scene, launch(scene, i * 100 + 20, i * 100 + 70), at(i * 100 + 70),
			   at(i * 100 + 70) + ns);
}
static void a_step_is_bound_by_what_its_figures_say(void **state)
{
	struct scene *scene = *state;

	kernel(scene, launch(scene, 0, 10), 10, 911);
	check_bound(scene, GPU_BOUND_GPU);
	kernel(scene, launch(scene, 0, 10), 10, 910);
	check_bound(scene, GPU_BOUND_NONE);
	add_copy(scene, launch(scene, 0, 10), FBT_GPU_COPY_H2D, at(10), at(211));
	check_bound(scene, GPU_BOUND_COPY);
	many_kernels(scene, 25 * US);
	check_bound(scene, GPU_BOUND_LAUNCH);
	kernel(scene, launch(scene, 500, 510), 510, 1000);
	check_bound(scene, GPU_BOUND_HOST);
	kernel(scene, launch(scene, 500, 510), 510, 1000);
	add_call_at(scene, 1, at(0), at(251), true);
	check_bound(scene, GPU_BOUND_WAIT);
	kernel(scene, launch(scene, 500, 510), 510, 1000);
	add_call_at(scene, 1, at(0), at(250), true);
	check_bound(scene, GPU_BOUND_HOST);
}
/* As in an interval: the GPU's wait for the host is known, but not what the host did. */
static void what_the_host_did_is_not_guessed(void **state)
{
	struct scene *scene = *state;

	for (uint64_t from = 200; from <= 201; from++) {
		kernel(scene, launch(scene, from, from + 10), from + 10, 1000);
		scene->step.calls_truncated = true;
		check_bound(scene, from > 200 ? GPU_BOUND_UNKNOWN : GPU_BOUND_HOST);
	}
	kernel(scene, launch(scene, 80, 90), 90, 1000);
	scene->step.calls_truncated = true;
	check_bound(scene, GPU_BOUND_GPU);
}
static void a_full_launch_queue_means_that_the_gpu_is_behind(void **state)
{
	struct scene *scene = *state;

	for (uint64_t ns = 10 * US; ns <= 10 * US + 1; ns++) {
		many_kernels(scene, 25 * US);
		scene->overheads[0] =
			(struct fbt_gpu_overhead){.kind = FBT_GPU_OVERHEAD_COMMAND_BUFFER_FULL,
						  .start_ns = at(20),
						  .end_ns = at(20) + ns};
		scene->overhead_count = 1;
		check_bound(scene, ns > 10 * US ? GPU_BOUND_GPU : GPU_BOUND_LAUNCH);
	}
}

/* --- devices -------------------------------------------------------------------------------- */

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

/* --- properties ----------------------------------------------------------------------------- */

static void check_sums(const struct gpu_figures *figures, uint64_t step_ns)
{
	assert_int_equal(figures->busy_ns + figures->idle_ns, step_ns);
	assert_int_equal(figures->host_wait_ns + figures->launch_ns + figures->queue_ns +
				 figures->unattributed_ns,
			 figures->idle_ns);
	assert_int_equal(figures->kernel_wait_ns + figures->dependency_ns, figures->queue_ns);
	assert_int_equal(figures->wait_blocked_ns + figures->wait_syscall_ns +
				 figures->wait_user_ns + figures->wait_unknown_ns,
			 figures->host_wait_ns);
	assert_true(figures->transfer_ns <= figures->busy_ns);
	assert_true(figures->exposed_comm_ns <= figures->comm_ns);
}
/* Consecutive steps share the GPU's busy time: each nanosecond counts in one step. */
static void steps_share_the_work_that_goes_on_in_them(void **state)
{
	struct scene *scene = *state;
	uint64_t seed = 9;

	for (int round = 0; round < 1000; round++) {
		uint64_t start = 1000, sum = 0;
		gpu_interval_vec all = {0}, steps = {0};

		begin_scene(scene, 1000, 1000);
		for (int i = 0; i < 20; i++) {
			uint64_t from = 900 + random_below(&seed, 1200);

			add_kernel(scene, NULL, from, from + random_below(&seed, 120));
		}
		for (int i = 0; i < 20; i++) {
			struct gpu_interval time = {scene->works[i].start_ns,
						    scene->works[i].end_ns};

			assert_int_equal(vec_push(&all, time), 0);
		}
		gpu_interval_sort(&all);
		while (start < 2000) {
			uint64_t end = start + random_below(&seed, 200);
			struct step_gpu *gpu;

			scene->step.record.start_ns = start;
			scene->step.record.end_ns = end;
			gpu = measure_scene(scene);
			sum += gpu->all.busy_ns;
			assert_int_equal(
				gpu_interval_append(&steps, (struct gpu_interval){start, end}), 0);
			step_gpu_free(gpu);
			/* Sometimes there is a gap between steps. */
			start = end + random_below(&seed, 2) * random_below(&seed, 50);
		}
		assert_int_equal(sum, gpu_interval_common(&all, &steps));
		vec_free(&all);
		vec_free(&steps);
	}
}
/* A hostile process may send times of any size and in any order. */
static uint64_t any_time(uint64_t *seed)
{
	switch (random_below(seed, 4)) {
	case 0:
		return next_random(seed);
	case 1:
		return UINT64_MAX - random_below(seed, 3);
	case 2:
		return random_below(seed, 3);
	}
	return 1 * MS + random_below(seed, 2 * MS);
}
static void sums_hold_whatever_comes_in(void **state)
{
	struct scene *scene = *state;
	uint64_t seed = 11;

	for (int round = 0; round < 5000; round++) {
		uint64_t start = any_time(&seed), end = any_time(&seed);
		struct step_gpu *gpu;

		begin_scene(scene, start, end);
		for (int i = 0; i < 12; i++) {
			struct fbt_gpu_api *api =
				add_api(scene, (enum fbt_gpu_api_class)random_below(&seed, 6),
					SCENE_THREAD, any_time(&seed), any_time(&seed));

			api->header.flags =
				(uint16_t)(random_below(&seed, 2) * FBT_GPU_API_BLOCKING);
			add_copy(scene, random_below(&seed, 4) ? api : NULL,
				 (enum fbt_gpu_copy_kind)random_below(&seed, 12), any_time(&seed),
				 any_time(&seed))
				->device = (uint32_t)random_below(&seed, 3);
			scene->works[i].copy.bytes = any_time(&seed);
			add_call_at(scene, 3, any_time(&seed), 0, random_below(&seed, 2))
				->duration_ns = any_time(&seed);
		}
		gpu = measure_scene(scene);
		end = end > start ? end : start;
		check_sums(&gpu->all, end - start);
		vec_for_each (figures, &gpu->devices)
			check_sums(figures, end - start);
		assert_int_equal(gpu->gpu_only_ns + gpu->gpu_host_ns, gpu->all.busy_ns);
		assert_int_equal(gpu_interval_length(&gpu->busy), gpu->all.busy_ns);
		end_scene(scene, gpu);
	}
}
static void a_step_of_no_length_has_no_figures(void **state)
{
	struct scene *scene = *state;
	struct step_gpu *gpu;

	scene->step.record.end_ns = scene->step.record.start_ns;
	kernel(scene, launch(scene, 0, 10), 10, 911);
	gpu = measure_scene(scene);
	check_sums(&gpu->all, 0);
	assert_int_equal(gpu->all.kernels, 1);
	assert_int_equal(gpu->bound, GPU_BOUND_UNKNOWN);
	assert_true(gpu->bound_idle == 0.0 && isnan(gpu->bound_empty));
	end_scene(scene, gpu);
}

/* --- much of all ---------------------------------------------------------------------------- */

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

/* --- parts ---------------------------------------------------------------------------------- */

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
		SCENE_TEST(a_step_is_bound_by_what_its_figures_say),
		SCENE_TEST(what_the_host_did_is_not_guessed),
		SCENE_TEST(a_full_launch_queue_means_that_the_gpu_is_behind),
		SCENE_TEST(devices_are_told_apart_and_together),
		SCENE_TEST(steps_share_the_work_that_goes_on_in_them),
		SCENE_TEST(sums_hold_whatever_comes_in),
		SCENE_TEST(a_step_of_no_length_has_no_figures),
		SCENE_TEST(devices_beyond_the_most_count_with_all_only),
		SCENE_TEST(communication_is_known_by_its_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
