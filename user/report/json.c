/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The report as one JSON object (--report json). It has every figure of the text, and no limit on
 * the number of rows.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arith.h"
#include "base/format.h"
#include "base/json.h"
#include "gpu/text.h"
#include "judge/hang.h"
#include "model/syscalls.h"
#include "output/slice.h"
#include "report/part.h"

static void put_known(struct json *json, const char *key, bool is_known, uint64_t value)
{
	if (is_known)
		json_uint(json, key, value);
	else
		json_null(json, key);
}

#define COUNT(member) JSON_MEMBER(#member, classify_counts, member)

static void write_verdicts(struct json *json, const struct classify_counts *counts)
{
	static const struct json_member members[] = {COUNT(judged), COUNT(unjudged),
						     COUNT(escalated), COUNT(suppressed),
						     COUNT(repeated)};

	json_members(json, members, counts);
	if (counts->as_usual)
		json_uint(json, "as_usual", counts->as_usual);
	json_object_begin(json, "by_reason");
	for (int i = ESCALATION_NONE + 1; i < ESCALATION_REASON_COUNT; i++)
		json_uint(json, escalation_otlp_value((enum escalation_reason)i),
			  counts->by_reason[i]);
	json_object_end(json);
}

static void write_causes(struct json *json, const struct escalation_tally *tally, uint32_t detail)
{
	enum cause_kind order[CAUSE_COUNT];
	int count = escalation_tally_sort(tally, order);

	json_array_begin(json, "causes");
	for (int i = 0; i < count; i++) {
		const struct cause_tally *cause = &tally->causes[order[i]];
		const struct cause_stack *stack;

		json_object_begin(json, NULL);
		json_string(json, "cause", cause_name(order[i]));
		json_uint(json, "steps", cause->steps);
		json_uint(json, "usual_known_steps", cause->usual_known);
		json_uint(json, "extra_ns", cause->extra_ns);
		json_bool(json, "estimated", cause->estimated);
		json_uint(json, "worst_step", cause->worst_step);
		json_uint(json, "worst_extra_ns", cause->worst_extra_ns);
		json_uint(json, "worst_duration_ns", cause->worst_total_ns);
		json_string(json, "worst_evidence", cause->worst_evidence);
		stack = cause_tally_stack(cause);
		json_string(json, "stack", stack ? stack->text : NULL);
		if (stack && *stack->unnamed)
			json_string(json, "stack_unnamed", stack->unnamed);
		json_uint(json, "stack_steps", stack ? stack->steps : 0);
		json_string(json, "worst_waker_stack",
			    *cause->worst_waker ? cause->worst_waker : NULL);
		if (cause->worst_after_ns)
			json_uint(json, "worst_waker_after_ns", cause->worst_after_ns);
		json_string(json, "worst_holder_stack",
			    *cause->worst_holder ? cause->worst_holder : NULL);
		json_string(json, "worst_others",
			    *cause->worst_others ? cause->worst_others : NULL);
		report_json_explained(json, &cause->explained);
		json_string(json, "advice",
			    cause_advice_beside(order[i], cause->worst_is_named,
						cause->worst_calls_known, detail));
		json_object_end(json);
	}
	json_array_end(json);
}

/* Who stopped the step; null if nobody did, or if the stop is no part of the cause. */
static void write_stop(struct json *json, const struct fbt_stop *stop,
		       const struct fbt_stop_sender *sender)
{
	if (stop->header.type != FBT_EVENT_STOP) {
		json_null(json, "stop");
		return;
	}
	json_object_begin(json, "stop");
	json_string(json, "reason", stop_reason_name((enum fbt_stop_reason)stop->reason));
	json_uint(json, "tid", stop->tid);
	put_known(json, "tracer", stop->tracer != 0, stop->tracer);
	json_string(json, "tracer_name", *stop->comm ? stop->comm : NULL);
	report_json_sender(json, sender);
	json_object_end(json);
}

