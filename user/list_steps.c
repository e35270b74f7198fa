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

#define CANDIDATES_MAX 16
#define WATCH_NS       (2000 * 1000000ull)
#define CHECK_US       20000
#define NAMED_MAX      3

struct hint {
	uint32_t tgid;
	function_vec functions;
	struct rates *rates;
	uint64_t end_ns;
	struct rate result[CANDIDATES_MAX];
};

static struct target_options candidate_options(const struct options *options)
{
	return (struct target_options){
		.symbol_files = options->symbol_files.items,
		.symbol_file_count = options->symbol_files.count,
	};
}

void hint__free(struct hint *hint)
{
	if (!hint)
		return;
	rates__free(hint->rates);
	vec_for_each (function, &hint->functions)
		target_function_free(*function);
	vec_free(&hint->functions);
	free(hint);
}

static int watch_begin(struct hint **result, const struct options *options, uint32_t tgid)
{
	struct target_options target_options = candidate_options(options);
	struct hint *hint = calloc(1, sizeof(*hint));
	int err;

	*result = NULL;
	if (!hint)
		return -ENOMEM;
	hint->tgid = tgid;
	err = target_find_candidates(tgid, &target_options, CANDIDATES_MAX, &hint->functions);
	if (err >= 0)
		err = rates__open(&hint->rates, hint->functions.items, hint->functions.count, tgid,
				  options->perf_uprobes);
	hint->end_ns = clock_ns(CLOCK_MONOTONIC) + WATCH_NS;
	if (err < 0) {
		hint__free(hint);
		return err;
	}
	*result = hint;
	return 0;
}

struct hint *hint__begin(const struct options *options, uint32_t tgid)
{
	struct hint *hint;

	if (watch_begin(&hint, options, tgid))
		return NULL;
	return hint;
}

static void name_busiest(const struct hint *hint)
{
	size_t named = 0;

	for (size_t i = 0; i < hint->functions.count && named < NAMED_MAX; i++) {
		const struct rate *rate = &hint->result[i];

		if (!rate->calls || rate->too_often)
			continue;
		log_info("  --step '%s'  (%.1f calls/s, mean %.3f ms)", rate->function->name,
			 (double)rate->calls * 1e9 / (double)rate->since_ns,
			 (double)rate->mean_ns / 1e6);
		named++;
	}
	if (!named)
		log_info("  no other candidate was called in two seconds either: is the server "
			 "idle? "
			 "(--list-steps -p %u shows all of them)",
			 hint->tgid);
}

bool hint__check(struct hint *hint)
{
	rates__check(hint->rates);
	if (clock_ns(CLOCK_MONOTONIC) < hint->end_ns)
		return false;
	rates__finish(hint->rates, hint->result);
	log_info("no step was seen yet; the busiest candidates of process %u are:", hint->tgid);
	name_busiest(hint);
	return true;
}

static void print_rate(const struct rate *rate, FILE *out)
{
	const char *path = rate->function->path ? rate->function->path : "";
	const char *slash = strrchr(path, '/');
	double per_s = (double)rate->calls * 1e9 / (double)(rate->since_ns ? rate->since_ns : 1);
	char name[256];

	if (rate->too_often)
		fprintf(out, "%9.0f+  %12s  ", per_s, "too often");
	else if (rate->mean_ns)
		fprintf(out, "%10.1f  %9.3f ms  ", per_s, (double)rate->mean_ns / 1e6);
	else
		fprintf(out, "%10.1f  %12s  ", per_s, "-");
	log_escape(name, sizeof(name), rate->function->name);
	fprintf(out, "%s  [%s%s]\n", name, slash ? slash + 1 : path,
		rate->function->builtin ? ", built in" : "");
}

static void print_rates(const struct hint *hint, FILE *out)
{
	size_t idle = 0;

	fprintf(out, "%10s  %12s  %s\n", "calls/s", "mean", "step function");
	for (size_t i = 0; i < hint->functions.count; i++) {
		const struct rate *rate = &hint->result[i];

		if (rate->calls || rate->function->builtin)
			print_rate(rate, out);
		else
			idle++;
	}
	if (idle)
		fprintf(out, "%zu more were not called:\n", idle);
	for (size_t i = 0; i < hint->functions.count; i++) {
		if (!hint->result[i].calls && !hint->result[i].function->builtin)
			print_rate(&hint->result[i], out);
	}
}

int list_steps(const struct options *options, FILE *out)
{
	uint32_t tgid = options->pids.items[0];
	struct hint *hint;
	int err = watch_begin(&hint, options, tgid);

	if (err)
		return err;
	if (!hint->functions.count) {
		log_err("process %u: no function looks like a step: name one with --step, or give "
			"the "
			"symbols of a stripped file with --symbols",
			tgid);
		hint__free(hint);
		return -ENOENT;
	}
	while (clock_ns(CLOCK_MONOTONIC) < hint->end_ns) {
		usleep(CHECK_US);
		rates__check(hint->rates);
	}
	rates__finish(hint->rates, hint->result);
	print_rates(hint, out);
	hint__free(hint);
	return 0;
}
