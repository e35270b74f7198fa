/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Reasons to doubt the figures, and steps that hang. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arith.h"
#include "base/format.h"
#include "fbt_shared.h"
#include "judge/hang.h"
#include "report/cost.h"
#include "report/part.h"

#define HANGS_SHOWN 5

/* Incomplete for another reason than that records were lost. */
static void warn_of_whole_steps(const struct report *report)
{
	const struct window *window = report->window;

	if (window->crowded_steps)
		report_line(
			report, STYLE_WARN,
			"! %s step%s made more calls than are kept: only the sums have all of them",
			FORMAT_COUNT(window->crowded_steps), plural(window->crowded_steps));
	if (window->part_steps)
		report_line(report, STYLE_WARN,
			    "! %s step%s may be only the rest of a step that was not traced, after "
			    "a jump",
			    FORMAT_COUNT(window->part_steps), plural(window->part_steps));
}

static void warn_of_steps(const struct report *report)
{
	const struct window *window = report->window;
	uint64_t fine = tally_open_steps(report->tally, window) +
			tally_all_cut_steps(report->tally, window);
	uint64_t count = sub_saturating(window->incomplete_steps,
					fine + window->crowded_steps + window->part_steps);
	char more[64] = "";

	warn_of_whole_steps(report);
	if (!count)
		return;
	if (fine)
		snprintf(more, sizeof(more), "; %s more %s still open, or cut off by sampling",
			 FORMAT_COUNT(fine), fine == 1 ? "is" : "are");
	report_line(report, STYLE_WARN,
		    "! %s of %s step%s %s incomplete: records were lost or the thread exited%s",
		    FORMAT_COUNT(count), FORMAT_COUNT(window->steps), plural(window->steps),
		    count == 1 ? "is" : "are", more);
}

#define DEFAULT_RECORDS "default: 131072, less with over 16 CPUs"

/* What to do, so that the next run loses less. */
static const char *remedy_of(const struct window *window, enum fbt_lost_cause cause)
{
	_Static_assert(FBT_SLOTS_MAX == 4096, "the text says so");

	switch (cause) {
	case FBT_LOST_CALLS:
		if (window->record.detail == FBT_DETAIL_ALL)
			return "--detail escalated records fewer, --ring-records N makes room for "
			       "more (" DEFAULT_RECORDS "), " REMEDY_PRIORITY;
		return "--ring-records N makes room for more (" DEFAULT_RECORDS
		       "), " REMEDY_PRIORITY;
	case FBT_LOST_STEPS:
		return REMEDY_PRIORITY ", --step names a function that is called less often";
	case FBT_LOST_BEGINS:
		if (window->lost.count[FBT_LOST_THREADS])
			return "see the line above";
		/* fall through */
	case FBT_LOST_THREADS:
		return "the next run makes room for twice the threads there are at its start, at "
		       "most 4,096; -p names fewer processes";
	case FBT_LOST_NAMES:
		return REMEDY_PRIORITY ", without -a and -f fewer are traced (at most 4,096)";
	case FBT_LOST_FILES:
		return REMEDY_PRIORITY;
	case FBT_LOST_COUNT:
		break;
	}
	return "";
}

static void warn_of_lost(const struct report *report)
{
	static const char *const meaning[FBT_LOST_COUNT] = {
		[FBT_LOST_CALLS] = "calls: missing from the trace, but counted here",
		[FBT_LOST_STEPS] = "steps: missing from all step figures",
		[FBT_LOST_THREADS] = "threads: not traced, nothing of them is counted",
		[FBT_LOST_BEGINS] = "step begins: on threads that are not traced",
		[FBT_LOST_NAMES] = "processes: not traced, nothing of them is counted",
		[FBT_LOST_FILES] = "file names: their calls are counted",
	};
	const struct window *window = report->window;
	char count[FORMAT_MAX];

	for (int i = 0; i < FBT_LOST_COUNT; i++) {
		if (!window->lost.count[i])
			continue;
		format_count(count, window->lost.count[i]);
		report_line(report, STYLE_WARN, "! lost %s %s; %s", count, meaning[i],
			    remedy_of(window, (enum fbt_lost_cause)i));
	}
	if (window->unseen_calls)
		report_line(
			report, STYLE_WARN,
			"! up to %s system call%s of all processes together %s not seen: from "
			"Linux 7 on, the kernel leaves some out while threads compete for a CPU. "
			"Counts of calls may be too low by that",
			FORMAT_COUNT(window->unseen_calls), plural(window->unseen_calls),
			window->unseen_calls == 1 ? "was" : "were");
	if (window->skipped_records) {
		format_count(count, window->skipped_records);
		report_line(report, STYLE_WARN, "! %s damaged or unknown record%s skipped", count,
			    window->skipped_records == 1 ? " was" : "s were");
	}
	if (window->unkept_records)
		report_line(report, STYLE_WARN,
			    "! %s record%s found no room: some names of threads, code or GPU work "
			    "are missing, but no step or call",
			    FORMAT_COUNT(window->unkept_records), plural(window->unkept_records));
}

