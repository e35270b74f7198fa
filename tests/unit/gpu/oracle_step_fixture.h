/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The definitions of a step's figures, each counted tick by tick. */
#ifndef FBT_ORACLE_STEP_FIXTURE_H
#define FBT_ORACLE_STEP_FIXTURE_H

#include <math.h>

#include "oracle_gaps_fixture.h"
#include "oracle_launches_fixture.h"

static inline void expect_counts(const struct oracle *oracle, struct gpu_figures *expected)
{
	uint64_t begin = UINT64_MAX, end = 0;

	for (size_t i = 0; i < oracle->count; i++) {
		const struct fbt_gpu_work *work = oracle->items[i]->work;
		uint64_t bytes = work->kind == FBT_GPU_KERNEL ? 0 : work->copy.bytes;

		if (!oracle->items[i]->mine)
			continue;
		begin = smaller(begin, work->start_ns);
		end = larger(end, work->end_ns);
		expected->kernels += work->kind == FBT_GPU_KERNEL;
		expected->memcpys += work->kind == FBT_GPU_MEMCPY;
		expected->memsets += work->kind == FBT_GPU_MEMSET;
		expected->graph_nodes += work->graph_node != 0;
		expected->pageable +=
			work->kind == FBT_GPU_MEMCPY &&
			(work->copy.source_memory == 1 || work->copy.target_memory == 1);
		expected->h2d_bytes += direction(work) == H2D ? bytes : 0;
		expected->d2h_bytes += direction(work) == D2H ? bytes : 0;
		expected->d2d_bytes += direction(work) == D2D ? bytes : 0;
		expected->p2p_bytes += direction(work) == P2P ? bytes : 0;
		expected->memset_bytes += work->kind == FBT_GPU_MEMSET ? bytes : 0;
	}
	if (!end)
		return;
	expected->view_start_ns = begin;
	expected->view_end_ns = end;
	for (uint64_t at = begin; at < end; at += oracle->tick_ns)
		expected->view_busy_ns += runs(oracle, ANY, at) ? oracle->tick_ns : 0;
}

static inline void expect_figures(const struct oracle *oracle, struct gpu_figures *expected)
{
	uint64_t step_ns = TICKS * oracle->tick_ns;

	*expected = (struct gpu_figures){
		.device = oracle->device,
		.busy_ns = union_ns(oracle, ANY, ANY),
		.kernel_ns = union_ns(oracle, KERNEL, ANY),
		.memcpy_ns = union_ns(oracle, MEMCPY, ANY),
		.memset_ns = union_ns(oracle, MEMSET, ANY),
		.h2d_ns = union_ns(oracle, H2D, ANY),
		.d2h_ns = union_ns(oracle, D2H, ANY),
		.d2d_ns = union_ns(oracle, D2D, ANY),
		.p2p_ns = union_ns(oracle, P2P, ANY),
		.transfer_ns = union_ns(oracle, TRANSFER, ANY),
		.exposed_copy_ns = union_ns(oracle, NOT_KERNEL, KERNEL),
		.comm_ns = union_ns(oracle, COMM, ANY),
		.exposed_comm_ns = union_ns(oracle, COMM, COMPUTE),
	};
	expected->idle_ns = step_ns - expected->busy_ns;
	for (int i = 0; i < TICKS; i++) {
		for (size_t k = 0; k < oracle->count; k++) {
			const struct fbt_gpu_work *work = oracle->items[k]->work;

			if (covers_tick(work->start_ns, work->end_ns, step_tick(oracle, i)))
				expected->work_sum_ns += oracle->tick_ns;
		}
	}
	expect_gaps(oracle, expected);
	expect_counts(oracle, expected);
	expect_queue(oracle, expected);
}

static inline const struct fbt_gpu_sync *sync_of(const struct scene *scene,
						 const struct fbt_gpu_api *api)
{
	for (size_t i = 0; i < scene->sync_count; i++) {
		const struct fbt_gpu_sync *sync = &scene->syncs[i];

		if (sync->correlation == api->correlation &&
		    (sync->kind == FBT_GPU_SYNC_CONTEXT || sync->stream != FBT_GPU_NO_STREAM))
			return sync;
	}
	return NULL;
}

static inline uint64_t end_of(const struct scene *scene, const struct fbt_gpu_api *api, bool own)
{
	const struct fbt_gpu_sync *sync = own ? NULL : sync_of(scene, api);
	uint64_t end = 0;

	for (size_t i = 0; i < scene->item_count; i++) {
		const struct gpu_item *item = &scene->items[i];
		const struct fbt_gpu_work *work = item->work;
		uint64_t launched = is_known(item) ? item->api->start_ns : work->start_ns;

		/* The call cannot have waited for work that began after the call's end. */
		if (work->start_ns >= api->end_ns)
			continue;
		if (own ? work->correlation != api->correlation : launched >= api->start_ns)
			continue;
		if (sync && (work->context != sync->context ||
			     (sync->stream != FBT_GPU_NO_STREAM && work->stream != sync->stream)))
			continue;
		if (!own && !sync && work->end_ns > api->end_ns)
			continue;
		end = larger(end, work->end_ns);
	}
	return end;
}

