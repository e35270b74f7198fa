/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kineto_gpu.h"

#include <errno.h>
#include <stdlib.h>

#include "gpu_slice.h"
#include "id_set.h"
#include "vec.h"

#define NEXT_DEVICES	5000000
#define PROCESS_DEVICES 1000

/* Contexts whose device is kept; a sync names only its context. */
#define CONTEXTS_MAX 256

/* Marks of a correlation. */
#define MARK_HOST 1u /* a host event has it */
#define MARK_WORK 2u /* work or a sync of it is drawn */
#define MARK_PAST 4u /* … with a batch before this one */
#define MARK_FLOW 8u /* its arrow has begun */

struct context {
	uint32_t id;
	uint32_t device;
};

/* A process with GPU records. */
struct owner {
	uint32_t tgid;
	VEC(struct context) contexts;
};

struct kineto_gpu {
	VEC(struct owner) owners; /* in the order of their first records */
	struct id_set *correlations;
};

/* One batch on its way into the file. */
struct writing {
	struct kineto_gpu *gpu;
	struct kineto_file *file;
	const struct window *window;
	const struct gpu_process *process; /* NULL: nothing is known of it */
	const struct fbt_step *step;
	size_t index; /* of the owner */
	struct owner *owner;
};

struct kineto_gpu *kineto_gpu__new(void)
{
	struct kineto_gpu *gpu = calloc(1, sizeof(*gpu));

	if (!gpu)
		return NULL;
	gpu->correlations = id_set__new();
	if (gpu->correlations)
		return gpu;
	free(gpu);
	return NULL;
}

void kineto_gpu__free(struct kineto_gpu *gpu)
{
	if (!gpu)
		return;
	vec_for_each (owner, &gpu->owners)
		vec_free(&owner->contexts);
	vec_free(&gpu->owners);
	id_set__free(gpu->correlations);
	free(gpu);
}

static int find_owner(struct kineto_gpu *gpu, uint32_t tgid, size_t *index)
{
	for (*index = 0; *index < gpu->owners.count; ++*index) {
		if (gpu->owners.items[*index].tgid == tgid)
			return 0;
	}
	return vec_push(&gpu->owners, (struct owner){.tgid = tgid});
}

static int64_t device_pid(size_t index, uint32_t device)
{
	return index ? (int64_t)(NEXT_DEVICES + PROCESS_DEVICES * index + device) : device;
}

/* 0 stays: no correlation. */
static uint64_t unique_correlation(const struct writing *writing, uint32_t correlation)
{
	return correlation ? (uint64_t)writing->index << 32 | correlation : 0;
}

static unsigned int marks_of(const struct writing *writing, uint64_t correlation)
{
	return correlation ? id_set__marks(writing->gpu->correlations, correlation) : 0;
}

static int mark(const struct writing *writing, uint64_t correlation, unsigned int marks)
{
	return correlation ? id_set__mark(writing->gpu->correlations, correlation, marks) : 0;
}

/* More contexts than are kept: their syncs are shown with device 0. */
static int keep_context(struct owner *owner, const struct fbt_gpu_work *work)
{
	vec_for_each (context, &owner->contexts) {
		if (context->id == work->context) {
			context->device = work->device;
			return 0;
		}
	}
	if (owner->contexts.count >= CONTEXTS_MAX)
		return 0;
	return vec_push(&owner->contexts, ((struct context){work->context, work->device}));
}

static uint32_t context_device(const struct owner *owner, uint32_t id)
{
	vec_for_each (context, &owner->contexts) {
		if (context->id == id)
			return context->device;
	}
	return 0;
}

static bool is_drawn(const struct fbt_gpu_work *work)
{
	return work->end_ns && work->kind < FBT_GPU_WORK_KIND_COUNT;
}

