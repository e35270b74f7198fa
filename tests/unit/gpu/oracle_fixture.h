/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The definitions of a step's figures, each counted tick by tick. */
#ifndef FBT_ORACLE_FIXTURE_H
#define FBT_ORACLE_FIXTURE_H

#include <math.h>

#include "random_scene_fixture.h"

/* --- the definitions ------------------------------------------------------------------------ */

/* Each question about a tick concerns the work of one device, or that of all devices. */
#define ALL_DEVICES UINT32_MAX

struct oracle {
	const struct scene *scene;
	uint64_t tick_ns;
	uint32_t device;
	const struct gpu_item *items[SCENE_MAX];
	size_t count;
};

static inline bool is_known(const struct gpu_item *item)
{
	return item->api && item->api->start_ns;
}

static inline bool takes_time(const struct gpu_item *item)
{
	return item->work->start_ns < item->work->end_ns;
}

static inline bool covers_tick(uint64_t start_ns, uint64_t end_ns, uint64_t at)
{
	return start_ns <= at && at < end_ns;
}

static inline void select_items(struct oracle *oracle, const struct scene *scene, uint64_t tick_ns,
				uint32_t device)
{
	*oracle = (struct oracle){.scene = scene, .tick_ns = tick_ns, .device = device};
	for (size_t i = 0; i < scene->item_count; i++) {
		if (device == ALL_DEVICES || scene->items[i].work->device == device)
			oracle->items[oracle->count++] = &scene->items[i];
	}
}

enum what {
	ANY,
	KERNEL,
	MEMCPY,
	MEMSET,
	H2D,
	D2H,
	D2D,
	P2P,
	TRANSFER,
	NOT_KERNEL,
	COMM,
	COMPUTE,
};

static inline bool host_end(uint8_t memory)
{
	return memory == 1 || memory == 2;
}

static inline bool device_end(uint8_t memory)
{
	return memory == 3 || memory == 4;
}

/* H2D, D2H, D2D or P2P; ANY for other work. */
static inline enum what direction(const struct fbt_gpu_work *work)
{
	static const enum what by_kind[] = {ANY, H2D, D2H, H2D, D2H, D2D, D2D, D2D, D2D, ANY, P2P};
	uint8_t from = work->copy.source_memory, to = work->copy.target_memory;

	if (work->kind != FBT_GPU_MEMCPY)
		return ANY;
	if (work->copy.kind)
		return by_kind[work->copy.kind];
	if (host_end(from) && device_end(to))
		return H2D;
	if (device_end(from) && host_end(to))
		return D2H;
	return device_end(from) && device_end(to) ? D2D : ANY;
}

static inline bool is_a(const struct gpu_item *item, enum what what)
{
	enum what way = direction(item->work);

	switch (what) {
	case ANY:
		return true;
	case KERNEL:
		return item->work->kind == FBT_GPU_KERNEL;
	case MEMCPY:
		return item->work->kind == FBT_GPU_MEMCPY;
	case MEMSET:
		return item->work->kind == FBT_GPU_MEMSET;
	case NOT_KERNEL:
		return item->work->kind != FBT_GPU_KERNEL;
	case TRANSFER:
		return way == H2D || way == D2H || way == P2P;
	case COMM:
		return item->work->kind == FBT_GPU_KERNEL && item->comm;
	case COMPUTE:
		return item->work->kind == FBT_GPU_KERNEL && !item->comm;
	default:
		return way == what;
	}
}

static inline bool runs(const struct oracle *oracle, enum what what, uint64_t at)
{
	for (size_t i = 0; i < oracle->count; i++) {
		const struct fbt_gpu_work *work = oracle->items[i]->work;

		if (is_a(oracle->items[i], what) && covers_tick(work->start_ns, work->end_ns, at))
			return true;
	}
	return false;
}

static inline uint64_t step_tick(const struct oracle *oracle, int i)
{
	return (uint64_t)(START + i) * oracle->tick_ns;
}

static inline uint64_t union_ns(const struct oracle *oracle, enum what what, enum what without)
{
	uint64_t ns = 0;

	for (int i = 0; i < TICKS; i++) {
		uint64_t at = step_tick(oracle, i);

		if (runs(oracle, what, at) && (without == ANY || !runs(oracle, without, at)))
			ns += oracle->tick_ns;
	}
	return ns;
}

/* --- calls of the step thread --------------------------------------------------------------- */

static inline bool calls_known(const struct step *step)
{
	uint64_t counted = 0, ns = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		counted += step->record.sums[i].calls;
		ns += step->record.sums[i].ns;
	}
	return step->record.kind && !step->record.lost_calls && !step->calls_truncated &&
	       step->calls.count >= counted && (step->calls.count || !ns);
}

static inline const struct fbt_call *call_at(const struct scene *scene, uint64_t at)
{
	vec_for_each (call, &scene->step.calls) {
		if (covers_tick(call->start_ns, call->start_ns + call->duration_ns, at))
			return call;
	}
	return NULL;
}

