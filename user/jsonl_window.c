/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "jsonl_window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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
	return err;
}

static void add_verdicts(struct json_fields *shape, const struct classify_counts *counts)
{
	json_fields_uint(shape, "escalations", counts->escalated);
	json_fields_uint(shape, "escalations_suppressed", counts->suppressed);
	json_fields_uint(shape, "escalations_repeated", counts->repeated);
	json_fields_uint(shape, "judged_steps", counts->judged);
	json_fields_uint(shape, "unjudged_steps", counts->unjudged);
}

int jsonl_window_fill(struct jsonl_window *event, const struct window *window,
		      const struct classify_counts *counts)
{
	uint64_t start_ns = window->record.start_ns;
	uint64_t total_ns = window->end_ns > start_ns ? window->end_ns - start_ns : 0;
	int err;

	*event = (struct jsonl_window){0};
	err = join_names(window, &event->pids, &event->functions);
	if (err) {
		jsonl_window_clear(event);
		return err;
	}
	add_identity(&event->shape, window);
	add_counts(&event->shape, event->lost_keys, window);
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
	event->pids = NULL;
	event->functions = NULL;
}
