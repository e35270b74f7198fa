/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What a device did during a step, and what it waited for. */
#include "metrics_fixture.h"

#include "gpu/figures.h"

static void a_gap_is_the_time_before_in_and_after_the_launch(void **state)
{
	struct scene *scene = *state;
	struct step_gpu *gpu;

	kernel(scene, launch(scene, 100, 110), 113, 400);
	kernel(scene, launch(scene, 430, 440), 460, 1000);
	gpu = measure_scene(scene);
	/* Host wait, launch and queue: 100 + 10 + 3, then 30 + 10 + 20. */
	check_idle(&gpu->all, 130, 20, 23, 0);
	assert_int_equal(gpu->all.kernel_wait_ns, 3 * US);
	assert_int_equal(gpu->all.dependency_ns, 20 * US);
	assert_int_equal(gpu->all.hta_host_wait_ns, 173 * US);
	assert_int_equal(gpu->all.wait_user_ns, 130 * US);
	end_scene(scene, gpu);
}

static void run_ahead_leaves_gaps_to_the_queue(void **state)
{
	struct scene *scene = *state;
	struct step_gpu *gpu;

	kernel(scene, launch(scene, 0, 0), 0, 500);
	kernel(scene, launch(scene, 10, 20), 504, 1000);
	gpu = measure_scene(scene);
	check_idle(&gpu->all, 0, 0, 4, 0);
	assert_int_equal(gpu->all.wait_behind_ns, 480 * US);
	end_scene(scene, gpu);
}

static void the_end_of_a_step_waits_for_what_it_launched_last(void **state)
{
	struct scene *scene = *state;
	struct step_gpu *gpu;

	kernel(scene, launch(scene, 0, 0), 0, 900);
	kernel(scene, launch(scene, 920, 990), 2000, 3000);
	/* This kernel begins sooner, but its launch was after the step. */
	kernel(scene, launch(scene, 1005, 1006), 1010, 1020);
	scene->items[2].mine = false;
	gpu = measure_scene(scene);
	check_idle(&gpu->all, 20, 70, 10, 0);
	assert_int_equal(gpu->all.view_end_ns, at(3000));
	assert_int_equal(gpu->all.view_busy_ns, 1910 * US);
	end_scene(scene, gpu);
}

static void without_any_work_all_of_it_is_the_hosts(void **state)
{
	struct scene *scene = *state;
	struct step_gpu *gpu;

	add_call_at(scene, 3, at(100), at(300), true);
	gpu = measure_scene(scene);
	check_idle(&gpu->all, 1000, 0, 0, 0);
	assert_int_equal(gpu->all.wait_blocked_ns, 200 * US);
	assert_int_equal(gpu->all.wait_user_ns, 800 * US);
	assert_int_equal(gpu->bound, GPU_BOUND_UNKNOWN);
	assert_int_equal(gpu->devices.count, 0);
	assert_true(isnan(gpu->all.queue_depth));
	assert_true(isnan(gpu->bound_work));
	assert_true(gpu->all.idle_empty == 1.0);
	end_scene(scene, gpu);
}

static void work_of_an_unknown_call_is_not_attributed(void **state)
{
	struct scene *scene = *state;
	struct step_gpu *gpu;

	kernel(scene, NULL, 300, 1000);
	gpu = measure_scene(scene);
	check_idle(&gpu->all, 0, 0, 0, 300);
	assert_int_equal(gpu->by_time, 1);
	assert_int_equal(gpu->bound, GPU_BOUND_UNKNOWN);
	end_scene(scene, gpu);
}

static void work_that_begins_before_its_call_is_a_doubtful_clock(void **state)
{
	struct scene *scene = *state;
	struct step_gpu *gpu;

	kernel(scene, launch(scene, 310, 320), 300, 1000);
	gpu = measure_scene(scene);
	check_idle(&gpu->all, 300, 0, 0, 0);
	assert_int_equal(gpu->violations, 1);
	end_scene(scene, gpu);
}

static void check_kernel_wait(struct scene *scene, uint64_t gap_ns, bool graph, bool expected)
{
	struct fbt_gpu_api *api;
	struct step_gpu *gpu;

	begin_scene(scene, 1 * MS, 2 * MS);
	api = launch(scene, 0, 0);
	add_kernel(scene, api, at(0), at(500))->graph_node = graph;
	add_kernel(scene, api, at(500) + gap_ns, at(1000))->graph_node = graph;
	gpu = measure_scene(scene);
	assert_int_equal(gpu->all.kernel_wait_ns, expected ? gap_ns : 0);
	assert_int_equal(gpu->all.dependency_ns, expected ? 0 : gap_ns);
	end_scene(scene, gpu);
}

static void a_short_queue_is_the_start_of_a_kernel(void **state)
{
	check_kernel_wait(*state, 4999, false, true);
	check_kernel_wait(*state, 5000, false, false);
	check_kernel_wait(*state, 1999, true, true);
	check_kernel_wait(*state, 2000, true, false);
}

