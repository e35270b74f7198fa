/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "step_args.h"

#include <stdio.h>
#include <string.h>

#include "gpu_step.h"

#define NS_PER_US 1000

static void add_step_args(struct step_args *args, const struct window *window,
			  const struct fbt_step *record)
{
	if (record->kind >= FBT_KIND_COUNT)
		return;
	for (uint32_t i = 0; i < FBT_ARG_COUNT; i++) {
		const char *name = window->kinds[record->kind].arg_names[i];
		char *key = args->keys[i];

		if (!name || !(record->arg_mask & (1u << i)))
			continue;
		snprintf(key, STEP_ARG_KEY_SIZE, "%s", name);
		if (json_fields_int(&args->fields, key, record->args[i]))
			continue;
		snprintf(key, STEP_ARG_KEY_SIZE, "arg%u.%s", i, name);
		json_fields_int(&args->fields, key, record->args[i]);
	}
}

static void add_figures(struct json_fields *fields, const struct step *step)
{
	static const char *const category_keys[FBT_CATEGORY_COUNT] = {
		"mmap_us", "futex_us", "ioctl_us", "read_us", "write_us", "other_us",
	};
	struct breakdown breakdown;

	step_breakdown(step, &breakdown);
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		json_fields_uint(fields, category_keys[i], breakdown.category_us[i]);
	json_fields_uint(fields, "compute_us", breakdown_compute_us(&breakdown));
	json_fields_uint(fields, "syscall_us", breakdown_syscall_us(&breakdown));
	json_fields_string(fields, "dominant", breakdown_dominant(&breakdown));
	json_fields_double(fields, "overhead_percent", breakdown_overhead_tenths(&breakdown));
	json_fields_uint(fields, "calls", step_calls(step));
	json_fields_uint(fields, "errors", step_errors(step));
	json_fields_uint(fields, "step", step->number);
	json_fields_uint(fields, "kind_number", step->kind_number);
}

static void add_gpu(struct json_fields *fields, const struct step_gpu *gpu)
{
	const struct gpu_figures *all = &gpu->all;

	json_fields_uint(fields, "gpu_busy_us", all->busy_ns / NS_PER_US);
	json_fields_uint(fields, "gpu_idle_us", all->idle_ns / NS_PER_US);
	json_fields_uint(fields, "gpu_host_wait_us", all->host_wait_ns / NS_PER_US);
	json_fields_uint(fields, "gpu_launch_us", all->launch_ns / NS_PER_US);
	json_fields_uint(fields, "gpu_queue_us", all->queue_ns / NS_PER_US);
	json_fields_string(fields, "gpu_bound", gpu_bound_name(gpu->bound));
	if (!gpu->complete)
		json_fields_bool(fields, "gpu_complete", false);
}

/* Only what is out of the ordinary, so that it stands out in a viewer. */
static void add_flaws(struct json_fields *fields, const struct step *step)
{
	if (!(step->record.header.flags & FBT_STEP_NO_GAP))
		json_fields_uint(fields, "gap_us", step->record.gap_ns / NS_PER_US);
	if (step->record.end != FBT_END_RETURN)
		json_fields_string(fields, "end",
				   step_end_name((enum fbt_step_end)step->record.end));
	if (!step->complete)
		json_fields_bool(fields, "complete", false);
	if (step->record.lost_calls)
		json_fields_uint(fields, "lost_calls", step->record.lost_calls);
	if (step->calls_truncated)
		json_fields_bool(fields, "calls_truncated", true);
	if (step->record.header.flags & FBT_STEP_SAMPLED)
		json_fields_bool(fields, "sampled", true);
}

void step_args_fill(struct step_args *args, const struct window *window, const struct step *step)
{
	const char *source = window__step_source(window, step->record.kind);
	struct json_fields *fields = &args->fields;

	fields->count = 0;
	add_figures(fields, step);
	if (step->gpu)
		add_gpu(fields, step->gpu);
	add_flaws(fields, step);
	if (!strcmp(source, "interval"))
		json_fields_string(fields, "step_source", source);
	add_step_args(args, window, &step->record);
}
