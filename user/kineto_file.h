/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The frame of a Kineto trace: its head and end, its times, and the names of its lanes. */
#ifndef FBT_KINETO_FILE_H
#define FBT_KINETO_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "id_set.h"
#include "json.h"
#include "kineto_event.h"
#include "trace_out.h"
#include "window.h"

struct kineto_file {
	struct json json;
	struct trace_out out;
	uint32_t rank;
	uint32_t world_size;
	char *path; /* for traceName */
	uint64_t base_ns;
	uint64_t last_ns; /* latest end of a slice */
	bool begun;
	struct id_set *lanes; /* that have names */
};

/* 0 or -ENOMEM; then, as after success, to be cleared. */
int kineto_file_init(struct kineto_file *file, FILE *out, uint32_t rank, uint32_t world_size,
		     const char *path);
void kineto_file_clear(struct kineto_file *file);

/* Before the first event, once the window is known: the head. Later: nothing. */
void kineto_file_begin(struct kineto_file *file, const struct window *window);

/* CLOCK_MONOTONIC to nanoseconds since the file's base; 0 for what is before it. */
uint64_t kineto_file_ts(const struct kineto_file *file, const struct window *window, uint64_t ns);

/* A slice of that time, without name, cat and lane. */
struct kineto_slice kineto_file_slice(struct kineto_file *file, const struct window *window,
				      uint64_t start_ns, uint64_t end_ns);

/*
 * Lanes of a process. Chakra and viewers want the slices of a lane to nest. What the kernel timed
 * and what CUPTI timed agree only to the error of its clock, so syscalls have lanes of their own;
 * and so have escalations, for a step and its escalation are of one time. No thread's number is so
 * large. Interval steps are no thread's: tid 0.
 */
enum kineto_lanes {
	KINETO_THREADS = 0,
	KINETO_CALLS = 100000000,
	KINETO_ESCALATIONS = 200000000,
};

/* The lane of a thread; its name is written before it is first used. 0 or -ENOMEM. */
int kineto_file_thread(struct kineto_file *file, const struct window *window, uint32_t tgid,
		       uint32_t tid, enum kineto_lanes lanes, struct kineto_lane *lane);

/*
 * Lanes of a device: of a stream, and, as in Kineto, of the syncs of a stream, which may lie across
 * its work. FBT_GPU_NO_STREAM: those of all streams.
 */
#define KINETO_SYNC_LANES 1000000u

/* pid is the device's in the file, device its number in the process tgid. 0 or -ENOMEM. */
int kineto_file_stream(struct kineto_file *file, const struct window *window, uint32_t tgid,
		       int64_t pid, uint32_t device, uint32_t stream, bool is_sync,
		       struct kineto_lane *lane);

/* Of CUPTI's overhead, with the thread it was taken from. 0 or -ENOMEM. */
int kineto_file_overhead(struct kineto_file *file, const struct window *window, uint32_t tid,
			 struct kineto_lane *lane);

/* The end of the events; what is known only now follows, then kineto_file_end. */
void kineto_file_end_events(struct kineto_file *file, const struct window *window);

/* The end. 0 or -errno. */
int kineto_file_end(struct kineto_file *file);

#endif
