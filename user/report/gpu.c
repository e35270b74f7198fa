/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What the text report says of the GPU: two lines below the headline, a table for each step
 * function, the state of GPU records of each process, and warnings.
 */
#include <inttypes.h>
#include <string.h>

#include "base/format.h"
#include "gpu/text.h"
#include "report/part.h"

#define SHOWN_MAX    8
#define DETAIL_WIDTH 200
/* One record of so many, or one step, is not worth a warning. */
#define WORTH_ONE_OF 1000

static const struct gpu_tally_kind *gpu_of(const struct report *report, int kind)
{
	return kind >= 0 ? report->tally->gpu.kinds[kind] : NULL;
}

/* The text of the mean step; it points to mean, which is filled. */
static struct gpu_text mean_of(const struct report *report, const struct gpu_tally_kind *kind,
			       struct gpu_figures *mean)
{
	bool known = kind->run_delay_ns != UINT64_MAX;

	gpu_tally_mean(kind, mean);
	return (struct gpu_text){
		.figures = mean,
		.total_ns = kind->total_ns / kind->complete,
		.run_delay_ns = known ? kind->run_delay_ns / kind->complete : UINT64_MAX,
		.arch = (enum fbt_arch)report->window->record.arch,
	};
}

/* Text of a time, per complete step. */
#define FORMAT_PER_STEP(kind, ns) FORMAT_TIME((double)(ns) / (double)(kind)->complete)

/* "launch-bound in 87 % of steps" */
static void format_bound(const struct gpu_tally_kind *kind, enum gpu_bound bound, char *to,
			 size_t size)
{
	snprintf(to, size, "%s in %.0f %% of steps", gpu_bound_words(bound),
		 percent_of((double)kind->bound[bound], (double)kind->complete));
}

void report_gpu_headline(const struct report *report)
{
	const struct gpu_tally_kind *kind = gpu_of(report, tally_main_kind(report->tally));
	char idle[GPU_IDLE_TEXT_SIZE], bound[96];
	struct gpu_figures mean;
	struct gpu_text about;

	if (!kind)
		return;
	if (!kind->complete) {
		report_field(report, "GPU",
			     "unknown: the GPU records of every step (%s) are missing",
			     FORMAT_COUNT(kind->steps - kind->complete));
		return;
	}
	about = mean_of(report, kind, &mean);
	format_bound(kind, gpu_tally_bound(kind), bound, sizeof(bound));
	gpu_idle_text(&about, idle);
	report_field(report, "GPU", "busy %s of the step time, %s%s",
		     FORMAT_PERCENT(percent_of((double)kind->sum.busy_ns, (double)kind->total_ns)),
		     bound, window__is_gpu_strict(report->window) ? " (--gpu-strict)" : "");
	report_field(report, "", "%s (mean step)", idle);
	if (kind->steps > kind->complete)
		report_field(report, "", "excluding %s step%s with missing GPU records",
			     FORMAT_COUNT(kind->steps - kind->complete),
			     kind->steps - kind->complete == 1 ? "" : "s");
}

/* One row of "what the GPU did". */
static void write_row(const struct report *report, const struct gpu_tally_kind *kind,
		      const char *name, uint64_t ns, const struct stats *stats)
{
	char p50[FORMAT_MAX] = "-";
	char p95[FORMAT_MAX] = "-";

	if (stats) {
		format_time(p50, (double)stats__percentile(stats, 0.5));
		format_time(p95, (double)stats__percentile(stats, 0.95));
	}
	fprintf(report->out, "  %-16s %8s %8s %9s %9s %9s\n", name, FORMAT_PER_STEP(kind, ns),
		FORMAT_PERCENT(percent_of((double)ns, (double)kind->total_ns)), FORMAT_TIME(ns),
		p50, p95);
}

