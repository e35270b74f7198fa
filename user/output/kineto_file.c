/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/kineto_file.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "output/slice.h"

/* As in Kineto's output_json.h: three months, so that absolute times fit into a double. */
#define BASE_NS (7889238 * NS_PER_S)

#define CONTEXT_SYNC_LANE   (KINETO_SYNC_LANES - 1)
#define OVERHEAD_PID	    (-1)
#define DEVICE_SORT_INDEX   5000000u
#define OVERHEAD_SORT_INDEX 0x100000u
#define WHOLE_PROCESS	    UINT32_MAX /* in lanes, instead of a tid: the name of the process */

static void put_lane(struct json *json, const struct kineto_lane *lane)
{
	json_int(json, "pid", lane->pid);
	json_uint(json, "tid", lane->tid);
}

/* Writes an event up to the value of args, which the caller writes. */
static void begin_event(struct json *json, const struct kineto_slice *slice)
{
	json_newline(json);
	json_object_begin(json, NULL);
	json_string(json, "ph", "X");
	json_string(json, "cat", slice->cat);
	json_string(json, "name", slice->name);
	put_lane(json, &slice->lane);
	json_micros(json, "ts", slice->ts_ns);
	json_micros(json, "dur", slice->dur_ns);
}

void kineto_slice_begin(struct json *json, const struct kineto_slice *slice)
{
	begin_event(json, slice);
	json_object_begin(json, "args");
}

void kineto_slice_end(struct json *json)
{
	json_object_end(json);
	json_object_end(json);
}

void kineto_slice_write(struct json *json, const struct kineto_slice *slice,
			const struct json_fields *args)
{
	begin_event(json, slice);
	json_fields_write(json, "args", args);
	json_object_end(json);
}

void kineto_flow_write(struct json *json, char phase, uint64_t id, const struct kineto_lane *lane,
		       uint64_t ts_ns)
{
	const char text[] = {phase, '\0'};

	json_newline(json);
	json_object_begin(json, NULL);
	json_string(json, "ph", text);
	json_uint(json, "id", id);
	put_lane(json, lane);
	json_micros(json, "ts", ts_ns);
	json_string(json, "cat", "ac2g");
	json_string(json, "name", "ac2g");
	if (phase == 'f')
		json_string(json, "bp", "e");
	json_object_end(json);
}

/* Writes a metadata event up to the brace of its args. */
static void begin_metadata(struct json *json, const char *name, const struct kineto_lane *lane,
			   uint64_t ts_ns)
{
	json_newline(json);
	json_object_begin(json, NULL);
	json_string(json, "name", name);
	json_string(json, "ph", "M");
	json_micros(json, "ts", ts_ns);
	put_lane(json, lane);
	json_object_begin(json, "args");
}

static void put_name(struct json *json, const char *what, const struct kineto_lane *lane,
		     uint64_t ts_ns, const char *key, const char *value)
{
	begin_metadata(json, what, lane, ts_ns);
	json_string(json, key, value);
	kineto_slice_end(json);
}

static void put_sort_index(struct json *json, const char *what, const struct kineto_lane *lane,
			   uint64_t ts_ns, uint64_t value)
{
	begin_metadata(json, what, lane, ts_ns);
	json_uint(json, "sort_index", value);
	kineto_slice_end(json);
}

static void write_process(struct json *json, int64_t pid, uint64_t ts_ns, const char *name,
			  const char *label, uint64_t sort_index)
{
	struct kineto_lane lane = {.pid = pid};

	put_name(json, "process_name", &lane, ts_ns, "name", name);
	put_name(json, "process_labels", &lane, ts_ns, "labels", label);
	put_sort_index(json, "process_sort_index", &lane, ts_ns, sort_index);
}

static void write_thread(struct json *json, const struct kineto_lane *lane, uint64_t ts_ns,
			 const char *name, uint64_t sort_index)
{
	put_name(json, "thread_name", lane, ts_ns, "name", name);
	put_sort_index(json, "thread_sort_index", lane, ts_ns, sort_index);
}

static double product(const uint32_t size[3])
{
	return (double)size[0] * size[1] * size[2];
}

static void put_size(struct json *json, const char *key, const uint32_t size[3])
{
	json_array_begin(json, key);
	for (int i = 0; i < 3; i++)
		json_uint(json, NULL, size[i]);
	json_array_end(json);
}

