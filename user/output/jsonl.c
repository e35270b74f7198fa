/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/jsonl.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/json.h"
#include "base/timed_write.h"
#include "output/file.h"
#include "judge/hang.h"
#include "model/syscalls.h"
#include "output/jsonl_window.h"

#define DECIMALS 1e4
#define KEY_SIZE 64

static void add_us(struct json_fields *stage_us, const char *key, uint64_t ns)
{
	json_fields_uint(stage_us, key, ns / NS_PER_US);
}

/* A ratio, unless it is unknown (NaN). */
static void add_ratio(struct json_fields *shape, const char *key, double value)
{
	if (isfinite(value))
		json_fields_double(shape, key, round(value * DECIMALS) / DECIMALS);
}

static void add_ratio_of(struct json_fields *shape, const char *key, double part, double whole)
{
	add_ratio(shape, key, whole > 0 ? part / whole : NAN);
}

static void add_identity(struct json_fields *shape, const struct window *window,
			 const struct step *step, const struct gpu_figures *figures, bool whole)
{
	const struct step_gpu *gpu = step->gpu;
	const struct gpu_process *process = gpu_table_find(&window->gpus, step->record.tgid);
	const struct gpu_device *device = NULL;

	json_fields_uint(shape, "step", step->number);
	json_fields_uint(shape, "pid", step->record.tgid);
	json_fields_uint(shape, "tid", step->record.tid);
	json_fields_string(shape, "kind", window__kind_name(window, step->record.kind));
	json_fields_string(shape, "scope", whole ? "step" : "device");
	json_fields_uint(shape, "devices", gpu->devices.count);
	if (!gpu->devices.count)
		return;
	json_fields_uint(shape, "device", figures->device);
	if (process)
		device = gpu_process_device(process, figures->device);
	if (device && *device->name)
		json_fields_string(shape, "device_name", device->name);
}

#define FIGURE(member) JSON_MEMBER(#member, gpu_figures, member)

static void add_counts(struct json_fields *shape, const struct gpu_figures *figures)
{
	static const struct json_member medians[] = {FIGURE(launch_latency_ns),
						     FIGURE(launch_api_ns), FIGURE(queue_delay_ns),
						     FIGURE(wait_behind_ns), FIGURE(work_ns)};

	json_fields_members(shape, gpu_work_counts, figures);
	add_ratio_of(shape, "concurrency", (double)figures->work_sum_ns, (double)figures->busy_ns);
	add_ratio(shape, "queue_depth", figures->queue_depth);
	add_ratio(shape, "idle_empty", figures->idle_empty);
	if (figures->launches)
		json_fields_members(shape, medians, figures);
}

/* The times that add up to the total, in nanoseconds. */
static void add_identity_ns(struct json_fields *shape, const struct step *step,
			    const struct gpu_figures *figures)
{
	static const struct json_member parts[] = {FIGURE(busy_ns),	   FIGURE(idle_ns),
						   FIGURE(host_wait_ns),   FIGURE(launch_ns),
						   FIGURE(queue_ns),	   FIGURE(unattributed_ns),
						   FIGURE(wait_unknown_ns)};
	static const struct json_member by_calls[] = {
		FIGURE(wait_blocked_ns), FIGURE(wait_syscall_ns), FIGURE(wait_user_ns)};

	json_fields_uint(shape, "total_ns", step_wall_ns(step));
	json_fields_members(shape, parts, figures);
	/* Without calls, all of host_wait is wait_unknown. */
	if (step_calls_known(step))
		json_fields_members(shape, by_calls, figures);
}

/*
 * "wait_blocked_ns.futex": 1100000 and the like, for the calls in which most of host_wait_ns was
 * spent.
 */
static void add_wait_calls(struct jsonl_gpu *event, const struct window *window,
			   const struct gpu_figures *figures)
{
	char label[24];

	for (int i = 0; i < GPU_WAIT_CALLS_MAX && figures->wait_calls[i].ns; i++) {
		const struct gpu_wait_call *call = &figures->wait_calls[i];

		snprintf(event->wait_keys[i], JSONL_GPU_KEY_SIZE, "wait_%s_ns.%s",
			 call->blocked ? "blocked" : "syscall",
			 syscall_label((enum fbt_arch)window->record.arch, call->nr, label));
		json_fields_uint(&event->shape, event->wait_keys[i], call->ns);
	}
}

