/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What a step is bound by, as its GPU figures say. */
#include "metrics_fixture.h"

#include "model/gpu.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(a_step_is_bound_by_what_its_figures_say),
		SCENE_TEST(what_the_host_did_is_not_guessed),
		SCENE_TEST(a_full_launch_queue_means_that_the_gpu_is_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