static void waits_are_told_by_call(void **state)
{
	/* Number, from, to, blocked. For equal times, the lower number comes first. */
	static const uint64_t calls[][4] = {
		{1, 0, 40, 0},	    {202, 40, 140, 1}, {3, 140, 180, 0}, {9, 200, 230, 1},
		{202, 230, 250, 0}, {5, 250, 251, 0},  {9, 900, 990, 1},
	};
	static const struct gpu_wait_call expected[] = {{202, true, 100 * US},
							{1, false, 40 * US},
							{3, false, 40 * US},
							{9, true, 30 * US}};
	struct scene *scene = *state;
	struct step_gpu *gpu;

	for (size_t i = 0; i < 7; i++)
		add_call_at(scene, (uint32_t)calls[i][0], at(calls[i][1]), at(calls[i][2]),
			    calls[i][3]);
	kernel(scene, launch(scene, 300, 310), 310, 1000);
	gpu = measure_scene(scene);
	assert_int_equal(gpu->all.wait_blocked_ns, 130 * US);
	assert_int_equal(gpu->all.wait_syscall_ns, 101 * US);
	assert_int_equal(gpu->all.wait_user_ns, 69 * US);
	for (size_t i = 0; i < GPU_WAIT_CALLS_MAX; i++) {
		assert_int_equal(gpu->all.wait_calls[i].nr, expected[i].nr);
		assert_int_equal(gpu->all.wait_calls[i].blocked, expected[i].blocked);
		assert_int_equal(gpu->all.wait_calls[i].ns, expected[i].ns);
	}
	end_scene(scene, gpu);
}

static void the_calls_of_other_threads_are_not_known(void **state)
{
	struct scene *scene = *state;
	struct step_gpu *gpu;

	add_call_at(scene, 1, at(0), at(300), true);
	kernel(scene, add_api(scene, FBT_GPU_API_LAUNCH, OTHER_THREAD, at(300), at(310)), 310, 900);
	gpu = measure_scene(scene);
	assert_int_equal(gpu->all.wait_unknown_ns, 300 * US);
	/* No work follows, so no thread of the engine is waited for but the step's own. */
	assert_int_equal(gpu->all.wait_user_ns, 100 * US);
	assert_true(gpu->calls_known);
	end_scene(scene, gpu);
}

static void check_unknown(struct scene *scene)
{
	struct step_gpu *gpu = measure_scene(scene);

	assert_false(gpu->calls_known);
	assert_int_equal(gpu->all.wait_unknown_ns, gpu->all.host_wait_ns);
	assert_int_equal(gpu->exposed_syscall_ns + gpu->overlapped_syscall_ns, 0);
	assert_int_equal(gpu->cuda_internal_ns + gpu->sync_spin_ns, 0);
	/* CUPTI's record of the call tells that it waits. */
	assert_int_equal(gpu->sync_ns, 100 * US);
	step_gpu_free(gpu);
}

static void calls_that_are_not_at_hand_are_not_guessed(void **state)
{
	struct scene *scene = *state;
	struct step step;

	add_call_at(scene, 1, at(0), at(300), true);
	wait_for(scene, 500, 600);
	step = scene->step;
	scene->step.record.lost_calls = 1;
	check_unknown(scene);
	scene->step = step;
	scene->step.calls_truncated = true;
	check_unknown(scene);
	scene->step = step;
	scene->step.record.kind = 0;
	check_unknown(scene);
	/* --detail probes */
	scene->step = step;
	scene->step.record.header.flags |= FBT_STEP_CALLS_UNKNOWN;
	scene->step.calls.count = 0;
	memset(scene->step.record.sums, 0, sizeof(scene->step.record.sums));
	check_unknown(scene);
	/* --detail steps */
	scene->step = step;
	scene->step.calls.count = 0;
	check_unknown(scene);
	/*
	 * The step ends within a call. The call's time is in the sum, but the call is not counted.
	 */
	scene->step.record.sums[FBT_WRITE].calls = 0;
	check_unknown(scene);
	scene->step = step;
	end_scene(scene, NULL);
}

/* A call in which the step ends has a record but is not counted. */
static void calls_are_known_if_all_that_were_counted_are_there(void **state)
{
	struct scene *scene = *state;

	assert_true(gpu_calls_known(&scene->step));
	add_call_at(scene, 3, at(100), at(300), true);
	assert_true(gpu_calls_known(&scene->step));
	scene->step.record.sums[syscall_category(FBT_ARCH_X86_64, 3)].calls--;
	assert_true(gpu_calls_known(&scene->step));
	scene->step.record.sums[syscall_category(FBT_ARCH_X86_64, 3)].calls += 2;
	assert_false(gpu_calls_known(&scene->step));
	vec_free(&scene->step.calls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(a_gap_is_the_time_before_in_and_after_the_launch),
		SCENE_TEST(run_ahead_leaves_gaps_to_the_queue),
		SCENE_TEST(the_end_of_a_step_waits_for_what_it_launched_last),
		SCENE_TEST(without_any_work_all_of_it_is_the_hosts),
		SCENE_TEST(work_of_an_unknown_call_is_not_attributed),
		SCENE_TEST(work_that_begins_before_its_call_is_a_doubtful_clock),
		SCENE_TEST(a_short_queue_is_the_start_of_a_kernel),
		SCENE_TEST(waits_are_told_by_call),
		SCENE_TEST(the_calls_of_other_threads_are_not_known),
		SCENE_TEST(calls_that_are_not_at_hand_are_not_guessed),
		SCENE_TEST(calls_are_known_if_all_that_were_counted_are_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
