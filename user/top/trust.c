/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "top/trust.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/arith.h"
#include "base/format.h"
#include "model/gpu.h"

/* As in the report. */
#define UNTRACED_PERCENT 1
#define COST_PERCENT	 10

static void __attribute__((format(printf, 2, 3)))
doubt(struct trust *trust, const char *format, ...)
{
	va_list args;

	if (trust->count >= TRUST_LINES)
		return;
	va_start(args, format);
	vsnprintf(trust->lines[trust->count++], sizeof(trust->lines[0]), format, args);
	va_end(args);
}

static void doubt_lost(struct trust *trust, const struct window *window)
{
	static const char *const meaning[FBT_LOST_COUNT] = {
		[FBT_LOST_CALLS] = "calls: what a slow step waited for may be incomplete",
		[FBT_LOST_STEPS] = "steps: they are in no figure",
		[FBT_LOST_THREADS] = "threads: not traced, nothing of them is counted",
		[FBT_LOST_BEGINS] = "step begins: on threads that are not traced",
		[FBT_LOST_NAMES] = "processes: not traced, nothing of them is counted",
		[FBT_LOST_FILES] = "file names: their calls are counted",
	};
	uint64_t incomplete = sub_saturating(window->incomplete_steps,
					     window->crowded_steps + window->part_steps);

	/* The rate guard has cut off these. */
	for (uint32_t kind = 0; kind < FBT_KIND_COUNT; kind++)
		incomplete = sub_saturating(incomplete, window__cut_steps(window, kind));
	for (int i = 0; i < FBT_LOST_COUNT; i++) {
		if (window->lost.count[i])
			doubt(trust, "lost %s %s", FORMAT_COUNT(window->lost.count[i]), meaning[i]);
	}
	if (window->unseen_calls)
		doubt(trust,
		      "up to %s calls of all processes were not seen: Linux 7 leaves some out",
		      FORMAT_COUNT(window->unseen_calls));
	if (window->skipped_records)
		doubt(trust, "%s damaged or unknown records were skipped",
		      FORMAT_COUNT(window->skipped_records));
	if (window->unkept_records)
		doubt(trust, "%s names of threads, code or GPU work found no room",
		      FORMAT_COUNT(window->unkept_records));
	if (incomplete)
		doubt(trust,
		      "%s of %s steps are incomplete: records were lost, or their thread ended",
		      FORMAT_COUNT(incomplete), FORMAT_COUNT(window->steps));
	if (window->crowded_steps)
		doubt(trust,
		      "%s steps made more calls than are kept: only the sums have all of them",
		      FORMAT_COUNT(window->crowded_steps));
	if (window->part_steps)
		doubt(trust, "%s steps may be only the rest of a step that was not traced",
		      FORMAT_COUNT(window->part_steps));
	if (window->overflow_processes)
		doubt(trust, "%s processes have no name here: there are too many",
		      FORMAT_COUNT(window->overflow_processes));
}

static void doubt_gpu(struct trust *trust, const struct window *window)
{
	uint64_t lost = 0, late = 0, steps = 0;

	vec_for_each (entry, &window->gpus.processes) {
		const struct fbt_gpu_flush *flush = &(*entry)->flush;

		lost = add_saturating(lost, add_saturating(flush->ring_lost, flush->unknown));
		lost = add_saturating(lost, add_saturating(flush->cupti_dropped, flush->no_buffer));
		late = add_saturating(late, (*entry)->counts.timeouts);
		steps = add_saturating(steps, (*entry)->counts.steps);
		if (gpu_process_is_clock_suspect(*entry))
			doubt(trust, "the GPU clock of %" PRIu32 " is suspect", (*entry)->tgid);
	}
	if (lost)
		doubt(trust, "lost %s GPU records: the GPU looks idle there", FORMAT_COUNT(lost));
	if (percent_of((double)late, (double)steps) > UNTRACED_PERCENT)
		doubt(trust, "%s of %s steps were closed before all their GPU records arrived",
		      FORMAT_COUNT(late), FORMAT_COUNT(steps));
}