/* What the threads of the process of a hang were in, those in the same place together. */
static void write_hang_threads(struct json *json, const struct window *window,
			       const struct fbt_hang *hang)
{
	const struct fbt_look_thread *group;
	char label[24], text[FRAMES_SIZE];

	json_array_begin(json, "threads");
	for (size_t i = 0; (group = hang_group(hang, window, i)); i++) {
		bool in_call = group->header.flags & FBT_LOOK_IN_CALL;
		struct fbt_stack stack;

		look_stack(group, &stack);
		frames_describe(&stack, window, text, sizeof(text));
		json_object_begin(json, NULL);
		json_uint(json, "threads", group->threads);
		json_array_begin(json, "tids");
		for (int j = 0; j < FBT_LOOK_TIDS && group->tids[j]; j++)
			json_uint(json, NULL, group->tids[j]);
		json_array_end(json);
		json_string(json, "name", window__thread_name(window, group->owner));
		json_string(json, "doing", look_doing_name(group, window, label));
		json_string(json, "call",
			    in_call ? syscall_label(window->record.arch, group->nr, label) : NULL);
		put_known(json, "call_ns", group->call_ns != 0, group->call_ns);
		json_string(json, "stack", *text ? text : NULL);
		json_bool(json, "near", group->header.flags & FBT_LOOK_SAMPLE);
		json_object_end(json);
	}
	json_array_end(json);
	json_uint(json, "threads_not_shown", hang_left_out(hang, window));
}

static void write_hangs(struct json *json, const struct window *window)
{
	char label[24], text[HANG_TEXT_SIZE];

	json_array_begin(json, "hangs");
	for (uint64_t i = 0; i < window->hang_count && i < WINDOW_HANGS_MAX; i++) {
		const struct fbt_hang *hang = &window->hangs[i];
		bool in_call = hang->call.header.type != 0;

		hang_describe(hang, window, text);
		json_object_begin(json, NULL);
		json_string(json, "name", window__kind_name(window, hang->kind));
		json_uint(json, "pid", hang->tgid);
		json_uint(json, "tid", hang->tid);
		json_uint(json, "start_ns",
			  sub_saturating(hang->step_start_ns, window->record.start_ns));
		json_uint(json, "open_ns", hang->time_ns - hang->step_start_ns);
		json_string(json, "call",
			    in_call ? syscall_label(window->record.arch, hang->call.nr, label)
				    : NULL);
		put_known(json, "call_ns", in_call, hang->call.duration_ns);
		json_string(json, "text", text);
		write_hang_threads(json, window, hang);
		json_object_end(json);
	}
	json_array_end(json);
	json_uint(json, "hang_count", window->hang_count);
}

static void write_entry(struct json *json, const struct window *window,
			const struct escalation_entry *entry)
{
	char fired[FIRED_SIZE];

	json_object_begin(json, NULL);
	json_uint(json, "number", entry->number);
	json_uint(json, "step", entry->step);
	json_string(json, "name", window__kind_name(window, entry->kind));
	json_uint(json, "pid", entry->tgid);
	json_uint(json, "tid", entry->tid);
	json_uint(json, "start_ns", entry->start_ns);
	json_uint(json, "duration_ns", entry->total_ns);
	json_string(json, "reason", escalation_otlp_value(entry->reason));
	json_string(json, "fired", escalation_fired_text(entry->fired, fired));
	json_string(json, "cause", cause_name(entry->cause));
	json_uint(json, "cause_ns", entry->cause_ns);
	put_known(json, "budget_ns", entry->judged, entry->budget_ns);
	put_known(json, "usual_ns", entry->judged, entry->usual_ns);
	put_known(json, "cause_usual_ns", entry->cause_usual_known, entry->cause_usual_ns);
	write_stop(json, &entry->stop, &entry->stop_sender);
	report_json_peer(json, window, &entry->peer, entry->peer_ns);
	report_json_faults(json, window, &entry->faults);
	json_string(json, "not_shown", entry->not_shown);
	json_bool(json, "complete", entry->complete);
	json_object_end(json);
}

/* Counts, all causes, and the last escalations. */
static void write_escalations(struct json *json, const struct report *report)
{
	const struct escalation_tally *tally = &report->tally->escalations;
	const struct escalation_entry *entry;

	json_object_begin(json, "escalations");
	write_verdicts(json, classifier__counts(report->classifier));
	write_causes(json, tally, report->window->record.detail);
	json_array_begin(json, "last");
	for (size_t i = 0; (entry = escalation_tally_entry(tally, i)); i++)
		write_entry(json, report->window, entry);
	json_array_end(json);
	json_object_end(json);
}

static void write_short_stats(struct json *json, const char *key, const struct stats *stats)
{
	json_object_begin(json, key);
	json_uint(json, "count", stats__count(stats));
	json_uint(json, "p50_ns", stats__percentile(stats, 0.5));
	json_uint(json, "p95_ns", stats__percentile(stats, 0.95));
	json_uint(json, "max_ns", stats__max(stats));
	json_object_end(json);
}

