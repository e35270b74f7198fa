/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "metrics/catalog.h"

#include <stdio.h>

#include "base/version.h"
#include "judge/cause.h"
#include "judge/escalation.h"

typedef void take_fn(void *ctx, const struct metric_point *point);

static void add_label(struct metric_point *point, const char *name, const char *value)
{
	point->labels[point->label_count++] = (struct metric_label){name, value};
}

static struct metric_point of_run(const struct metrics_run *run)
{
	struct metric_point point = {0};

	add_label(&point, "tracer", run->tracer);
	return point;
}

static struct metric_point of_series(const struct metrics_run *run,
				     const struct metrics_series *series)
{
	struct metric_point point = of_run(run);

	add_label(&point, "engine", series->engine);
	add_label(&point, "kind", series->kind);
	add_label(&point, "rank", series->rank);
	return point;
}

/* A metric with one value of the run. */
#define RUN_METRIC(list_name, member, value)                                                       \
	static void list_name(const struct metrics_tally *tally, const struct metrics_run *run,    \
			      take_fn *take, void *ctx)                                            \
	{                                                                                          \
		struct metric_point point = of_run(run);                                           \
                                                                                                   \
		point.member = (value);                                                            \
		take(ctx, &point);                                                                 \
	}

/* A metric with one value of each series. */
#define SERIES_METRIC(list_name, member, value)                                                    \
	static void list_name(const struct metrics_tally *tally, const struct metrics_run *run,    \
			      take_fn *take, void *ctx)                                            \
	{                                                                                          \
		vec_for_each (item, &tally->series) {                                              \
			const struct metrics_series *series = *item;                               \
			struct metric_point point = of_series(run, series);                        \
                                                                                                   \
			point.member = (value);                                                    \
			take(ctx, &point);                                                         \
		}                                                                                  \
	}

RUN_METRIC(list_up, count, run->is_up)
RUN_METRIC(list_start, ns, run->start_unix_ns)
RUN_METRIC(list_update, ns, run->now_unix_ns)
RUN_METRIC(list_open, count, tally->is_open)
RUN_METRIC(list_windows, count, tally->windows)
RUN_METRIC(list_traced, ns, tally->traced_ns)
RUN_METRIC(list_processes, count, tally->processes)
RUN_METRIC(list_skipped, count, tally->skipped)
RUN_METRIC(list_folded, count, tally->folded_steps)
RUN_METRIC(list_cpu, ns, run->cpu_ns)
RUN_METRIC(list_memory, count, run->memory_bytes)
RUN_METRIC(list_probe_cost, ns, tally->probe_cost_ns)
RUN_METRIC(list_write_errors, count, run->write_errors)

SERIES_METRIC(list_steps, count, series->steps)
SERIES_METRIC(list_durations, times, &series->duration)
SERIES_METRIC(list_incomplete, count, series->incomplete)
SERIES_METRIC(list_hangs, count, series->hangs)
SERIES_METRIC(list_gaps, ns, series->gap_ns)
SERIES_METRIC(list_not_shown, count, series->not_shown)
SERIES_METRIC(list_unsteady, count, series->unsteady)

/* Of a series whose first step hangs no step has ended: there is no such time. */
static void list_last_step(const struct metrics_tally *tally, const struct metrics_run *run,
			   take_fn *take, void *ctx)
{
	vec_for_each (item, &tally->series) {
		struct metric_point point = of_series(run, *item);

		if (!(*item)->last_step_ns)
			continue;
		point.ns = (*item)->last_step_ns;
		take(ctx, &point);
	}
}

static void list_info(const struct metrics_tally *tally, const struct metrics_run *run,
		      take_fn *take, void *ctx)
{
	struct metric_point point = of_run(run);

	add_label(&point, "version", tool_version());
	point.count = 1;
	take(ctx, &point);
}

static void list_lost(const struct metrics_tally *tally, const struct metrics_run *run,
		      take_fn *take, void *ctx)
{
	for (int i = 0; i < FBT_LOST_COUNT; i++) {
		struct metric_point point = of_run(run);

		add_label(&point, "record", lost_cause_name((enum fbt_lost_cause)i));
		point.count = tally->lost[i];
		take(ctx, &point);
	}
}

/*
 * Also parts that are 0, so that a rate has a first value; but for steps whose calls are not known
 * only the parts that these can have, and only if there are such steps.
 */
static void list_parts(const struct metrics_tally *tally, const struct metrics_run *run,
		       take_fn *take, void *ctx)
{
	vec_for_each (item, &tally->series) {
		for (int known = 0; known < 2; known++) {
			uint64_t sum = 0;

			for (int i = 0; i < STEP_PARTS; i++)
				sum |= (*item)->parts_ns[known][i];
			for (int i = 0; i < STEP_PARTS && sum; i++) {
				const char *name = step_part_name((enum step_part)i, known);
				struct metric_point point = of_series(run, *item);

				if (!name)
					continue;
				add_label(&point, "part", name);
				point.ns = (*item)->parts_ns[known][i];
				take(ctx, &point);
			}
		}
	}
}

