/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_metrics.h"

#include <math.h>
#include <string.h>

#include "gpu_figures.h"
#include "gpu_interval.h"
#include "gpu_thread.h"

bool gpu_name_is_comm(const char *name)
{
	return !strncmp(name, "nccl", 4) || strstr(name, "ncclKernel") ||
	       strstr(name, "ncclDevKernel");
}

/* --- devices -------------------------------------------------------------------------------- */

/* It has a share in the step: else it only shows what the step's end waits for. */
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

static int compare_devices(const void *a, const void *b)
{
	const struct gpu_figures *left = a, *right = b;

	return (left->device > right->device) - (left->device < right->device);
}

/* Lists them, by number. */
static int find_devices(const struct gpu_figures_input *all, struct step_gpu *gpu)
{
	uint32_t last = 0;

	for (size_t i = 0; i < all->count; i++) {
		uint32_t device = all->items[i].work->device;
		int err;

		if (gpu->devices.count && device == last)
			continue;
		if (!counts_for_step(&all->items[i], all->step))
			continue;
		last = device;
		if (find_device(gpu, device) || gpu->devices.count == GPU_DEVICES_MAX)
			continue;
		err = vec_push(&gpu->devices, (struct gpu_figures){.device = device});
		if (err)
			return err;
	}
	if (gpu->devices.count)
		qsort(gpu->devices.items, gpu->devices.count, sizeof(*gpu->devices.items),
		      compare_devices);
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

/* --- the rest ------------------------------------------------------------------------------- */

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

/* --- the verdict ---------------------------------------------------------------------------- */

static double share(uint64_t part_ns, uint64_t whole_ns)
{
	return whole_ns ? (double)part_ns / (double)whole_ns : 0.0;
}

/* From the most certain to the least. What is NaN is above no bound and below none. */
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
	/* A call that took no time took less than the nanosecond that it is told in. */
	gpu->bound_work = all->launches
				  ? (double)all->work_ns / (double)gpu_ns_max(all->launch_api_ns, 1)
				  : (double)NAN;
	gpu->bound_empty = all->idle_empty;
	gpu->bound_full = share(full_ns, step_ns);
	gpu->bound = find_bound(gpu, step_ns);
}

/* --- all of it ------------------------------------------------------------------------------ */

static int measure_thread(const struct gpu_metrics_input *input,
			  const struct gpu_figures_input *all, struct step_gpu *gpu)
{
	const struct gpu_thread_input thread = {
		.step = all->step,
		.tid = all->tid,
		.any = !input->step->record.kind,
		.spans = all->spans,
		.items = input->items,
		.item_count = input->item_count,
		.apis = input->apis,
		.api_count = input->api_count,
		.syncs = input->syncs,
		.sync_count = input->sync_count,
	};

	return gpu_thread_compute(&thread, gpu);
}

int gpu_metrics_compute(const struct gpu_metrics_input *input, struct step_gpu *gpu)
{
	gpu_span_vec spans = {0};
	struct gpu_figures_input all = {
		.items = input->items,
		.count = input->item_count,
		.step = {input->step->record.start_ns, input->step->record.end_ns},
		.tid = input->step->record.tid,
	};
	uint64_t full_ns = 0;
	int err = gpu_spans_make(input->step, &spans);

	gpu->calls_known = gpu_calls_known(input->step);
	all.spans = gpu->calls_known ? &spans : NULL;
	/* Of a step that ends before it begins nothing is said. */
	all.step.end_ns = gpu_ns_max(all.step.start_ns, all.step.end_ns);
	if (!err)
		err = gpu_figures_compute(&all, &gpu->all);
	if (!err)
		err = measure_devices(&all, gpu);
	if (!err)
		err = find_busy(&all, gpu);
	if (!err)
		err = measure_thread(input, &all, gpu);
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
