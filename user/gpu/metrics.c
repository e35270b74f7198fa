/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu/metrics.h"

#include <math.h>
#include <string.h>

#include "base/arith.h"
#include "gpu/figures.h"
#include "model/gpu.h"

bool gpu_name_is_comm(const char *name)
{
	return !strncmp(name, "nccl", 4) || strstr(name, "ncclKernel") ||
	       strstr(name, "ncclDevKernel");
}

/* The step thread; all threads stand for it in an interval, which has none (any). */
struct thread {
	const struct gpu_metrics_input *input;
	struct gpu_interval step; /* H */
	uint32_t tid;
	bool any;
	const gpu_span_vec *spans; /* its calls; NULL: not known */
};

struct awaited {
	const struct gpu_metrics_input *input;
	const struct fbt_gpu_sync **syncs; /* by correlation */
	uint64_t *ends_ns;		   /* by item: the last end of it and those before it */
};

/* Sorts by correlation id; the earliest record of a call comes first. */
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

static int awaited_init(struct awaited *awaited, const struct gpu_metrics_input *input)
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
		end_ns = max_u64(end_ns, input->items[i].work->end_ns);
		awaited->ends_ns[i] = end_ns;
	}
	return 0;
}

static const struct fbt_gpu_sync *find_sync(const struct awaited *awaited, uint32_t correlation)
{
	size_t i, count = awaited->input->sync_count;

	i = first_index(k, count, awaited->syncs[k]->correlation >= correlation);
	return i < count && awaited->syncs[i]->correlation == correlation ? awaited->syncs[i]
									  : NULL;
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

/* The last end of awaited work; 0 if none ended after the call began. */
static uint64_t last_end(const struct awaited *awaited, const struct fbt_gpu_api *api,
			 const struct fbt_gpu_sync *sync, enum match match)
{
	const struct gpu_metrics_input *input = awaited->input;
	size_t i = first_index(k, input->item_count, input->items[k].work->start_ns >= api->end_ns);
	size_t stop = i > GPU_AWAITED_BACK_MAX ? i - GPU_AWAITED_BACK_MAX : 0;
	uint64_t end_ns = 0;

	/* Stop where no earlier work can end later. */
	while (i-- > stop && awaited->ends_ns[i] > max_u64(end_ns, api->start_ns)) {
		const struct gpu_item *item = &input->items[i];

		if (item->work->end_ns > api->start_ns && is_awaited(item, api, sync, match))
			end_ns = max_u64(end_ns, item->work->end_ns);
	}
	return end_ns;
}

/* CUPTI does not say where an event was recorded. */
static bool says_what(const struct fbt_gpu_sync *sync)
{
	return sync && (sync->kind == FBT_GPU_SYNC_CONTEXT || sync->stream != FBT_GPU_NO_STREAM);
}

/* The time from which on nothing was awaited any more. */
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
	return clamp_u64(end_ns, api->start_ns, api->end_ns);
}

/* Intervals of the step thread, all within H. */
struct sets {
	gpu_interval_vec waits; /* calls that wait for the GPU */
	gpu_interval_vec tails; /* their ends, in which nothing was awaited any more */
	gpu_interval_vec calls; /* syscalls */
	gpu_interval_vec blocked;
};

static int find_waits(const struct thread *thread, const struct awaited *awaited, struct sets *sets)
{
	const struct gpu_metrics_input *input = thread->input;
	int err = 0;

	for (size_t i = 0; !err && i < input->api_count; i++) {
		const struct fbt_gpu_api *api = input->apis[i];
		struct gpu_interval wait = {api->start_ns, api->end_ns};
		struct gpu_interval tail = {0, api->end_ns};

		if (!gpu_api_waits(api) || (!thread->any && api->tid != thread->tid) ||
		    !api->start_ns || !gpu_interval_ns(gpu_interval_clip(wait, thread->step)))
			continue;
		tail.start_ns = tail_start(awaited, api);
		tail = gpu_interval_clip(tail, thread->step);
		err = gpu_interval_append(&sets->waits, gpu_interval_clip(wait, thread->step));
		if (!err && gpu_interval_ns(tail))
			err = vec_push(&sets->tails, tail);
	}
	gpu_interval_sort(&sets->tails);
	return err;
}

static int find_calls(const struct thread *thread, struct sets *sets)
{
	int err = 0;

	if (!thread->spans)
		return 0;
	vec_for_each (span, thread->spans) {
		err = gpu_interval_append(&sets->calls, span->time);
		if (!err && span->blocked)
			err = gpu_interval_append(&sets->blocked, span->time);
		if (err)
			break;
	}
	return err;
}

/* The figures of syscalls, where those are known. */
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

static int measure_sets(const struct thread *thread, const struct sets *sets, struct step_gpu *gpu)
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
		if (thread->spans)
			err = measure_calls(sets, gpu);
	}
	vec_free(&idle);
	return err;
}

