/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report/cost.h"

#include <inttypes.h>

#include "base/arith.h"
#include "base/format.h"
#include "report/part.h"

static void sum_steps(const struct tally *tally, struct cost *cost, uint64_t *calls,
		      long double *in_steps_ns)
{
	for (int i = 0; i < FBT_KIND_COUNT; i++) {
		if (!tally->kinds[i])
			continue;
		*calls = add_saturating(*calls, tally_calls(tally->kinds[i]));
		*in_steps_ns += (long double)tally->kinds[i]->total_ns;
		cost->faults = add_saturating(cost->faults, tally->kinds[i]->faults_timed);
		if (i) /* intervals have no probes */
			cost->steps += tally->kinds[i]->steps;
	}
}

static void sum_processes(const struct window *window, struct cost *cost)
{
	for (size_t i = 0; i < window->processes.count; i++) {
		const struct process *process = window->processes.items[i];

		vec_for_each (row, &process->table.rows)
			cost->calls = add_saturating(cost->calls, row->sum.calls);
		cost->traced_ns =
			add_saturating(cost->traced_ns, tally_process_ns(window, process));
	}
}

static double gpu_idle_share(const struct gpu_tally *tally)
{
	long double idle_ns = 0, total_ns = 0;

	for (int i = 0; i < FBT_KIND_COUNT; i++) {
		const struct gpu_tally_kind *kind = tally->kinds[i];

		idle_ns += kind ? (long double)kind->sum.idle_ns : 0;
		total_ns += kind ? (long double)kind->total_ns : 0;
	}
	return total_ns > 0 ? (double)(idle_ns / total_ns) : 1;
}

/* Returns the share of the GPU's work that steps launched. */
static long double sum_gpu(const struct tally *tally, const struct window *window,
			   struct cost *cost)
{
	uint64_t works = 0, outside = 0;

	vec_for_each (entry, &window->gpus.processes) {
		const struct gpu_counts *counts = &(*entry)->counts;

		cost->gpu_calls = add_saturating(cost->gpu_calls, counts->apis);
		cost->gpu_nodes = add_saturating(cost->gpu_nodes, counts->graph_nodes);
		works += counts->kernels + counts->memcpys + counts->memsets;
		outside += counts->outside;
	}
	cost->gpu_idle = gpu_idle_share(&tally->gpu);
	cost->gpu_ns = to_u64_saturating(((long double)cost->gpu_calls * GPU_CALL_COST_NS +
					  (long double)cost->gpu_nodes * GPU_NODE_COST_NS) *
					 (long double)cost->gpu_idle);
	return works ? (long double)sub_saturating(works, outside) / (long double)works : 0;
}

void cost_sum(const struct tally *tally, const struct window *window, struct cost *cost)
{
	uint64_t step_calls = 0;
	long double in_steps_ns = 0, added_ns, call_ns = (long double)window->cost.call_ps / 1000;
	long double gpu_in_steps;

	*cost = (struct cost){0};
	sum_steps(tally, cost, &step_calls, &in_steps_ns);
	sum_processes(window, cost);
	gpu_in_steps = sum_gpu(tally, window, cost);
	/* Records that were cut off have no table. */
	if (cost->calls < step_calls)
		cost->calls = step_calls;
	cost->fault_ns = to_u64_saturating((long double)window->cost.fault_ps *
					   (long double)cost->faults / 1000);
	cost->call_ns = to_u64_saturating(call_ns * (long double)cost->calls);
	cost->step_ns =
		to_u64_saturating((long double)window->cost.step_ns * (long double)cost->steps);
	cost->collection_ns = (uint64_t)window->cost.collections * window->cost.collection_ns;
	added_ns = (long double)cost->call_ns + (long double)cost->step_ns +
		   (long double)cost->fault_ns + (long double)cost->collection_ns +
		   (long double)cost->gpu_ns;
	if (cost->traced_ns)
		cost->percent = (double)(added_ns * 100 / (long double)cost->traced_ns);
	added_ns = call_ns * (long double)step_calls + (long double)cost->step_ns +
		   (long double)cost->fault_ns + (long double)cost->gpu_ns * gpu_in_steps;
	if (in_steps_ns > 0)
		cost->step_percent = (double)(added_ns * 100 / in_steps_ns);
}

static bool is_measured(const struct window *window)
{
	return window__traces_calls(window) ? window->cost.call_ps : window->cost.step_ns;
}

static void write_added(const struct report *report, const struct cost *cost)
{
	const struct fbt_cost *measured = &report->window->cost;
	bool with_calls = window__traces_calls(report->window);

	if (!is_measured(report->window)) {
		report_field(report, "Cost", "added to the target: not measured");
		return;
	}
	report_field(report, "Cost",
		     "added to the target: %s of the traced time, %s of the step time",
		     FORMAT_PART(cost->percent), FORMAT_PART(cost->step_percent));
	if (!with_calls)
		report_field(report, "",
			     "%s step%s x up to %s = %s; system calls: nothing, as none is traced",
			     FORMAT_COUNT(cost->steps), plural(cost->steps),
			     FORMAT_TIME(measured->step_ns), FORMAT_TIME(cost->step_ns));
	else if (cost->steps)
		report_field(report, "", "%s call%s x %s = %s, %s step%s x up to %s = %s",
			     FORMAT_COUNT(cost->calls), plural(cost->calls),
			     FORMAT_TIME((double)measured->call_ps / 1000),
			     FORMAT_TIME(cost->call_ns), FORMAT_COUNT(cost->steps),
			     plural(cost->steps), FORMAT_TIME(measured->step_ns),
			     FORMAT_TIME(cost->step_ns));
	else
		report_field(report, "", "%s calls x %s = %s", FORMAT_COUNT(cost->calls),
			     FORMAT_TIME((double)measured->call_ps / 1000),
			     FORMAT_TIME(cost->call_ns));
}

