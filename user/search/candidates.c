/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "search/candidates.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "inject/python_use.h"
#include "stream/stacks.h"
#include "steps/find.h"

#define WATCH_NS (2 * NS_PER_S)
#define CHECK_US 20000

/* A candidate is plausible if it took at least this part of the time of the busiest one. */
#define PLAUSIBLE_PART 20

/*
 * A thread with less than this part of the busiest thread's CPU time is idle. The limit is low
 * because a step's thread may wait for a GPU most of the time.
 */
#define IDLE_PART 20

/* Adds what looks like a step on a busy thread. Returns the number, or -errno; 0: all are idle. */
static int find_busy(struct candidates *candidates, const struct target_options *options,
		     uint32_t tgid)
{
	struct stacks stacks = {.threads = 0};
	int found = stacks_sample(&stacks, tgid, true);

	if (!found && stacks.starved)
		found = -EAGAIN;
	if (!found && stacks.threads) {
		found = target_find_candidates(tgid, options, &stacks.places, CANDIDATES_MAX,
					       &candidates->functions);
		found = found ? found : -ENOENT;
	}
	stacks_clear(&stacks);
	return found;
}

static int measure(struct candidates *candidates, const struct options *options, uint32_t tgid)
{
	function_vec *functions = &candidates->functions;
	thread_use_vec before = {0};
	struct rates *rates = NULL;
	uint64_t end_ns;
	int err = rates__open(&rates, functions->items, functions->count, tgid,
			      options->perf_uprobes);

	if (err)
		return err;
	(void)thread_use_read(&before, tgid);
	end_ns = clock_ns(CLOCK_MONOTONIC) + WATCH_NS;
	while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
		usleep(CHECK_US);
		rates__check(rates);
	}
	if (!thread_use_read(&candidates->threads, tgid))
		thread_use_since(&candidates->threads, &before);
	vec_free(&before);
	rates__finish(rates, candidates->rates);
	rates__free(rates);
	return 0;
}

/*
 * Of names like "decode" in the libraries of a Python program none is its step: what remains are
 * the functions of engines that are known.
 */
static void keep_known(function_vec *functions)
{
	size_t kept = 0;

	for (size_t i = 0; i < functions->count; i++) {
		if (functions->items[i]->builtin)
			functions->items[kept++] = functions->items[i];
		else
			step_function_free(functions->items[i]);
	}
	functions->count = kept;
}

int candidates_measure(struct candidates *candidates, const struct options *options, uint32_t tgid,
		       bool busy_only)
{
	struct target_options target_options = {
		.symbol_files = options->symbol_files.items,
		.symbol_file_count = options->symbol_files.count,
	};
	int count;

	*candidates = (struct candidates){.functions = {0}};
	if (busy_only) {
		count = find_busy(candidates, &target_options, tgid);
		if (count > 0 && python_use_is_there(tgid)) {
			keep_known(&candidates->functions);
			count = candidates->functions.count ? count : -ENOTSUP;
		}
		/*
		 * Attaching probes holds locks of the process, which must not wait for a CPU for
		 * long. Refused without the rights: then so be it.
		 */
		(void)nice(-CANDIDATES_NICE);
		return count > 0 ? measure(candidates, options, tgid) : count;
	}
	count = target_find_candidates(tgid, &target_options, NULL, CANDIDATES_MAX,
				       &candidates->functions);
	if (!count)
		return -ENOENT;
	return count < 0 ? count : measure(candidates, options, tgid);
}

void candidates_clear(struct candidates *candidates)
{
	step_functions_free(&candidates->functions);
	vec_free(&candidates->threads);
}

double rate_per_second(const struct rate *rate)
{
	return (double)rate->calls * 1e9 / (double)(rate->since_ns ? rate->since_ns : 1);
}

uint64_t rate_total_ns(const struct rate *rate)
{
	return rate->calls * rate->mean_ns;
}

bool rate_is_plausible(const struct rate *rate, uint64_t most_ns)
{
	return rate->calls && !rate->too_often &&
	       (!rate->mean_ns || rate_total_ns(rate) >= most_ns / PLAUSIBLE_PART);
}

bool rate_is_on_busy_thread(const struct rate *rate, const thread_use_vec *threads)
{
	if (!threads->count || !rate->busiest_ns)
		return true;
	vec_for_each (thread, threads) {
		if (thread->tid == rate->busiest_tid)
			return thread->cpu_ns >= threads->items[0].cpu_ns / IDLE_PART;
	}
	return false;
}
