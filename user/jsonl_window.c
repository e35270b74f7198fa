/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "jsonl_window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tally.h"

#define NS_PER_US 1000

static void add_identity(struct json_fields *shape, const struct window *window)
{
	static const char *const details[] = {"steps", "escalated", "all"};
	const struct fbt_window *record = &window->record;

	json_fields_string(shape, "tag", window->tag);
	json_fields_string(shape, "tool_version", window->tool_version);
	json_fields_string(shape, "kernel", window->kernel_release);
	json_fields_string(shape, "host", window->host);
	json_fields_string(shape, "arch", record->arch == FBT_ARCH_ARM64 ? "arm64" : "x86_64");
	json_fields_string(shape, "detail",
			   record->detail <= FBT_DETAIL_ALL ? details[record->detail] : "unknown");
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
	if (window->processes_left_out)
		json_fields_uint(shape, "processes_left_out", window->processes_left_out);
	json_fields_bool(shape, "cut_off", window->cut_off);
	for (int i = 0; i < FBT_LOST_COUNT; i++) {
		snprintf(lost_keys[i], JSONL_KEY_SIZE, "lost_%s",
			 lost_cause_name((enum fbt_lost_cause)i));
		json_fields_uint(shape, lost_keys[i], window->lost.count[i]);
	}
}

/* What was not measured is left out and not written as 0. */
static void add_cost(struct json_fields *shape, const struct fbt_cost *cost)
{
	if (cost->call_ps)
		json_fields_double(shape, "call_overhead_ns", (double)cost->call_ps / 1000.0);
	if (cost->neighbor_ps)
		json_fields_double(shape, "neighbor_overhead_ns",
				   (double)cost->neighbor_ps / 1000.0);
	if (cost->step_ns)
		json_fields_uint(shape, "step_overhead_ns", cost->step_ns);
	if (cost->floor_ns)
		json_fields_uint(shape, "floor_ns", cost->floor_ns);
	if (cost->rss_bytes)
		json_fields_uint(shape, "rss_bytes", cost->rss_bytes);
	if (cost->ring_bytes)
		json_fields_uint(shape, "ring_bytes", cost->ring_bytes);
	if (cost->bpf_run_count) {
		json_fields_uint(shape, "bpf_run_us", cost->bpf_run_ns / NS_PER_US);
		json_fields_uint(shape, "bpf_run_count", cost->bpf_run_count);
	}
	if (cost->cpu_ns)
		json_fields_uint(shape, "tool_cpu_us", cost->cpu_ns / NS_PER_US);
}

/* "1,2,3" and "f; g" (names of C++ functions hold commas). -ENOMEM, or 0 with both to be freed. */
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
	/* Without memory for its first byte a stream says nothing. */
	if (!*pids || !*functions)
		err = -ENOMEM;
	return err;
}

/* Of those the one that was watched least. */
static void add_sampling(struct jsonl_window *event, const struct window *window)
{
	uint32_t least = 0;
	uint64_t count = 0;

	for (uint32_t i = 1; i < FBT_KIND_COUNT; i++) {
		if (!window->sampling[i].kind)
			continue;
		count++;
		if (!least ||
		    tally_sampled_percent(window, i) < tally_sampled_percent(window, least))
			least = i;
	}
	if (!least)
		return;
	json_fields_uint(&event->shape, "sampled_functions", count);
	json_fields_string(&event->shape, "sampled_function", window__kind_name(window, least));
	json_fields_double(&event->shape, "sampled_percent", tally_sampled_percent(window, least));
	json_fields_double(&event->shape, "sampled_calls_per_s",
			   (double)tally_sampled_calls_per_s(window, least));
}

static void add_verdicts(struct json_fields *shape, const struct classify_counts *counts)
{
	json_fields_uint(shape, "escalations", counts->escalated);
	json_fields_uint(shape, "escalations_suppressed", counts->suppressed);
	json_fields_uint(shape, "escalations_repeated", counts->repeated);
	json_fields_uint(shape, "judged_steps", counts->judged);
	json_fields_uint(shape, "unjudged_steps", counts->unjudged);
}