static void put_correlation(struct json *json, const struct kineto_ids *ids)
{
	if (ids->correlation)
		json_uint(json, ids->is_linked ? "correlation" : "ferrum.correlation",
			  ids->correlation);
}

static void put_place(struct json *json, const struct fbt_gpu_work *work,
		      const struct kineto_ids *ids)
{
	json_int(json, "device", ids->device);
	json_uint(json, "context", work->context);
	json_uint(json, "stream", work->stream);
	put_correlation(json, ids);
}

static void put_graph(struct json *json, const struct fbt_gpu_work *work)
{
	if (!work->graph && !work->graph_node)
		return;
	json_uint(json, "graph id", work->graph);
	json_uint(json, "graph node id", work->graph_node);
}

/*
 * "est. achieved occupancy %" is left out: Kineto computes it with cuda_occupancy.h, whose tables
 * of allocation granularity by architecture are not among the figures here.
 */
static void put_kernel(struct json *json, const struct fbt_gpu_work *work,
		       const struct kineto_ids *ids, const struct gpu_device *device)
{
	double blocks = product(work->kernel.grid);

	json_uint(json, "queued", 0);
	put_place(json, work, ids);
	json_uint(json, "registers per thread", work->kernel.registers);
	json_uint(json, "shared memory",
		  (uint64_t)work->kernel.static_shared + work->kernel.dynamic_shared);
	if (device && device->record.sms && device->record.warp_size) {
		blocks /= device->record.sms;
		json_double(json, "blocks per SM", blocks);
		json_double(json, "warps per SM",
			    blocks * product(work->kernel.block) / device->record.warp_size);
	}
	put_size(json, "grid", work->kernel.grid);
	put_size(json, "block", work->kernel.block);
	put_graph(json, work);
}

static void put_bandwidth(struct json *json, const struct fbt_gpu_work *work)
{
	const char *key = "memory bandwidth (GB/s)";

	json_uint(json, "bytes", work->copy.bytes);
	if (work->end_ns > work->start_ns)
		json_double(json, key,
			    (double)work->copy.bytes / (double)(work->end_ns - work->start_ns));
	else
		json_string(json, key, "N/A");
}

static void put_copy(struct json *json, const struct fbt_gpu_work *work,
		     const struct kineto_ids *ids)
{
	if (work->kind == FBT_GPU_MEMCPY && work->copy.kind == FBT_GPU_COPY_P2P) {
		int64_t first = ids->device - work->device; /* number of the process's device 0 */

		json_int(json, "fromDevice", first + work->copy.source_device);
		json_int(json, "inDevice", ids->device);
		json_int(json, "toDevice", first + work->copy.target_device);
		json_uint(json, "inContext", work->context);
		json_uint(json, "stream", work->stream);
		put_correlation(json, ids);
	} else {
		put_place(json, work, ids);
	}
	put_bandwidth(json, work);
	put_graph(json, work);
}

void kineto_work_args(struct json *json, const struct fbt_gpu_work *work,
		      const struct kineto_ids *ids, const struct gpu_device *device)
{
	if (work->kind == FBT_GPU_KERNEL)
		put_kernel(json, work, ids, device);
	else
		put_copy(json, work, ids);
}

void kineto_api_args(struct json *json, const struct fbt_gpu_api *api, const struct kineto_ids *ids)
{
	json_uint(json, "cbid", api->cbid);
	put_correlation(json, ids);
	if (api->result)
		json_uint(json, "ferrum.result", api->result);
}

void kineto_sync_args(struct json *json, const struct fbt_gpu_sync *sync,
		      const struct kineto_ids *ids)
{
	json_string(json, "cuda_sync_kind", gpu_slice_sync_name(sync));
	if (sync->kind == FBT_GPU_SYNC_EVENT || sync->kind == FBT_GPU_SYNC_STREAM_WAIT_EVENT)
		json_uint(json, "wait_on_cuda_event_id", sync->event);
	if (sync->stream != FBT_GPU_NO_STREAM)
		json_uint(json, "wait_stream", sync->stream);
	put_correlation(json, ids);
	json_int(json, "device", ids->device);
	json_uint(json, "context", sync->context);
}

