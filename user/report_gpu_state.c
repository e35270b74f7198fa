/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "report_format.h"
#include "report_part.h"

#define SHOWN_MAX    8
#define DETAIL_WIDTH 200
#define GPU_ENV	     "`ferrum-bpftrace gpu-env` prints how"

/* What it means that a process has no GPU records, or no more, and what to do; %s: the detail. */
static const struct {
	const char *meaning;
	const char *advice;
} states[FBT_GPU_STATUS_COUNT] = {
	[FBT_GPU_ABSENT] = {"no GPU records: it uses CUDA, without the shim",
			    "start it with the shim, " GPU_ENV},
	[FBT_GPU_ARMED] = {"GPU records until the end of the window", NULL},
	[FBT_GPU_ENDED] = {"GPU records until the end of the window", NULL},
	[FBT_GPU_EXITED] = {"GPU records until the process ended", NULL},
	[FBT_GPU_STALLED] = {"GPU records ended early: the shim no longer answers",
			     "trace again once it runs and has CPU time; start it anew if that "
			     "does not help"},
	[FBT_GPU_NO_CUPTI] = {"no GPU records: the shim found no libcupti",
			      "install the CUDA toolkit or the wheel nvidia-cuda-cupti, or "
			      "name the file in the server's FERRUM_CUPTI_LIBRARY"},
	[FBT_GPU_OLD_CUPTI] = {"no GPU records: its libcupti is too old",
			       "use that of CUDA 12.6 or newer"},
	[FBT_GPU_NO_DRIVER] = {"no GPU records: CUPTI finds no NVIDIA driver",
			       "nvidia-smi, run where the server runs, says why"},
	[FBT_GPU_BUSY] = {"no GPU records: another tool has CUPTI's one seat",
			  "end it (nsys, ncu, the PyTorch profiler) and trace again"},
	[FBT_GPU_FAILED] = {"no GPU records: CUPTI refused to collect",
			    "the server's FERRUM_CUPTI_LIBRARY can name another one"},
	[FBT_GPU_BAD_RING] = {"no GPU records: what it shares is not what the shim would",
			      "start it anew with the shim, " GPU_ENV},
	[FBT_GPU_OTHER_SHIM] = {"no GPU records: its shim is of another version",
				"start it anew with the shim of this version, " GPU_ENV},
	[FBT_GPU_TAKEN] = {"no GPU records: another tracer reads them", "end that one first"},
	[FBT_GPU_OFF] = {"off (--gpu off)", NULL},
	[FBT_GPU_NOT_CUDA] = {"no GPU records: it does not use CUDA", NULL},
	[FBT_GPU_NOT_INJECTED] = {"no GPU records: the shim was not put into it",
				  "start it anew with the shim, " GPU_ENV},
};

static const char *meaning_of(uint32_t status, const struct gpu_process *process)
{
	if (status == FBT_GPU_STALLED && !process->armed)
		return "no GPU records: its shim did not answer";
	return states[status].meaning;
}

static uint32_t status_of(const struct gpu_process *process)
{
	return process->state.status < FBT_GPU_STATUS_COUNT ? process->state.status
							    : FBT_GPU_FAILED;
}

/* One line of all processes that are alike; those with records have their own. */
static void write_state(const struct report *report, const char *label, uint32_t status,
			const struct gpu_process *first, size_t count)
{
	char detail[4 * DETAIL_WIDTH + 1], who[64] = "";

	shorten_text(detail, sizeof(detail), first->detail, DETAIL_WIDTH);
	if (count > 1)
		snprintf(who, sizeof(who), "%zu processes: ", count);
	else if (report->window->gpus.processes.count > 1)
		snprintf(who, sizeof(who), "%" PRIu32 ": ", first->tgid);
	report_field(report, label, "%s%s%s%s%s%s%s", who, meaning_of(status, first),
		     *detail ? " (" : "", detail, *detail ? ")" : "",
		     states[status].advice ? "; " : "",
		     states[status].advice ? states[status].advice : "");
}

