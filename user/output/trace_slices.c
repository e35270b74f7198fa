/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/trace_slices.h"

#include <stdlib.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/json.h"
#include "judge/hang.h"
#include "judge/look.h"
#include "model/syscalls.h"
#include "output/file.h"
#include "output/slice.h"
#include "output/trace_encoder.h"

/* Lanes of streams are numbered above all thread ids; a device has GPU_DEVICE_LANES of them. */
#define GPU_LANES	 10000000u
#define GPU_DEVICE_LANES 100000u
#define GPU_DEVICES	 40000u
/*
 * A stream has two lanes, for slices of a lane must not overlap: with programmatic dependent launch
 * a kernel begins before the one ahead of it has ended.
 */
#define GPU_STREAMS	 (GPU_DEVICE_LANES / 2)
#define GPU_STREAMS_KEPT 64 /* whose last work is remembered */

/*
 * Lanes of iterations, in the process of the engine: two for each team of ranks, because a rank
 * that ends late may be in the next iteration's time. All others share the last two.
 */
#define ITERATION_LANES 4000000u
#define TEAMS_MAX	64

struct slices_sink {
	struct sink sink;
	struct json json;
	struct writer writer;
	struct trace_encoder *encoder; /* owned; NULL: the format is ferrum's */
	struct fbt_step step;	       /* the last step that was written; all 0 before */
	struct step_lanes lanes;
	uint64_t iteration_ends_ns[TEAMS_MAX][2]; /* of the last one in each lane */
	uint64_t drawn; /* number of the last step whose GPU records were written; 0: none */
	struct stream_end {
		uint32_t tgid;
		uint32_t lane;
		uint64_t end_ns; /* of the work in its first lane; 0: the place is free */
	} streams[GPU_STREAMS_KEPT];
	size_t next_stream; /* the place to use next */
};

static struct slices_sink *to_slices(struct sink *sink)
{
	return (struct slices_sink *)sink;
}

/* Microseconds since the window began; 0 for earlier times. */
static uint64_t to_ts(const struct window *window, uint64_t ns)
{
	return sub_saturating(ns, window->record.start_ns) / NS_PER_US;
}

/*
 * The difference of two rounded times, not a rounded difference, so that a slice never ends after
 * the slice around it.
 */
static uint64_t to_dur(const struct window *window, uint64_t start_ns, uint64_t end_ns)
{
	return sub_saturating(to_ts(window, end_ns), to_ts(window, start_ns));
}

static void put_slice(struct slices_sink *slices, const struct window *window,
		      const struct slice *slice, const struct json_fields *args)
{
	struct json *json = &slices->json;

	if (slices->encoder) {
		int err = slices->encoder->slice(slices->encoder, window, slice, args);

		if (err && !slices->writer.err)
			slices->writer.err = err;
		return;
	}
	json_object_begin(json, NULL);
	json_string(json, "name", slice->name);
	json_string(json, "cat", slice->cat);
	json_string(json, "ph", "X");
	json_uint(json, "ts", to_ts(window, slice->start_ns));
	json_uint(json, "dur", to_dur(window, slice->start_ns, slice->end_ns));
	json_uint(json, "pid", slice->pid);
	json_uint(json, "tid", slice->tid);
	if (args->count)
		json_fields_write(json, "args", args);
	json_object_end(json);
}

/* step: the one that the call belongs to, or NULL. */
static void put_call(struct slices_sink *slices, const struct window *window,
		     const struct step *step, const struct fbt_call *call)
{
	struct call_args args;
	struct fbt_stack stack;
	char label[24];
	struct slice slice = {
		.name = syscall_label((enum fbt_arch)window->record.arch, call->nr, label),
		.cat = "syscall",
		.start_ns = call->start_ns,
		.pid = call->tgid,
		.tid = call->tid,
		.is_leaf = true,
		.stack = step && look_call_stack(step, window, call, &stack) ? &stack : NULL,
	};

	slice.end_ns = add_saturating(call->start_ns, call->duration_ns);
	call_args_fill(&args, window, call);
	put_slice(slices, window, &slice, &args.fields);
}

static struct slice step_slice(struct slices_sink *slices, const struct step *step,
			       const char *name, const char *cat)
{
	const struct fbt_step *record = &step->record;

	return (struct slice){
		.name = name,
		.cat = cat,
		.start_ns = record->start_ns,
		.end_ns = record->end_ns,
		.pid = record->tgid,
		/*
		 * An interval belongs to no thread; in a thread's lane it would overlap that
		 * thread's calls.
		 */
		.tid = step_lanes_find(&slices->lanes, step),
	};
}