static void add_times(struct json_fields *stage_us, const struct step *step,
		      const struct gpu_figures *figures)
{
	add_us(stage_us, "total", step_wall_ns(step));
	for (int i = 0; i < GPU_TIMES; i++) {
		/* work_sum is in the shape, as concurrency. */
		if (strcmp(gpu_times[i].key, "work_sum") != 0 &&
		    (step_calls_known(step) || !gpu_time_needs_calls(&gpu_times[i])))
			add_us(stage_us, gpu_times[i].key, json_member_get(&gpu_times[i], figures));
	}
}

/* When the work that the step launched ran, which may be after the step. */
static void add_view(struct jsonl_gpu *event, const struct window *window,
		     const struct gpu_figures *figures)
{
	if (figures->view_end_ns <= figures->view_start_ns)
		return;
	json_fields_uint(&event->shape, "view_start_us",
			 sub_saturating(figures->view_start_ns, window->record.start_ns) /
				 NS_PER_US);
	json_fields_uint(&event->shape, "view_end_us",
			 sub_saturating(figures->view_end_ns, window->record.start_ns) / NS_PER_US);
	add_us(&event->stage_us, "view", figures->view_end_ns - figures->view_start_ns);
	add_us(&event->stage_us, "view_busy", figures->view_busy_ns);
}

/* Figures of the step thread, and of all devices as one. */
static void add_step(struct jsonl_gpu *event, const struct step_gpu *gpu)
{
	struct json_fields *shape = &event->shape, *stage_us = &event->stage_us;

	json_fields_string(shape, "bound", gpu_bound_name(gpu->bound));
	add_ratio(shape, "bound_idle", gpu->bound_idle);
	add_ratio(shape, "bound_work", gpu->bound_work);
	add_ratio(shape, "bound_empty", gpu->bound_empty);
	add_ratio(shape, "bound_full", gpu->bound_full);
	add_us(stage_us, "sync", gpu->sync_ns);
	add_us(stage_us, "sync_useful", gpu->sync_useful_ns);
	add_us(stage_us, "sync_tail", gpu->sync_tail_ns);
	json_fields_bool(shape, "calls_known", gpu->calls_known);
	if (!gpu->calls_known)
		return;
	json_fields_uint(shape, "gpu_only_ns", gpu->gpu_only_ns);
	json_fields_uint(shape, "gpu_host_ns", gpu->gpu_host_ns);
	add_us(stage_us, "gpu_only", gpu->gpu_only_ns);
	add_us(stage_us, "gpu_host", gpu->gpu_host_ns);
	add_us(stage_us, "sync_spin", gpu->sync_spin_ns);
	add_us(stage_us, "exposed_syscall", gpu->exposed_syscall_ns);
	add_us(stage_us, "overlapped_syscall", gpu->overlapped_syscall_ns);
	add_us(stage_us, "cuda_internal", gpu->cuda_internal_ns);
}

#define QUALITY(member) JSON_MEMBER(#member, step_gpu, member)

/*
 * The quality of the records, on every line, so that idle time caused by missing records is not
 * taken for a finding.
 */
static void add_quality(struct json_fields *shape, const struct window *window,
			const struct step *step)
{
	static const struct json_member counts[] = {QUALITY(joined),	 QUALITY(by_time),
						    QUALITY(missing),	 QUALITY(unmeasured),
						    QUALITY(violations), QUALITY(cupti_dropped),
						    QUALITY(ring_lost),	 QUALITY(cupti_overhead_ns),
						    QUALITY(shim_ns),	 QUALITY(clock_error_ns)};

	const struct step_gpu *gpu = step->gpu;
	const struct gpu_process *process = gpu_table_find(&window->gpus, step->record.tgid);

	json_fields_string(shape, "sealed", gpu_seal_name(gpu->sealed));
	json_fields_bool(shape, "complete", gpu->complete);
	json_fields_members(shape, counts, gpu);
	add_ratio_of(shape, "correlated_pct", 100.0 * gpu->joined,
		     (double)gpu->joined + gpu->by_time);
	if (process)
		json_fields_string(
			shape, "clock",
			gpu_clock_name((enum fbt_gpu_clock_method)process->state.clock_method));
}

size_t jsonl_gpu_lines(const struct step_gpu *gpu)
{
	return gpu->devices.count > 1 ? 1 + gpu->devices.count : 1;
}

