/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/list_steps.h"

#include <errno.h>
#include <string.h>

#include "base/format.h"
#include "base/log.h"
#include "trace/candidates.h"

/* --step takes whole names: only those beyond all reason are cut. */
#define NAME_BYTES 2048

static void print_rate(const struct rate *rate, FILE *out)
{
	const char *path = rate->function->path ? rate->function->path : "";
	const char *slash = strrchr(path, '/');
	double per_s = rate_per_second(rate);
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

static void print_rates(const struct candidates *candidates, FILE *out)
{
	size_t idle = 0, shown;

	terminal_line(out, "%10s  %12s  %s", "calls/s", "mean", "step function");
	for (size_t i = 0; i < candidates->functions.count; i++) {
		const struct rate *rate = &candidates->rates[i];

		if (rate->calls || rate->function->builtin)
			print_rate(rate, out);
		else
			idle++;
	}
	shown = candidates->functions.count - idle;
	if (idle)
		terminal_line(out,
			      shown ? "%zu more were not called:" : "none of these %zu was called:",
			      idle);
	for (size_t i = 0; i < candidates->functions.count; i++) {
		const struct rate *rate = &candidates->rates[i];

		if (!rate->calls && !rate->function->builtin)
			print_rate(rate, out);
	}
}

int list_steps(const struct options *options, FILE *out)
{
	struct candidates candidates;
	int err = candidates_measure(&candidates, options, options->pids.items[0], false);

	if (!err)
		print_rates(&candidates, out);
	candidates_clear(&candidates);
	if (!err && fflush(out)) {
		err = -errno;
		log_err("--list-steps: %s", strerror(-err));
	}
	return err;
}
