/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/list_steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/format.h"
#include "base/log.h"
#include "commands/list_python.h"
#include "inject/python_use.h"
#include "search/candidates.h"
#include "search/step_search.h"

/* --step takes whole names: only those beyond all reason are cut. */
#define NAME_BYTES 2048

/* A step takes at least this part of the CPU time of the busiest thread. */
#define BUSY_PART 4

/* How its calls end: "3 exits", "2 call sites". */
static void describe_ends(const struct rate *rate, char *to, size_t size)
{
	size_t exits = rate->function->exit_offsets.count;

	if (exits)
		snprintf(to, size, "%zu exit%s", exits, exits == 1 ? "" : "s");
	else if (rate->shared_site)
		snprintf(to, size, "hot call site");
	else if (rate->call_sites)
		snprintf(to, size, "%u call site%s", rate->call_sites,
			 rate->call_sites == 1 ? "" : "s");
	else
		snprintf(to, size, rate->calls ? "no call site" : "call sites");
}

/* The name with the types of its arguments, where the name alone is not what --step needs. */
static char *describe_overload(const struct step_function *function)
{
	char *name;

	if (!function->symbol || !strcmp(step_function_alone(function), function->name))
		return NULL;
	name = demangle_with_arguments(function->symbol);
	return name ? name : strdup(function->name);
}

static const char *describe_future(const struct step_function *function)
{
	switch (function->future.kind) {
	case FUTURE_KNOWN:
		return ", async: a step is all calls for one future";
	case FUTURE_UNTOLD:
		return ", polls a future: a step is one poll, prefer a function below it";
	case FUTURE_NONE:
		break;
	}
	return "";
}

static void print_rate(const struct rate *rate, FILE *out)
{
	const char *path = rate->function->path ? rate->function->path : "";
	const char *slash = strrchr(path, '/');
	char *overload = describe_overload(rate->function);
	double per_s = rate_per_second(rate);
	struct ways_out ways = step_function_ways_out(rate->function);
	char figures[64], ends[32], tails[FORMAT_WAYS_MAX];

	if (rate->too_often)
		snprintf(figures, sizeof(figures), "%9.0f+  %12s", per_s, "too often");
	else if (rate->mean_ns)
		snprintf(figures, sizeof(figures), "%10.1f  %9.3f ms", per_s,
			 (double)rate->mean_ns / 1e6);
	else
		snprintf(figures, sizeof(figures), "%10.1f  %12s", per_s,
			 rate->calls ? "not known" : "-");
	describe_ends(rate, ends, sizeof(ends));
	format_ways_out(tails, &ways);
	terminal_line(out, "%s  %-13s  %.*s%s%.*s  [%s%s%s%s%s]", figures, ends, NAME_BYTES,
		      step_function_alone(rate->function), overload ? "  " : "", NAME_BYTES,
		      overload ? overload : "", slash ? slash + 1 : path,
		      rate->function->builtin ? ", built in" : "", describe_future(rate->function),
		      *tails ? "; " : "", tails);
	free(overload);
}

/* What a function that was measured may be. */
enum likelihood { LIKELY, UNLIKELY, NOT_CALLED };

static enum likelihood judge(const struct candidates *candidates, const struct rate *rate,
			     uint64_t most_ns)
{
	if (rate->function->builtin)
		return LIKELY;
	if (!rate->calls)
		return NOT_CALLED;
	return rate_is_plausible(rate, most_ns) &&
			       rate_is_on_busy_thread(rate, &candidates->threads)
		       ? LIKELY
		       : UNLIKELY;
}

/* Prints those of one likelihood. Returns how many there are. */
static size_t print_some(const struct candidates *candidates, enum likelihood which, FILE *out)
{
	uint64_t most_ns = 0;
	size_t count = 0;

	for (size_t i = 0; i < candidates->functions.count; i++)
		if (!candidates->rates[i].too_often &&
		    rate_total_ns(&candidates->rates[i]) > most_ns)
			most_ns = rate_total_ns(&candidates->rates[i]);
	for (size_t i = 0; i < candidates->functions.count; i++) {
		const struct rate *rate = &candidates->rates[i];

		if (judge(candidates, rate, most_ns) != which)
			continue;
		count++;
		if (out)
			print_rate(rate, out);
	}
	return count;
}

static void print_heading(FILE *out)
{
	terminal_line(out, "%10s  %12s  %-13s  %s", "calls/s", "mean", "ends at", "step function");
}