static void write_times(const struct report *report, const struct gpu_tally_kind *kind)
{
	const struct gpu_figures *sum = &kind->sum;

	report_line(report, STYLE_DIM, "  %-16s %8s %8s %9s %9s %9s", "GPU", "per step", "share",
		    "total", "p50", "p95");
	write_row(report, kind, "busy", sum->busy_ns, kind->busy);
	write_row(report, kind, "  kernels", sum->kernel_ns, NULL);
	if (sum->memcpy_ns || sum->memset_ns) {
		write_row(report, kind, "  copies", sum->memcpy_ns, NULL);
		if (sum->memset_ns)
			write_row(report, kind, "  memsets", sum->memset_ns, NULL);
		write_row(report, kind, "  without kernel", sum->exposed_copy_ns, NULL);
	}
	write_row(report, kind, "idle", sum->idle_ns, kind->idle);
	write_row(report, kind, "  host wait", sum->host_wait_ns, NULL);
	write_row(report, kind, "  launch", sum->launch_ns, NULL);
	write_row(report, kind, "  queue", sum->queue_ns, NULL);
	if (sum->unattributed_ns)
		write_row(report, kind, "  unattributed", sum->unattributed_ns, NULL);
}

static void write_wait(const struct report *report, const struct gpu_tally_kind *kind)
{
	char text[GPU_IDLE_TEXT_SIZE];
	struct gpu_figures mean;
	struct gpu_text about = mean_of(report, kind, &mean);

	gpu_wait_text(&about, text);
	/* A shorter host wait is not worth a line. */
	if (*text && mean.host_wait_ns >= about.total_ns / 100)
		report_field(report, "  host wait", "%s (mean step)", text);
}

/* The verdicts, most frequent first. */
static void write_bound(const struct report *report, const struct gpu_tally_kind *kind)
{
	char text[GPU_BOUND_COUNT * 48] = "";
	struct line line = {text, sizeof(text), 0};
	bool said[GPU_BOUND_COUNT] = {false};
	double percent;

	for (int round = 0; round < GPU_BOUND_COUNT; round++) {
		int best = -1;

		for (int i = 0; i < GPU_BOUND_COUNT; i++) {
			if (!said[i] && kind->bound[i] &&
			    (best < 0 || kind->bound[i] > kind->bound[best]))
				best = i;
		}
		if (best < 0)
			break;
		said[best] = true;
		percent = percent_of((double)kind->bound[best], (double)kind->complete);
		line_add(&line, "%s%s in %s%.0f %%", round ? ", " : "",
			 gpu_bound_words((enum gpu_bound)best), percent < 1 ? "<" : "",
			 percent < 1 ? 1 : percent);
	}
	if (*text)
		report_field(report, "  verdict", "%s of steps", text);
}

static void write_work(const struct report *report, const struct gpu_tally_kind *kind)
{
	double steps = (double)kind->complete;

	report_field(report, "  GPU work",
		     "%s kernels, %s copies, %s memsets per step, %s at a time; %s launches%s%s%s",
		     FORMAT_NUMBER((double)kind->sum.kernels / steps),
		     FORMAT_NUMBER((double)kind->sum.memcpys / steps),
		     FORMAT_NUMBER((double)kind->sum.memsets / steps),
		     FORMAT_NUMBER(kind->sum.busy_ns ? (double)kind->sum.work_sum_ns /
							       (double)kind->sum.busy_ns
						     : 0),
		     FORMAT_NUMBER((double)kind->sum.launches / steps),
		     kind->sum.graph_launches ? ", " : "",
		     kind->sum.graph_launches
			     ? FORMAT_NUMBER((double)kind->sum.graph_launches / steps)
			     : "",
		     kind->sum.graph_launches ? " of them CUDA graphs" : "");
	if (!stats__count(kind->work))
		return;
	report_field(report, "  launches",
		     "the call takes %s, the work starts %s after it and takes %s (medians)",
		     FORMAT_TIME(stats__percentile(kind->launch_api, 0.5)),
		     FORMAT_TIME(stats__percentile(kind->launch_latency, 0.5)),
		     FORMAT_TIME(stats__percentile(kind->work, 0.5)));
}