static void put_step(struct slices_sink *slices, const struct window *window,
		     const struct step *step)
{
	struct slice slice =
		step_slice(slices, step, window__kind_name(window, step->record.kind), "step");
	struct step_args args;

	slice.step = step;
	step_args_fill(&args, window, step);
	put_slice(slices, window, &slice, &args.fields);
	if (slices->encoder && slices->encoder->step && !slices->writer.err)
		slices->writer.err =
			slices->encoder->step(slices->encoder, window, step, slice.tid);
}

/*
 * Written after the step: of two slices with the same times, viewers take the first one as the
 * outer one.
 */
static void put_escalation(struct slices_sink *slices, const struct window *window,
			   const struct step *step, const struct escalation *escalation)
{
	struct escalation_fields args;
	char name[64];
	struct slice slice = step_slice(slices, step, name, "escalation");

	snprintf(name, sizeof(name), "escalation: %s",
		 escalation_otlp_value(escalation->result.reason));
	slice.stack = &escalation->cause.stack;
	escalation_fields_fill(&args, window, escalation);
	if (!step->complete)
		json_fields_bool(&args.fields, "complete", false);
	put_slice(slices, window, &slice, &args.fields);
}

/*
 * When it was noticed: a moment in the step, whose slice comes later. A slice from the begin of the
 * step on would be one that has the step's own in it.
 */
static void put_hang(struct slices_sink *slices, const struct window *window,
		     const struct fbt_hang *hang)
{
	const struct fbt_look_thread *seen = hang_own_thread(hang, window);
	struct hang_args args;
	struct fbt_stack stack;
	struct slice slice = {
		.name = "hang",
		.cat = "hang",
		.start_ns = hang->time_ns,
		.end_ns = hang->time_ns,
		.pid = hang->tgid,
		.tid = hang->tid,
		.is_leaf = true,
	};

	if (seen) {
		look_stack(seen, &stack);
		slice.stack = &stack;
	}
	hang_args_fill(&args, window, hang);
	put_slice(slices, window, &slice, &args.fields);
}

static struct stream_end *find_stream(struct slices_sink *slices, uint32_t tgid, uint32_t lane)
{
	struct stream_end *stream;

	for (size_t i = 0; i < GPU_STREAMS_KEPT; i++) {
		stream = &slices->streams[i];
		if (stream->end_ns && stream->tgid == tgid && stream->lane == lane)
			return stream;
	}
	stream = &slices->streams[slices->next_stream++ % GPU_STREAMS_KEPT];
	*stream = (struct stream_end){.tgid = tgid, .lane = lane};
	return stream;
}

/* Streams with too large a number share the last lanes of their device. */
static uint32_t work_lane(struct slices_sink *slices, const struct fbt_gpu_work *work)
{
	uint32_t device = work->device < GPU_DEVICES ? work->device : GPU_DEVICES;
	uint32_t number = work->stream < GPU_STREAMS ? work->stream : GPU_STREAMS - 1;
	uint32_t lane = GPU_LANES + device * GPU_DEVICE_LANES + number;
	struct stream_end *stream = find_stream(slices, work->tgid, lane);

	if (work->start_ns < stream->end_ns)
		return lane + GPU_STREAMS;
	stream->end_ns = work->end_ns;
	return lane;
}

static void add_size(struct json_fields *fields, const char *key, char text[40],
		     const uint32_t size[3])
{
	snprintf(text, 40, "%ux%ux%u", size[0], size[1], size[2]);
	json_fields_string(fields, key, text);
}

static void put_work(struct slices_sink *slices, const struct window *window,
		     const struct gpu_process *process, const struct fbt_gpu_work *work,
		     uint64_t step)
{
	static const char *const cats[FBT_GPU_WORK_KIND_COUNT] = {"kernel", "gpu_memcpy",
								  "gpu_memset"};
	char text[GPU_SLICE_NAME_SIZE], grid[40], block[40];
	struct json_fields args = {.count = 0};
	struct slice slice = {
		.name = gpu_slice_work_name(process, work, text),
		.cat = cats[work->kind],
		.start_ns = work->start_ns,
		.end_ns = work->end_ns,
		.pid = work->tgid,
		.tid = work_lane(slices, work),
		.is_leaf = true,
	};

	if (work->correlation)
		json_fields_uint(&args, "correlation", work->correlation);
	if (step)
		json_fields_uint(&args, "step", step);
	if (work->graph)
		json_fields_uint(&args, "graph", work->graph);
	if (work->kind == FBT_GPU_KERNEL) {
		add_size(&args, "grid", grid, work->kernel.grid);
		add_size(&args, "block", block, work->kernel.block);
	} else {
		json_fields_uint(&args, "bytes", work->copy.bytes);
	}
	if (work->stream >= GPU_STREAMS - 1)
		json_fields_uint(&args, "stream", work->stream);
	put_slice(slices, window, &slice, &args);
}

