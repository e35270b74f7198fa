/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report_format.h"
#include "report_part.h"

#define TARGETS_MAX   8
#define CMDLINE_WIDTH 160

static const char *detail_name(uint32_t detail)
{
	switch ((enum fbt_detail)detail) {
	case FBT_DETAIL_STEPS:
		return "steps";
	case FBT_DETAIL_ESCALATED:
		return "escalated";
	case FBT_DETAIL_ALL:
		return "all";
	}
	return "unknown";
}

static void write_targets(const struct report *report)
{
	const struct window *window = report->window;
	size_t count = window->processes.count;

	for (size_t i = 0; i < count && i < TARGETS_MAX; i++) {
		const struct process *process = window->processes.items[i];
		const char *shown = *process->cmdline ? process->cmdline : process->exe;
		char comm[40], cmdline[4 * CMDLINE_WIDTH + 1], end[FORMAT_MAX + 16] = "";
		char time[FORMAT_MAX];

		shorten_text(comm, sizeof(comm), *process->comm ? process->comm : "?", 15);
		shorten_text(cmdline, sizeof(cmdline), shown, CMDLINE_WIDTH);
		if (process->exit_ns)
			snprintf(end, sizeof(end), ", exited after %s",
				 format_time(time, (double)tally_process_ns(window, process)));
		report_field(report, i ? "" : "Target", "%" PRIu32 " %s%s: %s",
			     process->record.tgid, comm, end, *cmdline ? cmdline : "-");
	}
	if (count > TARGETS_MAX)
		report_field(report, "", "and %zu more processes", count - TARGETS_MAX);
}

static void write_function(const struct report *report, const char *label, const struct kind *kind,
			   bool called)
{
	const struct fbt_kind *record = &kind->record;
	char name[1024], path[1024], place[1100], exits[64];

	shorten_text(name, sizeof(name), kind->name, 240);
	shorten_text(path, sizeof(path), kind->path && *kind->path ? kind->path : "?", 200);
	if (record->address)
		snprintf(place, sizeof(place), "%s+0x%" PRIx64, path, (uint64_t)record->address);
	else
		snprintf(place, sizeof(place), "%s", path);
	if (record->source == FBT_SOURCE_USDT)
		snprintf(exits, sizeof(exits), "USDT probes");
	else if (record->exits)
		snprintf(exits, sizeof(exits), "%" PRIu32 " %s probed", record->exits,
			 record->exits == 1 ? "exit" : "exits");
	else
		snprintf(exits, sizeof(exits), "uretprobe");
	report_field(report, label, "%s (%s; %s%s)", name,
		     record->builtin ? "built-in table" : "--step", exits,
		     called ? "" : "; never called");
	report_field(report, "", "%s", place);
}

static void write_functions(const struct report *report)
{
	const struct window *window = report->window;
	const char *label = "Step function";
	char length[FORMAT_MAX];

	for (int i = 1; i < FBT_KIND_COUNT; i++) {
		if (!window->kind_known[i])
			continue;
		write_function(report, label, &window->kinds[i], report->tally->kinds[i]);
		label = "";
	}
	if (!window->record.interval_ns)
		return;
	format_time(length, (double)window->record.interval_ns);
	report_field(report, *label ? label : "", "none: fixed intervals of %s", length);
}

static void write_window(const struct report *report)
{
	const struct window *window = report->window;
	char length[FORMAT_MAX], tag[128], host[256], kernel[256];

	format_time(length, (double)tally_window_ns(window));
	shorten_text(tag, sizeof(tag), window->tag, 40);
	shorten_text(host, sizeof(host), window->host, 60);
	shorten_text(kernel, sizeof(kernel), window->kernel_release, 60);
	report_field(report, "Window", "%s, --detail %s, tag %s", length,
		     detail_name(window->record.detail), tag);
	report_field(report, "Host", "%s, Linux %s", host, kernel);
}