/* Marks what an arrow may end at, with MARK_WORK before the batch is written, MARK_PAST behind. */
static int mark_ends(const struct writing *writing, const struct gpu_batch *batch,
		     unsigned int marks)
{
	int err = 0;

	vec_for_each (work, batch->works) {
		if (!err && is_drawn(work))
			err = mark(writing, unique_correlation(writing, work->correlation), marks);
	}
	vec_for_each (sync, batch->syncs) {
		if (!err && sync->end_ns)
			err = mark(writing, unique_correlation(writing, sync->correlation), marks);
	}
	return err;
}

static int keep_contexts(const struct writing *writing, const struct gpu_batch *batch)
{
	int err = 0;

	vec_for_each (work, batch->works) {
		if (!err)
			err = keep_context(writing->owner, work);
	}
	return err;
}

/* Chakra knows launches by cat and name, and wants a correlation of its own of each. */
static const char *api_cat(const struct fbt_gpu_api *api, bool is_linked)
{
	if (!is_linked)
		return "cuda_uncorrelated";
	return api->header.flags & FBT_GPU_API_DRIVER ? "cuda_driver" : "cuda_runtime";
}

static int put_api(const struct writing *writing, const struct fbt_gpu_api *api)
{
	uint64_t correlation = unique_correlation(writing, api->correlation);
	unsigned int marks = marks_of(writing, correlation);
	struct kineto_ids ids = {
		.correlation = correlation,
		.is_linked = correlation && !(api->header.flags & FBT_GPU_API_NESTED) &&
			     !(marks & MARK_HOST),
	};
	struct kineto_slice slice = kineto_file_slice(writing->file, writing->window, api->start_ns,
						      gpu_slice_api_end_ns(api, writing->step));
	bool has_flow = ids.is_linked && api->api_class != FBT_GPU_API_OTHER &&
			(marks & (MARK_WORK | MARK_PAST)) == MARK_WORK;
	int err = kineto_file_thread(writing->file, writing->window, api->tgid, api->tid,
				     KINETO_THREADS, &slice.lane);

	slice.name = gpu_slice_api_name(writing->process, api);
	slice.cat = api_cat(api, ids.is_linked);
	kineto_slice_begin(&writing->file->json, &slice);
	kineto_api_args(&writing->file->json, api, &ids);
	kineto_slice_end(&writing->file->json);
	if (has_flow)
		kineto_flow_write(&writing->file->json, 's', correlation, &slice.lane, slice.ts_ns);
	if (!err && ids.is_linked)
		err = mark(writing, correlation, has_flow ? MARK_HOST | MARK_FLOW : MARK_HOST);
	return err;
}

static int put_work(const struct writing *writing, const struct fbt_gpu_work *work)
{
	static const char *const cats[FBT_GPU_WORK_KIND_COUNT] = {"kernel", "gpu_memcpy",
								  "gpu_memset"};
	uint64_t correlation = unique_correlation(writing, work->correlation);
	unsigned int marks = marks_of(writing, correlation);
	struct kineto_ids ids = {
		.device = device_pid(writing->index, work->device),
		.correlation = correlation,
		.is_linked = marks & MARK_HOST,
	};
	struct kineto_slice slice =
		kineto_file_slice(writing->file, writing->window, work->start_ns, work->end_ns);
	const struct gpu_device *device =
		writing->process ? gpu_process_device(writing->process, work->device) : NULL;
	char text[GPU_SLICE_NAME_SIZE];
	int err = kineto_file_stream(writing->file, writing->window, work->tgid, ids.device,
				     work->device, work->stream, false, &slice.lane);

	slice.name = gpu_slice_work_name(writing->process, work, text);
	slice.cat = ids.is_linked ? cats[work->kind] : "kernel_uncorrelated";
	kineto_slice_begin(&writing->file->json, &slice);
	kineto_work_args(&writing->file->json, work, &ids, device);
	kineto_slice_end(&writing->file->json);
	if (marks & MARK_FLOW)
		kineto_flow_write(&writing->file->json, 'f', correlation, &slice.lane, slice.ts_ns);
	return err;
}

