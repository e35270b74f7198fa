/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kineto_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT_SYNC_LANE   (KINETO_SYNC_LANES - 1)
#define OVERHEAD_PID	    (-1)
#define DEVICE_SORT_INDEX   5000000u
#define OVERHEAD_SORT_INDEX 0x100000u
#define WHOLE_PROCESS	    UINT32_MAX /* in lanes, in the place of a tid: its name */

int kineto_file_init(struct kineto_file *file, FILE *out, uint32_t rank, uint32_t world_size,
		     const char *path)
{
	*file = (struct kineto_file){
		.json.out = out,
		.out.file = out,
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
	file->base_ns = kineto_base_ns(record->realtime_ns);
	json_object_begin(json, NULL);
	json_newline(json);
	json_uint(json, "schemaVersion", 1);
	/* HTA finds the rank by a pattern that wants this very space. */
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

uint64_t kineto_file_ts(const struct kineto_file *file, const struct window *window, uint64_t ns)
{
	const struct fbt_window *record = &window->record;
	uint64_t start = record->realtime_ns - file->base_ns;

	if (ns >= record->start_ns)
		return start + (ns - record->start_ns);
	return start > record->start_ns - ns ? start - (record->start_ns - ns) : 0;
}

struct kineto_slice kineto_file_slice(struct kineto_file *file, const struct window *window,
				      uint64_t start_ns, uint64_t end_ns)
{
	struct kineto_slice slice = {.ts_ns = kineto_file_ts(file, window, start_ns)};
	uint64_t end = kineto_file_ts(file, window, end_ns);

	slice.dur_ns = end > slice.ts_ns ? end - slice.ts_ns : 0;
	if (end_ns > file->last_ns)
		file->last_ns = end_ns;
	return slice;
}

/* True the first time. *err becomes -ENOMEM where that cannot be kept. */
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
	return kineto_file_ts(file, window, window->record.start_ns);
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
	uint32_t order = 0; /* below each other: the thread, its escalations, its calls */
	char text[80];
	int err = 0;

	*lane = (struct kineto_lane){.pid = tgid, .tid = (uint64_t)lanes + tid};
	if (is_new(file, tgid, WHOLE_PROCESS, &err))
		kineto_process_write(&file->json, tgid, window_ts(file, window),
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
	else
		snprintf(text, sizeof(text), "thread %u%s%s%s%s", tid, comm ? " (" : "",
			 comm ? comm : "", comm ? ")" : "", what);
	kineto_thread_write(&file->json, lane, window_ts(file, window), text, 4ull * tid + order);
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
		kineto_process_write(&file->json, pid, window_ts(file, window),
				     process_name(window, tgid), text,
				     DEVICE_SORT_INDEX + (uint64_t)pid % DEVICE_SORT_INDEX);
	}
	if (!is_new(file, pid, lane->tid, &err))
		return err;
	if (is_sync && stream == FBT_GPU_NO_STREAM)
		snprintf(text, sizeof(text), "all streams: sync");
	else
		snprintf(text, sizeof(text), "stream %u %s", stream, is_sync ? "sync" : "");
	kineto_thread_write(&file->json, lane, window_ts(file, window), text, lane->tid);
	return err;
}

int kineto_file_overhead(struct kineto_file *file, const struct window *window, uint32_t tid,
			 struct kineto_lane *lane)
{
	int err = 0;

	*lane = (struct kineto_lane){.pid = OVERHEAD_PID, .tid = tid};
	if (is_new(file, OVERHEAD_PID, WHOLE_PROCESS, &err))
		kineto_process_write(&file->json, OVERHEAD_PID, window_ts(file, window),
				     "CUPTI overhead", "", OVERHEAD_SORT_INDEX);
	return err;
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
	json_micros(json, "ts", kineto_file_ts(file, window, end_ns));
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
	return trace_out_flush(&file->out);
}