static inline bool blocks_at(const struct scene *scene, uint64_t at)
{
	const struct fbt_call *call = call_at(scene, at);

	return call && call->header.flags & FBT_CALL_BLOCKED;
}

static inline bool is_sync(const struct scene *scene, const struct fbt_gpu_api *api)
{
	return (!scene->step.record.kind || api->tid == SCENE_THREAD) && api->start_ns &&
	       (api->api_class == FBT_GPU_API_SYNC || api->header.flags & FBT_GPU_API_BLOCKING);
}

static inline bool syncs_at(const struct scene *scene, uint64_t at)
{
	for (size_t i = 0; i < scene->api_count; i++) {
		if (is_sync(scene, &scene->apis[i]) &&
		    covers_tick(scene->apis[i].start_ns, scene->apis[i].end_ns, at))
			return true;
	}
	return false;
}

/* --- gaps ----------------------------------------------------------------------------------- */

static inline const struct gpu_item *launched_first(const struct gpu_item *a,
						    const struct gpu_item *b)
{
	if (!a || !is_known(a))
		return b;
	if (!is_known(b))
		return a;
	return b->api->start_ns < a->api->start_ns ? b : a;
}

/*
 * The work that begins at the end of a gap, or in the last gap the work that follows the step.
 * NULL: there is none.
 */
static inline const struct gpu_item *next_of(const struct oracle *oracle, uint64_t from,
					     uint64_t to)
{
	bool tail = to == step_tick(oracle, TICKS);
	const struct gpu_item *next = NULL;

	for (size_t i = 0; i < oracle->count; i++) {
		const struct gpu_item *item = oracle->items[i];

		if (!takes_time(item) || item->work->start_ns < to)
			continue;
		if (!tail && item->work->start_ns == to)
			next = launched_first(next, item);
		if (!tail || !is_known(item) || item->api->start_ns >= to)
			continue;
		if (!next || item->work->start_ns < next->work->start_ns)
			next = item;
		else if (item->work->start_ns == next->work->start_ns)
			next = launched_first(next, item);
	}
	return next;
}

/* Of the work that ends where a gap begins, the one that started first. */
static inline const struct fbt_gpu_work *before_of(const struct oracle *oracle, uint64_t from)
{
	for (size_t i = 0; i < oracle->count && from > step_tick(oracle, 0); i++) {
		if (takes_time(oracle->items[i]) && oracle->items[i]->work->end_ns == from)
			return oracle->items[i]->work;
	}
	return NULL;
}

struct wait_sums {
	uint64_t ns[8][2]; /* by number, and whether it blocked */
};

static inline void expect_wait(const struct oracle *oracle, uint64_t at, bool mine,
			       struct gpu_figures *expected, struct wait_sums *sums)
{
	const struct fbt_call *call = call_at(oracle->scene, at);
	bool blocked = blocks_at(oracle->scene, at);

	expected->host_wait_ns += oracle->tick_ns;
	if (!mine || !calls_known(&oracle->scene->step)) {
		expected->wait_unknown_ns += oracle->tick_ns;
		return;
	}
	if (!call)
		expected->wait_user_ns += oracle->tick_ns;
	else if (blocked)
		expected->wait_blocked_ns += oracle->tick_ns;
	else
		expected->wait_syscall_ns += oracle->tick_ns;
	if (call)
		sums->ns[call->nr][blocked] += oracle->tick_ns;
}

static inline void expect_gap(const struct oracle *oracle, uint64_t from, uint64_t to,
			      struct gpu_figures *expected, struct wait_sums *sums)
{
	const struct gpu_item *next = next_of(oracle, from, to);
	const struct fbt_gpu_work *before = before_of(oracle, from);
	bool nodes = next && before && before->graph_node && next->work->graph_node &&
		     before->graph == next->work->graph;
	uint64_t host = 0, queued = 0;

	for (uint64_t at = from; at < to; at += oracle->tick_ns) {
		if (next && !is_known(next)) {
			expected->unattributed_ns += oracle->tick_ns;
		} else if (!next || at < next->api->start_ns) {
			expect_wait(oracle, at, !next || next->api->tid == SCENE_THREAD, expected,
				    sums);
			host++;
		} else if (at < next->api->end_ns) {
			expected->launch_ns += oracle->tick_ns;
		} else {
			queued += oracle->tick_ns;
		}
	}
	expected->queue_ns += queued;
	if (queued < (nodes ? 2000 : 5000))
		expected->kernel_wait_ns += queued;
	else
		expected->dependency_ns += queued;
	if (host)
		expected->hta_host_wait_ns += to - from;
}

static inline void list_sums(struct wait_sums *sums, struct gpu_figures *expected)
{
	for (int place = 0; place < GPU_WAIT_CALLS_MAX; place++) {
		uint64_t *most = &sums->ns[0][0];

		for (size_t i = 0; i < 16; i++) {
			if ((&sums->ns[0][0])[i] > *most)
				most = &(&sums->ns[0][0])[i];
		}
		if (!*most)
			break;
		expected->wait_calls[place] =
			(struct gpu_wait_call){.nr = (uint32_t)((most - &sums->ns[0][0]) / 2),
					       .blocked = (most - &sums->ns[0][0]) % 2,
					       .ns = *most};
		*most = 0;
	}
}