static void put_api(struct slices_sink *slices, const struct window *window,
		    const struct gpu_process *process, const struct fbt_gpu_api *api)
{
	struct json_fields args = {.count = 0};
	struct slice slice = {
		.name = gpu_slice_api_name(process, api),
		.cat = api->header.flags & FBT_GPU_API_DRIVER ? "cuda_driver" : "cuda_runtime",
		.start_ns = api->start_ns,
		.end_ns = gpu_slice_api_end_ns(api, &slices->step),
		.pid = api->tgid,
		.tid = api->tid,
	};

	if (api->correlation)
		json_fields_uint(&args, "correlation", api->correlation);
	if (api->result)
		json_fields_uint(&args, "result", api->result);
	put_slice(slices, window, &slice, &args);
}

static int write_step(struct sink *sink, const struct window *window, const struct step *step)
{
	struct slices_sink *slices = to_slices(sink);

	writer_begin(&slices->writer);
	slices->step = step->record;
	put_step(slices, window, step);
	return writer_end(&slices->writer);
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	struct slices_sink *slices = to_slices(sink);

	if (!escalation_is_shown(escalation))
		return 0;
	writer_begin(&slices->writer);
	put_escalation(slices, window, step, escalation);
	return writer_end(&slices->writer);
}

static int write_hang(struct sink *sink, const struct window *window, const struct fbt_hang *hang)
{
	struct slices_sink *slices = to_slices(sink);

	writer_begin(&slices->writer);
	put_hang(slices, window, hang);
	return writer_end(&slices->writer);
}

static void add_late(struct json_fields *args, const struct window *window,
		     const struct iteration *iteration, char title[PROCESS_TITLE_MAX])
{
	const struct tick *rank = &iteration->ranks[iteration->latest];
	const struct late *late = &iteration->lates[iteration->latest];

	json_fields_string(args, "late_rank", window__process_title(window, rank->tgid, title));
	json_fields_uint(args, "late_pid", rank->tgid);
	json_fields_uint(args, "late_step", rank->number);
	json_fields_uint(args, "late_us", late->total_ns / NS_PER_US);
	json_fields_uint(args, "late_begins_us", late->ns[LATE_BEGINS] / NS_PER_US);
	json_fields_uint(args, "late_within_us", late->ns[LATE_WITHIN] / NS_PER_US);
	json_fields_uint(args, "late_ends_us", late->ns[LATE_ENDS] / NS_PER_US);
	json_fields_string(args, "late_cause", late_cause_name(late->cause, rank->calls_known));
	json_fields_uint(args, "late_cause_us", late->cause_ns / NS_PER_US);
	stop_fields_add(args, &late->stop, &late->stop_sender, late->stop.tid);
}

/* The slices of a lane must not overlap: what has no lane is cut off at its begin. */
static uint32_t find_iteration_lane(struct slices_sink *slices, const struct iteration *iteration,
				    uint64_t *begin_ns)
{
	uint32_t team = iteration->team < TEAMS_MAX ? iteration->team : TEAMS_MAX - 1;
	uint64_t *ends_ns = slices->iteration_ends_ns[team];
	int lane = ends_ns[0] <= iteration->begin_ns ? 0 : 1;

	*begin_ns = max_u64(iteration->begin_ns, ends_ns[lane]);
	ends_ns[lane] = max_u64(ends_ns[lane], iteration->end_ns);
	return ITERATION_LANES + 2 * team + (uint32_t)lane;
}

static void put_iteration(struct slices_sink *slices, const struct window *window,
			  const struct iteration *iteration)
{
	struct json_fields args = {.count = 0};
	char title[PROCESS_TITLE_MAX], name[32 + PROCESS_TITLE_MAX] = "iteration";
	struct slice slice = {
		.name = name,
		.cat = "iteration",
		.end_ns = iteration->end_ns,
		.pid = iteration->parent ? iteration->parent : iteration->ranks[0].tgid,
		.tid = find_iteration_lane(slices, iteration, &slice.start_ns),
	};

	json_fields_uint(&args, "iteration", iteration->number);
	json_fields_uint(&args, "ranks", iteration->count);
	if (iteration->engine.number)
		json_fields_uint(&args, "engine_step", iteration->engine.number);
	if (iteration->latest < iteration->count) {
		add_late(&args, window, iteration, title);
		snprintf(name, sizeof(name), "iteration, late: %s", title);
	}
	put_slice(slices, window, &slice, &args);
}

/* An iteration that is nothing but one step is not drawn again; one without ranks is none. */
static int write_iteration(struct sink *sink, const struct window *window,
			   const struct iteration *iteration)
{
	struct slices_sink *slices = to_slices(sink);

	if (!iteration->count || (iteration->count == 1 && !iteration->ranks[0].kinds[1].kind))
		return 0;
	writer_begin(&slices->writer);
	put_iteration(slices, window, iteration);
	return writer_end(&slices->writer);
}