void kineto_device_write(struct json *json, const struct gpu_device *device, int64_t id)
{
	const struct fbt_gpu_device *record = &device->record;

	json_newline(json);
	json_object_begin(json, NULL);
	json_int(json, "id", id);
	json_string(json, "name", device->name);
	json_uint(json, "totalGlobalMem", record->memory_bytes);
	json_uint(json, "computeMajor", record->compute_major);
	json_uint(json, "computeMinor", record->compute_minor);
	json_uint(json, "maxThreadsPerBlock", record->max_threads_per_block);
	json_uint(json, "maxThreadsPerMultiprocessor", record->max_threads_per_sm);
	json_uint(json, "regsPerBlock", record->registers_per_block);
	json_uint(json, "warpSize", record->warp_size);
	json_uint(json, "sharedMemPerBlock", record->shared_per_block);
	json_uint(json, "numSms", record->sms);
	json_uint(json, "regsPerMultiprocessor", record->registers_per_sm);
	json_uint(json, "sharedMemPerBlockOptin", record->shared_per_block_optin);
	json_uint(json, "sharedMemPerMultiprocessor", record->shared_per_sm);
	json_object_end(json);
}

int kineto_file_init(struct kineto_file *file, FILE *out, uint32_t rank, uint32_t world_size,
		     const char *path)
{
	*file = (struct kineto_file){
		.json.out = out,
		.writer.file = out,
		.rank = rank,
		.world_size = world_size,
		.path = strdup(path),
		.lanes = id_set__new(),
	};
	return file->path && file->lanes ? 0 : -ENOMEM;
}

void kineto_file_clear(struct kineto_file *file)
{
	id_set__free(file->lanes);
	free(file->path);
}

void kineto_file_begin(struct kineto_file *file, const struct window *window)
{
	const struct fbt_window *record = &window->record;
	struct json *json = &file->json;
	char text[64];

	if (file->begun)
		return;
	file->begun = true;
	file->base_ns = record->realtime_ns - record->realtime_ns % BASE_NS;
	json_object_begin(json, NULL);
	json_newline(json);
	json_uint(json, "schemaVersion", 1);
	/* HTA finds the rank by a pattern that requires this space. */
	snprintf(text, sizeof(text), " {\"rank\": %u, \"world_size\": %u}", file->rank,
		 file->world_size);
	json_newline(json);
	json_raw(json, "distributedInfo", text);
	json_newline(json);
	json_string(json, "displayTimeUnit", "ms");
	json_newline(json);
	json_uint(json, "baseTimeNanoseconds", file->base_ns);
	json_newline(json);
	json_int(json, "ferrum.mono_base_ns",
		 (int64_t)(record->start_ns - (record->realtime_ns - file->base_ns)));
	json_newline(json);
	json_array_begin(json, "traceEvents");
}

/* Converts CLOCK_MONOTONIC to nanoseconds since the file's base; 0 for earlier times. */
static uint64_t since_base(const struct kineto_file *file, const struct window *window, uint64_t ns)
{
	const struct fbt_window *record = &window->record;
	uint64_t start = record->realtime_ns - file->base_ns;

	if (ns >= record->start_ns)
		return start + (ns - record->start_ns);
	return sub_saturating(start, record->start_ns - ns);
}

struct kineto_slice kineto_file_slice(struct kineto_file *file, const struct window *window,
				      uint64_t start_ns, uint64_t end_ns)
{
	struct kineto_slice slice = {.ts_ns = since_base(file, window, start_ns)};

	slice.dur_ns = sub_saturating(since_base(file, window, end_ns), slice.ts_ns);
	if (end_ns > file->last_ns)
		file->last_ns = end_ns;
	return slice;
}

/* Whether the lane is used for the first time. *err is set to -ENOMEM if that cannot be stored. */
static bool is_new(struct kineto_file *file, int64_t pid, uint64_t tid, int *err)
{
	uint64_t id = (uint64_t)pid << 32 | (uint32_t)tid;

	if (id_set__marks(file->lanes, id))
		return false;
	*err = *err ? *err : id_set__mark(file->lanes, id, 1);
	return true;
}

static uint64_t window_ts(const struct kineto_file *file, const struct window *window)
{
	return since_base(file, window, window->record.start_ns);
}

static const char *process_name(const struct window *window, uint32_t tgid)
{
	const struct process *process = window__process(window, tgid);

	return process && *process->comm ? process->comm : "process";
}

