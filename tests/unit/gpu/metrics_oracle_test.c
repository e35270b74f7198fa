/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Compares every figure of gpu_metrics with its definition, in thousands of small random scenes.
 * Time is a row of ticks, and the oracle counts each figure tick by tick.
 */
#include "oracle_step_fixture.h"
#include "random_scene_fixture.h"

#include <inttypes.h>

#define SEEDS 10000

static uint64_t seed_now;

static void same(const char *name, uint64_t actual, uint64_t expected)
{
	if (actual != expected)
		fail_msg("seed %" PRIu64 ": %s is %" PRIu64 ", not %" PRIu64, seed_now, name,
			 actual, expected);
}

static void same_share(const char *name, double actual, double expected)
{
	if (isnan(expected) ? !isnan(actual) : actual != expected)
		fail_msg("seed %" PRIu64 ": %s is %.17g, not %.17g", seed_now, name, actual,
			 expected);
}

#define SAME(field) same(#field, actual->field, expected->field)

static void compare_times(const struct gpu_figures *actual, const struct gpu_figures *expected)
{
	SAME(busy_ns);
	SAME(kernel_ns);
	SAME(memcpy_ns);
	SAME(memset_ns);
	SAME(h2d_ns);
	SAME(d2h_ns);
	SAME(d2d_ns);
	SAME(p2p_ns);
	SAME(transfer_ns);
	SAME(exposed_copy_ns);
	SAME(work_sum_ns);
	SAME(idle_ns);
	SAME(host_wait_ns);
	SAME(launch_ns);
	SAME(queue_ns);
	SAME(unattributed_ns);
	SAME(kernel_wait_ns);
	SAME(dependency_ns);
	SAME(wait_blocked_ns);
	SAME(wait_syscall_ns);
	SAME(wait_user_ns);
	SAME(wait_unknown_ns);
	SAME(hta_host_wait_ns);
	SAME(comm_ns);
	SAME(exposed_comm_ns);
	for (int i = 0; i < GPU_WAIT_CALLS_MAX; i++) {
		SAME(wait_calls[i].ns);
		SAME(wait_calls[i].nr);
		SAME(wait_calls[i].blocked);
	}
}

static void compare_launches(const struct gpu_figures *actual, const struct gpu_figures *expected)
{
	SAME(view_start_ns);
	SAME(view_end_ns);
	SAME(view_busy_ns);
	SAME(kernels);
	SAME(memcpys);
	SAME(memsets);
	SAME(graph_launches);
	SAME(graph_nodes);
	SAME(pageable);
	SAME(h2d_bytes);
	SAME(d2h_bytes);
	SAME(d2d_bytes);
	SAME(p2p_bytes);
	SAME(memset_bytes);
	SAME(launches);
	SAME(launch_latency_ns);
	SAME(launch_api_ns);
	SAME(queue_delay_ns);
	SAME(wait_behind_ns);
	SAME(work_ns);
	SAME(tklqt_ns);
	same_share("queue_depth", actual->queue_depth, expected->queue_depth);
	same_share("idle_empty", actual->idle_empty, expected->idle_empty);
}

static void compare_steps(const struct step_gpu *actual, const struct step_gpu *expected)
{
	SAME(sync_ns);
	SAME(sync_useful_ns);
	SAME(sync_tail_ns);
	SAME(sync_spin_ns);
	SAME(exposed_syscall_ns);
	SAME(overlapped_syscall_ns);
	SAME(cuda_internal_ns);
	SAME(calls_known);
	SAME(gpu_only_ns);
	SAME(gpu_host_ns);
	SAME(joined);
	SAME(by_time);
	SAME(violations);
	SAME(cupti_overhead_ns);
	SAME(bound);
	same_share("bound_idle", actual->bound_idle, expected->bound_idle);
	same_share("bound_work", actual->bound_work, expected->bound_work);
	same_share("bound_empty", actual->bound_empty, expected->bound_empty);
	same_share("bound_full", actual->bound_full, expected->bound_full);
}

