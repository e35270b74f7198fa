/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <inttypes.h>

#include "gpu_text.h"
#include "report_format.h"
#include "report_part.h"

static const struct gpu_tally_kind *gpu_of(const struct report *report, int kind)
{
	return kind >= 0 ? report->tally->gpu.kinds[kind] : NULL;
}

/* Of the mean step; mean is filled and stays in use. */
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

static void format_per_step(char to[FORMAT_MAX], const struct gpu_tally_kind *kind, uint64_t ns)
{
	format_time(to, (double)ns / (double)kind->complete);
}

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
	char busy[FORMAT_MAX], idle[GPU_IDLE_TEXT_SIZE], bound[96], left_out[FORMAT_MAX];
	struct gpu_figures mean;
	struct gpu_text about;

	if (!kind)
		return;
	format_count(left_out, kind->steps - kind->complete);
	if (!kind->complete) {
		report_field(report, "GPU", "not known, of all %s steps GPU records are missing",
			     left_out);
		return;
	}
	about = mean_of(report, kind, &mean);
	format_percent(busy, percent_of((double)kind->sum.busy_ns, (double)kind->total_ns));
	format_bound(kind, gpu_tally_bound(kind), bound, sizeof(bound));
	gpu_idle_text(&about, idle);
	report_field(report, "GPU", "busy %s of the step time, %s", busy, bound);
	report_field(report, "", "%s (mean step)", idle);
	if (kind->steps > kind->complete)
		report_field(report, "", "without %s step%s of which GPU records are missing",
			     left_out, kind->steps - kind->complete == 1 ? "" : "s");
}

/* One row of "what the GPU did". */
static void write_row(const struct report *report, const struct gpu_tally_kind *kind,
		      const char *name, uint64_t ns, const struct stats *stats)
{
	char mean[FORMAT_MAX], share[FORMAT_MAX], total[FORMAT_MAX], p50[FORMAT_MAX] = "-";
	char p95[FORMAT_MAX] = "-";

	format_per_step(mean, kind, ns);
	format_percent(share, percent_of((double)ns, (double)kind->total_ns));
	format_time(total, (double)ns);
	if (stats) {
		format_time(p50, (double)stats__percentile(stats, 0.5));
		format_time(p95, (double)stats__percentile(stats, 0.95));
	}
	fprintf(report->out, "  %-16s %8s %8s %9s %9s %9s\n", name, mean, share, total, p50, p95);
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
		write_row(report, kind, "  exposed copies", sum->exposed_copy_ns, NULL);
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
	/* Less is not worth a line. */
	if (*text && mean.host_wait_ns >= about.total_ns / 100)
		report_field(report, "  host wait", "%s (mean step)", text);
}

/* The verdicts, the most frequent first. */
static void write_bound(const struct report *report, const struct gpu_tally_kind *kind)
{
	char text[GPU_BOUND_COUNT * 48];
	bool said[GPU_BOUND_COUNT] = {false};
	size_t used = 0;
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
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s in %s%.0f %%",
					 round ? ", " : "", gpu_bound_words((enum gpu_bound)best),
					 percent < 1 ? "<" : "", percent < 1 ? 1 : percent);
	}
	if (used)
		report_field(report, "  verdict", "%s of steps", text);
}

static void write_work(const struct report *report, const struct gpu_tally_kind *kind)
{
	char kernels[FORMAT_MAX], copies[FORMAT_MAX], memsets[FORMAT_MAX], launches[FORMAT_MAX];
	char graphs[FORMAT_MAX], at_once[FORMAT_MAX], call[FORMAT_MAX], latency[FORMAT_MAX];
	char work[FORMAT_MAX];
	double steps = (double)kind->complete;

	format_number(kernels, (double)kind->kernels / steps);
	format_number(copies, (double)kind->memcpys / steps);
	format_number(memsets, (double)kind->memsets / steps);
	format_number(launches, (double)kind->launches / steps);
	format_number(graphs, (double)kind->graph_launches / steps);
	format_number(at_once, kind->sum.busy_ns
				       ? (double)kind->sum.work_sum_ns / (double)kind->sum.busy_ns
				       : 0);
	report_field(report, "  GPU work",
		     "%s kernels, %s copies, %s memsets a step, %s at a time; %s launches%s%s%s",
		     kernels, copies, memsets, at_once, launches, kind->graph_launches ? ", " : "",
		     kind->graph_launches ? graphs : "",
		     kind->graph_launches ? " of them CUDA graphs" : "");
	if (!stats__count(kind->work))
		return;
	format_time(call, (double)stats__percentile(kind->launch_api, 0.5));
	format_time(latency, (double)stats__percentile(kind->launch_latency, 0.5));
	format_time(work, (double)stats__percentile(kind->work, 0.5));
	report_field(report, "  launches",
		     "the call takes %s, the work starts %s after it and takes %s (medians)", call,
		     latency, work);
}