static void write_copies(const struct report *report, const struct gpu_tally_kind *kind)
{
	char within[FORMAT_MAX];
	uint64_t inner_bytes = kind->sum.d2d_bytes + kind->sum.p2p_bytes;

	if (kind->sum.memcpys) {
		format_bytes(within, inner_bytes / kind->complete);
		report_field(report, "  copies",
			     "%s to the GPU, %s from it, %s within or between GPUs per step; "
			     "transfers take %s of the step time",
			     FORMAT_BYTES(kind->sum.h2d_bytes / kind->complete),
			     FORMAT_BYTES(kind->sum.d2h_bytes / kind->complete), within,
			     FORMAT_PERCENT(percent_of((double)kind->sum.transfer_ns,
						       (double)kind->total_ns)));
	}
	if (kind->sum.pageable)
		report_field(report, "", "%s of %s copies from or to pageable memory",
			     FORMAT_COUNT(kind->sum.pageable),
			     format_count(within, kind->sum.memcpys));
	if (!kind->sum.comm_ns)
		return;
	report_field(report, "  communication", "%s per step (NCCL), %s of it exposed",
		     FORMAT_PER_STEP(kind, kind->sum.comm_ns),
		     FORMAT_PER_STEP(kind, kind->sum.exposed_comm_ns));
}

static void write_thread(const struct report *report, const struct gpu_tally_kind *kind)
{
	double known = (double)kind->calls_known_steps;
	char spin[FORMAT_MAX + 16] = "";

	/* Without calls it is not known whether a wait was one of them. */
	if (kind->calls_known_steps)
		snprintf(spin, sizeof(spin), "; %s spinning",
			 FORMAT_TIME((double)kind->sync_spin_ns / known));
	if (kind->sync_ns) {
		report_field(report, "  GPU sync",
			     "%s per step in calls that wait for the GPU: %s while it worked, %s "
			     "after the work had ended%s",
			     FORMAT_PER_STEP(kind, kind->sync_ns),
			     FORMAT_PER_STEP(kind, kind->sync_useful_ns),
			     FORMAT_PER_STEP(kind, kind->sync_tail_ns), spin);
	}
	if (!kind->calls_known_steps)
		return;
	report_field(report, "  syscalls",
		     "%s per step while the GPU was idle, %s while it worked, %s in waits for it",
		     FORMAT_TIME((double)kind->exposed_syscall_ns / known),
		     FORMAT_TIME((double)kind->overlapped_syscall_ns / known),
		     FORMAT_TIME((double)kind->cuda_internal_ns / known));
}

static void write_quality(const struct report *report, const struct gpu_tally_kind *kind)
{
	char joined[FORMAT_MAX];
	uint64_t work = kind->joined + kind->by_time;

	if (work)
		format_percent(joined, percent_of((double)kind->joined, (double)work));
	else
		snprintf(joined, sizeof(joined), "none");
	report_field(
		report, "  GPU records",
		"%s steps, %s incomplete%s; %s of the work matched to the call that launched it",
		FORMAT_COUNT(kind->steps), FORMAT_COUNT(kind->steps - kind->complete),
		kind->steps > kind->complete ? " (excluded above)" : "", joined);
}

static void write_slowest(const struct report *report, const struct gpu_tally_kind *kind)
{
	char label[LABEL_WIDTH + 8], text[GPU_IDLE_TEXT_SIZE];

	report_line(report, STYLE_DIM, "  slowest, on the GPU");
	for (int i = 0; i < GPU_TALLY_SLOWEST && kind->slowest[i].number; i++) {
		const struct gpu_tally_step *step = &kind->slowest[i];
		const struct gpu_text about = {
			.figures = &step->figures,
			.total_ns = step->total_ns,
			.run_delay_ns = step->run_delay_ns,
			.arch = (enum fbt_arch)report->window->record.arch,
			.incomplete = !step->complete,
		};

		snprintf(label, sizeof(label), "  #%" PRIu64, step->number);
		gpu_idle_text(&about, text);
		if (step->complete)
			report_field(report, label, "busy %s, %s; %s",
				     FORMAT_TIME(step->figures.busy_ns), text,
				     gpu_bound_words(step->bound));
		else
			report_field(report, label, "%s", text);
	}
}