int kineto_file_thread(struct kineto_file *file, const struct window *window, uint32_t tgid,
		       uint32_t tid, enum kineto_lanes lanes, struct kineto_lane *lane)
{
	const char *comm = tid ? window__thread_name(window, tid) : NULL;
	const char *what = "";
	uint32_t order = 0; /* in this order: the thread, its escalations, its calls */
	char text[80];
	int err = 0;

	*lane = (struct kineto_lane){.pid = tgid, .tid = (uint64_t)lanes + tid};
	if (is_new(file, tgid, WHOLE_PROCESS, &err))
		write_process(&file->json, tgid, window_ts(file, window),
			      process_name(window, tgid), "CPU", tgid);
	if (!is_new(file, tgid, lane->tid, &err))
		return err;
	if (lanes == KINETO_ESCALATIONS) {
		what = " escalations";
		order = 1;
	} else if (lanes == KINETO_CALLS) {
		what = " syscalls";
		order = 2;
	}
	if (!tid)
		snprintf(text, sizeof(text), "intervals%s", what);
	else if (tid >= FUTURE_LANES)
		snprintf(text, sizeof(text), "futures %u%s", tid - FUTURE_LANES + 1, what);
	else
		snprintf(text, sizeof(text), "thread %u%s%s%s%s", tid, comm ? " (" : "",
			 comm ? comm : "", comm ? ")" : "", what);
	write_thread(&file->json, lane, window_ts(file, window), text, 4ull * tid + order);
	return err;
}

static uint64_t stream_lane(uint32_t stream, bool is_sync)
{
	if (!is_sync)
		return stream;
	return stream == FBT_GPU_NO_STREAM ? CONTEXT_SYNC_LANE
					   : (uint64_t)KINETO_SYNC_LANES + stream;
}

int kineto_file_stream(struct kineto_file *file, const struct window *window, uint32_t tgid,
		       int64_t pid, uint32_t device, uint32_t stream, bool is_sync,
		       struct kineto_lane *lane)
{
	char text[64];
	int err = 0;

	*lane = (struct kineto_lane){.pid = pid, .tid = stream_lane(stream, is_sync)};
	if (is_new(file, pid, WHOLE_PROCESS, &err)) {
		snprintf(text, sizeof(text), "GPU %u", device);
		write_process(&file->json, pid, window_ts(file, window), process_name(window, tgid),
			      text, DEVICE_SORT_INDEX + (uint64_t)pid % DEVICE_SORT_INDEX);
	}
	if (!is_new(file, pid, lane->tid, &err))
		return err;
	if (is_sync && stream == FBT_GPU_NO_STREAM)
		snprintf(text, sizeof(text), "all streams: sync");
	else
		snprintf(text, sizeof(text), "stream %u %s", stream, is_sync ? "sync" : "");
	write_thread(&file->json, lane, window_ts(file, window), text, lane->tid);
	return err;
}

int kineto_file_overhead(struct kineto_file *file, const struct window *window, uint32_t tid,
			 struct kineto_lane *lane)
{
	int err = 0;

	*lane = (struct kineto_lane){.pid = OVERHEAD_PID, .tid = tid};
	if (is_new(file, OVERHEAD_PID, WHOLE_PROCESS, &err))
		write_process(&file->json, OVERHEAD_PID, window_ts(file, window), "CUPTI overhead",
			      "", OVERHEAD_SORT_INDEX);
	return err;
}

void kineto_file_begin_foreign(struct kineto_file *file, const struct window *window)
{
	const struct kineto_lane lane = {.pid = OVERHEAD_PID};

	begin_metadata(&file->json, KINETO_FOREIGN, &lane, window_ts(file, window));
	kineto_slice_end(&file->json);
}

void kineto_file_end_events(struct kineto_file *file, const struct window *window)
{
	uint64_t end_ns = window->end_ns > file->last_ns ? window->end_ns : file->last_ns;
	struct json *json = &file->json;

	kineto_file_begin(file, window);
	json_newline(json);
	json_object_begin(json, NULL);
	json_string(json, "name", "Record Window End");
	json_string(json, "ph", "i");
	json_string(json, "s", "g");
	json_int(json, "pid", OVERHEAD_PID);
	json_uint(json, "tid", 0);
	json_micros(json, "ts", since_base(file, window, end_ns));
	json_object_end(json);
	json_newline(json);
	json_array_end(json);
}

int kineto_file_end(struct kineto_file *file)
{
	struct json *json = &file->json;

	json_newline(json);
	json_string(json, "traceName", file->path);
	json_newline(json);
	json_object_end(json);
	json_newline(json);
	return writer_finish(&file->writer);
}