static void write_copies(const struct report *report, const struct gpu_tally_kind *kind)
{
	char to[FORMAT_MAX], from[FORMAT_MAX], within[FORMAT_MAX], pageable[FORMAT_MAX];
	char comm[FORMAT_MAX], exposed[FORMAT_MAX], share[FORMAT_MAX];
	uint64_t inner_bytes = kind->d2d_bytes + kind->p2p_bytes;

	if (kind->memcpys) {
		format_bytes(to, kind->h2d_bytes / kind->complete);
		format_bytes(from, kind->d2h_bytes / kind->complete);
		format_bytes(within, inner_bytes / kind->complete);
		format_percent(share,
			       percent_of((double)kind->sum.transfer_ns, (double)kind->total_ns));
		report_field(report, "  copies",
			     "%s to the GPU, %s from it, %s within or between GPUs a step; "
			     "transfers take %s of the step time",
			     to, from, within, share);
	}
	if (kind->pageable)
		report_field(report, "", "%s of %s copies from or to pageable memory",
			     format_count(pageable, kind->pageable),
			     format_count(within, kind->memcpys));
	if (!kind->sum.comm_ns)
		return;
	format_per_step(comm, kind, kind->sum.comm_ns);
	format_per_step(exposed, kind, kind->sum.exposed_comm_ns);
	report_field(report, "  communication", "%s a step (NCCL), %s of it exposed", comm,
		     exposed);
}

static void write_thread(const struct report *report, const struct gpu_tally_kind *kind)
{
	char sync[FORMAT_MAX], useful[FORMAT_MAX], tail[FORMAT_MAX], spin[FORMAT_MAX];
	char exposed[FORMAT_MAX], overlapped[FORMAT_MAX], internal[FORMAT_MAX];
	double known = (double)kind->calls_known;

	if (kind->sync_ns) {
		format_per_step(sync, kind, kind->sync_ns);
		format_per_step(useful, kind, kind->sync_useful_ns);
		format_per_step(tail, kind, kind->sync_tail_ns);
		format_per_step(spin, kind, kind->sync_spin_ns);
		report_field(report, "  GPU sync",
			     "%s a step in calls that wait for the GPU: %s while it worked, %s "
			     "behind the end of that work; %s spinning",
			     sync, useful, tail, spin);
	}
	if (!kind->calls_known)
		return;
	format_time(exposed, (double)kind->exposed_syscall_ns / known);
	format_time(overlapped, (double)kind->overlapped_syscall_ns / known);
	format_time(internal, (double)kind->cuda_internal_ns / known);
	report_field(report, "  syscalls",
		     "%s a step while the GPU was idle, %s while it worked, %s within waits for it",
		     exposed, overlapped, internal);
}

static void write_quality(const struct report *report, const struct gpu_tally_kind *kind)
{
	char joined[FORMAT_MAX], steps[FORMAT_MAX], incomplete[FORMAT_MAX];
	uint64_t work = kind->joined + kind->by_time;

	format_count(steps, kind->steps);
	format_count(incomplete, kind->steps - kind->complete);
	if (work)
		format_percent(joined, percent_of((double)kind->joined, (double)work));
	else
		snprintf(joined, sizeof(joined), "none");
	report_field(
		report, "  GPU records",
		"of %s steps, %s incomplete%s; %s of the work joined by the call that launched it",
		steps, incomplete, kind->steps > kind->complete ? " and left out above" : "",
		joined);
}

static void write_slowest(const struct report *report, const struct gpu_tally_kind *kind)
{
	char label[LABEL_WIDTH + 8], text[GPU_IDLE_TEXT_SIZE], busy[FORMAT_MAX];

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
		format_time(busy, (double)step->figures.busy_ns);
		gpu_idle_text(&about, text);
		if (step->complete)
			report_field(report, label, "busy %s, %s; %s", busy, text,
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
