/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * How often the verdicts of `diff` are wrong, by simulation: two runs of the same engine, COUNT
 * steps each, RUNS times; SHIFT is by how many percent all steps of B take longer (default: 0), and
 * MARGIN the margin in percent (default: 5). Prints of each quantile how many runs were worse,
 *better, same and not told, and in how many any of the three was worse or better.
 *
 *	bench_diff independent|ar50|ar90|ar98|ar995|bursts COUNT RUNS [SHIFT [MARGIN]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff/interval.h"

#define MS	  1e6
#define QUANTILES 3

static double uniform(void)
{
	return (drand48() + 0x1p-49) / (1 + 0x1p-48);
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* 1 ms with a spread of 10 %, whose logarithm has that correlation from step to step. */
static void make_correlated(struct weighted *steps, size_t count, double correlation, double scale)
{
	double value = normal();

	for (size_t i = 0; i < count; i++) {
		steps[i] = (struct weighted){(uint64_t)(scale * MS * exp(0.1 * value)), 1};
		value = correlation * value + sqrt(1 - correlation * correlation) * normal();
	}
}

/* One step in 25 is slow, three times as long and in bursts of 50. */
static void make_bursts(struct weighted *steps, size_t count, double scale)
{
	double share = 0.04, length = 50;
	int is_slow = uniform() < share;

	for (size_t i = 0; i < count; i++) {
		double factor = is_slow ? 3 : 1;

		steps[i] =
			(struct weighted){(uint64_t)(scale * MS * factor * exp(0.1 * normal())), 1};
		if (is_slow)
			is_slow = uniform() > 1 / length;
		else
			is_slow = uniform() < share / (1 - share) / length;
	}
}

static int make_steps(struct weighted *steps, size_t count, const char *name, double scale)
{
	if (!strcmp(name, "independent"))
		make_correlated(steps, count, 0, scale);
	else if (!strcmp(name, "ar50"))
		make_correlated(steps, count, 0.5, scale);
	else if (!strcmp(name, "ar90"))
		make_correlated(steps, count, 0.9, scale);
	else if (!strcmp(name, "ar98"))
		make_correlated(steps, count, 0.98, scale);
	else if (!strcmp(name, "ar995"))
		make_correlated(steps, count, 0.995, scale);
	else if (!strcmp(name, "bursts"))
		make_bursts(steps, count, scale);
	else
		return -1;
	return 0;
}

int main(int argc, char **argv)
{
	static const double shares[QUANTILES] = {0.5, 0.95, 0.99};
	size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	long runs = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
	double shift = argc > 4 ? strtod(argv[4], NULL) / 100 : 0;
	double margin = argc > 5 ? strtod(argv[5], NULL) / 100 : 0.05;
	struct weighted *steps = calloc(count + 1, sizeof(*steps));
	long seen[QUANTILES][VERDICT_WORSE + 1] = {{0}}, any = 0, states[QUANTILES][3] = {{0}};
	int failed = !count || !runs || !steps;

	srand48(7);
	for (long run = 0; run < runs && !failed; run++) {
		struct quantile found[2][QUANTILES];
		int wrong = 0;

		for (int side = 0; side < 2; side++) {
			failed |= make_steps(steps, count, argv[1], side ? 1 + shift : 1);
			for (int i = 0; i < QUANTILES; i++)
				failed |= quantile_find(steps, count, shares[i], &found[side][i]);
		}
		for (int i = 0; i < QUANTILES && !failed; i++) {
			struct change change =
				change_find(&found[0][i], &found[1][i], 1, QUANTILES, margin);

			seen[i][change.verdict]++;
			states[i][found[1][i].state]++;
			wrong |=
				change.verdict == VERDICT_WORSE || change.verdict == VERDICT_BETTER;
		}
		any += wrong;
	}
	for (int i = 0; i < QUANTILES && !failed; i++)
		printf("p%g worse %ld better %ld same %ld cannot_tell %ld (few %ld, correlated "
		       "%ld)\n",
		       100 * shares[i], seen[i][VERDICT_WORSE], seen[i][VERDICT_BETTER],
		       seen[i][VERDICT_SAME], seen[i][VERDICT_CANNOT_TELL], states[i][1],
		       states[i][2]);
	if (!failed)
		printf("any %ld of %ld\n", any, runs);
	free(steps);
	return failed;
}
