/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/kineto.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arith.h"
#include "base/id_map.h"
#include "base/vec.h"
#include "model/gpu.h"
#include "model/syscalls.h"
#include "output/kineto_append.h"
#include "output/kineto_file.h"
#include "output/slice.h"

#define NEXT_DEVICES	5000000
#define PROCESS_DEVICES 1000

/* Contexts whose device is remembered, because a sync names only its context. */
#define CONTEXTS_MAX 256

/* Marks of a correlation id. */
#define MARK_HOST 1u /* a host event has the id */
#define MARK_WORK 2u /* work or a sync with the id is written */
#define MARK_PAST 4u /* MARK_WORK in an earlier batch */
#define MARK_FLOW 8u /* the start of its arrow is written */

struct context {
	uint32_t id;
	uint32_t device;
};

/* A process with GPU records. */
struct owner {
	uint32_t tgid;
	VEC(struct context) contexts;
};

/*
 * As in Kineto, the pid of GPU work is its device. Devices of a second process in the file are
 * 5,000,000 + 1,000 * index + device, above all process ids. Correlations of a second process are
 * moved up by 2^32 * index.
 */
struct kineto_gpu {
	VEC(struct owner) owners; /* in the order of their first records */
	struct id_set *correlations;
};

/* A batch that is being written. */
struct writing {
	struct kineto_gpu *gpu;
	struct kineto_file *file;
	const struct window *window;
	const struct gpu_process *process; /* NULL: nothing is known about it */
	const struct fbt_step *step;
	size_t index; /* of the owner */
	struct owner *owner;
};

static void clear_gpu(struct kineto_gpu *gpu)
{
	vec_for_each (owner, &gpu->owners)
		vec_free(&owner->contexts);
	vec_free(&gpu->owners);
	id_set__free(gpu->correlations);
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

/* 0 means no correlation, and stays 0. */
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

/* Syncs of contexts beyond CONTEXTS_MAX are shown with device 0. */
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

/*
 * Marks the correlations at which an arrow may end: MARK_WORK before the batch is written,
 * MARK_PAST after it.
 */
static int mark_ends(const struct writing *writing, const struct gpu_batch *batch,
		     unsigned int marks)
{
	int err = 0;

	vec_for_each (work, &batch->records->works) {
		if (!err && is_drawn(work))
			err = mark(writing, unique_correlation(writing, work->correlation), marks);
	}
	vec_for_each (sync, &batch->records->syncs) {
		if (!err && sync->end_ns)
			err = mark(writing, unique_correlation(writing, sync->correlation), marks);
	}
	return err;
}

static int keep_contexts(const struct writing *writing, const struct gpu_batch *batch)
{
	int err = 0;

	vec_for_each (work, &batch->records->works) {
		if (!err)
			err = keep_context(writing->owner, work);
	}
	return err;
}

/* Chakra recognizes launches by cat and name, and expects each to have its own correlation. */
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
		.is_linked = sync->kind == FBT_GPU_SYNC_EVENT || sync->kind == FBT_GPU_SYNC_CONTEXT,
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
	vec_for_each (api, &batch->records->apis) {
		if (!err && api->end_ns)
			err = put_api(writing, api);
	}
	vec_for_each (work, &batch->records->works) {
		if (!err && is_drawn(work))
			err = put_work(writing, work);
	}
	vec_for_each (sync, &batch->records->syncs) {
		if (!err && sync->end_ns)
			err = put_sync(writing, sync);
	}
	vec_for_each (overhead, &batch->records->overheads) {
		if (!err && overhead->end_ns)
			err = put_overhead(writing, overhead);
	}
	return err ? err : mark_ends(writing, batch, MARK_PAST);
}

/* step: the last step that was written; all 0 if there was none. 0 or -ENOMEM. */
static int write_batch(struct kineto_gpu *gpu, struct kineto_file *file,
		       const struct window *window, const struct gpu_batch *batch,
		       const struct fbt_step *step)
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