static int put_sync(const struct writing *writing, const struct fbt_gpu_sync *sync)
{
	uint32_t device = context_device(writing->owner, sync->context);
	struct kineto_ids ids = {
		.device = device_pid(writing->index, device),
		.correlation = unique_correlation(writing, sync->correlation),
	};
	struct kineto_slice slice =
		kineto_file_slice(writing->file, writing->window, sync->start_ns, sync->end_ns);
	int err = kineto_file_stream(writing->file, writing->window, sync->tgid, ids.device, device,
				     sync->stream, true, &slice.lane);

	slice.name = gpu_slice_sync_name(sync);
	slice.cat = "cuda_sync";
	kineto_slice_begin(&writing->file->json, &slice);
	kineto_sync_args(&writing->file->json, sync, &ids);
	kineto_slice_end(&writing->file->json);
	if (marks_of(writing, ids.correlation) & MARK_FLOW)
		kineto_flow_write(&writing->file->json, 'f', ids.correlation, &slice.lane,
				  slice.ts_ns);
	return err;
}

static int put_overhead(const struct writing *writing, const struct fbt_gpu_overhead *overhead)
{
	struct kineto_slice slice = kineto_file_slice(writing->file, writing->window,
						      overhead->start_ns, overhead->end_ns);
	int err = kineto_file_overhead(writing->file, writing->window, overhead->tid, &slice.lane);

	slice.name = gpu_slice_overhead_name(overhead);
	slice.cat = "overhead";
	kineto_slice_begin(&writing->file->json, &slice);
	kineto_slice_end(&writing->file->json);
	return err;
}

static int put_batch(const struct writing *writing, const struct gpu_batch *batch)
{
	int err = mark_ends(writing, batch, MARK_WORK);

	if (!err)
		err = keep_contexts(writing, batch);
	vec_for_each (api, batch->apis) {
		if (!err && api->end_ns)
			err = put_api(writing, api);
	}
	vec_for_each (work, batch->works) {
		if (!err && is_drawn(work))
			err = put_work(writing, work);
	}
	vec_for_each (sync, batch->syncs) {
		if (!err && sync->end_ns)
			err = put_sync(writing, sync);
	}
	vec_for_each (overhead, batch->overheads) {
		if (!err && overhead->end_ns)
			err = put_overhead(writing, overhead);
	}
	return err ? err : mark_ends(writing, batch, MARK_PAST);
}

int kineto_gpu__write(struct kineto_gpu *gpu, struct kineto_file *file, const struct window *window,
		      const struct gpu_batch *batch, const struct fbt_step *step)
{
	struct writing writing = {
		.gpu = gpu,
		.file = file,
		.window = window,
		.process = gpu_table_find(&window->gpus, batch->tgid),
		.step = step,
	};

	if (find_owner(gpu, batch->tgid, &writing.index))
		return -ENOMEM;
	writing.owner = &gpu->owners.items[writing.index];
	return put_batch(&writing, batch);
}

void kineto_gpu__end(const struct kineto_gpu *gpu, struct kineto_file *file,
		     const struct window *window)
{
	const struct gpu_process *process;
	struct json *json = &file->json;
	uint32_t cupti = 0, driver = 0;

	json_newline(json);
	json_array_begin(json, "deviceProperties");
	for (size_t i = 0; i < gpu->owners.count; i++) {
		process = gpu_table_find(&window->gpus, gpu->owners.items[i].tgid);
		if (!process)
			continue;
		vec_for_each (device, &process->devices)
			kineto_device_write(json, device, device_pid(i, device->record.id));
		cupti = cupti ? cupti : process->state.cupti_version;
		driver = driver ? driver : process->state.driver_version;
	}
	json_array_end(json);
	if (cupti) {
		json_newline(json);
		json_uint(json, "cupti_version", cupti);
	}
	if (driver) {
		json_newline(json);
		json_uint(json, "cuda_driver_version", driver);
	}
}