void jsonl_gpu_fill(struct jsonl_gpu *event, const struct window *window, const struct step *step,
		    size_t index)
{
	const struct step_gpu *gpu = step->gpu;
	const struct gpu_figures *figures = index ? &gpu->devices.items[index - 1] : &gpu->all;

	event->shape.count = 0;
	event->stage_us.count = 0;
	add_identity(&event->shape, window, step, figures, !index);
	add_counts(&event->shape, figures);
	add_identity_ns(&event->shape, step, figures);
	add_wait_calls(event, window, figures);
	add_times(&event->stage_us, step, figures);
	add_view(event, window, figures);
	if (!index)
		add_step(event, gpu);
	add_quality(&event->shape, window, step);
}

void jsonl_gpu_add_to_step(struct json_fields *shape, struct json_fields *stage_us,
			   const struct step *step)
{
	const struct gpu_figures *figures = &step->gpu->all;

	json_fields_bool(shape, "gpu_complete", step->gpu->complete);
	add_us(stage_us, "gpu_busy", figures->busy_ns);
	add_us(stage_us, "gpu_idle", figures->idle_ns);
	add_us(stage_us, "gpu_host_wait", figures->host_wait_ns);
	add_us(stage_us, "gpu_launch", figures->launch_ns);
	add_us(stage_us, "gpu_queue", figures->queue_ns);
}

bool jsonl_gpu_has_graph(const struct step *step)
{
	return step->gpu && step->gpu->all.graph_launches;
}

/* An escalation: a step that was found wrong, the reason, and the cause. */
struct escalation_event {
	struct escalation_fields common; /* common.fields is the shape */
	struct json_fields stage_us;
	struct worst worst;
	char time[FORMAT_UTC_MAX];
};

/* Adds when the step began, relative to the window, and the wall-clock time at which it ended. */
static void add_place_in_time(struct escalation_event *event, const struct window *window,
			      const struct step *step)
{
	const struct fbt_window *record = &window->record;
	struct json_fields *shape = &event->common.fields;

	json_fields_uint(shape, "start_us",
			 sub_saturating(step->record.start_ns, record->start_ns) / NS_PER_US);
	if (record->realtime_ns)
		json_fields_string(
			shape, "time",
			format_utc(event->time, window__unix_ns(window, step->record.end_ns)));
}

/* Adds as numbers and booleans what ferrum's attributes hold as text. */
static void add_numbers(struct json_fields *shape, const struct trace_result *result)
{
	json_fields_uint(shape, "budget_us", result->budget_us);
	json_fields_uint(shape, "actual_us", result->actual_us);
	json_fields_bool(shape, "over_budget", trace_result_over_budget(result));
	escalation_fields_percent(shape, "efficiency_percent", trace_result_efficiency(result));
	json_fields_double(shape, "overhead_percent",
			   breakdown_overhead_tenths(&result->breakdown));
}

/* event contains pointers into itself. */
static void fill_escalation(struct escalation_event *event, const struct window *window,
			    const struct step *step, const struct escalation *escalation)
{
	struct json_fields *shape = &event->common.fields;
	const struct cause *cause = &escalation->cause;
	struct worst *worst = &event->worst;

	escalation_fields_fill(&event->common, window, escalation);
	add_place_in_time(event, window, step);
	add_numbers(shape, &escalation->result);
	json_fields_uint(shape, "number", escalation->number);
	if (escalation_not_shown_text(escalation))
		json_fields_string(shape, "not_shown", escalation_not_shown_text(escalation));
	json_fields_uint(shape, "step", step->number);
	json_fields_uint(shape, "kind_number", step->kind_number);
	json_fields_uint(shape, "pid", step->record.tgid);
	json_fields_uint(shape, "tid", step->record.tid);
	json_fields_bool(shape, "complete", step->complete);
	json_fields_bool(shape, "judged", escalation->judged);
	json_fields_uint(shape, "cause_us", cause->time_ns / NS_PER_US);
	if (cause->usual_known)
		json_fields_uint(shape, "cause_usual_us", cause->usual_ns / NS_PER_US);
	if (cause->is_usual)
		json_fields_bool(shape, "cause_is_usual", true);
	if (escalation->judged)
		json_fields_uint(shape, "usual_us", escalation->usual_ns / NS_PER_US);
	escalation_fields_percent(shape, "drop_percent", escalation->drop_percent);
	if (cause->estimated)
		json_fields_bool(shape, "cause_estimated", true);
	escalation_worst(escalation, window, step, worst);
	if (worst->name) {
		json_fields_string(shape, worst->is_category ? "worst_category" : "worst_call",
				   worst->name);
		json_fields_uint(shape, worst->is_category ? "worst_category_us" : "worst_call_us",
				 worst->ns / NS_PER_US);
	}
	event->stage_us.count = 0;
	json_fields_uint(&event->stage_us, "budget", escalation->result.budget_us);
	json_fields_uint(&event->stage_us, "actual", escalation->result.actual_us);
}

