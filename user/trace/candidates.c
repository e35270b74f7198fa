/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/candidates.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/stacks.h"
#include "proc/thread_use.h"
#include "steps/find.h"

#define WATCH_NS (2 * NS_PER_S)
#define CHECK_US 20000

/* Tells apart the functions that a text is in. */
#define TEXT_WATCH_NS NS_PER_S

/* Of the CPU time of the busiest thread: a function that takes less is no step. */
#define BUSY_PART 4

/* Of the time that the busiest candidate took. */
#define PLAUSIBLE_PART 20

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

static void watch(struct rates *rates, uint64_t for_ns)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + for_ns;

	while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
		usleep(CHECK_US);
		rates__check(rates);
	}
}

static int measure(struct candidates *candidates, const struct options *options, uint32_t tgid)
{
	function_vec *functions = &candidates->functions;
	struct rates *rates = NULL;
	int err = rates__open(&rates, functions->items, functions->count, tgid,
			      options->perf_uprobes);

	if (err)
		return err;
	watch(rates, WATCH_NS);
	rates__finish(rates, candidates->rates);
	rates__free(rates);
	return 0;
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
		/*
		 * Attaching probes takes locks of the process, and their holder must not wait long
		 * for a CPU. Without the right to raise the priority, the low one stays.
		 */
		(void)nice(-CANDIDATES_NICE);
		return count > 0 ? measure(candidates, options, tgid) : count;
	}
	count = target_find_candidates(tgid, &target_options, NULL, CANDIDATES_MAX,
				       &candidates->functions);
	if (!count) {
		log_err("process %u: no function looks like a step: name one with --step, or give "
			"the symbols of a stripped file with --symbols",
			tgid);
		return -ENOENT;
	}
	return count < 0 ? count : measure(candidates, options, tgid);
}

void candidates_clear(struct candidates *candidates)
{
	step_functions_free(&candidates->functions);
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

/* The CPU time of the busiest thread since before was read; 0: not known. */
static uint64_t busiest_ns(uint32_t tgid, const thread_use_vec *before)
{
	thread_use_vec threads = {0};
	uint64_t cpu_ns = 0;

	if (!thread_use_read(&threads, tgid)) {
		thread_use_since(&threads, before);
		cpu_ns = threads.count ? threads.items[0].cpu_ns : 0;
	}
	vec_free(&threads);
	return cpu_ns;
}

static struct function_rate judge(const struct rate *rate, uint64_t busiest)
{
	return (struct function_rate){
		.calls = rate->calls,
		.mean_ns = rate->mean_ns,
		.calls_per_s = rate_per_second(rate),
		.too_often = rate->too_often,
		.is_busy = rate_total_ns(rate) >= busiest / BUSY_PART,
	};
}

int candidates_measure_text(uint32_t tgid, struct step_function *const *functions, size_t count,
			    struct function_rate *result)
{
	uint64_t busiest;
	struct rate *measured = calloc(count, sizeof(*measured));
	thread_use_vec before = {0};
	struct rates *rates = NULL;
	int err = measured ? rates__open(&rates, functions, count, tgid, false) : -ENOMEM;

	if (err)
		goto out;
	(void)thread_use_read(&before, tgid);
	watch(rates, TEXT_WATCH_NS);
	busiest = busiest_ns(tgid, &before);
	rates__finish(rates, measured);
	for (size_t i = 0; i < count; i++)
		for (size_t at = 0; at < count; at++)
			if (measured[i].function == functions[at])
				result[at] = judge(&measured[i], busiest);
out:
	vec_free(&before);
	rates__free(rates);
	free(measured);
	return err;
}
