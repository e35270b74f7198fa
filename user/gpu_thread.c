/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_thread.h"

#include "gpu_interval.h"

/* --- what a call waited for ----------------------------------------------------------------- */

struct awaited {
	const struct gpu_thread_input *input;
	const struct fbt_gpu_sync **syncs; /* by correlation */
	uint64_t *ends_ns;		   /* by item: the last end of it and those before it */
};

/* Several records of one call: the earliest of them. */
static int compare_syncs(const void *a, const void *b)
{
	const struct fbt_gpu_sync *left = *(const struct fbt_gpu_sync *const *)a;
	const struct fbt_gpu_sync *right = *(const struct fbt_gpu_sync *const *)b;

	if (left->correlation != right->correlation)
		return left->correlation < right->correlation ? -1 : 1;
	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	return (left->stream > right->stream) - (left->stream < right->stream);
}

static int awaited_init(struct awaited *awaited, const struct gpu_thread_input *input)
{
	uint64_t end_ns = 0;

	*awaited = (struct awaited){.input = input};
	awaited->syncs = reallocarray(NULL, input->sync_count + 1, sizeof(const void *));
	awaited->ends_ns = reallocarray(NULL, input->item_count + 1, sizeof(*awaited->ends_ns));
	if (!awaited->syncs || !awaited->ends_ns)
		return -ENOMEM;
	for (size_t i = 0; i < input->sync_count; i++)
		awaited->syncs[i] = input->syncs[i];
	qsort(awaited->syncs, input->sync_count, sizeof(const void *), compare_syncs);
	for (size_t i = 0; i < input->item_count; i++) {
		end_ns = gpu_ns_max(end_ns, input->items[i].work->end_ns);
		awaited->ends_ns[i] = end_ns;
	}
	return 0;
}

static void awaited_free(struct awaited *awaited)
{
	free(awaited->syncs);
	free(awaited->ends_ns);
}

static const struct fbt_gpu_sync *find_sync(const struct awaited *awaited, uint32_t correlation)
{
	size_t low = 0, high = awaited->input->sync_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (awaited->syncs[middle]->correlation < correlation)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == awaited->input->sync_count || awaited->syncs[low]->correlation != correlation)
		return NULL;
	return awaited->syncs[low];
}