/* Less than the buffer of a stream (base/gzip.c). */
#define STREAM_HELD_MAX (128 * 1024)

struct jsonl_sink {
	struct sink sink;
	int fd;
	bool may_wait;	      /* fd is a pipe or the like */
	struct writer stream; /* its file takes the lines instead of fd, if there is one */
	size_t held;	      /* bytes that stream has been given since it was flushed */
	const struct metadata *metadata;
	bool graph;	  /* the step of the event launched a CUDA graph */
	struct json json; /* writes to line; rewound for each event */
	char *line;
	size_t size;
};

static struct jsonl_sink *to_jsonl(struct sink *sink)
{
	return (struct jsonl_sink *)sink;
}

/*
 * Removes the written bytes of an incomplete line, because readers stop at such a line. Does
 * nothing if somebody else has appended since.
 */
static void drop_partial_line(int fd, size_t written)
{
	struct stat stat;
	off_t end = lseek(fd, 0, SEEK_CUR);

	if (!written || end < (off_t)written || fstat(fd, &stat) || !S_ISREG(stat.st_mode))
		return;
	if (stat.st_size == end && ftruncate(fd, end - (off_t)written) == 0)
		lseek(fd, end - (off_t)written, SEEK_SET);
}

static int write_line(int fd, const char *line, size_t size)
{
	size_t written = 0;

	while (written < size) {
		ssize_t count = write(fd, line + written, size - written);
		int err = count < 0 ? -errno : -EIO;

		if (err == -EINTR)
			continue;
		if (count <= 0) {
			drop_partial_line(fd, written);
			return err;
		}
		written += (size_t)count;
	}
	return 0;
}

/*
 * Writes the line. Into a pipe it is written with a time limit, because half a line cannot be taken
 * back.
 */
static int put_line(struct jsonl_sink *jsonl)
{
	uint64_t wait_ns = timed_write_in_window() ? TIMED_WRITE_WINDOW_NS : TIMED_WRITE_NO_LIMIT;
	size_t written;

	if (jsonl->stream.file) {
		writer_begin(&jsonl->stream);
		/* A buffer that overflows would be written with half a line at its end. */
		if (jsonl->held + jsonl->size > STREAM_HELD_MAX) {
			fflush(jsonl->stream.file);
			jsonl->held = 0;
		}
		jsonl->held += fwrite(jsonl->line, 1, jsonl->size, jsonl->stream.file);
		return writer_end(&jsonl->stream);
	}
	if (!jsonl->may_wait)
		return write_line(jsonl->fd, jsonl->line, jsonl->size);
	return timed_write(jsonl->fd, jsonl->line, jsonl->size, wait_ns, &written);
}

/* The order of members is part of ferrum's schema. */
static int put_event(struct jsonl_sink *jsonl, const char *event, const struct json_fields *shape,
		     const struct json_fields *stage_us)
{
	const struct metadata *metadata = jsonl->metadata;
	struct json *json = &jsonl->json;

	rewind(json->out);
	json_object_begin(json, NULL);
	json_string(json, "event", event);
	json_string(json, "commit_sha", metadata->commit_sha);
	json_string(json, "env_hash", metadata->env_hash);
	json_string(json, "model", metadata->model);
	json_uint(json, "concurrency", metadata->concurrency);
	json_fields_write(json, "shape", shape);
	json_fields_write(json, "stage_us", stage_us);
	json_bool(json, "graph_enabled", jsonl->graph);
	json_raw(json, "runtime_flags", metadata->runtime_flags);
	json_string(json, "source", "ferrum-bpftrace");
	json_object_end(json);
	putc_unlocked('\n', json->out);
	if (fflush(json->out) || ferror(json->out))
		return -ENOMEM;
	return put_line(jsonl);
}

static uint64_t find_max_call_ns(const struct step *step)
{
	uint64_t max_ns = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		if (step->record.sums[i].max_ns > max_ns)
			max_ns = step->record.sums[i].max_ns;
	}
	return max_ns;
}