static void check_sums(const struct gpu_figures *figures, uint64_t step_ns)
{
	same("busy + idle", figures->busy_ns + figures->idle_ns, step_ns);
	same("parts of idle",
	     figures->host_wait_ns + figures->launch_ns + figures->queue_ns +
		     figures->unattributed_ns,
	     figures->idle_ns);
	same("parts of queue", figures->kernel_wait_ns + figures->dependency_ns, figures->queue_ns);
	same("parts of host_wait",
	     figures->wait_blocked_ns + figures->wait_syscall_ns + figures->wait_user_ns +
		     figures->wait_unknown_ns,
	     figures->host_wait_ns);
}

static void check_step(const struct step_gpu *gpu, uint64_t step_ns)
{
	const struct gpu_figures *all = &gpu->all;

	check_sums(all, step_ns);
	vec_for_each (figures, &gpu->devices)
		check_sums(figures, step_ns);
	same("parts of H",
	     gpu->gpu_only_ns + gpu->gpu_host_ns + all->host_wait_ns + all->launch_ns +
		     all->queue_ns + all->unattributed_ns,
	     step_ns);
}

/* The set must hold exactly those ticks, as intervals ordered by start that do not touch. */
static void check_set(const gpu_interval_vec *set, const struct oracle *all, bool sync)
{
	size_t next = 0;
	bool inside = false;

	for (int i = 0; i <= TICKS; i++) {
		uint64_t at = step_tick(all, i);
		bool in = i < TICKS && runs(all, ANY, at) && (!sync || syncs_at(all->scene, at));

		if (in && !inside)
			assert_true(next < set->count && set->items[next].start_ns == at);
		if (!in && inside)
			same("end of an interval", set->items[next++].end_ns, at);
		inside = in;
	}
	same("intervals", set->count, next);
}

static bool has_device(const struct scene *scene, uint32_t device)
{
	for (size_t i = 0; i < scene->item_count; i++) {
		const struct gpu_item *item = &scene->items[i];
		const struct fbt_step *record = &scene->step.record;

		if (item->work->device == device &&
		    (item->mine || (takes_time(item) && item->work->end_ns > record->start_ns &&
				    item->work->start_ns < record->end_ns)))
			return true;
	}
	return false;
}

static void check_devices(const struct scene *scene, const struct step_gpu *gpu, uint64_t tick_ns)
{
	struct gpu_figures expected;
	uint32_t most = 0;
	uint64_t most_ns = 0;
	size_t count = 0;

	for (uint32_t device = 0; device < 4; device++) {
		struct oracle oracle;

		if (!has_device(scene, device))
			continue;
		assert_true(count < gpu->devices.count);
		select_items(&oracle, scene, tick_ns, device);
		expect_figures(&oracle, &expected);
		same("device", gpu->devices.items[count].device, device);
		compare_times(&gpu->devices.items[count], &expected);
		compare_launches(&gpu->devices.items[count], &expected);
		if (!count || expected.busy_ns > most_ns) {
			most = device;
			most_ns = expected.busy_ns;
		}
		count++;
	}
	same("devices", gpu->devices.count, count);
	same("device of the most work", gpu->all.device, most);
}

static void check_scene(uint64_t seed, uint64_t tick_ns)
{
	struct dice dice = {.seed = seed, .tick_ns = tick_ns};
	struct step_gpu expected = {0}, *gpu;
	struct oracle all;
	struct scene scene;

	seed_now = seed;
	roll_scene(&dice, &scene);
	gpu = measure_scene(&scene);
	select_items(&all, &scene, tick_ns, ALL_DEVICES);
	expect_figures(&all, &expected.all);
	expect_step(&all, &expected);
	compare_times(&gpu->all, &expected.all);
	compare_launches(&gpu->all, &expected.all);
	compare_steps(gpu, &expected);
	check_devices(&scene, gpu, tick_ns);
	check_step(gpu, TICKS * tick_ns);
	check_set(&gpu->busy, &all, false);
	check_set(&gpu->sync_busy, &all, true);
	end_scene(&scene, gpu);
}

static void every_figure_is_what_its_definition_says(void **state)
{
	/* With ticks of 700 ns some gaps are below 2 us, some below 5 us, and some are longer. */
	static const uint64_t ticks_ns[] = {1, 700, 1000, 12345};

	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		check_scene(seed, ticks_ns[seed % 4]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_figure_is_what_its_definition_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
