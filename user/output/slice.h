/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The parts of a slice that all trace formats word alike: names, args and ends. Pure. */
#ifndef FBT_OUTPUT_SLICE_H
#define FBT_OUTPUT_SLICE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/json.h"
#include "fbt_event.h"
#include "fbt_gpu.h"
#include "judge/classify.h"
#include "judge/frames.h"
#include "judge/hang.h"
#include "judge/look.h"
#include "judge/peers.h"
#include "judge/text.h"
#include "model/driver_calls.h"
#include "model/gpu.h"
#include "model/step.h"
#include "model/window.h"
#include "output/explained.h"

/* What a call worked on and how it ended. */
struct call_args {
	struct json_fields fields; /* points into this struct, and to paths of the window */
	char command[24];
	char driver[DRIVER_CALL_NAME];
	char address[24];
	char operation[24];
};

/*
 * The members are ret and errno, or truncated; of a record of several calls also calls, calls_us
 * and longest_us. With FBT_CALL_ARGS also blocked (if it did), path and fd of the file, cmd of an
 * ioctl (driver: its name for NVIDIA's driver), op and uaddr of a futex call, and bytes of a call
 * that maps or advises memory (for mremap the old size). Numbers that mean something only to a
 * person are hexadecimal strings.
 */
void call_args_fill(struct call_args *args, const struct window *window,
		    const struct fbt_call *call);

#define STEP_ARG_KEY_SIZE 64

/* The figures of a step. */
struct step_args {
	struct json_fields fields; /* points into this struct, to the step and to the window */
	char keys[FBT_ARG_COUNT][STEP_ARG_KEY_SIZE];
};

/*
 * The members are the six sums of ferrum's schema, calls, errors and the numbers of the step. Where
 * calls were not traced, calls_traced: false replaces all that is derived from them. With GPU
 * records there are also the times of all devices as one (gpu_busy_us …, rounded down) and
 * gpu_bound. Flaws (end, complete: false, gpu_complete: false, lost_calls) are present only if the
 * step has them. The numbers of --step-arg have their own names, or begin with "argN." where a name
 * is taken. A step that was stopped also has the members of stop_fields_add.
 */
void step_args_fill(struct step_args *args, const struct window *window, const struct step *step);

/*
 * Lanes of steps. The slices of a lane must nest, but a thread polls several futures in turn. So a
 * step of several polls gets a lane of its own, numbered above all thread ids. {0} is empty.
 */
#define FUTURE_LANES	 5000000u
#define FUTURE_LANES_MAX 256u /* futures that await at one time; others share the last lane */

struct step_lanes {
	uint64_t end_ns[FUTURE_LANES_MAX]; /* of the last step in each lane */
	uint64_t number;		   /* the step asked about last, and its lane */
	uint32_t lane;
};

/*
 * Returns the lane of a step: its thread id, or a lane of its own for a step of several polls; 0
 * for an interval. Returns the same lane again until another step is asked about.
 */
uint32_t step_lanes_find(struct step_lanes *lanes, const struct step *step);

#define GPU_SLICE_NAME_SIZE 64

/*
 * Names of GPU records are Kineto's. A kernel has its demangled name; other work is "Memcpy HtoD
 * (Pinned -> Device)", "Memset (Device)". The name is in text, or in process, which may be NULL.
 */
const char *gpu_slice_work_name(const struct gpu_process *process, const struct fbt_gpu_work *work,
				char text[GPU_SLICE_NAME_SIZE]);

/* "cudaLaunchKernel"; process may be NULL. */
const char *gpu_slice_api_name(const struct gpu_process *process, const struct fbt_gpu_api *api);

/* "Stream Sync", "Command Buffer Full". */
const char *gpu_slice_sync_name(const struct fbt_gpu_sync *sync);
const char *gpu_slice_overhead_name(const struct fbt_gpu_overhead *overhead);

/*
 * Where a call's slice ends. A call that began in a step of its own thread is cut off at the end of
 * the step, since only the error of CUPTI's clock makes it longer. step may be NULL.
 */
uint64_t gpu_slice_api_end_ns(const struct fbt_gpu_api *api, const struct fbt_step *step);

/* The times of struct gpu_figures that can be summed over steps; outputs add a unit to the keys. */
#define GPU_TIMES 26
extern const struct json_member gpu_times[GPU_TIMES];

/* One of gpu_times that is known only where system calls were traced. */
bool gpu_time_needs_calls(const struct json_member *time);

/* The counts and bytes of struct gpu_figures, which can be summed too. */
#define GPU_WORK_COUNTS 12
extern const struct json_member gpu_work_counts[GPU_WORK_COUNTS];

/* struct gpu_counts, and the counts of struct fbt_gpu_flush that can be summed over processes. */
#define GPU_WINDOW_COUNTS 12
#define GPU_FLUSH_COUNTS  5
extern const struct json_member gpu_window_counts[GPU_WINDOW_COUNTS];
extern const struct json_member gpu_flush_counts[GPU_FLUSH_COUNTS];

/* The word of --detail; NULL: unknown. */
const char *detail_name(uint32_t detail);

/* An escalation as members of a JSON object, which the trace and the profile have in common. */
struct escalation_fields {
	struct json_fields fields; /* points into this struct, and to its sources */
	struct trace_attributes attributes;
	char fired[FIRED_SIZE];
	char evidence[EVIDENCE_SIZE];
	char frames[FRAMES_SIZE];
	char waker[FRAMES_SIZE];
	char frames_unnamed[UNNAMED_SIZE];
	char waker_unnamed[UNNAMED_SIZE];
	char peer_call[24];
	char holder_in[24];
	char holder[FRAMES_SIZE];
	char holder_chain[EVIDENCE_SIZE];
	char others[LOOK_OTHERS_SIZE];
	struct explained_names names;
};

/*
 * The members are the 8 span attributes of ferrum's schema, as strings; cause, cause_evidence,
 * fired, class_steps; cause_stack, waker_stack, with cause_stack_unnamed and waker_stack_unnamed
 * for functions without a name, waker_tid, waker_name, waker_after_us, holder_… and cv_percent if
 * they are known; those of output/explained.h; class_nearest if the step was judged by another
 * class than its own.
 */
void escalation_fields_fill(struct escalation_fields *fields, const struct window *window,
			    const struct escalation *escalation);

/* A step that hangs. */
struct hang_args {
	struct json_fields fields; /* points into this struct, and to names of the window */
	char evidence[HANG_TEXT_SIZE];
	char threads[HANG_THREADS_SIZE];
	const char *call; /* its name; NULL: it is in none, or it is not known */
	char label[24];
};

/*
 * The members are those of hang_prof: kind, evidence and open_us; threads, call and call_us if they
 * are known.
 */
void hang_args_fill(struct hang_args *args, const struct window *window,
		    const struct fbt_hang *hang);

/*
 * Adds who stopped a thread: stop_reason; stop_tracer and stop_tracer_name, as far as they are
 * known; of a signal whose sender is, stop_signal, stop_origin, stop_sender, stop_sender_name,
 * stop_sender_parent and stop_sender_parent_name; and stop_tid, if it was not the step's own
 * thread, tid. Nothing if nobody did.
 */
void stop_fields_add(struct json_fields *fields, const struct fbt_stop *stop,
		     const struct fbt_stop_sender *sender, uint32_t tid);

/* Adds a share in percent with two decimals, unless it is not known (NaN). */
void escalation_fields_percent(struct json_fields *fields, const char *key, double percent);

#endif
