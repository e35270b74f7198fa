/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/jsonl_window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arith.h"
#include "base/clock.h"
#include "output/slice.h"

static void add_identity(struct json_fields *shape, const struct window *window)
{
	const struct fbt_window *record = &window->record;
	const char *detail = detail_name(record->detail);

	json_fields_string(shape, "tag", window->tag);
	json_fields_uint(shape, "schema", JSONL_SCHEMA);
	json_fields_string(shape, "tool_version", window->tool_version);
	json_fields_string(shape, "kernel", window->kernel_release);
	json_fields_string(shape, "host", window->host);
	json_fields_string(shape, "arch", record->arch == FBT_ARCH_ARM64 ? "arm64" : "x86_64");
	json_fields_string(shape, "detail", detail ? detail : "unknown");
	json_fields_uint(shape, "epoch_monotonic_us", record->start_ns / NS_PER_US);
	json_fields_uint(shape, "epoch_realtime_us", record->realtime_ns / NS_PER_US);
	if (record->interval_ns)
		json_fields_uint(shape, "interval_us", record->interval_ns / NS_PER_US);
}

/* lost_keys must outlive shape. */
static void add_counts(struct json_fields *shape, char lost_keys[][JSONL_KEY_SIZE],
		       const struct window *window)
{
	json_fields_uint(shape, "steps", window->steps);
	json_fields_uint(shape, "incomplete_steps", window->incomplete_steps);
	json_fields_uint(shape, "skipped_records", window->skipped_records);
	if (window->unkept_records)
		json_fields_uint(shape, "unkept_records", window->unkept_records);
	if (window->unseen_calls)
		json_fields_uint(shape, "unseen_calls", window->unseen_calls);
	if (window->overflow_processes)
		json_fields_uint(shape, "processes_left_out", window->overflow_processes);
	json_fields_bool(shape, "cut_off", window->cut_off);
	for (int i = 0; i < FBT_LOST_COUNT; i++) {
		if (!window__may_lose(window, (enum fbt_lost_cause)i))
			continue;
		snprintf(lost_keys[i], JSONL_KEY_SIZE, "lost_%s",
			 lost_cause_name((enum fbt_lost_cause)i));
		json_fields_uint(shape, lost_keys[i], window->lost.count[i]);
	}
}

/* Costs that were not measured are left out. */
static void add_cost(struct json_fields *shape, const struct fbt_cost *cost)
{
	if (cost->call_ps)
		json_fields_double(shape, "call_overhead_ns", (double)cost->call_ps / 1000.0);
	if (cost->neighbor_ps)
		json_fields_double(shape, "neighbor_overhead_ns",
				   (double)cost->neighbor_ps / 1000.0);
	if (cost->step_ns)
		json_fields_uint(shape, "step_overhead_ns", cost->step_ns);
	if (cost->fault_ps)
		json_fields_double(shape, "timed_fault_overhead_ns",
				   (double)cost->fault_ps / 1000.0);
	if (cost->floor_ns)
		json_fields_uint(shape, "floor_ns", cost->floor_ns);
	if (cost->rss_bytes)
		json_fields_uint(shape, "rss_bytes", cost->rss_bytes);
	if (cost->ring_bytes)
		json_fields_uint(shape, "ring_bytes", cost->ring_bytes);
	if (cost->cpu_ns)
		json_fields_uint(shape, "tool_cpu_us", cost->cpu_ns / NS_PER_US);
}

/*
 * Makes "1,2,3" and "f; g" (names of C++ functions contain commas). 0, and both are to be freed; or
 * -ENOMEM.
 */
static int join_names(const struct window *window, char **pids, char **functions)
{
	size_t pids_size, functions_size;
	FILE *pids_out = open_memstream(pids, &pids_size);
	FILE *functions_out = open_memstream(functions, &functions_size);
	const char *separator = "";
	int err = 0;

	if (!pids_out || !functions_out) {
		err = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < window->processes.count; i++)
		fprintf(pids_out, "%s%u", i ? "," : "", window->processes.items[i]->record.tgid);
	for (uint32_t i = 0; i < FBT_KIND_COUNT; i++) {
		if (!window->kind_known[i])
			continue;
		fprintf(functions_out, "%s%s", separator, window__kind_name(window, i));
		separator = "; ";
	}
out:
	if (pids_out && fclose(pids_out))
		err = -ENOMEM;
	if (functions_out && fclose(functions_out))
		err = -ENOMEM;
	/* A stream that found no memory for its first byte reports no error. */
	if (!*pids || !*functions)
		err = -ENOMEM;
	return err;
}