static inline void expect_gaps(const struct oracle *oracle, struct gpu_figures *expected)
{
	struct wait_sums sums = {0};
	int from = -1;

	for (int i = 0; i <= TICKS; i++) {
		bool idle = i < TICKS && !runs(oracle, ANY, step_tick(oracle, i));

		if (idle && from < 0)
			from = i;
		if (!idle && from >= 0) {
			expect_gap(oracle, step_tick(oracle, from), step_tick(oracle, i), expected,
				   &sums);
			from = -1;
		}
	}
	list_sums(&sums, expected);
}

/* --- launches ------------------------------------------------------------------------------- */

static inline int compare_numbers(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static inline uint64_t median(uint64_t *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_numbers);
	/* round((count - 1) / 2), halves up */
	return count ? values[(size_t)round((double)(count - 1) / 2)] : 0;
}

/* The time at which the stream has finished all earlier work. */
static inline uint64_t end_before(const struct oracle *oracle, size_t of)
{
	const struct fbt_gpu_work *work = oracle->items[of]->work;
	uint64_t end = 0;

	for (size_t i = 0; i < of; i++) {
		const struct fbt_gpu_work *other = oracle->items[i]->work;

		if (other->device == work->device && other->context == work->context &&
		    other->stream == work->stream && other->end_ns > end)
			end = other->end_ns;
	}
	return end;
}

static inline uint64_t above(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static inline uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct launches {
	uint64_t latency[SCENE_MAX], call[SCENE_MAX], delay[SCENE_MAX], behind[SCENE_MAX];
	uint64_t work[SCENE_MAX];
	uint64_t depth_ns;
	size_t all;
};

static inline bool is_first_of_launch(const struct oracle *oracle, size_t of)
{
	for (size_t i = 0; i < of; i++) {
		if (oracle->items[i]->api == oracle->items[of]->api)
			return false;
	}
	return true;
}

static inline void expect_launch(const struct oracle *oracle, size_t of, struct launches *launches,
				 struct gpu_figures *expected)
{
	const struct gpu_item *first = oracle->items[of];
	uint64_t call_end = first->api->end_ns, before = end_before(oracle, of);
	uint64_t begin = first->work->start_ns, last = 0, work = 0;
	size_t n = expected->launches;

	for (size_t i = of; i < oracle->count; i++) {
		if (oracle->items[i]->api != first->api)
			continue;
		work += oracle->items[i]->work->end_ns - oracle->items[i]->work->start_ns;
		if (takes_time(oracle->items[i]))
			last = oracle->items[i]->work->start_ns;
	}
	launches->all++;
	for (int i = 0; i < TICKS; i++)
		launches->depth_ns +=
			covers_tick(call_end, last, step_tick(oracle, i)) ? oracle->tick_ns : 0;
	if (!first->mine)
		return;
	launches->latency[n] = above(begin, call_end);
	launches->call[n] = call_end - first->api->start_ns;
	launches->delay[n] = above(begin, larger(call_end, before));
	launches->behind[n] = above(smaller(begin, before), call_end);
	launches->work[n] = work;
	expected->tklqt_ns += launches->call[n] + launches->delay[n];
	expected->graph_launches += first->api->api_class == FBT_GPU_API_GRAPH;
	expected->launches++;
}

static inline bool queue_is_empty(const struct oracle *oracle, uint64_t at)
{
	for (size_t i = 0; i < oracle->count; i++) {
		if (is_known(oracle->items[i]) && takes_time(oracle->items[i]) &&
		    covers_tick(oracle->items[i]->api->end_ns, oracle->items[i]->work->start_ns,
				at))
			return false;
	}
	return true;
}

static inline void expect_queue(const struct oracle *oracle, struct gpu_figures *expected)
{
	struct launches launches = {0};
	uint64_t empty = 0;
	size_t n;

	for (size_t i = 0; i < oracle->count; i++) {
		if (is_known(oracle->items[i]) && is_first_of_launch(oracle, i))
			expect_launch(oracle, i, &launches, expected);
	}
	n = expected->launches;
	expected->launch_latency_ns = median(launches.latency, n);
	expected->launch_api_ns = median(launches.call, n);
	expected->queue_delay_ns = median(launches.delay, n);
	expected->wait_behind_ns = median(launches.behind, n);
	expected->work_ns = median(launches.work, n);
	for (int i = 0; i < TICKS; i++) {
		uint64_t at = step_tick(oracle, i);

		if (!runs(oracle, ANY, at) && queue_is_empty(oracle, at))
			empty += oracle->tick_ns;
	}
	expected->queue_depth =
		launches.all ? (double)launches.depth_ns / (double)(TICKS * oracle->tick_ns)
			     : (double)NAN;
	expected->idle_empty =
		expected->idle_ns ? (double)empty / (double)expected->idle_ns : (double)NAN;
}

/* --- figures -------------------------------------------------------------------------------- */

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

/* --- the step thread, and the step ---------------------------------------------------------- */

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