/* keys and text must outlive shape. */
static void add_kind(struct json_fields *shape, char keys[][KEY_SIZE], char text[24],
		     const struct window *window, const struct fbt_step *record)
{
	const struct kind *kind;

	json_fields_string(shape, "kind", window__kind_name(window, record->kind));
	json_fields_string(shape, "step_source", window__step_source(window, record->kind));
	if (record->kind >= FBT_KIND_COUNT)
		return;
	kind = &window->kinds[record->kind];
	if (kind->record.address) {
		snprintf(text, 24, "0x%llx", (unsigned long long)kind->record.address);
		json_fields_string(shape, "step_address", text);
	}
	for (uint32_t i = 0; i < FBT_ARG_COUNT; i++) {
		if (!kind->arg_names[i])
			continue;
		snprintf(keys[i], KEY_SIZE, "arg.%s", kind->arg_names[i]);
		if (record->arg_mask & (1u << i))
			json_fields_int(shape, keys[i], record->args[i]);
		else
			json_fields_string(shape, keys[i], NULL);
	}
}

/*
 * Adds the parts of the step. Each is rounded down except the first, which gets the remainder, so
 * that the parts also add up to the total in microseconds.
 */
static void add_parts(struct json_fields *stage_us, const struct step *step, uint64_t total_us)
{
	bool with_calls = step_calls_known(step);
	struct step_parts parts;

	step_split(step, &parts);
	if (!parts.known)
		return;
	for (int i = STEP_PARTS - 1; i > STEP_OWN; i--) {
		const char *name = step_part_name((enum step_part)i, with_calls);
		uint64_t us = parts.ns[i] / NS_PER_US;

		/* A short stop may not have been seen. */
		if (!name || (i == STEP_FAULTS && !parts.faults_known) ||
		    (i == STEP_AWAIT && !step->record.polls) ||
		    (i == STEP_STOPPED && !parts.stops_known && !us))
			continue;
		total_us -= us;
		json_fields_uint(stage_us, name, us);
	}
	json_fields_uint(stage_us, step_part_name(STEP_OWN, with_calls), total_us);
}

/* Of the parts futex_net and own, what CPython did: absent where it was not measured. */
static void add_stalls(struct json_fields *shape, struct json_fields *stage_us,
		       const struct step *step)
{
	const struct fbt_stalls *stalls = &step->stalls.record;
	struct step_parts parts;

	step_split(step, &parts);
	if (step->stalls.gil_known)
		json_fields_uint(stage_us, "gil", step_gil_ns(step, &parts) / NS_PER_US);
	if (!step->stalls.gc_known)
		return;
	json_fields_uint(stage_us, "gc", step_gc_ns(step, &parts) / NS_PER_US);
	json_fields_uint(shape, "gc_collections", stalls->gc_count);
	if (!stalls->gc_longest_ns)
		return;
	json_fields_uint(stage_us, "gc_longest", stalls->gc_longest_ns / NS_PER_US);
	if (stalls->gc_generation < FBT_GENERATION_UNKNOWN)
		json_fields_uint(shape, "gc_generation", stalls->gc_generation);
}

static void add_step_times(struct json_fields *stage_us, const struct window *window,
			   const struct step *step)
{
	const struct fbt_step *record = &step->record;
	struct breakdown breakdown;

	step_breakdown(step, &breakdown);
	json_fields_uint(stage_us, "total", breakdown.total_us);
	if (!breakdown.unknown) {
		json_fields_uint(stage_us, "syscall", breakdown_syscall_us(&breakdown));
		json_fields_uint(stage_us, "compute", breakdown_compute_us(&breakdown));
	}
	if (!strcmp(window__step_source(window, record->kind), "interval"))
		json_fields_uint(stage_us, "wall", step_wall_ns(step) / NS_PER_US);
	if (!(record->header.flags & FBT_STEP_NO_GAP)) {
		json_fields_uint(stage_us, "gap", record->gap_ns / NS_PER_US);
		if (!breakdown.unknown)
			json_fields_uint(stage_us, "gap_syscall",
					 record->gap_syscall_ns / NS_PER_US);
	}
	if (!(record->header.flags & FBT_STEP_OTHER_UNKNOWN))
		json_fields_uint(stage_us, "other_threads_syscall",
				 record->other_syscall_ns / NS_PER_US);
	if (!(record->header.flags & FBT_STEP_SCHED_UNKNOWN))
		json_fields_uint(stage_us, "run_delay", record->run_delay_ns / NS_PER_US);
	add_parts(stage_us, step, breakdown.total_us);
}

