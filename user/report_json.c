/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report_json.h"

#include <inttypes.h>
#include <string.h>

#include "json.h"
#include "report_format.h"
#include "report_json_escalations.h"
#include "report_json_gpu.h"
#include "syscalls.h"

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
	static const char *const details[] = {"steps", "escalated", "all"};

	json_string(json, "tool_version", window->tool_version);
	json_string(json, "tag", window->tag);
	json_string(json, "host", window->host);
	json_string(json, "kernel_release", window->kernel_release);
	json_string(json, "detail",
		    window->record.detail <= FBT_DETAIL_ALL ? details[window->record.detail]
							    : NULL);
	json_uint(json, "window_ns", tally_window_ns(window));
	json_uint(json, "interval_ns", window->record.interval_ns);
	json_bool(json, "cut_off", window->cut_off);
	json_uint(json, "steps", window->steps);
	json_uint(json, "incomplete_steps", window->incomplete_steps);
	json_uint(json, "skipped_records", window->skipped_records);
	json_uint(json, "processes_left_out", window->processes_left_out);

	json_object_begin(json, "lost");
	for (int i = 0; i < FBT_LOST_COUNT; i++)
		json_uint(json, lost_cause_name(i), window->lost.count[i]);
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
		json_uint(json, "compute_ns", step->compute_ns);
		json_string(json, "dominant_syscall",
			    step->sum.ns ? category_name(step->dominant) : "none");
		json_uint(json, "dominant_ns", step->sum.ns);
		json_uint(json, "dominant_max_call_ns", step->sum.max_ns);
		json_string(json, "end", step_end_name(step->end));
		json_bool(json, "complete", step->complete);
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_function(struct json *json, const struct window *window, uint32_t index)
{
	const struct kind *known = &window->kinds[index];
	char address[24];

	json_string(json, "name", window__kind_name(window, index));
	json_string(json, "step_source", window__step_source(window, index));
	json_string(json, "path", index ? known->path : NULL);
	snprintf(address, sizeof(address), "0x%" PRIx64, (uint64_t)known->record.address);
	json_string(json, "address", known->record.address ? address : NULL);
	json_bool(json, "builtin", known->record.builtin);
	json_uint(json, "exits", known->record.exits);
}

/* null: all of its steps are there. */
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
	json_double(json, "watched_percent", tally_sampled_percent(window, index));
	json_uint(json, "calls", sampling->calls);
	json_double(json, "calls_per_s", (double)tally_sampled_calls_per_s(window, index));
	json_uint(json, "cost_percent", sampling->cost_percent);
	json_uint(json, "cut_steps", sampling->cut_steps);
	json_object_end(json);
}

static void write_kind(struct json *json, const struct report *report, uint32_t index)
{
	const struct tally_kind *kind = report->tally->kinds[index];

	json_object_begin(json, NULL);
	write_function(json, report->window, index);
	json_uint(json, "steps", kind ? kind->steps : 0);
	write_sampling(json, report->window, index);
	if (!kind)
		goto out;
	json_object_begin(json, "ends");
	for (int i = 0; i < TALLY_ENDS; i++)
		json_uint(json, step_end_name(i), kind->ends[i]);
	json_object_end(json);
	json_uint(json, "incomplete_steps", kind->incomplete);
	json_uint(json, "lost_calls", kind->lost_calls);
	write_stats(json, "duration", kind->duration);
	json_uint(json, "total_ns", kind->total_ns);
	json_uint(json, "syscall_ns", tally_syscall_ns(kind));
	json_uint(json, "syscall_calls", tally_calls(kind));
	write_categories(json, kind);
	write_stats(json, "gap", kind->gap);
	json_uint(json, "gap_syscall_ns", kind->gap_syscall_ns);
	if (kind->other_steps) {
		json_uint(json, "other_threads_syscall_ns", kind->other_ns);
		json_double(json, "other_threads_syscall_mean_per_step_ns",
			    (double)kind->other_ns / (double)kind->other_steps);
	} else {
		json_null(json, "other_threads_syscall_ns");
		json_null(json, "other_threads_syscall_mean_per_step_ns");
	}
	json_uint(json, "threads_max", kind->threads_max);
	write_args(json, &report->window->kinds[index], kind);
	write_slowest(json, kind);
	report_json_gpu_kind(json, report, index);
out:
	json_object_end(json);
}

static void write_process(struct json *json, const struct window *window,
			  const struct process *process)
{
	char name[24];

	json_object_begin(json, NULL);
	json_uint(json, "pid", process->record.tgid);
	if (process->record.parent_tgid)
		json_uint(json, "parent_pid", process->record.parent_tgid);
	else
		json_null(json, "parent_pid");
	json_string(json, "comm", process->comm);
	json_string(json, "exe", process->exe);
	json_string(json, "cmdline", process->cmdline);
	json_uint(json, "traced_ns", tally_process_ns(window, process));
	json_bool(json, "exited", process->exit_ns != 0);
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
	json_object_end(json);
}

static void write_cost(struct json *json, const struct report *report)
{
	const struct fbt_cost *measured = &report->window->cost;
	struct tally_cost cost;

	tally_cost(report->tally, report->window, &cost);
	json_object_begin(json, "cost");
	json_uint(json, "per_call_ps", measured->call_ps);
	json_uint(json, "per_neighbor_call_ps", measured->neighbor_ps);
	json_uint(json, "per_step_ns", measured->step_ns);
	json_uint(json, "floor_ns", measured->floor_ns);
	json_uint(json, "calls", cost.calls);
	json_uint(json, "added_by_calls_ns", cost.call_ns);
	json_uint(json, "added_by_steps_ns", cost.step_ns);
	json_uint(json, "traced_ns", cost.traced_ns);
	json_double(json, "added_percent", cost.percent);
	json_double(json, "added_in_steps_percent", cost.step_percent);
	json_uint(json, "tool_cpu_ns", measured->cpu_ns);
	json_uint(json, "tool_rss_bytes", measured->rss_bytes);
	json_uint(json, "ring_bytes", measured->ring_bytes);
	json_uint(json, "bpf_run_ns", measured->bpf_run_ns);
	json_uint(json, "bpf_run_count", measured->bpf_run_count);
	json_object_end(json);
}

void report_json_write(const struct report *report)
{
	const struct window *window = report->window;
	struct json json = {.out = report->out, .shown = true};

	json_object_begin(&json, NULL);
	write_window(&json, window);
	json_array_begin(&json, "kinds");
	for (uint32_t i = 0; i < FBT_KIND_COUNT; i++)
		if (report->tally->kinds[i] || (i && window->kind_known[i]))
			write_kind(&json, report, i);
	json_array_end(&json);
	json_array_begin(&json, "processes");
	for (size_t i = 0; i < window->processes.count; i++)
		write_process(&json, window, window->processes.items[i]);
	json_array_end(&json);
	report_json_gpu_processes(&json, window);
	report_json_escalations(&json, report);
	write_cost(&json, report);
	json_array_begin(&json, "files");
	for (size_t i = 0; report->files && report->files[i]; i++)
		json_string(&json, NULL, report->files[i]);
	json_array_end(&json);
	json_object_end(&json);
	fputc('\n', report->out);
}