void report_gpu_kind(const struct report *report, int index)
{
	const struct gpu_tally_kind *kind = gpu_of(report, index);

	if (!kind)
		return;
	if (kind->complete) {
		write_times(report, kind);
		write_wait(report, kind);
		write_bound(report, kind);
		write_work(report, kind);
		write_copies(report, kind);
		write_thread(report, kind);
	}
	write_quality(report, kind);
	write_slowest(report, kind);
}

static uint32_t status_of(const struct gpu_process *process)
{
	return process->state.status < FBT_GPU_STATUS_COUNT ? process->state.status
							    : FBT_GPU_FAILED;
}

/*
 * One line for all processes of a status that had records before, or for those that had none; those
 * with records have their own.
 */
static void write_state(const struct report *report, const char *label, uint32_t status,
			const struct gpu_process *first, size_t count)
{
	static const char *const no_problem[FBT_GPU_STATUS_COUNT] = {
		[FBT_GPU_ARMED] = "GPU records until the end of the window",
		[FBT_GPU_ENDED] = "GPU records until the end of the window",
		[FBT_GPU_EXITED] = "no GPU records: the process ended before they began",
		[FBT_GPU_OFF] = "off (--gpu off)",
		[FBT_GPU_NOT_CUDA] = "no GPU records: it does not use CUDA",
	};
	const struct gpu_problem *problem = gpu_status_problem((enum fbt_gpu_status)status);
	char shown[4 * DETAIL_WIDTH + 1], detail[sizeof(shown) + 3] = "", who[64] = "";

	if (*first->detail)
		snprintf(detail, sizeof(detail), " (%s)",
			 shorten_text(shown, sizeof(shown), first->detail, DETAIL_WIDTH));
	if (count > 1)
		snprintf(who, sizeof(who), "%zu processes: ", count);
	else if (report->window->gpus.processes.count > 1)
		snprintf(who, sizeof(who), "%" PRIu32 ": ", first->tgid);
	if (problem)
		report_field(report, label, "%s%s: %s%s; %s", who,
			     first->armed ? "GPU records ended early" : "no GPU records",
			     problem->what, detail, problem->advice);
	else
		report_field(report, label, "%s%s%s", who, no_problem[status], detail);
}

static void write_devices(const struct report *report, const struct gpu_process *process)
{
	char name[160];

	for (size_t i = 0; i < process->devices.count && i < SHOWN_MAX; i++) {
		const struct gpu_device *device = &process->devices.items[i];

		shorten_text(name, sizeof(name), *device->name ? device->name : "?", 40);
		report_field(report, "", "device %" PRIu32 ": %s, %s, %" PRIu32 " SMs",
			     device->record.id, name, FORMAT_BYTES(device->record.memory_bytes),
			     device->record.sms);
	}
	if (process->devices.count > SHOWN_MAX)
		report_field(report, "", "and %zu more devices",
			     process->devices.count - SHOWN_MAX);
}

static void write_setup(const struct report *report, const char *label,
			const struct gpu_process *process)
{
	const struct fbt_gpu_state *state = &process->state;
	char version[32], driver[32], pid[16] = "";

	gpu_cupti_version_name(state->cupti_version, version);
	snprintf(driver, sizeof(driver), "%" PRIu32 ".%" PRIu32, state->driver_version / 1000,
		 state->driver_version % 1000 / 10);
	if (report->window->gpus.processes.count > 1)
		snprintf(pid, sizeof(pid), "%" PRIu32 ": ", process->tgid);
	report_field(report, label,
		     "%sCUPTI %s, driver %s, armed in %s; clock by %s, error up to %s", pid,
		     state->cupti_version ? version : "unknown",
		     state->driver_version ? driver : "unknown", FORMAT_TIME(process->arm_ns),
		     gpu_clock_name((enum fbt_gpu_clock_method)state->clock_method),
		     FORMAT_TIME(process->flush.clock_error_ns));
}