static inline bool in_tail(const struct scene *scene, const struct fbt_gpu_api *api, uint64_t at)
{
	bool own = api->api_class != FBT_GPU_API_SYNC;
	uint64_t end = end_of(scene, api, own);

	if (own && end <= api->start_ns)
		end = end_of(scene, api, false);
	return covers_tick(larger(end, api->start_ns), api->end_ns, at);
}

static inline bool tail_at(const struct scene *scene, uint64_t at)
{
	for (size_t i = 0; i < scene->api_count; i++) {
		if (is_sync(scene, &scene->apis[i]) && in_tail(scene, &scene->apis[i], at))
			return true;
	}
	return false;
}

static inline void expect_tick(const struct oracle *all, uint64_t at, struct step_gpu *expected)
{
	const struct scene *scene = all->scene;
	bool known = calls_known(&scene->step);
	bool sync = syncs_at(scene, at), busy = runs(all, ANY, at);
	bool call = known && call_at(scene, at), blocked = known && blocks_at(scene, at);
	uint64_t ns = all->tick_ns;

	expected->sync_ns += sync ? ns : 0;
	expected->sync_useful_ns += sync && busy ? ns : 0;
	expected->sync_tail_ns += tail_at(scene, at) ? ns : 0;
	expected->sync_spin_ns += known && sync && !blocked ? ns : 0;
	expected->cuda_internal_ns += call && sync ? ns : 0;
	expected->exposed_syscall_ns += call && !sync && !busy ? ns : 0;
	expected->overlapped_syscall_ns += call && !sync && busy ? ns : 0;
	expected->gpu_only_ns += busy && (sync || blocked) ? ns : 0;
	expected->gpu_host_ns += busy && !sync && !blocked ? ns : 0;
}

static inline uint64_t overhead_ns(const struct oracle *all, uint32_t kind)
{
	uint64_t ns = 0;

	for (int i = 0; i < TICKS; i++) {
		bool found = false;

		for (size_t k = 0; k < all->scene->overhead_count; k++) {
			const struct fbt_gpu_overhead *overhead = &all->scene->overheads[k];

			found |= (!kind || overhead->kind == kind) &&
				 covers_tick(overhead->start_ns, overhead->end_ns,
					     step_tick(all, i));
		}
		ns += found ? all->tick_ns : 0;
	}
	return ns;
}

static inline enum gpu_bound expect_bound(const struct step_gpu *gpu, double step_ns)
{
	const struct gpu_figures *all = &gpu->all;

	if ((double)all->unattributed_ns / step_ns > 0.2 ||
	    (!all->busy_ns && !all->kernels && !all->memcpys && !all->memsets))
		return GPU_BOUND_UNKNOWN;
	if ((double)all->busy_ns / step_ns > 0.9 || gpu->bound_full > 0.01)
		return GPU_BOUND_GPU;
	if ((double)all->exposed_copy_ns / step_ns > 0.2)
		return GPU_BOUND_COPY;
	if (gpu->bound_idle > 0.2) {
		if (2 * all->wait_blocked_ns > all->host_wait_ns)
			return GPU_BOUND_WAIT;
		if ((double)all->wait_unknown_ns / step_ns > 0.2)
			return GPU_BOUND_UNKNOWN;
		if (gpu->bound_work < 1.5 && gpu->bound_empty > 0.8)
			return GPU_BOUND_LAUNCH;
		if (gpu->bound_work >= 1.5)
			return GPU_BOUND_HOST;
	}
	return GPU_BOUND_NONE;
}

static inline void expect_step(const struct oracle *all, struct step_gpu *expected)
{
	double step_ns = (double)(TICKS * all->tick_ns);
	const struct gpu_figures *figures = &expected->all;

	for (int i = 0; i < TICKS; i++)
		expect_tick(all, step_tick(all, i), expected);
	for (size_t i = 0; i < all->count; i++) {
		const struct gpu_item *item = all->items[i];

		expected->joined += item->mine && item->api;
		expected->by_time += item->mine && !item->api;
		expected->violations +=
			item->mine && is_known(item) && item->work->start_ns < item->api->start_ns;
	}
	expected->calls_known = calls_known(&all->scene->step);
	expected->cupti_overhead_ns = overhead_ns(all, 0);
	expected->bound_full =
		(double)overhead_ns(all, FBT_GPU_OVERHEAD_COMMAND_BUFFER_FULL) / step_ns;
	expected->bound_idle = (double)(figures->host_wait_ns + figures->launch_ns) / step_ns;
	expected->bound_work =
		figures->launches
			? (double)figures->work_ns /
				  (double)(figures->launch_api_ns ? figures->launch_api_ns : 1)
			: (double)NAN;
	expected->bound_empty = figures->idle_empty;
	expected->bound = expect_bound(expected, step_ns);
}

#endif
