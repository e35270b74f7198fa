/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* GPU figures of scenes that a person can follow; oracle_test.c has all others. */
#include "gpu_scene_fixture.h"

#include <math.h>

#include "gpu/figures.h"
#include "model/gpu.h"
#include "gpu/launches.h"

#define OTHER_THREAD 8

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	begin_scene(scene, 1 * MS, 2 * MS);
	*state = scene;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static uint64_t at(uint64_t us)
{
	return 1 * MS + us * US;
}

/* Times of a scene are microseconds from the begin of the step, which takes 1000 of them. */
static struct fbt_gpu_api *launch(struct scene *scene, uint64_t from, uint64_t to)
{
	return add_api(scene, FBT_GPU_API_LAUNCH, SCENE_THREAD, at(from), at(to));
}

static struct fbt_gpu_work *kernel(struct scene *scene, const struct fbt_gpu_api *api,
				   uint64_t from, uint64_t to)
{
	return add_kernel(scene, api, at(from), at(to));
}

static struct fbt_gpu_api *wait_for(struct scene *scene, uint64_t from, uint64_t to)
{
	return add_api(scene, FBT_GPU_API_SYNC, SCENE_THREAD, at(from), at(to));
}

static void check_idle(const struct gpu_figures *figures, uint64_t host_wait, uint64_t launching,
		       uint64_t queue, uint64_t unattributed)
{
	assert_int_equal(figures->host_wait_ns, host_wait * US);
	assert_int_equal(figures->launch_ns, launching * US);
	assert_int_equal(figures->queue_ns, queue * US);
	assert_int_equal(figures->unattributed_ns, unattributed * US);
	assert_int_equal(figures->idle_ns, (host_wait + launching + queue + unattributed) * US);
}

/* --- gaps ----------------------------------------------------------------------------------- */

static void a_gap_is_the_time_before_in_and_after_the_launch(void **state)
{
	struct scene *scene = *state;
	struct step_gpu *gpu;

	kernel(scene, launch(scene, 100, 110), 113, 400);
	kernel(scene, launch(scene, 430, 440), 460, 1000);
	gpu = measure_scene(scene);
	/* 100 + 10 + 3, and 30 + 10 + 20. */
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
	/* It begins sooner, but was launched after the step. */
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

/* --- host_wait ------------------------------------------------------------------------------ */

static void waits_are_told_by_call(void **state)
{
	/* Number, from, to, blocked; of equal times the lower number comes first. */
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
	/* Nothing comes after it: the step thread has nothing more to launch. */
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
	/* A call that waits is known from CUPTI. */
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
	/* The step was cut off in a call, which has time and is not counted. */
	scene->step.record.sums[FBT_WRITE].calls = 0;
	check_unknown(scene);
	scene->step = step;
	end_scene(scene, NULL);
}

/* --- the step thread ------------------------------------------------------------------------ */

static void a_synchronization_is_useful_then_a_tail(void **state)
{
	struct scene *scene = *state;
	struct step_gpu *gpu;

	kernel(scene, launch(scene, 0, 10), 10, 600);
	wait_for(scene, 100, 640);
	add_call_at(scene, 1, at(20), at(30), false);
	/* libcuda's own: not counted as the engine's. */
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
	/* Not known: the last that ended before it did. */
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
	/* Nothing was there to be awaited. */
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

/* So many kernels, each launched in 50 us, run ns each; none is launched ahead. */
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

/* As in an interval: that the GPU waited for the host is known, what the host did is not. */
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

/* --- graphs, devices ------------------------------------------------------------------------ */

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
	/* In the queue until the last node begins, at 510. */
	assert_true(fabs(gpu->all.queue_depth - 0.46) < 1e-9);
	/* 0 to 50 is in the launch, 550 to 1000 after all of it. */
	check_idle(&gpu->all, 450, 50, 100, 0);
	assert_true(fabs(gpu->all.idle_empty - 500.0 / 600) < 1e-9);
	end_scene(scene, gpu);
}

static void devices_are_told_apart_and_together(void **state)
{
	struct scene *scene = *state;
	struct step_gpu *gpu;

	kernel(scene, launch(scene, 0, 10), 10, 400)->device = 3;
	kernel(scene, launch(scene, 10, 20), 300, 800)->device = 1;
	/* Only the end of the step waits for it. */
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

/* Steps that follow each other have all the GPU's time between them, each nanosecond once. */
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
			/* Now and then there is time between steps. */
			start = end + random_below(&seed, 2) * random_below(&seed, 50);
		}
		assert_int_equal(sum, gpu_interval_common(&all, &steps));
		vec_free(&all);
		vec_free(&steps);
	}
}

/* What a hostile process may send: times of any size, in any relation. */
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

#define MANY 3000

struct many {
	struct fbt_gpu_work works[MANY];
	struct fbt_gpu_api apis[MANY];
	struct gpu_item items[MANY];
};

/* Every 2 us a call that takes 1, and 1 later a kernel that takes 1: each of its own stream. */
static struct many *make_many(void)
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

/* The call that a step was cut off in is there, and not counted. */
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_gap_is_the_time_before_in_and_after_the_launch),
		TEST(run_ahead_leaves_gaps_to_the_queue),
		TEST(the_end_of_a_step_waits_for_what_it_launched_last),
		TEST(without_any_work_all_of_it_is_the_hosts),
		TEST(work_of_an_unknown_call_is_not_attributed),
		TEST(work_that_begins_before_its_call_is_a_doubtful_clock),
		TEST(a_short_queue_is_the_start_of_a_kernel),
		TEST(waits_are_told_by_call),
		TEST(the_calls_of_other_threads_are_not_known),
		TEST(calls_that_are_not_at_hand_are_not_guessed),
		TEST(a_synchronization_is_useful_then_a_tail),
		TEST(a_tail_goes_by_what_was_awaited),
		TEST(a_copy_awaits_itself),
		TEST(calls_without_times_are_not_known),
		TEST(a_step_is_bound_by_what_its_figures_say),
		TEST(what_the_host_did_is_not_guessed),
		TEST(a_full_launch_queue_means_that_the_gpu_is_behind),
		TEST(a_graph_is_one_launch),
		TEST(devices_are_told_apart_and_together),
		TEST(steps_share_the_work_that_goes_on_in_them),
		TEST(sums_hold_whatever_comes_in),
		TEST(a_step_of_no_length_has_no_figures),
		TEST(many_launches_are_told_apart),
		TEST(devices_beyond_the_most_count_with_all_only),
		TEST(calls_are_known_if_all_that_were_counted_are_there),
		TEST(communication_is_known_by_its_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