/* How things stand with a process, where that says more than that it uses no GPU. */
static bool is_told(const struct gpu_process *process)
{
	return process->state.status != FBT_GPU_NOT_CUDA;
}

/* "1,2", "armed,busy" and "held by nsys; …". -ENOMEM, or 0 with all three to be freed. */
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

static uint64_t larger(uint64_t left, uint64_t right)
{
	return left > right ? left : right;
}

/* What is the same for all processes of one machine is told of the last that was armed. */
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
		arm_ns = larger(arm_ns, process->arm_ns);
		error_ns = larger(error_ns, process->flush.clock_error_ns);
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

static void sum_gpu(const struct gpu_table *table, struct gpu_counts *counts,
		    struct fbt_gpu_flush *flush)
{
	vec_for_each (entry, &table->processes) {
		const struct gpu_counts *of = &(*entry)->counts;
		const struct fbt_gpu_flush *last = &(*entry)->flush;

		counts->kernels += of->kernels;
		counts->memcpys += of->memcpys;
		counts->memsets += of->memsets;
		counts->apis += of->apis;
		counts->syncs += of->syncs;
		counts->unmeasured += of->unmeasured;
		counts->joined += of->joined;
		counts->unjoined += of->unjoined;
		counts->violations += of->violations;
		counts->outside += of->outside;
		counts->steps += of->steps;
		counts->timeouts += of->timeouts;
		flush->records += last->records;
		flush->cupti_dropped += last->cupti_dropped;
		flush->ring_lost += last->ring_lost;
		flush->no_buffer += last->no_buffer;
		flush->unknown += last->unknown;
		flush->shim_ns += last->shim_ns;
	}
}

static void add_gpu_counts(struct json_fields *shape, const struct gpu_table *table)
{
	struct gpu_counts counts = {0};
	struct fbt_gpu_flush flush = {.records = 0};

	sum_gpu(table, &counts, &flush);
	json_fields_uint(shape, "gpu_kernels", counts.kernels);
	json_fields_uint(shape, "gpu_memcpys", counts.memcpys);
	json_fields_uint(shape, "gpu_memsets", counts.memsets);
	json_fields_uint(shape, "gpu_apis", counts.apis);
	json_fields_uint(shape, "gpu_syncs", counts.syncs);
	json_fields_uint(shape, "gpu_unmeasured", counts.unmeasured);
	json_fields_uint(shape, "gpu_joined", counts.joined);
	json_fields_uint(shape, "gpu_unjoined", counts.unjoined);
	json_fields_uint(shape, "gpu_violations", counts.violations);
	json_fields_uint(shape, "gpu_outside", counts.outside);
	json_fields_uint(shape, "gpu_steps", counts.steps);
	json_fields_uint(shape, "gpu_timeouts", counts.timeouts);
	json_fields_uint(shape, "gpu_records", flush.records);
	json_fields_uint(shape, "gpu_cupti_dropped", flush.cupti_dropped);
	json_fields_uint(shape, "gpu_ring_lost", flush.ring_lost);
	json_fields_uint(shape, "gpu_no_buffer", flush.no_buffer);
	json_fields_uint(shape, "gpu_unknown", flush.unknown);
	json_fields_uint(shape, "gpu_shim_us", flush.shim_ns / NS_PER_US);
}

/* Nothing if nothing was said of any process: a capture of a version without a GPU side. */
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
	add_gpu_counts(&event->shape, table);
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
	add_verdicts(&event->shape, counts);
	add_cost(&event->shape, &window->cost);
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
	event->pids = NULL;
	event->functions = NULL;
	event->gpu.pids = NULL;
	event->gpu.status = NULL;
	event->gpu.detail = NULL;
}