/* Only the steps of futures have polls. */
static void add_polls(struct json_fields *shape, const struct fbt_step *record)
{
	if (record->polls)
		json_fields_uint(shape, "polls", record->polls);
}

/* Absent where calls were not traced: 0 would say that there were none. */
static void add_calls(struct json_fields *shape, const struct step *step)
{
	if (!step_calls_known(step)) {
		json_fields_bool(shape, "calls_traced", false);
		return;
	}
	json_fields_uint(shape, "calls", step_calls(step));
	json_fields_uint(shape, "errors", step_errors(step));
	json_fields_uint(shape, "lost_calls", step->record.lost_calls);
	json_fields_uint(shape, "max_call_us", find_max_call_ns(step) / NS_PER_US);
	if (step->calls_truncated)
		json_fields_bool(shape, "calls_truncated", true);
}

/*
 * Adds what the limits of the step's cgroups did. Absent if they did nothing, or if the kernel does
 * not report it.
 */
static void add_limits(struct json_fields *shape, struct json_fields *stage_us,
		       const struct fbt_step_limits *limits)
{
	if (limits->throttled_ns) {
		json_fields_uint(shape, "throttled_periods", limits->throttled_periods);
		json_fields_uint(stage_us, "throttled_all_cpus", limits->throttled_ns / NS_PER_US);
	}
	if (limits->memory_hits)
		json_fields_uint(shape, "memory_limit_hits", limits->memory_hits);
}

/* Absent if the host took none, or if that is not known. */
static void add_steal(struct json_fields *stage_us, const struct fbt_step *record)
{
	if (record->steal_us)
		json_fields_uint(stage_us, "steal", record->steal_us);
}

/*
 * Adds the time of other threads, the thread that had no CPU, and signal handlers. Absent if not
 * measured.
 */
static void add_hidden(struct json_fields *shape, struct json_fields *stage_us,
		       const struct fbt_step *record)
{
	if (record->header.flags & FBT_STEP_TEAM_KNOWN && record->starved_ns >= NS_PER_US) {
		json_fields_uint(shape, "starved_tid", record->starved_tid);
		json_fields_uint(stage_us, "starved", record->starved_ns / NS_PER_US);
	}
	if (record->late_ns >= NS_PER_US) {
		json_fields_uint(shape, "late_tid", record->late_tid);
		json_fields_uint(stage_us, "late", record->late_ns / NS_PER_US);
	}
	if (record->header.flags & FBT_STEP_TEAM_TIMED) {
		add_us(stage_us, "other_threads_cpu", record->team_cpu_ns);
		add_us(stage_us, "other_threads_cpu_wait", record->team_delay_ns);
		add_us(stage_us, "other_threads_blocked", step_team_blocked_ns(record));
	}
	if (!(record->header.flags & FBT_STEP_HANDLERS_TIMED))
		return;
	if (record->handlers) {
		json_fields_uint(shape, "signal_handlers", record->handlers);
		json_fields_uint(stage_us, "signal_handlers", record->handlers_ns / NS_PER_US);
	}
	if (record->handlers_left)
		json_fields_uint(shape, "signal_handlers_left", record->handlers_left);
}

/*
 * Adds the time of page faults by what they were for. Absent if there were none, or if they were
 * not timed.
 */
static void add_faults(struct json_fields *shape, struct json_fields *stage_us,
		       const struct window *window, const struct step *step)
{
	static const char *const names[FBT_MAPPING_COUNT] = {
		[FBT_MAPPING_UNKNOWN] = "faults_unknown",
		[FBT_MAPPING_FILE] = "faults_file",
		[FBT_MAPPING_ANON] = "faults_anon",
		[FBT_MAPPING_STACK] = "faults_stack",
	};
	const struct fbt_step_faults *faults = &step->record.faults;
	const struct file *file = faults->file ? window__file(window, faults->file) : NULL;

	if (!step_faults_known(step))
		return;
	for (int i = 0; i < FBT_MAPPING_COUNT; i++)
		if (faults->ns[i] >= NS_PER_US)
			json_fields_uint(stage_us, names[i], faults->ns[i] / NS_PER_US);
	if (faults->major_count)
		json_fields_uint(stage_us, "faults_major", faults->major_ns / NS_PER_US);
	if (file && *file->path)
		json_fields_string(shape, "fault_file", file->path);
}

/* Adds the waits that spin. Absent if there are none: below 0.1 ms, or where calls have no record.
 */