/* Adds the number of sampled functions, and the figures of the one that was watched least. */
static void add_sampling(struct jsonl_window *event, const struct window *window)
{
	uint32_t least = 0;
	uint64_t count = 0;

	for (uint32_t i = 1; i < FBT_KIND_COUNT; i++) {
		if (!window->sampling[i].kind)
			continue;
		count++;
		if (!least ||
		    window__sampled_percent(window, i) < window__sampled_percent(window, least))
			least = i;
	}
	if (!least)
		return;
	json_fields_uint(&event->shape, "sampled_functions", count);
	json_fields_string(&event->shape, "sampled_function", window__kind_name(window, least));
	json_fields_double(&event->shape, "sampled_percent",
			   window__sampled_percent(window, least));
	json_fields_double(&event->shape, "sampled_calls_per_s",
			   (double)window__sampled_calls_per_s(window, least));
}

/* Calls of step functions that were not traced; absent if there were none (struct fbt_ends). */
static void add_untraced(struct jsonl_window *event, const struct window *window)
{
	uint64_t count = 0;

	for (uint32_t i = 1; i < FBT_KIND_COUNT; i++)
		count = add_saturating(count, window->ends[i].unseen_steps);
	if (count)
		json_fields_uint(&event->shape, "untraced_steps", count);
}

static void add_verdicts(struct json_fields *shape, const struct classify_counts *counts)
{
	json_fields_uint(shape, "escalations", counts->escalated);
	json_fields_uint(shape, "escalations_suppressed", counts->suppressed);
	json_fields_uint(shape, "escalations_repeated", counts->repeated);
	if (counts->as_usual)
		json_fields_uint(shape, "escalations_as_usual", counts->as_usual);
	json_fields_uint(shape, "judged_steps", counts->judged);
	json_fields_uint(shape, "unjudged_steps", counts->unjudged);
	if (counts->profiled)
		json_fields_uint(shape, "profiled_steps", counts->profiled);
}

/* Whether the GPU status of a process is reported: not if it uses no GPU. */
static bool is_told(const struct gpu_process *process)
{
	return process->state.status != FBT_GPU_NOT_CUDA;
}

/* Makes "1,2", "armed,busy" and "held by nsys; …". 0, and all three are to be freed; or -ENOMEM. */
static int join_gpu_states(struct jsonl_window *event, const struct gpu_table *table)
{
	char **const texts[] = {&event->gpu.pids, &event->gpu.status, &event->gpu.detail};
	size_t sizes[3], count = 0, details = 0;
	FILE *out[3];
	int err = 0;

	for (int i = 0; i < 3; i++)
		out[i] = open_memstream(texts[i], &sizes[i]);
	for (size_t i = 0; i < table->processes.count && out[0] && out[1] && out[2]; i++) {
		const struct gpu_process *process = table->processes.items[i];

		if (!is_told(process))
			continue;
		fprintf(out[0], "%s%u", count ? "," : "", process->tgid);
		fprintf(out[1], "%s%s", count++ ? "," : "",
			gpu_status_name((enum fbt_gpu_status)process->state.status));
		if (*process->detail)
			fprintf(out[2], "%s%s", details++ ? "; " : "", process->detail);
	}
	if (!count && out[1])
		fputs(gpu_status_name(FBT_GPU_NOT_CUDA), out[1]);
	for (int i = 0; i < 3; i++) {
		if (!out[i] || fclose(out[i]) || !*texts[i])
			err = -ENOMEM;
	}
	return err;
}

/*
 * Adds versions and clock, which all processes of a machine have in common; they are those of the
 * last process that was armed.
 */
