/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The frame of a Kineto trace (head, end, times and lane names) and its events, in the form of
 * Kineto's output_json.cpp and CuptiActivity.h. Each event is a line of its own, so that all but
 * the last line of a file that was cut off can be recovered. Times are nanoseconds since the file's
 * base.
 */
#ifndef FBT_OUTPUT_KINETO_FILE_H
#define FBT_OUTPUT_KINETO_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/id_map.h"
#include "base/json.h"
#include "model/gpu.h"
#include "model/window.h"
#include "output/file.h"

/* pid is a process or a device, tid a thread or a stream. */
struct kineto_lane {
	int64_t pid;
	uint64_t tid;
};

struct kineto_slice {
	const char *name;
	const char *cat;
	struct kineto_lane lane;
	uint64_t ts_ns;
	uint64_t dur_ns;
};

/* kineto_slice_begin writes a slice up to the brace of its args, kineto_slice_end the rest. */
void kineto_slice_begin(struct json *json, const struct kineto_slice *slice);
void kineto_slice_end(struct json *json);

/* Writes a whole slice. */
void kineto_slice_write(struct json *json, const struct kineto_slice *slice,
			const struct json_fields *args);

/* One end of an arrow from a call to its work: phase 's' begins it, 'f' ends it. */
void kineto_flow_write(struct json *json, char phase, uint64_t id, const struct kineto_lane *lane,
		       uint64_t ts_ns);

/*
 * HTA and Chakra expect one host event per correlation, and take any event with args.stream for
 * work of a device. An event that is not linked has ferrum.correlation instead: a call inside
 * another one with the same correlation, a sync of one stream, work whose call is not in the file.
 * Syncs of an event or of all streams HTA takes for work by their names, and joins one without a
 * correlation with every call that has none: they always have theirs.
 */
struct kineto_ids {
	int64_t device;
	uint64_t correlation; /* unique in the file; 0: none */
	bool is_linked;
};

/*
 * Write args, between kineto_slice_begin and kineto_slice_end. device may be NULL; some args are
 * left out then.
 */
void kineto_work_args(struct json *json, const struct fbt_gpu_work *work,
		      const struct kineto_ids *ids, const struct gpu_device *device);
void kineto_api_args(struct json *json, const struct fbt_gpu_api *api,
		     const struct kineto_ids *ids);
void kineto_sync_args(struct json *json, const struct fbt_gpu_sync *sync,
		      const struct kineto_ids *ids);

/* Writes an element of deviceProperties. */
void kineto_device_write(struct json *json, const struct gpu_device *device, int64_t id);

struct kineto_file {
	struct json json;
	struct writer writer;
	uint32_t rank;
	uint32_t world_size;
	char *path; /* for traceName */
	uint64_t base_ns;
	uint64_t last_ns; /* latest end of a slice */
	bool begun;
	struct id_set *lanes; /* lanes that have a name */
};

/* 0 or -ENOMEM. Call kineto_file_clear in any case. */
int kineto_file_init(struct kineto_file *file, FILE *out, uint32_t rank, uint32_t world_size,
		     const char *path);
void kineto_file_clear(struct kineto_file *file);

/* Writes the head, once the window is known; later calls do nothing. */
void kineto_file_begin(struct kineto_file *file, const struct window *window);

/* A slice with these times, without name, cat and lane. */
struct kineto_slice kineto_file_slice(struct kineto_file *file, const struct window *window,
				      uint64_t start_ns, uint64_t end_ns);

/*
 * Lanes of a process. Chakra and viewers expect the slices of a lane to nest. Times of the kernel
 * and of CUPTI differ by the error of CUPTI's clock, so syscalls have lanes of their own.
 * Escalations also have their own, because their times are those of their steps. No thread id is
 * this large. Interval steps belong to no thread; their tid is 0.
 */
enum kineto_lanes {
	KINETO_THREADS = 0,
	KINETO_CALLS = 100000000,
	KINETO_ESCALATIONS = 200000000,
};

/* Finds the lane of a thread, and writes the lane's name before its first use. 0 or -ENOMEM. */
int kineto_file_thread(struct kineto_file *file, const struct window *window, uint32_t tgid,
		       uint32_t tid, enum kineto_lanes lanes, struct kineto_lane *lane);

/*
 * Lanes of a device: a stream and, as in Kineto, the syncs of a stream, which may overlap its work.
 * FBT_GPU_NO_STREAM: the syncs of all streams.
 */
#define KINETO_SYNC_LANES 1000000u

/*
 * Finds the lane of a stream. pid: the device in the file; device: its number in process tgid. 0 or
 * -ENOMEM.
 */
int kineto_file_stream(struct kineto_file *file, const struct window *window, uint32_t tgid,
		       int64_t pid, uint32_t device, uint32_t stream, bool is_sync,
		       struct kineto_lane *lane);

/* Finds the lane of CUPTI's overhead in a thread. 0 or -ENOMEM. */
int kineto_file_overhead(struct kineto_file *file, const struct window *window, uint32_t tid,
			 struct kineto_lane *lane);

/*
 * The name of a metadata event. What comes after it, PyTorch's profiler has written: its lanes may
 * have names for pids, its slices no args, and its arrows one end.
 */
#define KINETO_FOREIGN "ferrum.pytorch"

/* Writes that event. */
void kineto_file_begin_foreign(struct kineto_file *file, const struct window *window);

/* Ends the events. Members that are known only now may follow, and then kineto_file_end. */
void kineto_file_end_events(struct kineto_file *file, const struct window *window);

/* Ends the file. 0 or -errno. */
int kineto_file_end(struct kineto_file *file);

#endif