static void doubt_kinds(struct trust *trust, const struct window *window)
{
	char name[64];

	for (uint32_t i = 1; i < FBT_KIND_COUNT; i++) {
		uint64_t missed = window->ends[i].unseen_steps;

		shorten_name(name, sizeof(name), window__kind_name(window, i), 32);
		if (window->sampling[i].kind)
			doubt(trust,
			      "%s is called over %s times a second: its steps are sampled, %s of "
			      "the time",
			      name, FORMAT_COUNT(window__sampled_calls_per_s(window, i)),
			      FORMAT_PERCENT(window__sampled_percent(window, i)));
		if (percent_of((double)missed, (double)(missed + window->steps)) > UNTRACED_PERCENT)
			doubt(trust, "%s calls of %s were not traced: no probe was where they end",
			      FORMAT_COUNT(missed), name);
	}
}

static bool has_function(const struct top_figures *figures)
{
	for (size_t i = 0; i < figures->row_count; i++) {
		if (figures->rows[i].key.kind)
			return true;
	}
	return false;
}

static void doubt_figures(struct trust *trust, const struct top_figures *figures)
{
	const struct top_sums *all = &figures->all.sums;

	if (figures->sampled)
		doubt(trust, "percentiles are of a random sample: over %d steps a second",
		      TOP_SAMPLES);
	if (all->unknown)
		doubt(trust,
		      "system calls are not traced, or those of a step were lost: the time in "
		      "them cannot be told from other sleep");
	if (all->profiled)
		doubt(trust, "PyTorch's profiler is on: steps take several times as long");
	if (figures->row_count && !has_function(figures))
		doubt(trust, "there is no step function: these are intervals, which are not judged "
			     "(--list-steps -p PID shows candidates for --step)");
	if (figures->slow_left_out)
		doubt(trust, "%s slow steps are not in the list: over %d a second",
		      FORMAT_COUNT(figures->slow_left_out), TOP_SLOW_PER_S);
}

/* Intervals have no probes. */
static double cost_of(const struct fbt_cost *cost, const struct top_figures *figures)
{
	const struct top_sums *sums = &figures->all.sums;
	double added_ns = 0, total_ns = 0, idle = 1;

	for (size_t i = 0; i < figures->row_count; i++) {
		const struct top_row *row = &figures->rows[i];

		added_ns += (double)row->sums.calls * (double)cost->call_ps / 1000;
		if (row->key.kind)
			added_ns += (double)row->sums.count * (double)cost->step_ns;
		total_ns += (double)row->sums.total_ns;
	}
	if (sums->gpu_ns)
		idle = 1 - (double)sums->gpu_busy_ns / (double)sums->gpu_ns;
	added_ns += ((double)sums->gpu_launches * GPU_CALL_COST_NS +
		     (double)sums->gpu_nodes * GPU_NODE_COST_NS) *
		    idle;
	return total_ns > 0 && (cost->call_ps || cost->step_ns) ? percent_of(added_ns, total_ns)
								: -1;
}

void trust_find(struct trust *trust, const struct window *window, const struct fbt_cost *cost,
		const struct top_model *model, const struct top_figures *figures)
{
	const struct top_message *message;

	trust->count = 0;
	trust->lost = window__lost_total(window);
	trust->cost_percent = cost_of(cost, figures);
	doubt_lost(trust, window);
	doubt_gpu(trust, window);
	doubt_kinds(trust, window);
	doubt_figures(trust, figures);
	if (trust->cost_percent > COST_PERCENT)
		doubt(trust,
		      "tracing takes %s of the steps' time: figures are too high; --detail "
		      "probes costs less",
		      FORMAT_MOST(trust->cost_percent));
	for (size_t i = 0; (message = top_model__message(model, i)); i++) {
		if (message->level <= LOG_WARN)
			doubt(trust, "%.240s", message->text);
	}
}