static void write_times(struct json *json, const struct gpu_figures *times, bool with_calls)
{
	char key[32];

	for (int i = 0; i < GPU_TIMES; i++) {
		if (!with_calls && gpu_time_needs_calls(&gpu_times[i]))
			continue;
		snprintf(key, sizeof(key), "%s_ns", gpu_times[i].key);
		json_uint(json, key, json_member_get(&gpu_times[i], times));
	}
}

/* Only the longest calls of each step; the rest is in wait_blocked_ns and wait_syscall_ns. */
static void write_wait_calls(struct json *json, const struct gpu_tally_kind *kind,
			     enum fbt_arch arch)
{
	char label[24];

	json_array_begin(json, "wait_calls");
	for (uint32_t nr = 0; nr < FBT_NR_COUNT; nr++) {
		for (int blocked = 0; blocked < 2; blocked++) {
			if (!kind->wait_ns[nr][blocked])
				continue;
			json_object_begin(json, NULL);
			json_string(json, "name", syscall_label(arch, nr, label));
			json_uint(json, "nr", nr);
			json_bool(json, "blocked", blocked);
			json_uint(json, "total_ns", kind->wait_ns[nr][blocked]);
			json_object_end(json);
		}
	}
	json_array_end(json);
}

static void write_work(struct json *json, const struct gpu_tally_kind *kind)
{
	json_members(json, gpu_work_counts, &kind->sum);
	write_short_stats(json, "launch_latency", kind->launch_latency);
	write_short_stats(json, "launch_api", kind->launch_api);
	write_short_stats(json, "work", kind->work);
}

#define KIND(member) JSON_MEMBER(#member, gpu_tally_kind, member)

static void write_thread(struct json *json, const struct gpu_tally_kind *kind, bool with_calls)
{
	static const struct json_member members[] = {KIND(sync_ns), KIND(sync_useful_ns),
						     KIND(sync_tail_ns)};
	static const struct json_member by_calls[] = {
		KIND(gpu_only_ns),	 KIND(gpu_host_ns),	   KIND(sync_spin_ns),
		KIND(calls_known_steps), KIND(exposed_syscall_ns), KIND(overlapped_syscall_ns),
		KIND(cuda_internal_ns)};

	json_members(json, members, kind);
	if (with_calls)
		json_members(json, by_calls, kind);
}

static void write_quality(struct json *json, const struct gpu_tally_kind *kind)
{
	static const struct json_member members[] = {KIND(joined),     KIND(by_time),
						     KIND(unmeasured), KIND(missing),
						     KIND(violations), KIND(cupti_overhead_ns)};

	json_uint(json, "complete_steps", kind->complete);
	json_object_begin(json, "sealed");
	for (int i = 0; i < GPU_SEAL_COUNT; i++)
		json_uint(json, gpu_seal_name((enum gpu_seal)i), kind->sealed[i]);
	json_object_end(json);
	json_members(json, members, kind);
}

static void write_slowest_on_gpu(struct json *json, const struct gpu_tally_kind *kind,
				 enum fbt_arch arch, bool with_calls)
{
	char text[GPU_IDLE_TEXT_SIZE];

	json_array_begin(json, "slowest");
	for (int i = 0; i < GPU_TALLY_SLOWEST && kind->slowest[i].number; i++) {
		const struct gpu_tally_step *step = &kind->slowest[i];
		const struct gpu_text about = {&step->figures, step->total_ns, step->run_delay_ns,
					       arch, !step->complete};

		json_object_begin(json, NULL);
		json_uint(json, "step", step->number);
		json_uint(json, "duration_ns", step->total_ns);
		json_uint(json, "kernels", step->figures.kernels);
		write_times(json, &step->figures, with_calls);
		json_string(json, "bound", gpu_bound_name(step->bound));
		json_bool(json, "complete", step->complete);
		json_string(json, "text", gpu_idle_text(&about, text));
		json_object_end(json);
	}
	json_array_end(json);
}