static void write_devices(const struct report *report, const struct gpu_process *process)
{
	char name[160], memory[FORMAT_MAX];

	for (size_t i = 0; i < process->devices.count && i < SHOWN_MAX; i++) {
		const struct gpu_device *device = &process->devices.items[i];

		shorten_text(name, sizeof(name), *device->name ? device->name : "?", 40);
		report_field(report, "", "device %" PRIu32 ": %s, %s, %" PRIu32 " SMs",
			     device->record.id, name,
			     format_bytes(memory, device->record.memory_bytes), device->record.sms);
	}
	if (process->devices.count > SHOWN_MAX)
		report_field(report, "", "and %zu more devices",
			     process->devices.count - SHOWN_MAX);
}

static void write_setup(const struct report *report, const char *label,
			const struct gpu_process *process)
{
	const struct fbt_gpu_state *state = &process->state;
	char version[32], driver[32], arm[FORMAT_MAX], error[FORMAT_MAX], pid[16] = "";

	gpu_cupti_version_name(state->cupti_version, version);
	snprintf(driver, sizeof(driver), "%" PRIu32 ".%" PRIu32, state->driver_version / 1000,
		 state->driver_version % 1000 / 10);
	format_time(arm, (double)process->arm_ns);
	format_time(error, (double)process->flush.clock_error_ns);
	if (report->window->gpus.processes.count > 1)
		snprintf(pid, sizeof(pid), "%" PRIu32 ": ", process->tgid);
	report_field(report, label,
		     "%sCUPTI %s, driver %s, armed in %s; clock by %s, error up to %s", pid,
		     state->cupti_version ? version : "not known",
		     state->driver_version ? driver : "not known", arm,
		     gpu_clock_name((enum fbt_gpu_clock_method)state->clock_method), error);
}

/* Always all there: that nothing was lost is worth a line. */
static void write_records(const struct report *report, const struct gpu_process *process)
{
	const struct gpu_counts *counts = &process->counts;
	const struct fbt_gpu_flush *flush = &process->flush;
	char kernels[FORMAT_MAX], copies[FORMAT_MAX], memsets[FORMAT_MAX], apis[FORMAT_MAX];
	char outside[FORMAT_MAX], dropped[FORMAT_MAX], lost[FORMAT_MAX], unmeasured[FORMAT_MAX];
	char shim[FORMAT_MAX], records[FORMAT_MAX];

	format_count(kernels, counts->kernels);
	format_count(copies, counts->memcpys);
	format_count(memsets, counts->memsets);
	format_count(apis, counts->apis);
	format_count(outside, counts->outside);
	report_field(report, "",
		     "%s kernels, %s copies, %s memsets, %s calls; %s launched outside of steps",
		     kernels, copies, memsets, apis, outside);
	format_count(records, flush->records);
	format_count(dropped, flush->cupti_dropped);
	format_count(lost, flush->ring_lost);
	format_count(unmeasured, counts->unmeasured);
	format_time(shim, (double)flush->shim_ns);
	report_field(report, "",
		     "%s records, dropped by CUPTI %s, lost %s, without times %s; the shim took %s "
		     "of the engine's time",
		     records, dropped, lost, unmeasured, shim);
}

/* Statuses of a process that had records are told too where they ended in another way. */
static bool is_ordinary(const struct gpu_process *process)
{
	return process->armed &&
	       (process->state.status == FBT_GPU_ARMED || process->state.status == FBT_GPU_ENDED ||
		process->state.status == FBT_GPU_EXITED);
}