/*
 * Fills sync_*, exposed_syscall_ns, overlapped_syscall_ns, cuda_internal_ns, gpu_only_ns and
 * gpu_host_ns. gpu->busy must be filled. 0 or -ENOMEM.
 *
 * What a call that waits for the GPU waits for:
 * - a copy: the work of its own correlation id;
 * - a synchronization: what was launched before it began in the stream or, failing that, the
 *   context that its fbt_gpu_sync names;
 * - a synchronization for which that is not known (an event): any work launched before it began
 *   that ended before it did.
 *
 * The tail of the call is the part after the last end of that work; the whole call if there was
 * none.
 */
static int measure_thread(const struct thread *thread, struct step_gpu *gpu)
{
	struct sets sets = {0};
	struct awaited awaited;
	int err = awaited_init(&awaited, thread->input);

	if (!err)
		err = find_waits(thread, &awaited, &sets);
	if (!err)
		err = find_calls(thread, &sets);
	if (!err)
		err = measure_sets(thread, &sets, gpu);
	free(awaited.syncs);
	free(awaited.ends_ns);
	vec_free(&sets.waits);
	vec_free(&sets.tails);
	vec_free(&sets.calls);
	vec_free(&sets.blocked);
	return err;
}

/*
 * Whether the work is part of the step. If not, it only shows what the end of the step waits for.
 */
static bool counts_for_step(const struct gpu_item *item, struct gpu_interval step)
{
	struct gpu_interval time = {item->work->start_ns, item->work->end_ns};

	return item->mine || gpu_interval_ns(gpu_interval_clip(time, step));
}

static struct gpu_figures *find_device(const struct step_gpu *gpu, uint32_t device)
{
	vec_for_each (figures, &gpu->devices) {
		if (figures->device == device)
			return figures;
	}
	return NULL;
}

/* Lists the devices, by number. */
static int find_devices(const struct gpu_figures_input *all, struct step_gpu *gpu)
{
	uint32_t last = 0;

	for (size_t i = 0; i < all->count; i++) {
		uint32_t device = all->items[i].work->device;
		size_t place;
		int err;

		if (gpu->devices.count && device == last)
			continue;
		if (!counts_for_step(&all->items[i], all->step))
			continue;
		last = device;
		if (find_device(gpu, device) || gpu->devices.count == GPU_DEVICES_MAX)
			continue;
		place = vec_lower_bound(&gpu->devices, item->device, device);
		err = vec_insert(&gpu->devices, place, (struct gpu_figures){.device = device});
		if (err)
			return err;
	}
	return 0;
}

static bool is_only_device(const struct gpu_figures_input *all, uint32_t device)
{
	for (size_t i = 0; i < all->count; i++) {
		if (all->items[i].work->device != device)
			return false;
	}
	return true;
}

static int measure_device(const struct gpu_figures_input *all, struct gpu_item *room,
			  struct gpu_figures *figures)
{
	struct gpu_figures_input input = *all;

	input.items = room;
	input.count = 0;
	for (size_t i = 0; i < all->count; i++) {
		if (all->items[i].work->device == figures->device)
			room[input.count++] = all->items[i];
	}
	return gpu_figures_compute(&input, figures);
}

static int measure_devices(const struct gpu_figures_input *all, struct step_gpu *gpu)
{
	struct gpu_item *room = NULL;
	int err = find_devices(all, gpu);

	if (err || !gpu->devices.count)
		return err;
	gpu->all.device = gpu->devices.items[0].device;
	if (gpu->devices.count == 1 && is_only_device(all, gpu->all.device)) {
		gpu->devices.items[0] = gpu->all;
		return 0;
	}
	room = reallocarray(NULL, all->count, sizeof(*room));
	if (!room)
		return -ENOMEM;
	vec_for_each (figures, &gpu->devices) {
		err = measure_device(all, room, figures);
		if (err)
			break;
		if (figures->busy_ns > find_device(gpu, gpu->all.device)->busy_ns)
			gpu->all.device = figures->device;
	}
	free(room);
	return err;
}

static int find_busy(const struct gpu_figures_input *all, struct step_gpu *gpu)
{
	int err = 0;

	for (size_t i = 0; !err && i < all->count; i++) {
		struct gpu_interval time = {all->items[i].work->start_ns,
					    all->items[i].work->end_ns};

		time = gpu_interval_clip(time, all->step);
		if (gpu_interval_ns(time))
			err = gpu_interval_append(&gpu->busy, time);
	}
	return err;
}

static void count_quality(const struct gpu_metrics_input *input, struct step_gpu *gpu)
{
	for (size_t i = 0; i < input->item_count; i++) {
		const struct gpu_item *item = &input->items[i];
		const struct fbt_gpu_api *call = gpu_item_call(item);

		if (!item->mine)
			continue;
		gpu->joined += item->api != NULL;
		gpu->by_time += !item->api;
		gpu->violations += call && item->work->start_ns < call->start_ns;
	}
}