static void warn_of_sampling(const struct report *report)
{
	const struct window *window = report->window;
	char name[64];

	for (uint32_t i = 1; i < FBT_KIND_COUNT; i++) {
		if (!window->sampling[i].kind)
			continue;
		shorten_name(name, sizeof(name), window__kind_name(window, i), 32);
		/* What the built-in table names is a step, even if it is a short one. */
		report_line(report, STYLE_WARN,
			    "! %s is called over %s times a second: steps are sampled, %s of "
			    "the time.%s",
			    name, FORMAT_COUNT(window__sampled_calls_per_s(window, i)),
			    FORMAT_PERCENT(window__sampled_percent(window, i)),
			    window->kinds[i].record.builtin
				    ? " --rate-guard sets how much tracing may cost"
				    : " It is probably not a step: --list-steps -p PID shows "
				      "candidates, --step SPEC selects one");
	}
}

/*
 * If more of a function's calls than this were not traced, its figures may not hold for all of
 * them.
 */
#define UNTRACED_PERCENT 1

static void warn_of_untraced(const struct report *report, uint32_t kind)
{
	uint64_t missed = report->window->ends[kind].unseen_steps;
	const struct tally_kind *seen = report->tally->kinds[kind];
	double percent =
		percent_of((double)missed, (double)missed + (double)(seen ? seen->steps : 0));
	char name[64];

	if (percent <= UNTRACED_PERCENT)
		return;
	shorten_name(name, sizeof(name), window__kind_name(report->window, kind), 32);
	report_line(report, STYLE_WARN,
		    "! %s call%s of %s (%s) %s not traced: no probe was where it ends",
		    FORMAT_COUNT(missed), plural(missed), name, FORMAT_PERCENT(percent),
		    missed == 1 ? "was" : "were");
}

/* How to pay less for steps of a kind. What the built-in table names is the right function. */
static const char *remedy_for_steps(const struct report *report, uint32_t kind)
{
	return report->window->kinds[kind].record.builtin
		       ? "--rate-guard 1 lowers it"
		       : "--step names a function that is called less often "
			 "(--list-steps -p PID)";
}

/* Share of the time of a step, and of the process, that tracing may take without a warning. */
#define COST_OF_STEP_PERCENT   10
#define COST_OF_WINDOW_PERCENT 1

static void warn_of_probes(const struct report *report, uint32_t kind)
{
	const struct tally_kind *seen = report->tally->kinds[kind];
	const struct fbt_probes *probes = &report->window->probes[kind];
	double percent, cost_ns;
	char name[64];

	/* What is sampled has a line of its own. */
	if (!seen || !seen->steps || report->window->sampling[kind].kind)
		return;
	/* A kind without a record of its own has the cost of all kinds. */
	cost_ns = probes->kind ? (double)probes->cost_ns / (double)seen->steps
			       : (double)report->window->cost.step_ns;
	percent = percent_of(cost_ns * (double)seen->steps, (double)seen->total_ns);
	if (percent <= COST_OF_STEP_PERCENT)
		return;
	shorten_name(name, sizeof(name), window__kind_name(report->window, kind), 32);
	report_line(report, STYLE_WARN,
		    "! the probes of %s take %s of its time (%s a step): its figures are too "
		    "high",
		    name, FORMAT_MOST(percent), FORMAT_TIME(cost_ns));
	report_line(report, STYLE_WARN, "  %s", remedy_for_steps(report, kind));
}

/* What costs more than anything else, and the option that lowers it. */
static void warn_of_dearest(const struct report *report, const struct cost *cost)
{
	int main_kind = tally_main_kind(report->tally);
	uint64_t others_ns = max_u64(max_u64(cost->call_ns, cost->step_ns), cost->fault_ns);

	if (cost->collection_ns > others_ns && cost->collection_ns > cost->gpu_ns)
		report_line(report, STYLE_WARN,
			    "  most of that for its garbage collections: with --rate-guard 1 they "
			    "are not measured");
	else if (cost->gpu_ns > others_ns)
		report_line(
			report, STYLE_WARN,
			"  most of that for GPU records, while the GPU is idle: --gpu off leaves "
			"them out");
	else if (cost->fault_ns > cost->call_ns && cost->fault_ns > cost->step_ns)
		report_line(report, STYLE_WARN,
			    "  most of that for timing its page faults: --rate-guard 1 lowers it");
	else if (cost->call_ns <= cost->step_ns)
		report_line(report, STYLE_WARN, "  most of that for its steps: %s",
			    remedy_for_steps(report, main_kind < 0 ? 0 : (uint32_t)main_kind));
	else if (!report->tally->kinds[0])
		report_line(
			report, STYLE_WARN,
			"  most of that for its system calls: --detail probes times steps alone");
	else if (report->window->record.detail != FBT_DETAIL_STEPS)
		report_line(report, STYLE_WARN,
			    "  most of that for its system calls: --detail steps costs less");
	else
		report_line(report, STYLE_WARN,
			    "  most of that for its system calls: --step SPEC with --detail probes "
			    "times steps alone (--list-steps -p PID)");
}

