/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clock.h"
#include "list_steps.h"
#include "log.h"
#include "rates.h"
#include "target.h"
#include "terminal.h"

#define CANDIDATES_MAX 16
#define WATCH_NS       (2000 * 1000000ull)
#define CHECK_US       20000
/* A shortened name is of no use to --step. */
#define NAME_BYTES 2048

struct watch {
	function_vec functions;
	struct rates *rates;
	struct rate result[CANDIDATES_MAX];
};

static void watch_end(struct watch *watch)
{
	rates__free(watch->rates);
	vec_for_each (function, &watch->functions)
		target_function_free(*function);
	vec_free(&watch->functions);
}

static int find_candidates(struct watch *watch, const struct options *options, uint32_t tgid)
{
	struct target_options target_options = {
		.symbol_files = options->symbol_files.items,
		.symbol_file_count = options->symbol_files.count,
	};
	int count =
		target_find_candidates(tgid, &target_options, CANDIDATES_MAX, &watch->functions);

	if (count)
		return count < 0 ? count : 0;
	log_err("process %u: no function looks like a step: name one with --step, or give the "
		"symbols of a stripped file with --symbols",
		tgid);
	return -ENOENT;
}

static int measure(struct watch *watch, const struct options *options, uint32_t tgid)
{
	uint64_t end_ns;
	int err = rates__open(&watch->rates, watch->functions.items, watch->functions.count, tgid,
			      options->perf_uprobes);

	if (err)
		return err;
	end_ns = clock_ns(CLOCK_MONOTONIC) + WATCH_NS;
	while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
		usleep(CHECK_US);
		rates__check(watch->rates);
	}
	rates__finish(watch->rates, watch->result);
	return 0;
}

static void print_rate(const struct rate *rate, FILE *out)
{
	const char *path = rate->function->path ? rate->function->path : "";
	const char *slash = strrchr(path, '/');
	double per_s = (double)rate->calls * 1e9 / (double)(rate->since_ns ? rate->since_ns : 1);
	char figures[64];

	if (rate->too_often)
		snprintf(figures, sizeof(figures), "%9.0f+  %12s", per_s, "too often");
	else if (rate->mean_ns)
		snprintf(figures, sizeof(figures), "%10.1f  %9.3f ms", per_s,
			 (double)rate->mean_ns / 1e6);
	else
		snprintf(figures, sizeof(figures), "%10.1f  %12s", per_s, "-");
	terminal_line(out, "%s  %.*s  [%s%s]", figures, NAME_BYTES, rate->function->name,
		      slash ? slash + 1 : path, rate->function->builtin ? ", built in" : "");
}

static void print_rates(const struct watch *watch, FILE *out)
{
	size_t idle = 0;

	terminal_line(out, "%10s  %12s  %s", "calls/s", "mean", "step function");
	for (size_t i = 0; i < watch->functions.count; i++) {
		const struct rate *rate = &watch->result[i];

		if (rate->calls || rate->function->builtin)
			print_rate(rate, out);
		else
			idle++;
	}
	if (idle)
		terminal_line(out, "%zu more were not called:", idle);
	for (size_t i = 0; i < watch->functions.count; i++) {
		if (!watch->result[i].calls && !watch->result[i].function->builtin)
			print_rate(&watch->result[i], out);
	}
}

int list_steps(const struct options *options, FILE *out)
{
	uint32_t tgid = options->pids.items[0];
	struct watch watch = {0};
	int err = find_candidates(&watch, options, tgid);

	if (!err)
		err = measure(&watch, options, tgid);
	if (!err)
		print_rates(&watch, out);
	watch_end(&watch);
	return err;
}