/* kind 0: of all kinds. */
static int measure_overheads(const struct gpu_metrics_input *input, struct gpu_interval step,
			     uint32_t kind, uint64_t *ns)
{
	gpu_interval_vec set = {0};
	int err = 0;

	for (size_t i = 0; !err && i < input->overhead_count; i++) {
		const struct fbt_gpu_overhead *overhead = input->overheads[i];
		struct gpu_interval time = {overhead->start_ns, overhead->end_ns};

		time = gpu_interval_clip(time, step);
		if ((!kind || overhead->kind == kind) && gpu_interval_ns(time))
			err = vec_push(&set, time);
	}
	gpu_interval_sort(&set);
	*ns = gpu_interval_length(&set);
	vec_free(&set);
	return err;
}

static double share(uint64_t part_ns, uint64_t whole_ns)
{
	return whole_ns ? (double)part_ns / (double)whole_ns : 0.0;
}

/* Tests the most certain verdict first. NaN is neither above nor below any limit. */
static enum gpu_bound find_bound(const struct step_gpu *gpu, uint64_t step_ns)
{
	const struct gpu_figures *all = &gpu->all;
	bool launched = all->kernels || all->memcpys || all->memsets;

	if (!step_ns || (!launched && !all->busy_ns) ||
	    share(all->unattributed_ns, step_ns) > GPU_BOUND_UNKNOWN_SHARE)
		return GPU_BOUND_UNKNOWN;
	if (share(all->busy_ns, step_ns) > GPU_BOUND_BUSY || gpu->bound_full > GPU_BOUND_FULL)
		return GPU_BOUND_GPU;
	if (share(all->exposed_copy_ns, step_ns) > GPU_BOUND_COPIES)
		return GPU_BOUND_COPY;
	if (!(gpu->bound_idle > GPU_BOUND_IDLE))
		return GPU_BOUND_NONE;
	if (share(all->wait_blocked_ns, all->host_wait_ns) > GPU_BOUND_BLOCKED)
		return GPU_BOUND_WAIT;
	/* Whether it computed or was blocked: an interval, or another thread that launched. */
	if (share(all->wait_unknown_ns, step_ns) > GPU_BOUND_UNKNOWN_SHARE)
		return GPU_BOUND_UNKNOWN;
	if (gpu->bound_work < GPU_BOUND_WORK && gpu->bound_empty > GPU_BOUND_EMPTY)
		return GPU_BOUND_LAUNCH;
	return gpu->bound_work >= GPU_BOUND_WORK ? GPU_BOUND_HOST : GPU_BOUND_NONE;
}

static void judge(struct step_gpu *gpu, uint64_t step_ns, uint64_t full_ns)
{
	const struct gpu_figures *all = &gpu->all;

	gpu->bound_idle = share(all->host_wait_ns + all->launch_ns, step_ns);
	/* A call of length 0 took less than a nanosecond, the unit of its times. */
	gpu->bound_work = all->launches
				  ? (double)all->work_ns / (double)max_u64(all->launch_api_ns, 1)
				  : (double)NAN;
	gpu->bound_empty = all->idle_empty;
	gpu->bound_full = share(full_ns, step_ns);
	gpu->bound = find_bound(gpu, step_ns);
}

int gpu_metrics_compute(const struct gpu_metrics_input *input, struct step_gpu *gpu)
{
	gpu_span_vec spans = {0};
	struct gpu_figures_input all = {
		.items = input->items,
		.count = input->item_count,
		.step = {input->step->record.start_ns, input->step->record.end_ns},
		.tid = input->step->record.tid,
		.hidden_until_ns = input->hidden_until_ns,
	};
	struct thread thread = {.input = input, .tid = all.tid, .any = !input->step->record.kind};
	uint64_t full_ns = 0;
	int err = gpu_spans_make(input->step, &spans);

	gpu->calls_known = gpu_calls_known(input->step);
	all.spans = gpu->calls_known ? &spans : NULL;
	/* A step that ends before it begins has no figures. */
	all.step.end_ns = max_u64(all.step.start_ns, all.step.end_ns);
	thread.step = all.step;
	thread.spans = all.spans;
	if (!err)
		err = gpu_figures_compute(&all, &gpu->all);
	if (!err)
		err = measure_devices(&all, gpu);
	if (!err)
		err = find_busy(&all, gpu);
	if (!err)
		err = measure_thread(&thread, gpu);
	if (!err)
		err = measure_overheads(input, all.step, 0, &gpu->cupti_overhead_ns);
	if (!err)
		err = measure_overheads(input, all.step, FBT_GPU_OVERHEAD_COMMAND_BUFFER_FULL,
					&full_ns);
	count_quality(input, gpu);
	if (!err)
		judge(gpu, gpu_interval_ns(all.step), full_ns);
	vec_free(&spans);
	return err;
}
