/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* GPU figures sum up to the step, and over steps to the work, whatever comes in. */
#include "metrics_fixture.h"

#include "model/gpu.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(steps_share_the_work_that_goes_on_in_them),
		SCENE_TEST(sums_hold_whatever_comes_in),
		SCENE_TEST(a_step_of_no_length_has_no_figures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