static void add_spins(struct json_fields *shape, struct json_fields *stage_us,
		      const struct step_spins *spins)
{
	if (!spins->waits)
		return;
	json_fields_uint(shape, "spins", spins->waits);
	json_fields_uint(shape, "spin_calls", spins->calls);
	json_fields_uint(stage_us, "spun", spins->ns / NS_PER_US);
	json_fields_uint(stage_us, "spun_longest", spins->longest.ns / NS_PER_US);
}

static int put_step_prof(struct jsonl_sink *jsonl, const struct window *window,
			 const struct step *step)
{
	const struct fbt_step *record = &step->record;
	uint64_t since_ns = sub_saturating(record->start_ns, window->record.start_ns);
	struct json_fields shape = {.count = 0};
	struct json_fields stage_us = {.count = 0};
	char keys[FBT_ARG_COUNT][KEY_SIZE];
	char text[24];

	json_fields_uint(&shape, "step", step->number);
	json_fields_uint(&shape, "kind_number", step->kind_number);
	json_fields_uint(&shape, "tid", record->tid);
	json_fields_uint(&shape, "pid", record->tgid);
	add_calls(&shape, step);
	json_fields_bool(&shape, "complete", step->complete);
	json_fields_string(&shape, "end", step_end_name((enum fbt_step_end)record->end));
	json_fields_uint(&shape, "start_us", since_ns / NS_PER_US);
	if (record->threads)
		json_fields_uint(&shape, "threads", record->threads);
	if (record->header.flags & FBT_STEP_SAMPLED)
		json_fields_bool(&shape, "sampled", true);
	if (step_is_profiled(step))
		json_fields_bool(&shape, "profiled", true);
	if (!(record->header.flags & FBT_STEP_SCHED_UNKNOWN)) {
		json_fields_uint(&shape, "minor_faults", record->minor_faults);
		json_fields_uint(&shape, "major_faults", record->major_faults);
	}
	add_limits(&shape, &stage_us, &record->limits);
	add_steal(&stage_us, record);
	stop_fields_add(&shape, &step->stop, &step->stop_sender, record->tid);
	add_hidden(&shape, &stage_us, record);
	add_faults(&shape, &stage_us, window, step);
	add_spins(&shape, &stage_us, &step->spins);
	add_polls(&shape, record);
	add_kind(&shape, keys, text, window, record);
	add_step_times(&stage_us, window, step);
	add_stalls(&shape, &stage_us, step);
	if (step->gpu)
		jsonl_gpu_add_to_step(&shape, &stage_us, step);
	return put_event(jsonl, "step_prof", &shape, &stage_us);
}

static int put_syscall_prof(struct jsonl_sink *jsonl, const struct step *step)
{
	struct json_fields shape = {.count = 0};
	struct json_fields stage_us = {.count = 0};
	char keys[FBT_CATEGORY_COUNT][3][24];
	struct breakdown breakdown;

	step_breakdown(step, &breakdown);
	json_fields_uint(&shape, "step", step->number);
	json_fields_string(&shape, "dominant", breakdown_dominant(&breakdown));
	json_fields_double(&shape, "overhead_percent", breakdown_overhead_tenths(&breakdown));
	json_fields_uint(&shape, "calls", step_calls(step));
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		const struct fbt_sum *sum = &step->record.sums[i];
		const char *name = category_name((enum fbt_category)i);

		snprintf(keys[i][0], sizeof(keys[i][0]), "%s_calls", name);
		snprintf(keys[i][1], sizeof(keys[i][1]), "%s_errors", name);
		snprintf(keys[i][2], sizeof(keys[i][2]), "%s_max_us", name);
		json_fields_uint(&shape, keys[i][0], sum->calls);
		json_fields_uint(&shape, keys[i][1], sum->errors);
		json_fields_uint(&shape, keys[i][2], sum->max_ns / NS_PER_US);
		json_fields_uint(&stage_us, name, breakdown.category_us[i]);
	}
	json_fields_uint(&stage_us, "compute", breakdown_compute_us(&breakdown));
	json_fields_uint(&stage_us, "total", breakdown.total_us);
	return put_event(jsonl, "syscall_prof", &shape, &stage_us);
}