/* Candidates that were not called are listed only if no others are: the engine is then idle. */
static void print_rates(const struct candidates *candidates, FILE *out)
{
	size_t unlikely = print_some(candidates, UNLIKELY, NULL);
	size_t idle = print_some(candidates, NOT_CALLED, NULL);

	print_heading(out);
	print_some(candidates, LIKELY, out);
	if (unlikely)
		terminal_line(
			out,
			"not called as a step is (too often, for too little time, or on a thread "
			"that is idle):");
	print_some(candidates, UNLIKELY, out);
	if (idle && idle < candidates->functions.count) {
		terminal_line(out, "%zu more were not called", idle);
		return;
	}
	if (idle)
		terminal_line(out, "none of these %zu was called:", idle);
	print_some(candidates, NOT_CALLED, out);
}

/* Whether one of them was called, and takes a good part of what a busy thread does. */
static bool has_busy(const struct candidates *candidates)
{
	uint64_t most_ns = candidates->threads.count ? candidates->threads.items[0].cpu_ns : 0;

	for (size_t i = 0; i < candidates->functions.count; i++) {
		const struct rate *rate = &candidates->rates[i];

		if (rate->calls && rate->function->builtin)
			return true;
		if (judge(candidates, rate, 0) == LIKELY &&
		    (!rate->mean_ns || rate->busiest_ns >= most_ns / BUSY_PART))
			return true;
	}
	return false;
}

/* listed: functions that were found by their names follow. */
static void print_found(const struct step_search *search, bool listed, FILE *out)
{
	terminal_line(out,
		      "found by the stacks of busy threads, and called as a step is%s (%.0f %% of "
		      "the CPU time of thread %u):",
		      search->functions.count > 1 ? "; the first calls the others" : "",
		      search->share * 100, search->tid);
	print_heading(out);
	for (size_t i = 0; i < search->functions.count; i++)
		print_rate(&search->rates[i], out);
	if (listed)
		terminal_line(out, "found by their names only:");
}

static const char *explain_none(enum step_search_end end)
{
	switch (end) {
	case STEP_SEARCH_NONE:
		return "no regular step found: no function that its busy threads are in is called "
		       "as a step is";
	case STEP_SEARCH_IDLE:
		return "its threads are idle: run this while the engine serves a request";
	case STEP_SEARCH_COSTLY:
		return "no step found: the search by stacks takes too much CPU time";
	case STEP_SEARCH_STARVED:
		return "no regular step found, but its threads are short of CPUs, and what they do "
		       "is not regular then: try again";
	case STEP_SEARCH_PYTHON:
	case STEP_SEARCH_FOUND:
		break;
	}
	return "no step found by stacks";
}

/* What no name tells, the stacks of busy threads may. listed: names follow. */
static int list_by_stacks(const struct options *options, bool listed, FILE *out)
{
	uint32_t tgid = options->pids.items[0];
	struct step_search search;
	int err = step_search(&search, tgid, options, false, false);

	if (err && err != -ENOMEM)
		log_err("process %u: the stacks of its threads cannot be sampled: %s", tgid,
			strerror(-err));
	else if (!err && search.end == STEP_SEARCH_FOUND)
		print_found(&search, listed, out);
	else if (!err && listed)
		terminal_line(out, "%s", explain_none(search.end));
	else if (!err)
		log_err("process %u: no function looks like a step by its name, and %s; name one "
			"with --step, or give the symbols of a stripped file with --symbols",
			tgid, explain_none(search.end));
	if (!err && search.end != STEP_SEARCH_FOUND)
		err = -ENOENT;
	step_search_clear(&search);
	return listed && err != -ENOMEM ? 0 : err;
}

static int list_native(const struct options *options, FILE *out)
{
	struct candidates candidates;
	int err = candidates_measure(&candidates, options, options->pids.items[0], false);
	bool listed = !err;

	if (err == -ENOENT || (listed && !has_busy(&candidates)))
		err = list_by_stacks(options, listed, out);
	if (listed && !err)
		print_rates(&candidates, out);
	candidates_clear(&candidates);
	return err;
}

static bool has_known_step(uint32_t tgid)
{
	struct target_options options = {.tells = TARGET_TELLS_NOTHING};
	struct target_seen *seen = target_seen__new();
	function_vec functions = {0};
	int found = seen ? target_find(processes_live_thread(tgid), &options, seen, &functions) : 0;

	step_functions_free(&functions);
	target_seen__free(seen);
	return found > 0;
}

/*
 * The step of a Python process is a native function only if that is one of a known engine
 * (llama-cpp-python): others that look like a step are not listed.
 */
static bool is_python(const struct options *options)
{
	uint32_t tgid = options->pids.items[0];

	return options->python != PYTHON_OFF && python_use_is_there(tgid) && !has_known_step(tgid);
}

int list_steps(const struct options *options, FILE *out)
{
	int err = is_python(options) ? list_python(options, out) : list_native(options, out);

	if (!err && fflush(out)) {
		err = -errno;
		log_err("--list-steps: %s", strerror(-err));
	}
	return err;
}