/* Null if no step of the kind has GPU figures. */
static void write_gpu_kind(struct json *json, const struct report *report, uint32_t index)
{
	const struct gpu_tally_kind *kind = report->tally->gpu.kinds[index];
	enum fbt_arch arch = (enum fbt_arch)report->window->record.arch;
	bool with_calls = kind && tally_calls_known(report->tally->kinds[index]);

	if (!kind) {
		json_null(json, "gpu");
		return;
	}
	json_object_begin(json, "gpu");
	json_uint(json, "steps", kind->steps);
	json_uint(json, "total_ns", kind->total_ns);
	if (kind->complete)
		json_double(json, "busy_percent",
			    percent_of((double)kind->sum.busy_ns, (double)kind->total_ns));
	else
		json_null(json, "busy_percent");
	write_short_stats(json, "busy", kind->busy);
	write_short_stats(json, "idle", kind->idle);
	write_times(json, &kind->sum, with_calls);
	if (with_calls)
		write_wait_calls(json, kind, arch);
	json_object_begin(json, "bound");
	for (int i = 0; i < GPU_BOUND_COUNT; i++)
		json_uint(json, gpu_bound_name((enum gpu_bound)i), kind->bound[i]);
	json_object_end(json);
	write_work(json, kind);
	write_thread(json, kind, with_calls);
	write_quality(json, kind);
	write_slowest_on_gpu(json, kind, arch, with_calls);
	json_object_end(json);
}