/* Always there: that nothing was lost is worth a line. */
static void write_lost(const struct report *report)
{
	const struct window *window = report->window;
	char total[FORMAT_MAX], count[FORMAT_MAX], open[FORMAT_MAX], text[256];
	size_t used = 0;

	format_count(total, window__lost_total(window));
	for (int i = 0; i < FBT_LOST_COUNT; i++) {
		format_count(count, window->lost.count[i]);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s", i ? ", " : "",
					 lost_cause_name(i), count);
	}
	report_field(report, "Records", "lost %s (%s)", total, text);
	format_count(count, window->incomplete_steps);
	format_count(open, tally_open_steps(report->tally));
	report_field(report, "", "incomplete steps %s, of them open at the end %s", count, open);
}

static void write_added(const struct report *report, const struct tally_cost *cost)
{
	const struct fbt_cost *measured = &report->window->cost;
	char calls[FORMAT_MAX], each[FORMAT_MAX], calls_ns[FORMAT_MAX], steps[FORMAT_MAX];
	char step[FORMAT_MAX], steps_ns[FORMAT_MAX], share[FORMAT_MAX], in_steps[FORMAT_MAX];

	if (!measured->call_ps) {
		report_field(report, "Cost", "added to the target: not measured");
		return;
	}
	format_percent(share, cost->percent);
	format_count(calls, cost->calls);
	format_time(each, (double)measured->call_ps / 1000);
	format_time(calls_ns, (double)cost->call_ns);
	format_count(steps, cost->steps);
	format_time(step, (double)measured->step_ns);
	format_time(steps_ns, (double)cost->step_ns);
	report_field(report, "Cost",
		     "added to the target: %s of the traced time, %s of the step time", share,
		     format_percent(in_steps, cost->step_percent));
	if (cost->steps)
		report_field(report, "", "%s calls x %s = %s, %s steps x up to %s = %s", calls,
			     each, calls_ns, steps, step, steps_ns);
	else
		report_field(report, "", "%s calls x %s = %s", calls, each, calls_ns);
}

static void write_cost(const struct report *report)
{
	const struct window *window = report->window;
	const struct fbt_cost *measured = &window->cost;
	char cpu[FORMAT_MAX], share[FORMAT_MAX], rss[FORMAT_MAX], rings[FORMAT_MAX];
	char neighbor[FORMAT_MAX], run[FORMAT_MAX], runs[FORMAT_MAX], floor[FORMAT_MAX];
	struct tally_cost cost;

	tally_cost(report->tally, window, &cost);
	write_added(report, &cost);
	format_time(cpu, (double)measured->cpu_ns);
	format_percent(share,
		       percent_of((double)measured->cpu_ns, (double)tally_window_ns(window)));
	format_bytes(rss, measured->rss_bytes);
	format_bytes(rings, measured->ring_bytes);
	if (measured->rss_bytes)
		report_field(report, "",
			     "the tool: %s CPU (%s of one core), RSS %s, rings shared with the "
			     "kernel %s",
			     cpu, share, rss, rings);
	if (measured->neighbor_ps) {
		format_time(neighbor, (double)measured->neighbor_ps / 1000);
		report_field(report, "", "added to each call of processes that are not traced: %s",
			     neighbor);
	}
	if (measured->bpf_run_count) {
		format_time(run, (double)measured->bpf_run_ns);
		format_count(runs, measured->bpf_run_count);
		report_field(report, "", "the kernel's BPF statistics: %s in %s runs", run, runs);
	}
	if (measured->floor_ns) {
		format_time(floor, (double)measured->floor_ns);
		report_field(report, "Resolution", "a call that does nothing reads as %s", floor);
	} else {
		report_field(report, "Resolution", "not measured");
	}
}

static void write_notes(const struct report *report)
{
	const struct tally *tally = report->tally;

	if (tally_main_kind(tally) >= 0)
		report_field(report, "Notes",
			     "compute is all time outside syscalls: waits for a GPU that spin in "
			     "user space, page faults and waiting for a CPU are in it");
	if (tally->kinds[0])
		report_field(
			report, "",
			"step_source: interval. Sums are time of all threads together, so they "
			"exceed the clock's; compute there is whatever is no syscall");
}

void report_about(const struct report *report)
{
	fputc('\n', report->out);
	write_targets(report);
	write_functions(report);
	write_window(report);
	write_lost(report);
	report_gpu_about(report);
	write_cost(report);
	write_notes(report);
	for (size_t i = 0; report->files && report->files[i]; i++)
		report_field(report, i ? "" : "Files", "%s", report->files[i]);
}
