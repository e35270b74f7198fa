/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Single events of a trace in the form of Kineto's output_json.cpp and CuptiActivity.h. Each is a
 * line of its own, so that of a file that was cut off all but the last line can be saved. Times are
 * nanoseconds since the file's base.
 */
#ifndef FBT_KINETO_EVENT_H
#define FBT_KINETO_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include "gpu_table.h"
#include "json.h"

/* output_json.h: three months, so that absolute times of one file fit into a double. */
#define KINETO_BASE_SECONDS 7889238

/* The base of a file that begins at realtime_ns. */
uint64_t kineto_base_ns(uint64_t realtime_ns);

/* A pid is a process, or a device; a tid a thread, or a stream. */
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

/* A slice, left open behind the brace of its args. */
void kineto_slice_begin(struct json *json, const struct kineto_slice *slice);
void kineto_slice_end(struct json *json);

/* A whole one. */
void kineto_slice_write(struct json *json, const struct kineto_slice *slice,
			const struct json_fields *args);

/* Of an arrow from a call to its work: phase 's' where it begins, 'f' where it ends. */
void kineto_flow_write(struct json *json, char phase, uint64_t id, const struct kineto_lane *lane,
		       uint64_t ts_ns);

/* Names of lanes. ts_ns: Chakra takes an event without a time for one at 0. */
void kineto_process_write(struct json *json, int64_t pid, uint64_t ts_ns, const char *name,
			  const char *label, uint64_t sort_index);
void kineto_thread_write(struct json *json, const struct kineto_lane *lane, uint64_t ts_ns,
			 const char *name, uint64_t sort_index);

/*
 * HTA and Chakra take one host event a correlation, and take what has args.stream for work of a
 * device. So an event that is not linked has its correlation as ferrum.correlation: a call inside
 * of another one of the same, a sync, work whose call is not in the file.
 */
struct kineto_ids {
	int64_t device;
	uint64_t correlation; /* unique in the file; 0: none */
	bool is_linked;
};

/* Args, between kineto_slice_begin and _end. device may be NULL: then some are left out. */
void kineto_work_args(struct json *json, const struct fbt_gpu_work *work,
		      const struct kineto_ids *ids, const struct gpu_device *device);
void kineto_api_args(struct json *json, const struct fbt_gpu_api *api,
		     const struct kineto_ids *ids);
void kineto_sync_args(struct json *json, const struct fbt_gpu_sync *sync,
		      const struct kineto_ids *ids);

/* An element of deviceProperties. */
void kineto_device_write(struct json *json, const struct gpu_device *device, int64_t id);

#endif