/* The first item that begins at end_ns or later. */
static size_t find_behind(const struct gpu_thread_input *input, uint64_t end_ns)
{
	size_t low = 0, high = input->item_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (input->items[middle].work->start_ns < end_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

enum match { BY_CALL, BY_SYNC, BY_TIME };

static bool was_launched_before(const struct gpu_item *item, uint64_t ns)
{
	const struct fbt_gpu_api *call = gpu_item_call(item);

	return (call ? call->start_ns : item->work->start_ns) < ns;
}

static bool is_awaited(const struct gpu_item *item, const struct fbt_gpu_api *api,
		       const struct fbt_gpu_sync *sync, enum match match)
{
	const struct fbt_gpu_work *work = item->work;

	switch (match) {
	case BY_CALL:
		return work->correlation == api->correlation;
	case BY_SYNC:
		return work->context == sync->context &&
		       (sync->stream == FBT_GPU_NO_STREAM || work->stream == sync->stream) &&
		       was_launched_before(item, api->start_ns);
	case BY_TIME:
		return work->end_ns <= api->end_ns && was_launched_before(item, api->start_ns);
	}
	return false;
}

/* The last end of awaited work; 0 if there is none that outlasts the begin of the call. */
static uint64_t last_end(const struct awaited *awaited, const struct fbt_gpu_api *api,
			 const struct fbt_gpu_sync *sync, enum match match)
{
	size_t i = find_behind(awaited->input, api->end_ns);
	size_t stop = i > GPU_AWAITED_BACK_MAX ? i - GPU_AWAITED_BACK_MAX : 0;
	uint64_t end_ns = 0;

	/* No further back than anything could change. */
	while (i-- > stop && awaited->ends_ns[i] > gpu_ns_max(end_ns, api->start_ns)) {
		const struct gpu_item *item = &awaited->input->items[i];

		if (item->work->end_ns > api->start_ns && is_awaited(item, api, sync, match))
			end_ns = gpu_ns_max(end_ns, item->work->end_ns);
	}
	return end_ns;
}

/* CUPTI does not say where an event was recorded. */
static bool says_what(const struct fbt_gpu_sync *sync)
{
	return sync && (sync->kind == FBT_GPU_SYNC_CONTEXT || sync->stream != FBT_GPU_NO_STREAM);
}

/* From when on nothing was awaited any more. */
static uint64_t tail_start(const struct awaited *awaited, const struct fbt_gpu_api *api)
{
	const struct fbt_gpu_sync *sync = find_sync(awaited, api->correlation);
	enum match match = BY_TIME;
	uint64_t end_ns;

	if (api->api_class != FBT_GPU_API_SYNC)
		match = BY_CALL;
	else if (says_what(sync))
		match = BY_SYNC;
	end_ns = last_end(awaited, api, sync, match);
	if (!end_ns && match == BY_CALL)
		end_ns = last_end(awaited, api, NULL, BY_TIME);
	return gpu_ns_clamp(end_ns, api->start_ns, api->end_ns);
}

/* --- sets of time --------------------------------------------------------------------------- */

/* All within H, of the step thread. */
struct sets {
	gpu_interval_vec waits; /* calls that wait for the GPU */
	gpu_interval_vec tails; /* their ends, of which nothing was awaited any more */
	gpu_interval_vec calls; /* syscalls */
	gpu_interval_vec blocked;
};

static void sets_free(struct sets *sets)
{
	vec_free(&sets->waits);
	vec_free(&sets->tails);
	vec_free(&sets->calls);
	vec_free(&sets->blocked);
}

static int find_waits(const struct gpu_thread_input *input, const struct awaited *awaited,
		      struct sets *sets)
{
	int err = 0;

	for (size_t i = 0; !err && i < input->api_count; i++) {
		const struct fbt_gpu_api *api = input->apis[i];
		struct gpu_interval wait = {api->start_ns, api->end_ns};
		struct gpu_interval tail = {0, api->end_ns};

		if (!gpu_api_waits(api) || (!input->any && api->tid != input->tid) ||
		    !api->start_ns || !gpu_interval_ns(gpu_interval_clip(wait, input->step)))
			continue;
		tail.start_ns = tail_start(awaited, api);
		tail = gpu_interval_clip(tail, input->step);
		err = gpu_interval_append(&sets->waits, gpu_interval_clip(wait, input->step));
		if (!err && gpu_interval_ns(tail))
			err = vec_push(&sets->tails, tail);
	}
	gpu_interval_sort(&sets->tails);
	return err;
}

static int find_calls(const struct gpu_thread_input *input, struct sets *sets)
{
	int err = 0;

	if (!input->spans)
		return 0;
	vec_for_each (span, input->spans) {
		err = gpu_interval_append(&sets->calls, span->time);
		if (!err && span->blocked)
			err = gpu_interval_append(&sets->blocked, span->time);
		if (err)
			break;
	}
	return err;
}

/* --- figures -------------------------------------------------------------------------------- */

/* Those of syscalls, which are known. */
static int measure_calls(const struct sets *sets, struct step_gpu *gpu)
{
	gpu_interval_vec outside = {0};
	int err = gpu_interval_subtract(&sets->calls, &sets->waits, &outside);
	uint64_t outside_ns = gpu_interval_length(&outside);

	gpu->sync_spin_ns = gpu->sync_ns - gpu_interval_common(&sets->waits, &sets->blocked);
	gpu->overlapped_syscall_ns = gpu_interval_common(&outside, &gpu->busy);
	gpu->exposed_syscall_ns = outside_ns - gpu->overlapped_syscall_ns;
	gpu->cuda_internal_ns = gpu_interval_length(&sets->calls) - outside_ns;
	vec_free(&outside);
	return err;
}

static int measure(const struct gpu_thread_input *input, const struct sets *sets,
		   struct step_gpu *gpu)
{
	gpu_interval_vec idle = {0}; /* the thread, not the GPU */
	int err = gpu_interval_intersect(&sets->waits, &gpu->busy, &gpu->sync_busy);

	if (!err)
		err = gpu_interval_unite(&sets->waits, &sets->blocked, &idle);
	if (!err) {
		gpu->sync_ns = gpu_interval_length(&sets->waits);
		gpu->sync_useful_ns = gpu_interval_length(&gpu->sync_busy);
		gpu->sync_tail_ns = gpu_interval_length(&sets->tails);
		gpu->gpu_only_ns = gpu_interval_common(&gpu->busy, &idle);
		gpu->gpu_host_ns = gpu_interval_length(&gpu->busy) - gpu->gpu_only_ns;
		if (input->spans)
			err = measure_calls(sets, gpu);
	}
	vec_free(&idle);
	return err;
}

int gpu_thread_compute(const struct gpu_thread_input *input, struct step_gpu *gpu)
{
	struct sets sets = {0};
	struct awaited awaited;
	int err = awaited_init(&awaited, input);

	if (!err)
		err = find_waits(input, &awaited, &sets);
	if (!err)
		err = find_calls(input, &sets);
	if (!err)
		err = measure(input, &sets, gpu);
	awaited_free(&awaited);
	sets_free(&sets);
	return err;
}