static void write_devices(struct json *json, const struct gpu_process *process)
{
	json_array_begin(json, "devices");
	vec_for_each (device, &process->devices) {
		json_object_begin(json, NULL);
		json_uint(json, "id", device->record.id);
		json_string(json, "name", device->name);
		json_uint(json, "memory_bytes", device->record.memory_bytes);
		json_uint(json, "compute_major", device->record.compute_major);
		json_uint(json, "compute_minor", device->record.compute_minor);
		json_uint(json, "sms", device->record.sms);
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_gpu_processes(struct json *json, const struct window *window)
{
	char version[32];

	json_array_begin(json, "gpu_processes");
	vec_for_each (entry, &window->gpus.processes) {
		const struct gpu_process *process = *entry;
		const struct fbt_gpu_state *state = &process->state;

		json_object_begin(json, NULL);
		json_uint(json, "pid", process->tgid);
		json_string(json, "status", gpu_status_name((enum fbt_gpu_status)state->status));
		json_string(json, "detail", process->detail);
		json_bool(json, "armed", process->armed);
		json_string(json, "cupti",
			    state->cupti_version
				    ? gpu_cupti_version_name(state->cupti_version, version)
				    : NULL);
		json_uint(json, "cupti_version", state->cupti_version);
		json_uint(json, "driver_version", state->driver_version);
		json_uint(json, "shim_version", state->shim_version);
		json_string(json, "library", process->library);
		json_string(json, "clock",
			    gpu_clock_name((enum fbt_gpu_clock_method)state->clock_method));
		json_bool(json, "clock_suspect", gpu_process_is_clock_suspect(process));
		json_uint(json, "arm_ns", process->arm_ns);
		json_members(json, gpu_window_counts, &process->counts);
		json_members(json, gpu_flush_counts, &process->flush);
		json_uint(json, "shim_ns", process->flush.shim_ns);
		json_uint(json, "clock_error_ns", process->flush.clock_error_ns);
		json_uint(json, "clock_steps", process->flush.clock_steps);
		write_devices(json, process);
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_sum(struct json *json, const struct fbt_sum *sum)
{
	json_uint(json, "calls", sum->calls);
	json_uint(json, "errors", sum->errors);
	json_uint(json, "total_ns", sum->ns);
	json_double(json, "mean_ns", sum->calls ? (double)sum->ns / (double)sum->calls : 0);
	json_uint(json, "max_ns", sum->max_ns);
}

static void write_stats(struct json *json, const char *key, const struct stats *stats)
{
	json_object_begin(json, key);
	json_uint(json, "count", stats__count(stats));
	json_uint(json, "total_ns", stats__sum(stats));
	json_double(json, "mean_ns", stats__mean(stats));
	json_uint(json, "min_ns", stats__min(stats));
	json_uint(json, "p50_ns", stats__percentile(stats, 0.5));
	json_uint(json, "p95_ns", stats__percentile(stats, 0.95));
	json_uint(json, "p99_ns", stats__percentile(stats, 0.99));
	json_uint(json, "max_ns", stats__max(stats));
	json_double(json, "cv_percent", stats__cv_percent(stats));
	json_object_end(json);
}

static void write_window(struct json *json, const struct window *window)
{
	json_string(json, "tool_version", window->tool_version);
	json_string(json, "tag", window->tag);
	json_string(json, "host", window->host);
	json_string(json, "kernel_release", window->kernel_release);
	json_string(json, "detail", detail_name(window->record.detail));
	json_uint(json, "window_ns", tally_window_ns(window));
	json_uint(json, "interval_ns", window->record.interval_ns);
	if (window__is_gpu_strict(window))
		json_bool(json, "gpu_strict", true);
	json_bool(json, "cut_off", window->cut_off);
	json_uint(json, "steps", window->steps);
	json_uint(json, "incomplete_steps", window->incomplete_steps);
	json_uint(json, "skipped_records", window->skipped_records);
	if (window->unkept_records)
		json_uint(json, "unkept_records", window->unkept_records);
	if (window->unseen_calls)
		json_uint(json, "unseen_calls", window->unseen_calls);
	json_uint(json, "processes_left_out", window->overflow_processes);
	json_uint(json, "stacks", window->stacks.taken);
	json_uint(json, "stacks_skipped", window->stacks.skipped);
	json_uint(json, "stacks_copy_ns", window->stacks.copy_ns);
	json_uint(json, "looks", window->looks.taken);
	json_uint(json, "looks_skipped", window->looks.skipped);
	json_uint(json, "looks_stale", window->looks.stale);
	json_uint(json, "looks_blind", window->looks.blind);
	json_uint(json, "looks_ns", window->looks.cost_ns);

	json_object_begin(json, "lost");
	for (int i = 0; i < FBT_LOST_COUNT; i++) {
		if (window__may_lose(window, (enum fbt_lost_cause)i))
			json_uint(json, lost_cause_name(i), window->lost.count[i]);
	}
	json_uint(json, "total", window__lost_total(window));
	json_object_end(json);
}

static void write_categories(struct json *json, const struct tally_kind *kind)
{
	json_object_begin(json, "categories");
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		const struct fbt_sum *sum = &kind->sums[i];

		json_object_begin(json, category_name(i));
		write_sum(json, sum);
		json_double(json, "mean_per_step_ns", (double)sum->ns / (double)kind->steps);
		json_double(json, "share_percent",
			    percent_of((double)sum->ns, (double)kind->total_ns));
		json_object_end(json);
	}
	json_object_end(json);

	json_object_begin(json, "compute");
	json_uint(json, "total_ns", kind->compute_ns);
	json_double(json, "mean_per_step_ns", (double)kind->compute_ns / (double)kind->steps);
	json_uint(json, "max_per_step_ns", kind->compute_max_ns);
	json_double(json, "share_percent",
		    percent_of((double)kind->compute_ns, (double)kind->total_ns));
	json_object_end(json);
}

static void write_args(struct json *json, const struct kind *known, const struct tally_kind *kind)
{
	json_array_begin(json, "args");
	for (uint32_t i = 0; i < FBT_ARG_COUNT && i < known->record.arg_count; i++) {
		const struct tally_arg *arg = &kind->args[i];

		json_object_begin(json, NULL);
		json_string(json, "name", known->arg_names[i]);
		json_uint(json, "count", arg->count);
		if (arg->count) {
			json_int(json, "min", arg->min);
			json_double(json, "mean", (double)(arg->sum / (long double)arg->count));
			json_int(json, "max", arg->max);
		} else {
			json_null(json, "min");
			json_null(json, "mean");
			json_null(json, "max");
		}
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_slow_calls(struct json *json, const struct tally_step *step)
{
	json_uint(json, "compute_ns", step->compute_ns);
	json_string(json, "dominant_syscall",
		    step->sum.ns ? category_name(step->dominant) : "none");
	json_uint(json, "dominant_ns", step->sum.ns);
	json_uint(json, "dominant_max_call_ns", step->sum.max_ns);
}

static void write_slowest(struct json *json, const struct tally_kind *kind)
{
	json_array_begin(json, "slowest");
	for (int i = 0; i < TALLY_SLOWEST && kind->slowest[i].number; i++) {
		const struct tally_step *step = &kind->slowest[i];

		json_object_begin(json, NULL);
		json_uint(json, "step", step->number);
		json_uint(json, "pid", step->tgid);
		json_uint(json, "tid", step->tid);
		json_uint(json, "start_ns", step->start_ns);
		json_uint(json, "duration_ns", step->total_ns);
		if (tally_calls_known(kind))
			write_slow_calls(json, step);
		json_string(json, "end", step_end_name(step->end));
		put_known(json, "usual_ns", step->usual_ns, step->usual_ns);
		if (step->starved_ns) {
			json_uint(json, "starved_ns", step->starved_ns);
			json_uint(json, "starved_tid", step->starved_tid);
		}
		json_string(json, "cause", step->is_escalated ? cause_name(step->cause) : NULL);
		json_bool(json, "complete", step->complete);
		json_object_end(json);
	}
	json_array_end(json);
}

/*
 * How the function leaves: its returns, its tail calls through pointers, and names of some
 * functions that it jumps to.
 */
static void write_tails(struct json *json, const struct window *window, uint32_t index)
{
	struct ways_out ways = window__ways_out(window, index);

	json_uint(json, "returns", ways.returns);
	json_uint(json, "tail_pointers", ways.pointers);
	json_array_begin(json, "tail_targets");
	for (int i = 0; i < WAYS_NAMES && ways.names[i]; i++)
		json_string(json, NULL, ways.names[i]);
	json_array_end(json);
}

static void write_function(struct json *json, const struct window *window, uint32_t index)
{
	const struct kind *known = &window->kinds[index];
	const struct fbt_ends *ends = &window->ends[index];
	char address[24];

	json_string(json, "name", window__kind_name(window, index));
	json_uint(json, "number", index);
	json_string(json, "step_source", window__step_source(window, index));
	json_string(json, "path", index ? known->path : NULL);
	snprintf(address, sizeof(address), "0x%" PRIx64, (uint64_t)known->record.address);
	json_string(json, "address", known->record.address ? address : NULL);
	json_bool(json, "builtin", known->record.builtin);
	if (window->probes[index].kind)
		json_uint(json, "probes_ns", window->probes[index].cost_ns);
	json_uint(json, "exits", ends->kind ? ends->exits : known->record.exits);
	if (window->late_polls[index])
		json_uint(json, "late_polls", window->late_polls[index]);
	if (known->record.header.flags & FBT_KIND_POLLED)
		json_bool(json, "each_poll_is_a_step", true);
	if (!ends->kind)
		return;
	json_uint(json, "call_sites", ends->sites);
	json_uint(json, "tail_calls", ends->tail_calls);
	json_uint(json, "untraced_steps", ends->unseen_steps);
	if (known->tails.kind)
		write_tails(json, window, index);
}

/* Null if all of its steps were seen. */
static void write_sampling(struct json *json, const struct window *window, uint32_t index)
{
	const struct fbt_sampling *sampling = &window->sampling[index];

	if (!sampling->kind) {
		json_null(json, "sampling");
		return;
	}
	json_object_begin(json, "sampling");
	json_uint(json, "watched_ns", sampling->watched_ns);
	json_uint(json, "off_ns", sampling->off_ns);
	json_double(json, "watched_percent", window__sampled_percent(window, index));
	json_uint(json, "calls", sampling->calls);
	json_double(json, "calls_per_s", (double)window__sampled_calls_per_s(window, index));
	json_uint(json, "cost_percent", sampling->cost_percent);
	json_uint(json, "cut_steps", window__cut_steps(window, index));
	json_object_end(json);
}

/* Where the time of all steps went. */
static void write_parts(struct json *json, const struct tally_kind *kind)
{
	if (!kind->parts_known)
		return;
	json_object_begin(json, "parts_ns");
	for (int i = 0; i < STEP_PARTS; i++) {
		const char *name = step_part_name((enum step_part)i, tally_calls_known(kind));

		/* Short stops may not have been seen. */
		if (i == STEP_STOPPED && kind->stops_unknown && !kind->parts_ns[i])
			continue;
		if (name && (i != STEP_FAULTS || kind->faults_untimed < kind->parts_known) &&
		    (i != STEP_AWAIT || kind->polls))
			json_uint(json, name, kind->parts_ns[i]);
	}
	json_object_end(json);
	if (kind->unmeasured_ns)
		json_uint(json, "unmeasured_ns", kind->unmeasured_ns);
	json_uint(json, "parts_known_steps", kind->parts_known);
	json_uint(json, "faults_untimed_steps", kind->faults_untimed);
}

static void write_tail_group(struct json *json, const char *name, const struct tail_group *group,
			     bool with_calls)
{
	json_object_begin(json, name);
	json_uint(json, "steps", group->steps);
	json_double(json, "mean_ns", group->total_ns);
	json_object_begin(json, "mean_parts_ns");
	for (int i = 0; i < STEP_PARTS; i++) {
		const char *part = step_part_name((enum step_part)i, with_calls);

		if (part && (i != STEP_AWAIT || group->parts_ns[i] > 0))
			json_double(json, part, group->parts_ns[i]);
	}
	json_object_end(json);
	json_object_end(json);
}

static void write_tail(struct json *json, const struct tally_kind *kind, const struct tail *tail)
{
	struct tail_group slowest, median;

	if (!tail__find(tail, &slowest, &median))
		return;
	json_object_begin(json, "tail");
	write_tail_group(json, "slowest", &slowest, tally_calls_known(kind));
	write_tail_group(json, "median", &median, tally_calls_known(kind));
	json_object_end(json);
}

/* Writes nothing if there is one class only: its steps are all steps. */
static void write_classes(struct json *json, const struct report *report, uint32_t index)
{
	const char *argument = classifier__class_by(report->classifier, report->window, index);
	const struct tally_kind *kind = report->tally->kinds[index];
	uint64_t from, to;

	if (kind->classes.count < 2)
		return;
	json_array_begin(json, "classes");
	vec_for_each (class, &kind->classes) {
		report_class_span(&class->class, &from, &to);
		json_object_begin(json, NULL);
		json_string(json, "by", class->class.by_argument ? argument : "work_ns");
		json_uint(json, "from", from);
		json_uint(json, "to", to);
		json_uint(json, "steps", class->steps);
		json_uint(json, "total_ns", class->total_ns);
		write_tail(json, kind, class->tail);
		json_object_end(json);
	}
	json_array_end(json);
}

/* The calls of its steps, if they were traced. */
static void write_calls(struct json *json, const struct tally_kind *kind)
{
	if (!tally_calls_known(kind))
		return;
	json_uint(json, "syscall_ns", tally_syscall_ns(kind));
	json_uint(json, "syscall_calls", tally_calls(kind));
	write_categories(json, kind);
}

/* Other calls: before its steps, and of other threads during them. */
static void write_other_calls(struct json *json, const struct tally_kind *kind)
{
	if (!tally_calls_known(kind))
		return;
	json_uint(json, "gap_syscall_ns", kind->gap_syscall_ns);
	put_known(json, "other_threads_syscall_ns", kind->other_steps, kind->other_ns);
	/* NaN, which is null, if it was not measured. */
	json_double(json, "other_threads_syscall_mean_per_step_ns",
		    kind->other_steps ? (double)kind->other_ns / (double)kind->other_steps : NAN);
	json_uint(json, "threads_max", kind->threads_max);
}

/* What other threads did in the steps in which that was measured, summed up. */
static void write_team(struct json *json, const struct tally_kind *kind)
{
	uint64_t used_ns = add_saturating(kind->team_cpu_ns, kind->team_delay_ns);

	if (!kind->team_steps)
		return;
	json_object_begin(json, "other_threads");
	json_uint(json, "steps", kind->team_steps);
	json_uint(json, "total_ns", kind->team_ns);
	json_uint(json, "cpu_ns", kind->team_cpu_ns);
	json_uint(json, "cpu_wait_ns", kind->team_delay_ns);
	json_uint(json, "blocked_ns", sub_saturating(kind->team_ns, used_ns));
	json_object_end(json);
}

static void write_kind(struct json *json, const struct report *report, uint32_t index)
{
	const struct tally_kind *kind = report->tally->kinds[index];

	json_object_begin(json, NULL);
	write_function(json, report->window, index);
	json_uint(json, "steps", kind ? kind->steps : 0);
	if (report->tally->profiled[index])
		write_stats(json, "profiled", report->tally->profiled[index]);
	write_sampling(json, report->window, index);
	if (!kind)
		goto out;
	json_object_begin(json, "ends");
	for (int i = 0; i < TALLY_ENDS; i++)
		json_uint(json, step_end_name(i), kind->ends[i]);
	json_object_end(json);
	json_uint(json, "incomplete_steps", kind->incomplete);
	if (kind->polls)
		json_uint(json, "polls", kind->polls);
	if (tally_calls_known(kind))
		json_uint(json, "lost_calls", kind->lost_calls);
	write_stats(json, "duration", kind->duration);
	json_uint(json, "total_ns", kind->total_ns);
	write_calls(json, kind);
	write_parts(json, kind);
	write_tail(json, kind, kind->tail);
	write_classes(json, report, index);
	write_stats(json, "gap", kind->gap);
	write_other_calls(json, kind);
	write_team(json, kind);
	report_json_stalls(json, kind);
	write_args(json, &report->window->kinds[index], kind);
	write_slowest(json, kind);
	write_gpu_kind(json, report, index);
out:
	json_object_end(json);
}

static void write_table(struct json *json, const struct window *window,
			const struct process *process)
{
	char name[24];

	json_array_begin(json, "syscalls");
	vec_for_each (row, &process->table.rows) {
		if (!row->sum.calls && !row->unfinished)
			continue;
		json_object_begin(json, NULL);
		json_string(json, "name", syscall_label(window->record.arch, row->nr, name));
		json_uint(json, "nr", row->nr);
		json_string(json, "category",
			    category_name(syscall_category(window->record.arch, row->nr)));
		write_sum(json, &row->sum);
		json_uint(json, "unfinished", row->unfinished);
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_use(struct json *json, const struct window *window,
		      const struct fbt_thread_use *use)
{
	bool is_known = use->header.flags & FBT_USE_CPU_KNOWN;

	put_known(json, "cpu_ns", is_known, use->cpu_ns);
	put_known(json, "cpu_wait_ns", is_known, use->delay_ns);
	put_known(json, "blocked_ns", is_known && use->traced_ns,
		  sub_saturating(use->traced_ns, add_saturating(use->cpu_ns, use->delay_ns)));
	if (!window__traces_calls(window))
		return;
	json_uint(json, "calls", use->calls);
	json_uint(json, "syscall_ns", use->call_ns);
}

static void write_threads(struct json *json, const struct window *window,
			  const struct thread_table *table)
{
	const char *known;

	if (!table->threads.count)
		return;
	json_array_begin(json, "threads");
	vec_for_each (use, &table->threads) {
		known = window__thread_name(window, use->tid);
		json_object_begin(json, NULL);
		json_uint(json, "tid", use->tid);
		json_string(json, "name", *use->comm ? use->comm : known);
		write_use(json, window, use);
		json_bool(json, "steps", use->header.flags & FBT_USE_STEPS);
		json_bool(json, "ended", use->header.flags & FBT_USE_ENDED);
		json_object_end(json);
	}
	json_array_end(json);
	if (!table->overflow_count)
		return;
	json_object_begin(json, "more_threads");
	json_uint(json, "count", table->overflow_count);
	write_use(json, window, &table->rest);
	json_object_end(json);
}

static void write_process(struct json *json, const struct window *window,
			  const struct process *process)
{
	json_object_begin(json, NULL);
	json_uint(json, "pid", process->record.tgid);
	put_known(json, "parent_pid", process->record.parent_tgid, process->record.parent_tgid);
	json_string(json, "comm", process->comm);
	json_string(json, "exe", process->exe);
	json_string(json, "cmdline", process->cmdline);
	json_uint(json, "traced_ns", tally_process_ns(window, process));
	json_bool(json, "exited", process->exit_ns != 0);
	if (window__traces_calls(window))
		write_table(json, window, process);
	write_threads(json, window, &process->threads);
	report_json_python(json, window, process);
	json_object_end(json);
}

void report_json_write(const struct report *report)
{
	const struct window *window = report->window;
	struct json json = {.out = report->out, .shown = true};

	json_object_begin(&json, NULL);
	write_window(&json, window);
	write_hangs(&json, window);
	report_json_findings(&json, report);
	json_array_begin(&json, "kinds");
	for (uint32_t i = 0; i < FBT_KIND_COUNT; i++)
		if (report->tally->kinds[i] || (i && window->kind_known[i]))
			write_kind(&json, report, i);
	json_array_end(&json);
	report_json_ranks(&json, report);
	json_array_begin(&json, "processes");
	for (size_t i = 0; i < window->processes.count; i++)
		write_process(&json, window, window->processes.items[i]);
	json_array_end(&json);
	write_gpu_processes(&json, window);
	report_json_driver(&json, report);
	write_escalations(&json, report);
	report_json_cost(&json, report);
	json_array_begin(&json, "files");
	for (size_t i = 0; report->files && report->files[i]; i++)
		json_string(&json, NULL, report->files[i]);
	json_array_end(&json);
	json_object_end(&json);
	fputc('\n', report->out);
}