/* Always shown: that nothing was lost is worth a line. */
static void write_records(const struct report *report, const struct gpu_process *process)
{
	const struct gpu_counts *counts = &process->counts;
	const struct fbt_gpu_flush *flush = &process->flush;

	report_field(report, "",
		     "kernels %s, copies %s, memsets %s, calls %s; launched outside of steps %s",
		     FORMAT_COUNT(counts->kernels), FORMAT_COUNT(counts->memcpys),
		     FORMAT_COUNT(counts->memsets), FORMAT_COUNT(counts->apis),
		     FORMAT_COUNT(counts->outside));
	report_field(
		report, "",
		"%s records, dropped by CUPTI %s, lost %s, without timestamps %s; the shim took %s "
		"of the engine's time",
		FORMAT_COUNT(flush->records), FORMAT_COUNT(flush->cupti_dropped),
		FORMAT_COUNT(flush->ring_lost), FORMAT_COUNT(counts->unmeasured),
		FORMAT_TIME(flush->shim_ns));
}

/* A process that had records is listed by status too if they ended in another way. */
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

	for (uint32_t group = 0; group < 2 * FBT_GPU_STATUS_COUNT; group++) {
		const struct gpu_process *first = NULL;
		uint32_t status = group / 2;
		bool armed = group % 2;
		size_t count = 0;

		/* A process that uses no GPU is worth a line only if there is no other. */
		if (status == FBT_GPU_NOT_CUDA && (others || !*label))
			continue;
		vec_for_each (entry, &table->processes) {
			if (status_of(*entry) != status || (*entry)->armed != armed ||
			    is_ordinary(*entry))
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
	if (gpu_process_is_clock_suspect(process))
		report_line(
			report, STYLE_WARN,
			"! the GPU clock of process %" PRIu32
			" is suspect: %s of %s kernels and copies began before their launch; do "
			"not trust idle times",
			process->tgid, FORMAT_COUNT(process->counts.violations),
			FORMAT_COUNT(process->counts.joined));
	if (process->flush.clock_steps)
		report_line(report, STYLE_WARN,
			    "! CUPTI's clock in process %" PRIu32
			    " jumped %s time%s: GPU times around the jumps are wrong",
			    process->tgid, FORMAT_COUNT(process->flush.clock_steps),
			    plural(process->flush.clock_steps));
}

/* CUPTI's release notes of 13.1 U1: "incorrect correlation IDs … after the first session". */
#define GRAPH_NUMBERS_MENDED 130101
#define GRAPHS_ONE_OF	     100 /* so many that are wrong are worth a line */

static void warn_of_graphs(const struct report *report, const struct gpu_process *process)
{
	const struct gpu_counts *counts = &process->counts;
	bool is_old = process->state.cupti_version < GRAPH_NUMBERS_MENDED;

	if (counts->misnumbered * GRAPHS_ONE_OF <= counts->graph_nodes)
		return;
	report_line(
		report, STYLE_WARN,
		"! GPU records of process %" PRIu32
		": %s of %s of CUDA graphs name a call that launches no graph, and are assigned "
		"by time%s",
		process->tgid, FORMAT_COUNT(counts->misnumbered), FORMAT_COUNT(counts->graph_nodes),
		is_old ? ": CUPTI before 13.1 U1 does so once it was used before in a process: "
			 "restart the engine, or use CUDA 13.1 U1 or newer"
		       : "");
}

static void warn_of_lost(const struct report *report, const struct gpu_process *process)
{
	const struct fbt_gpu_flush *flush = &process->flush;
	const struct gpu_counts *counts = &process->counts;
	/* The first work of a window was launched before it. */
	bool is_unjoined = counts->unjoined * WORTH_ONE_OF > counts->unjoined + counts->joined;
	const struct {
		uint64_t count;
		const char *meaning;
	} lost[] = {
		{flush->cupti_dropped, "dropped by CUPTI: the GPU looks idle there"},
		{flush->ring_lost,
		 "lost, the ring was full: the GPU looks idle there; " REMEDY_PRIORITY},
		{flush->unknown,
		 "in a form that is not known, or in the future: the GPU looks idle there"},
		{counts->unmeasured, "without timestamps from CUPTI: ignored"},
		{counts->unnamed, "kernels without their names: the engine has more than the shim "
				  "keeps in a window"},
		{is_unjoined ? counts->unjoined : 0,
		 "without the call that launched them: assigned by time"},
	};
	char count[FORMAT_MAX];

	warn_of_graphs(report, process);
	for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
		if (!lost[i].count)
			continue;
		format_count(count, lost[i].count);
		report_line(report, STYLE_WARN, "! GPU records of process %" PRIu32 ": %s %s",
			    process->tgid, count, lost[i].meaning);
	}
	if (flush->no_buffer) {
		format_count(count, flush->no_buffer);
		report_line(report, STYLE_WARN,
			    "! GPU records of process %" PRIu32
			    ": %s buffers lost: the shim's pool was empty, or their work still "
			    "ran at the end",
			    process->tgid, count);
	}
	if (counts->timeouts * WORTH_ONE_OF > counts->steps) {
		format_count(count, counts->timeouts);
		report_line(report, STYLE_WARN,
			    "! %s of %s steps of process %" PRIu32
			    " were closed before all their GPU records arrived",
			    count, FORMAT_COUNT(counts->steps), process->tgid);
	}
}

