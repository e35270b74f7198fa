/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/candidates.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "steps/find.h"

#define WATCH_NS (2 * NS_PER_S)
#define CHECK_US 20000

int candidates_measure(struct candidates *candidates, const struct options *options, uint32_t tgid)
{
	struct target_options target_options = {
		.symbol_files = options->symbol_files.items,
		.symbol_file_count = options->symbol_files.count,
	};
	function_vec *functions = &candidates->functions;
	struct rates *rates = NULL;
	uint64_t end_ns;
	int count, err;

	*candidates = (struct candidates){.functions = {0}};
	count = target_find_candidates(tgid, &target_options, CANDIDATES_MAX, functions);
	if (!count) {
		log_err("process %u: no function looks like a step: name one with --step, or give "
			"the symbols of a stripped file with --symbols",
			tgid);
		return -ENOENT;
	}
	err = count < 0 ? count
			: rates__open(&rates, functions->items, functions->count, tgid,
				      options->perf_uprobes);
	if (err)
		return err;
	end_ns = clock_ns(CLOCK_MONOTONIC) + WATCH_NS;
	while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
		usleep(CHECK_US);
		rates__check(rates);
	}
	rates__finish(rates, candidates->rates);
	rates__free(rates);
	return 0;
}

void candidates_clear(struct candidates *candidates)
{
	step_functions_free(&candidates->functions);
}

double rate_per_second(const struct rate *rate)
{
	return (double)rate->calls * 1e9 / (double)(rate->since_ns ? rate->since_ns : 1);
}