static size_t write_armed(const struct report *report)
{
	size_t armed = 0;

	vec_for_each (entry, &report->window->gpus.processes) {
		const struct gpu_process *process = *entry;

		if (!process->armed || armed++ >= SHOWN_MAX)
			continue;
		write_setup(report, armed == 1 ? "GPU" : "", process);
		write_devices(report, process);
		write_records(report, process);
	}
	if (armed > SHOWN_MAX)
		report_field(report, "", "and %zu more processes with GPU records",
			     armed - SHOWN_MAX);
	return armed;
}

void report_gpu_about(const struct report *report)
{
	const struct gpu_table *table = &report->window->gpus;
	const char *label = write_armed(report) ? "" : "GPU";
	size_t others = 0;

	for (uint32_t status = 0; status < FBT_GPU_STATUS_COUNT; status++) {
		const struct gpu_process *first = NULL;
		size_t count = 0;

		/* Beside others a process that uses no GPU is not worth a line. */
		if (status == FBT_GPU_NOT_CUDA && (others || !*label))
			break;
		vec_for_each (entry, &table->processes) {
			if (status_of(*entry) != status || is_ordinary(*entry))
				continue;
			if (!count++)
				first = *entry;
		}
		if (!count)
			continue;
		write_state(report, others++ ? "" : label, status, first, count);
	}
}

static void warn_of_clock(const struct report *report, const struct gpu_process *process)
{
	char violations[FORMAT_MAX], joined[FORMAT_MAX], steps[FORMAT_MAX];

	format_count(violations, process->counts.violations);
	format_count(joined, process->counts.joined);
	if (gpu_process_is_clock_suspect(process))
		report_line(report, STYLE_WARN,
			    "! GPU clock of %" PRIu32
			    " suspect: %s of %s began before their launch; do not trust GPU idle "
			    "times",
			    process->tgid, violations, joined);
	format_count(steps, process->flush.clock_steps);
	if (process->flush.clock_steps)
		report_line(report, STYLE_WARN,
			    "! the clock of CUPTI in %" PRIu32
			    " jumped %s times: GPU times around that are off",
			    process->tgid, steps);
}

static void warn_of_lost(const struct report *report, const struct gpu_process *process)
{
	const struct fbt_gpu_flush *flush = &process->flush;
	const struct {
		uint64_t count;
		const char *meaning;
	} lost[] = {
		{flush->cupti_dropped, "dropped by CUPTI: the GPU looks idle where they were"},
		{flush->ring_lost, "lost, the ring was full: the GPU looks idle where they were"},
		{process->counts.unmeasured, "without times (CUPTI's fault): as if they were not"},
		{process->counts.unjoined, "without the call that launched them: by their time"},
	};
	char count[FORMAT_MAX], steps[FORMAT_MAX];

	for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
		if (!lost[i].count)
			continue;
		format_count(count, lost[i].count);
		report_line(report, STYLE_WARN, "! GPU records of %" PRIu32 ": %s %s",
			    process->tgid, count, lost[i].meaning);
	}
	if (flush->no_buffer) {
		format_count(count, flush->no_buffer);
		report_line(report, STYLE_WARN,
			    "! GPU records of %" PRIu32
			    ": %s buffers of them lost, the shim's pool was empty",
			    process->tgid, count);
	}
	if (process->counts.timeouts) {
		format_count(count, process->counts.timeouts);
		format_count(steps, process->counts.steps);
		report_line(report, STYLE_WARN,
			    "! %s of %s steps of %" PRIu32
			    " were closed before all of their GPU records had come",
			    count, steps, process->tgid);
	}
}

void report_gpu_warnings(const struct report *report)
{
	size_t count = 0;

	vec_for_each (entry, &report->window->gpus.processes) {
		const struct gpu_process *process = *entry;

		if (!process->armed || count++ >= SHOWN_MAX)
			continue;
		warn_of_clock(report, process);
		warn_of_lost(report, process);
		if (process->state.status == FBT_GPU_STALLED)
			report_line(report, STYLE_WARN,
				    "! GPU records of %" PRIu32
				    " end early: the shim no longer answered",
				    process->tgid);
	}
}