static void warn_of_version(const struct report *report, const struct gpu_process *process)
{
	const char *caution =
		gpu_cupti_caution(process->state.cupti_version, tally_window_ns(report->window));

	if (caution)
		report_line(report, STYLE_WARN, "! GPU records of process %" PRIu32 ": %s",
			    process->tgid, caution);
}

static bool uses(const struct gpu_process *process, const uint8_t uuid[16])
{
	static const uint8_t unknown[16];

	vec_for_each (device, &process->devices) {
		uint32_t id = device->record.id;

		if (id < 64 && process->counts.devices & UINT64_C(1) << id &&
		    memcmp(device->record.uuid, unknown, sizeof(unknown)) != 0 &&
		    !memcmp(device->record.uuid, uuid, sizeof(unknown)))
			return true;
	}
	return false;
}

/* A GPU's time that a process waits for another one, in a kernel, counts as busy. */
static void warn_of_sharing(const struct report *report, size_t index)
{
	const struct gpu_table *table = &report->window->gpus;
	const struct gpu_process *process = table->processes.items[index];

	vec_for_each (device, &process->devices) {
		if (!uses(process, device->record.uuid))
			continue;
		for (size_t i = 0; i < index; i++) {
			const struct gpu_process *other = table->processes.items[i];

			if (!other->armed || !uses(other, device->record.uuid))
				continue;
			report_line(
				report, STYLE_WARN,
				"! device %" PRIu32 " of process %" PRIu32
				" is used by process %" PRIu32
				" too: a kernel that waits for the other process counts as busy",
				device->record.id, process->tgid, other->tgid);
			return;
		}
	}
}

static void warn_of_early_end(const struct report *report, const struct gpu_process *process)
{
	const struct gpu_problem *problem =
		gpu_status_problem((enum fbt_gpu_status)status_of(process));

	if (problem)
		report_line(report, STYLE_WARN,
			    "! GPU records of process %" PRIu32 " end early: %s", process->tgid,
			    problem->what);
}

void report_gpu_warnings(const struct report *report)
{
	size_t count = 0;

	vec_for_each (entry, &report->window->gpus.processes) {
		const struct gpu_process *process = *entry;

		if (!process->armed || count++ >= SHOWN_MAX)
			continue;
		warn_of_version(report, process);
		warn_of_sharing(report, entry - report->window->gpus.processes.items);
		warn_of_clock(report, process);
		warn_of_lost(report, process);
		warn_of_early_end(report, process);
	}
}