/* A record without an end was not measured, so its place is unknown, and it is left out. */
static void put_gpu(struct slices_sink *slices, const struct window *window,
		    const struct gpu_batch *batch)
{
	const struct gpu_process *process = gpu_table_find(&window->gpus, batch->tgid);

	if (batch->step)
		slices->drawn = batch->step;
	vec_for_each (api, &batch->records->apis) {
		if (api->end_ns)
			put_api(slices, window, process, api);
	}
	vec_for_each (work, &batch->records->works) {
		if (work->end_ns && work->kind < FBT_GPU_WORK_KIND_COUNT)
			put_work(slices, window, process, work, batch->step);
	}
}

/*
 * Writes the GPU records of a step. Its syscalls are within its CUDA calls, so the CUDA calls must
 * be written first, even if the batch of the step comes later.
 */
static void put_gpu_of(struct slices_sink *slices, const struct window *window,
		       const struct step *step)
{
	const struct step_gpu *gpu = step->gpu;

	if (!gpu || step->number == slices->drawn)
		return;
	put_gpu(slices, window,
		&(struct gpu_batch){
			.tgid = step->record.tgid, .step = step->number, .records = &gpu->records});
}

static int write_calls(struct sink *sink, const struct window *window, const struct step *step)
{
	struct slices_sink *slices = to_slices(sink);

	writer_begin(&slices->writer);
	put_gpu_of(slices, window, step);
	for (size_t i = 0; i < step->calls.count; i++)
		put_call(slices, window, step, &step->calls.items[i]);
	return writer_end(&slices->writer);
}

static int write_call(struct sink *sink, const struct window *window, const struct fbt_call *call)
{
	struct slices_sink *slices = to_slices(sink);

	writer_begin(&slices->writer);
	put_call(slices, window, NULL, call);
	return writer_end(&slices->writer);
}

static int write_gpu(struct sink *sink, const struct window *window, const struct gpu_batch *batch)
{
	struct slices_sink *slices = to_slices(sink);

	if (batch->step && batch->step == slices->drawn)
		return 0;
	writer_begin(&slices->writer);
	put_gpu(slices, window, batch);
	return writer_end(&slices->writer);
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	struct slices_sink *slices = to_slices(sink);

	writer_begin(&slices->writer);
	if (!slices->encoder)
		json_array_end(&slices->json);
	else if (slices->encoder->finish && !slices->writer.err)
		slices->writer.err = slices->encoder->finish(slices->encoder, window);
	return writer_finish(&slices->writer);
}

static void free_slices(struct sink *sink)
{
	struct slices_sink *slices = to_slices(sink);

	if (slices->encoder)
		slices->encoder->free(slices->encoder);
	free(slices);
}

bool lane_name(uint32_t lane, char name[LANE_NAME_SIZE])
{
	if (lane >= GPU_LANES)
		snprintf(name, LANE_NAME_SIZE, "GPU %u stream %u%s",
			 (lane - GPU_LANES) / GPU_DEVICE_LANES,
			 (lane - GPU_LANES) % GPU_DEVICE_LANES % GPU_STREAMS,
			 (lane - GPU_LANES) % GPU_DEVICE_LANES < GPU_STREAMS ? ""
									     : ", overlapping");
	else if (lane >= FUTURE_LANES)
		snprintf(name, LANE_NAME_SIZE, "futures %u", lane - FUTURE_LANES + 1);
	else if (lane >= ITERATION_LANES)
		snprintf(name, LANE_NAME_SIZE, "iterations %u", (lane - ITERATION_LANES) / 2 + 1);
	else if (!lane)
		snprintf(name, LANE_NAME_SIZE, "intervals");
	else
		return false;
	return true;
}

static int poll_writer(struct sink *sink)
{
	return writer_poll(&to_slices(sink)->writer);
}

struct sink *sink_slices__new(FILE *out, struct trace_encoder *encoder)
{
	struct slices_sink *slices = calloc(1, sizeof(*slices));

	if (!slices) {
		if (encoder)
			encoder->free(encoder);
		return NULL;
	}
	slices->encoder = encoder;
	slices->sink = (struct sink){
		.name = "trace",
		.is_file = true,
		.is_document = true,
		.write_step = write_step,
		.write_escalation = write_escalation,
		.write_hang = write_hang,
		.write_calls = write_calls,
		.write_call = write_call,
		.write_iteration = write_iteration,
		.write_gpu = write_gpu,
		.poll = poll_writer,
		.finish = finish,
		.free = free_slices,
	};
	slices->json.out = out;
	slices->writer.file = out;
	if (!encoder)
		json_array_begin(&slices->json, NULL);
	return &slices->sink;
}

struct sink *sink_ferrum_trace__new(FILE *out)
{
	return sink_slices__new(out, NULL);
}