/* deviceProperties and versions: members of the outer object, after the events. */
static void write_devices(const struct kineto_gpu *gpu, struct kineto_file *file,
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

struct kineto_sink {
	struct sink sink;
	struct kineto_file file;
	struct kineto_gpu gpu;
	struct fbt_step step; /* the last step that was written; all 0 before */
	struct step_lanes lanes;
	FILE *more; /* events of PyTorch's profiler; NULL: none */
	uint64_t more_bytes;
};

static struct kineto_sink *to_kineto(struct sink *sink)
{
	return (struct kineto_sink *)sink;
}

/* Before each piece. */
static struct kineto_file *begin_piece(struct sink *sink, const struct window *window)
{
	struct kineto_sink *kineto = to_kineto(sink);

	writer_begin(&kineto->file.writer);
	kineto_file_begin(&kineto->file, window);
	return &kineto->file;
}

/* After each piece. err: its error. */
static int end_piece(struct kineto_file *file, int err)
{
	return err ? err : writer_end(&file->writer);
}

static int poll_writer(struct sink *sink)
{
	return writer_poll(&to_kineto(sink)->file.writer);
}

/* HTA takes a slice of this name for an iteration. The step's own name is in the args. */
static int write_step(struct sink *sink, const struct window *window, const struct step *step)
{
	struct kineto_file *file = begin_piece(sink, window);
	const struct fbt_step *record = &step->record;
	struct kineto_slice slice =
		kineto_file_slice(file, window, record->start_ns, record->end_ns);
	struct step_args args;
	char name[48];
	int err = kineto_file_thread(file, window, record->tgid,
				     step_lanes_find(&to_kineto(sink)->lanes, step), KINETO_THREADS,
				     &slice.lane);

	to_kineto(sink)->step = *record;
	snprintf(name, sizeof(name), "ProfilerStep#%llu", (unsigned long long)step->number);
	slice.name = name;
	slice.cat = "user_annotation";
	step_args_fill(&args, window, step);
	json_fields_string(&args.fields, "ferrum.step", window__kind_name(window, record->kind));
	kineto_slice_write(&file->json, &slice, &args.fields);
	return end_piece(file, err);
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	const struct fbt_step *record = &step->record;
	struct escalation_fields args;
	struct kineto_slice slice;
	struct kineto_file *file;
	char name[64];
	int err;

	if (!escalation_is_shown(escalation))
		return 0;
	file = begin_piece(sink, window);
	slice = kineto_file_slice(file, window, record->start_ns, record->end_ns);
	err = kineto_file_thread(file, window, record->tgid,
				 step_lanes_find(&to_kineto(sink)->lanes, step), KINETO_ESCALATIONS,
				 &slice.lane);
	snprintf(name, sizeof(name), "escalation: %s",
		 escalation_otlp_value(escalation->result.reason));
	slice.name = name;
	slice.cat = "escalation";
	escalation_fields_fill(&args, window, escalation);
	if (!step->complete)
		json_fields_bool(&args.fields, "complete", false);
	kineto_slice_write(&file->json, &slice, &args.fields);
	return end_piece(file, err);
}

/* A moment beside the escalations of the thread: viewers know the slices of the other lanes. */
static int write_hang(struct sink *sink, const struct window *window, const struct fbt_hang *hang)
{
	struct kineto_file *file = begin_piece(sink, window);
	struct kineto_slice slice = kineto_file_slice(file, window, hang->time_ns, hang->time_ns);
	struct hang_args args;
	int err = kineto_file_thread(file, window, hang->tgid, hang->tid, KINETO_ESCALATIONS,
				     &slice.lane);

	slice.name = "hang";
	slice.cat = "hang";
	hang_args_fill(&args, window, hang);
	kineto_slice_write(&file->json, &slice, &args.fields);
	return end_piece(file, err);
}

static int put_call(struct kineto_file *file, const struct window *window,
		    const struct fbt_call *call)
{
	struct kineto_slice slice;
	struct call_args args;
	char label[24];
	int err;

	slice = kineto_file_slice(file, window, call->start_ns,
				  add_saturating(call->start_ns, call->duration_ns));
	err = kineto_file_thread(file, window, call->tgid, call->tid, KINETO_CALLS, &slice.lane);
	slice.name = syscall_label((enum fbt_arch)window->record.arch, call->nr, label);
	slice.cat = "syscall";
	call_args_fill(&args, window, call);
	kineto_slice_write(&file->json, &slice, &args.fields);
	return err;
}

static int write_calls(struct sink *sink, const struct window *window, const struct step *step)
{
	struct kineto_file *file = begin_piece(sink, window);
	int err = 0;

	for (size_t i = 0; !err && i < step->calls.count; i++)
		err = put_call(file, window, &step->calls.items[i]);
	return end_piece(file, err);
}

static int write_call(struct sink *sink, const struct window *window, const struct fbt_call *call)
{
	struct kineto_file *file = begin_piece(sink, window);

	return end_piece(file, put_call(file, window, call));
}

static int write_gpu(struct sink *sink, const struct window *window, const struct gpu_batch *batch)
{
	struct kineto_file *file = begin_piece(sink, window);
	struct kineto_sink *kineto = to_kineto(sink);

	return end_piece(file, write_batch(&kineto->gpu, file, window, batch, &kineto->step));
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	struct kineto_file *file = begin_piece(sink, window);
	const struct kineto_sink *kineto = to_kineto(sink);

	/* What it has of them before an error stays: the file is sound. */
	if (kineto->more &&
	    kineto_append(file, window, kineto->more, kineto->more_bytes) == -ENOMEM)
		return -ENOMEM;
	kineto_file_end_events(file, window);
	write_devices(&to_kineto(sink)->gpu, file, window);
	return kineto_file_end(file);
}

static void free_kineto(struct sink *sink)
{
	struct kineto_sink *kineto = to_kineto(sink);

	clear_gpu(&kineto->gpu);
	kineto_file_clear(&kineto->file);
	free(kineto);
}

struct sink *sink_kineto__new(FILE *out, const struct kineto_options *options)
{
	struct kineto_sink *kineto = calloc(1, sizeof(*kineto));

	if (!kineto)
		return NULL;
	kineto->sink = (struct sink){
		.name = "trace",
		.is_file = true,
		.is_document = true,
		.write_step = write_step,
		.write_escalation = write_escalation,
		.write_hang = write_hang,
		.write_calls = write_calls,
		.write_call = write_call,
		.write_gpu = write_gpu,
		.poll = poll_writer,
		.finish = finish,
		.free = free_kineto,
	};
	kineto->gpu.correlations = id_set__new();
	if (kineto_file_init(&kineto->file, out, options->rank, options->world_size,
			     options->path) ||
	    !kineto->gpu.correlations) {
		free_kineto(&kineto->sink);
		return NULL;
	}
	return &kineto->sink;
}

void sink_kineto_add(struct sink *sink, FILE *more, uint64_t bytes)
{
	to_kineto(sink)->more = more;
	to_kineto(sink)->more_bytes = bytes;
}