/* In most windows no page fault is timed. */
static void write_timed_faults(const struct report *report, const struct cost *cost)
{
	if (cost->faults)
		report_field(report, "", "%s timed page faults x %s = %s",
			     FORMAT_COUNT(cost->faults),
			     FORMAT_TIME((double)report->window->cost.fault_ps / 1000),
			     FORMAT_TIME(cost->fault_ns));
}

static void write_collections(const struct report *report, const struct cost *cost)
{
	const struct fbt_cost *measured = &report->window->cost;

	if (measured->collections)
		report_field(report, "", "%s garbage collections x up to %s = %s",
			     FORMAT_COUNT(measured->collections),
			     FORMAT_TIME(measured->collection_ns),
			     FORMAT_TIME(cost->collection_ns));
}

static void write_gpu(const struct report *report, const struct cost *cost)
{
	char nodes[96] = "";

	if (!cost->gpu_calls && !cost->gpu_nodes)
		return;
	if (cost->gpu_nodes)
		snprintf(nodes, sizeof(nodes), ", %s graph nodes x up to %s",
			 FORMAT_COUNT(cost->gpu_nodes), FORMAT_TIME(GPU_NODE_COST_NS));
	report_field(report, "",
		     "GPU records: %s CUDA calls x up to %s%s, %s of it while the GPU was idle = "
		     "%s",
		     FORMAT_COUNT(cost->gpu_calls), FORMAT_TIME(GPU_CALL_COST_NS), nodes,
		     FORMAT_PERCENT(cost->gpu_idle * 100), FORMAT_TIME(cost->gpu_ns));
}

void report_cost(const struct report *report)
{
	const struct window *window = report->window;
	const struct fbt_cost *measured = &window->cost;
	struct cost cost;

	cost_sum(report->tally, window, &cost);
	write_added(report, &cost);
	write_timed_faults(report, &cost);
	write_collections(report, &cost);
	write_gpu(report, &cost);
	report_explain_cost(report);
	if (measured->rss_bytes)
		report_field(report, "",
			     "the tool: %s CPU (%s of one core), RSS %s, rings shared with the "
			     "kernel %s",
			     FORMAT_TIME(measured->cpu_ns),
			     FORMAT_PERCENT(percent_of((double)measured->cpu_ns,
						       (double)tally_window_ns(window))),
			     FORMAT_BYTES(measured->rss_bytes), FORMAT_BYTES(measured->ring_bytes));
	if (measured->neighbor_ps) {
		report_field(report, "", "cost to untraced processes: %s per system call",
			     FORMAT_TIME((double)measured->neighbor_ps / 1000));
	}
	if (!window__traces_calls(window))
		return;
	if (measured->floor_ns) {
		report_field(report, "Resolution",
			     "shortest measurable call: %s (mostly tracer overhead)",
			     FORMAT_TIME(measured->floor_ns));
	} else {
		report_field(report, "Resolution", "not measured");
	}
}

static void put_percent(struct json *json, const char *key, bool is_known, double percent)
{
	if (is_known)
		json_double(json, key, percent);
	else
		json_null(json, key);
}

void report_json_cost(struct json *json, const struct report *report)
{
	const struct fbt_cost *measured = &report->window->cost;
	bool with_calls = window__traces_calls(report->window);
	struct cost cost;

	cost_sum(report->tally, report->window, &cost);
	json_object_begin(json, "cost");
	if (with_calls) {
		json_uint(json, "per_call_ps", measured->call_ps);
		json_uint(json, "per_neighbor_call_ps", measured->neighbor_ps);
	}
	json_uint(json, "per_step_ns", measured->step_ns);
	if (with_calls) {
		json_uint(json, "floor_ns", measured->floor_ns);
		json_uint(json, "calls", cost.calls);
		json_uint(json, "added_by_calls_ns", cost.call_ns);
	}
	json_uint(json, "added_by_steps_ns", cost.step_ns);
	if (cost.faults) {
		json_uint(json, "per_timed_fault_ps", measured->fault_ps);
		json_uint(json, "timed_faults", cost.faults);
		json_uint(json, "added_by_timed_faults_ns", cost.fault_ns);
	}
	if (measured->collections) {
		json_uint(json, "per_collection_ns", measured->collection_ns);
		json_uint(json, "collections", measured->collections);
		json_uint(json, "added_by_collections_ns", cost.collection_ns);
	}
	if (cost.gpu_calls || cost.gpu_nodes) {
		json_uint(json, "per_gpu_call_ns", GPU_CALL_COST_NS);
		json_uint(json, "gpu_calls", cost.gpu_calls);
		json_uint(json, "per_graph_node_ns", GPU_NODE_COST_NS);
		json_uint(json, "graph_nodes", cost.gpu_nodes);
		json_double(json, "gpu_idle_share", cost.gpu_idle);
		json_uint(json, "added_by_gpu_records_ns", cost.gpu_ns);
	}
	json_uint(json, "traced_ns", cost.traced_ns);
	put_percent(json, "added_percent", is_measured(report->window), cost.percent);
	put_percent(json, "added_in_steps_percent", is_measured(report->window), cost.step_percent);
	json_uint(json, "tool_cpu_ns", measured->cpu_ns);
	json_uint(json, "tool_rss_bytes", measured->rss_bytes);
	json_uint(json, "ring_bytes", measured->ring_bytes);
	report_json_explain_cost(json, report->window);
	json_object_end(json);
}
