/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kineto_event.h"

#include <stddef.h>

#include "gpu_slice.h"

#define NS_PER_S 1000000000ull

uint64_t kineto_base_ns(uint64_t realtime_ns)
{
	return realtime_ns - realtime_ns % (KINETO_BASE_SECONDS * NS_PER_S);
}

static void put_lane(struct json *json, const struct kineto_lane *lane)
{
	json_int(json, "pid", lane->pid);
	json_uint(json, "tid", lane->tid);
}

/* Up to the value of args, which the caller writes; a slice without args closes here. */
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

/* Up to the brace of its args. */
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

void kineto_process_write(struct json *json, int64_t pid, uint64_t ts_ns, const char *name,
			  const char *label, uint64_t sort_index)
{
	struct kineto_lane lane = {.pid = pid};

	put_name(json, "process_name", &lane, ts_ns, "name", name);
	put_name(json, "process_labels", &lane, ts_ns, "labels", label);
	put_sort_index(json, "process_sort_index", &lane, ts_ns, sort_index);
}

void kineto_thread_write(struct json *json, const struct kineto_lane *lane, uint64_t ts_ns,
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
 * "est. achieved occupancy %" is not here: Kineto has it from cuda_occupancy.h, whose tables of
 * allocation granularity by architecture these figures do not give.
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
		int64_t first = ids->device - work->device; /* of the process's devices */

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