static void list_escalations(const struct metrics_tally *tally, const struct metrics_run *run,
			     take_fn *take, void *ctx)
{
	vec_for_each (item, &tally->series) {
		for (int i = ESCALATION_NONE + 1; i < ESCALATION_REASON_COUNT; i++) {
			struct metric_point point = of_series(run, *item);

			add_label(&point, "reason",
				  escalation_otlp_value((enum escalation_reason)i));
			point.count = (*item)->escalations[i];
			take(ctx, &point);
		}
	}
}

/* All causes from the first step on: increase() of a counter that begins at 1 would be 0. */
static void list_causes(const struct metrics_tally *tally, const struct metrics_run *run,
			take_fn *take, void *ctx)
{
	vec_for_each (item, &tally->series) {
		for (int i = 0; i < CAUSE_COUNT; i++) {
			struct metric_point point = of_series(run, *item);

			add_label(&point, "cause", cause_name((enum cause_kind)i));
			point.count = (*item)->cause_steps[i];
			take(ctx, &point);
		}
	}
}

static void list_cause_times(const struct metrics_tally *tally, const struct metrics_run *run,
			     take_fn *take, void *ctx)
{
	vec_for_each (item, &tally->series) {
		for (int i = 0; i < CAUSE_COUNT; i++) {
			struct metric_point point = of_series(run, *item);

			add_label(&point, "cause", cause_name((enum cause_kind)i));
			point.ns = (*item)->cause_extra_ns[i];
			take(ctx, &point);
		}
	}
}

#define COUNTER	  METRIC_COUNTER
#define GAUGE	  METRIC_GAUGE
#define HISTOGRAM METRIC_HISTOGRAM

const struct metric metric_catalog[] = {
	{"up", "", GAUGE, "1 while the tool runs; 0 once it has ended.", list_up},
	{"info", "", GAUGE, "Always 1; the label is the version of the tool.", list_info},
	{"start_time", "seconds", GAUGE, "When the tool started, as Unix time.", list_start},
	{"last_update_time", "seconds", GAUGE, "When these values were collected, as Unix time.",
	 list_update},
	{"window_open", "", GAUGE, "1 while a window is open: steps are traced.", list_open},
	{"windows", "", COUNTER, "Windows that were opened.", list_windows},
	{"traced", "seconds", COUNTER, "Time in which a window was open.", list_traced},
	{"processes", "", GAUGE, "Processes that are traced in the open window.", list_processes},
	{"steps", "", COUNTER, "Steps that have ended.", list_steps},
	{"step_duration", "seconds", HISTOGRAM,
	 "Time that a step took, of steps whose end is known.", list_durations},
	{"step_part", "seconds", COUNTER, "Where the time went of steps whose end is known.",
	 list_parts},
	{"gap_before_step", "seconds", COUNTER,
	 "Time between a step and the one before it on the same thread.", list_gaps},
	{"last_step_time", "seconds", GAUGE, "When the last step ended, as Unix time.",
	 list_last_step},
	{"escalations", "", COUNTER, "Steps that were found wrong, by reason.", list_escalations},
	{"escalations_not_shown", "", COUNTER,
	 "Those of them that are neither alerted nor in the trace: repeated, as usual, or over the "
	 "rate limit.",
	 list_not_shown},
	{"escalations_unsteady", "", COUNTER,
	 "Those of them with nothing wrong but that their class is unsteady: repeated or as usual.",
	 list_unsteady},
	{"cause_steps", "", COUNTER, "Steps that were found wrong, by cause.", list_causes},
	{"cause_extra", "seconds", COUNTER,
	 "Time that the cause took beyond what is usual (gpu_transfer: all of its time), in steps "
	 "whose end is known and that are not as usual.",
	 list_cause_times},
	{"hangs", "", COUNTER, "Steps that were open for longer than --hang.", list_hangs},
	{"incomplete_steps", "", COUNTER, "Steps of which records were lost, or that were cut off.",
	 list_incomplete},
	{"lost_records", "", COUNTER, "Records that found no room.", list_lost},
	{"skipped_records", "", COUNTER, "Records that could not be read or kept.", list_skipped},
	{"folded_steps", "", COUNTER,
	 "Steps whose engine, kind and rank are replaced by other, because there are too many.",
	 list_folded},
	{"probe_cost", "seconds", COUNTER,
	 "Time that probes added to the steps and the system calls in them, estimated by what they "
	 "cost when the tool attached.",
	 list_probe_cost},
	{"tool_cpu", "seconds", COUNTER, "CPU time of the tool itself.", list_cpu},
	{"tool_max_memory", "bytes", GAUGE, "Most memory of the tool so far.", list_memory},
	{"write_errors", "", COUNTER, "Times that the file of the metrics could not be written.",
	 list_write_errors},
};
const size_t metric_catalog_count = sizeof(metric_catalog) / sizeof(*metric_catalog);

const char *metric_full_name(const struct metric *metric, char name[METRIC_NAME_SIZE])
{
	snprintf(name, METRIC_NAME_SIZE, METRIC_PREFIX "%s%s%s%s", metric->name,
		 *metric->unit ? "_" : "", metric->unit,
		 metric->type == METRIC_COUNTER ? "_total" : "");
	return name;
}

const char *metric_type_name(enum metric_type type)
{
	static const char *const names[] = {"counter", "gauge", "histogram"};

	return names[type];
}