static int put_gpu_prof(struct jsonl_sink *jsonl, const struct window *window,
			const struct step *step)
{
	struct jsonl_gpu event;
	int err = 0;

	for (size_t i = 0; !err && step->gpu && i < jsonl_gpu_lines(step->gpu); i++) {
		jsonl_gpu_fill(&event, window, step, i);
		err = put_event(jsonl, "gpu_prof", &event.shape, &event.stage_us);
	}
	return err;
}

static int put_escalation_prof(struct jsonl_sink *jsonl, const struct window *window,
			       const struct step *step, const struct escalation *escalation)
{
	struct escalation_event event;

	fill_escalation(&event, window, step, escalation);
	return put_event(jsonl, "escalation_prof", &event.common.fields, &event.stage_us);
}

static int write_hang(struct sink *sink, const struct window *window, const struct fbt_hang *hang)
{
	const struct fbt_window *record = &window->record;
	uint64_t open_ns = hang->time_ns - hang->step_start_ns;
	struct json_fields shape = {.count = 0}, stage_us = {.count = 0};
	char label[24], time[FORMAT_UTC_MAX], text[HANG_TEXT_SIZE];
	char threads[HANG_THREADS_SIZE];

	hang_describe(hang, window, text);
	json_fields_string(&shape, "kind", window__kind_name(window, hang->kind));
	json_fields_uint(&shape, "pid", hang->tgid);
	json_fields_uint(&shape, "tid", hang->tid);
	json_fields_uint(&shape, "start_us",
			 sub_saturating(hang->step_start_ns, record->start_ns) / NS_PER_US);
	if (record->realtime_ns)
		json_fields_string(&shape, "time",
				   format_utc(time, window__unix_ns(window, hang->time_ns)));
	json_fields_string(&shape, "evidence", text);
	hang_describe_threads(hang, window, threads);
	if (*threads)
		json_fields_string(&shape, "threads", threads);
	json_fields_uint(&stage_us, "open", open_ns / NS_PER_US);
	if (hang->call.header.type) {
		json_fields_string(&shape, "call",
				   syscall_label(record->arch, hang->call.nr, label));
		json_fields_uint(&stage_us, "call", hang->call.duration_ns / NS_PER_US);
	}
	to_jsonl(sink)->graph = false;
	return put_event(to_jsonl(sink), "hang_prof", &shape, &stage_us);
}

static int put_window_prof(struct jsonl_sink *jsonl, const struct window *window,
			   const struct classify_counts *counts)
{
	struct jsonl_window event;
	int err = jsonl_window_fill(&event, window, counts);

	if (err)
		return err;
	err = put_event(jsonl, "window_prof", &event.shape, &event.stage_us);
	jsonl_window_clear(&event);
	return err;
}

static int write_step(struct sink *sink, const struct window *window, const struct step *step)
{
	struct jsonl_sink *jsonl = to_jsonl(sink);
	int err;

	jsonl->graph = jsonl_gpu_has_graph(step);
	err = put_step_prof(jsonl, window, step);
	if (!err && step_calls_known(step))
		err = put_syscall_prof(jsonl, step);
	return err ? err : put_gpu_prof(jsonl, window, step);
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	to_jsonl(sink)->graph = jsonl_gpu_has_graph(step);
	return put_escalation_prof(to_jsonl(sink), window, step, escalation);
}

static int poll_stream(struct sink *sink)
{
	return writer_poll(&to_jsonl(sink)->stream);
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	to_jsonl(sink)->graph = false;
	return put_window_prof(to_jsonl(sink), window, classifier__counts(classifier));
}

static void free_jsonl(struct sink *sink)
{
	struct jsonl_sink *jsonl = to_jsonl(sink);

	fclose(jsonl->json.out);
	free(jsonl->line);
	free(jsonl);
}

struct sink *sink_jsonl__new(int fd, FILE *stream, const struct metadata *metadata)
{
	struct jsonl_sink *jsonl = calloc(1, sizeof(*jsonl));

	if (!jsonl)
		return NULL;
	jsonl->json.out = open_memstream(&jsonl->line, &jsonl->size);
	if (!jsonl->json.out) {
		free(jsonl);
		return NULL;
	}
	jsonl->sink = (struct sink){
		.name = "profile",
		.is_file = true,
		.write_step = write_step,
		.write_escalation = write_escalation,
		.write_hang = write_hang,
		.poll = poll_stream,
		.finish = finish,
		.free = free_jsonl,
	};
	jsonl->fd = fd;
	jsonl->stream.file = stream;
	jsonl->may_wait = timed_write_may_block(fd);
	jsonl->metadata = metadata;
	return &jsonl->sink;
}