static void warn_of_cost(const struct report *report)
{
	struct cost cost;

	for (uint32_t kind = 1; kind < FBT_KIND_COUNT; kind++) {
		warn_of_untraced(report, kind);
		warn_of_probes(report, kind);
	}
	cost_sum(report->tally, report->window, &cost);
	if (cost.percent <= COST_OF_WINDOW_PERCENT)
		return;
	report_line(report, STYLE_WARN, "! tracing added %s to the target's time",
		    FORMAT_MOST(cost.percent));
	warn_of_dearest(report, &cost);
}

static void warn_of_processes(const struct report *report)
{
	uint64_t overflow = report->window->overflow_processes;

	if (!overflow)
		return;
	report_line(report, STYLE_WARN,
		    overflow == 1
			    ? "! %s process beyond the first %s: its steps are in the outputs, its "
			      "syscall table is not; -p names those to trace"
			    : "! %s processes beyond the first %s: their steps are in the outputs, "
			      "their syscall tables are not; -p names those to trace",
		    FORMAT_COUNT(overflow), FORMAT_COUNT(WINDOW_PROCESSES_MAX));
}

/* Whether a step function was called in a way that is not seen as a step. */
static bool has_untraced(const struct window *window)
{
	for (int i = 1; i < FBT_KIND_COUNT; i++)
		if (window->ends[i].unseen_steps || window->late_polls[i])
			return true;
	return false;
}

void report_warnings(const struct report *report)
{
	if (report->window->cut_off) {
		report_line(report, STYLE_WARN,
			    "! The records were cut off after %s: the totals of the process, lost "
			    "records and cost may be missing or too small",
			    FORMAT_TIME(tally_window_ns(report->window)));
	}
	warn_of_lost(report);
	warn_of_processes(report);
	warn_of_sampling(report);
	warn_of_cost(report);
	warn_of_steps(report);
	if (tally_main_kind(report->tally) < 0 && !has_untraced(report->window)) {
		report_line(report, STYLE_WARN,
			    "! The step function was never called; it may be the wrong one:");
		report_line(report, STYLE_WARN,
			    "  --list-steps -p PID shows candidates, --step SPEC selects one");
	}
}

/* What all threads of the process were in. */
static void write_hang_threads(const struct report *report, const struct fbt_hang *hang)
{
	uint32_t others = hang_others(hang, report->window);
	const struct fbt_look_thread *group;
	char text[LOOK_GROUP_SIZE];

	for (size_t i = 0; i < LOOK_GROUPS_SHOWN && (group = hang_group(hang, report->window, i));
	     i++) {
		look_describe_group(group, report->window, text);
		report_line(report, STYLE_WARN, "    %s", text);
	}
	if (others)
		report_line(report, STYLE_WARN, "    %s more", FORMAT_COUNT(others));
}

/* The text of a hang was written while its step was open. */
static void write_hang_end(const struct report *report, const struct fbt_hang *hang)
{
	const struct tally_kind *kind = report->tally->kinds[hang->kind];
	uint64_t start_ns = sub_saturating(hang->step_start_ns, report->window->record.start_ns);

	for (int i = 0; kind && i < TALLY_SLOWEST && kind->slowest[i].number; i++) {
		const struct tally_step *step = &kind->slowest[i];

		if (step->tid == hang->tid && step->start_ns == start_ns &&
		    step->end != FBT_END_TRUNCATED)
			report_line(report, STYLE_WARN, "    it ended after %s: step #%" PRIu64,
				    FORMAT_TIME(step->total_ns), step->number);
	}
}

void report_hangs(const struct report *report)
{
	const struct window *window = report->window;
	char text[HANG_TEXT_SIZE];

	for (uint64_t i = 0; i < window->hang_count && i < HANGS_SHOWN; i++) {
		hang_describe(&window->hangs[i], window, text);
		report_line(report, STYLE_WARN, "! hang: %s", text);
		write_hang_end(report, &window->hangs[i]);
		write_hang_threads(report, &window->hangs[i]);
	}
	if (window->hang_count > HANGS_SHOWN)
		report_line(report, STYLE_WARN, "! and %s more hang%s",
			    FORMAT_COUNT(window->hang_count - HANGS_SHOWN),
			    plural(window->hang_count - HANGS_SHOWN));
}