static void add_gpu_setup(struct jsonl_window *event, const struct gpu_table *table)
{
	struct json_fields *shape = &event->shape;
	const struct gpu_process *armed = NULL;
	uint64_t count = 0, arm_ns = 0, error_ns = 0, clock_steps = 0;

	vec_for_each (entry, &table->processes) {
		const struct gpu_process *process = *entry;

		if (!process->armed)
			continue;
		armed = process;
		count++;
		arm_ns = max_u64(arm_ns, process->arm_ns);
		error_ns = max_u64(error_ns, process->flush.clock_error_ns);
		clock_steps += process->flush.clock_steps;
	}
	json_fields_uint(shape, "gpu_armed", count);
	if (!armed)
		return;
	json_fields_uint(shape, "gpu_arm_us", arm_ns / NS_PER_US);
	json_fields_string(shape, "gpu_cupti",
			   gpu_cupti_version_name(armed->state.cupti_version, event->gpu.version));
	json_fields_uint(shape, "gpu_cupti_version", armed->state.cupti_version);
	json_fields_uint(shape, "gpu_driver_version", armed->state.driver_version);
	json_fields_uint(shape, "gpu_shim_version", armed->state.shim_version);
	json_fields_string(shape, "gpu_library", armed->library);
	json_fields_string(shape, "gpu_clock",
			   gpu_clock_name((enum fbt_gpu_clock_method)armed->state.clock_method));
	json_fields_uint(shape, "gpu_clock_error_ns", error_ns);
	json_fields_uint(shape, "gpu_clock_steps", clock_steps);
}

/*
 * Adds the sums, over all processes, of members of the part of struct gpu_process at that offset.
 * keys is part of event.
 */
static void add_sums(struct jsonl_window *event, const struct gpu_table *table, size_t part,
		     const struct json_member *members, int count, char keys[][JSONL_KEY_SIZE])
{
	for (int i = 0; i < count; i++) {
		uint64_t sum = 0;

		vec_for_each (process, &table->processes)
			sum += json_member_get(&members[i], (const char *)*process + part);
		snprintf(keys[i], JSONL_KEY_SIZE, "gpu_%s", members[i].key);
		json_fields_uint(&event->shape, keys[i], sum);
	}
}

static void add_gpu_counts(struct jsonl_window *event, const struct gpu_table *table)
{
	uint64_t shim_ns = 0;

	vec_for_each (process, &table->processes)
		shim_ns += (*process)->flush.shim_ns;
	json_fields_uint(&event->shape, "gpu_shim_us", shim_ns / NS_PER_US);
	add_sums(event, table, offsetof(struct gpu_process, counts), gpu_window_counts,
		 GPU_WINDOW_COUNTS, event->gpu.count_keys);
	add_sums(event, table, offsetof(struct gpu_process, flush), gpu_flush_counts,
		 GPU_FLUSH_COUNTS, event->gpu.flush_keys);
}

/* Adds nothing for a capture of a version without GPU records. */
static int add_gpu(struct jsonl_window *event, const struct gpu_table *table)
{
	int err;

	if (!table->processes.count)
		return 0;
	err = join_gpu_states(event, table);
	if (err)
		return err;
	json_fields_string(&event->shape, "gpu_pids", event->gpu.pids);
	json_fields_string(&event->shape, "gpu_status", event->gpu.status);
	json_fields_string(&event->shape, "gpu_detail", event->gpu.detail);
	add_gpu_setup(event, table);
	add_gpu_counts(event, table);
	return 0;
}

int jsonl_window_fill(struct jsonl_window *event, const struct window *window,
		      const struct classify_counts *counts)
{
	uint64_t start_ns = window->record.start_ns;
	uint64_t total_ns = window->end_ns > start_ns ? window->end_ns - start_ns : 0;
	int err;

	*event = (struct jsonl_window){0};
	err = join_names(window, &event->pids, &event->functions);
	if (!err)
		err = add_gpu(event, &window->gpus);
	if (err) {
		jsonl_window_clear(event);
		return err;
	}
	add_identity(&event->shape, window);
	add_counts(&event->shape, event->lost_keys, window);
	add_sampling(event, window);
	add_untraced(event, window);
	add_verdicts(&event->shape, counts);
	add_cost(&event->shape, &window->cost);
	if (window__is_gpu_strict(window))
		json_fields_bool(&event->shape, "gpu_strict", true);
	json_fields_uint(&event->shape, "targets", window->processes.count);
	json_fields_string(&event->shape, "pids", event->pids);
	json_fields_string(&event->shape, "step_functions", event->functions);
	json_fields_uint(&event->stage_us, "total", total_ns / NS_PER_US);
	return 0;
}

void jsonl_window_clear(struct jsonl_window *event)
{
	free(event->pids);
	free(event->functions);
	free(event->gpu.pids);
	free(event->gpu.status);
	free(event->gpu.detail);
}
