/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "diff/quantile.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DRAWS 400

/* Longer series are averaged in groups for their autocorrelations. */
#define SERIES_MAX  65536
#define SERIES_MIN  8
#define SILENT_LAGS 5

/* The window that is walked for each draw reaches so many standard deviations to the left. */
#define WINDOW_SIGMAS 8

struct sorted {
	uint64_t ns;
	uint32_t index; /* in the order of time */
	float weight;
};

/* A sum of products of values with those lag later. */
static double product(const double *values, size_t count, size_t lag)
{
	double sum = 0;

	for (size_t i = lag; i < count; i++)
		sum += values[i] * values[i - lag];
	return sum;
}

/*
 * Covariances of centred values up to twice the first lag of SILENT_LAGS in a row that are no
 * larger than chance makes them, as the package arch of Python counts. Returns the number of lags;
 * covariance has room for limit + 1.
 */
static size_t find_covariances(const double *values, size_t count, size_t limit, double *covariance)
{
	double n = (double)count, threshold = 2 * sqrt(log10(n) / n);
	double squares = product(values, count, 0);
	double late = squares - values[0] * values[0]; /* without an end */
	double early = squares - values[count - 1] * values[count - 1];
	size_t silent = 0, last = limit;

	covariance[0] = squares / n;
	for (size_t lag = 1; lag <= last; lag++) {
		double sum = product(values, count, lag);

		covariance[lag] = sum / n;
		late -= values[lag] * values[lag];
		early -= values[count - 1 - lag] * values[count - 1 - lag];
		silent = sum * sum < threshold * threshold * late * early ? silent + 1 : 0;
		if (silent == SILENT_LAGS && last == limit) {
			size_t wanted = 2 * (lag - SILENT_LAGS + 1);

			last = wanted < limit ? wanted : limit;
		}
	}
	return last;
}

/* The optimal length for the mean, and the sum of autocorrelations. */
static double length_of(const double *covariance, size_t lags, size_t count, double *correlated)
{
	double slope = 0, sum = covariance[0], n = (double)count;
	double most = ceil(fmin(3 * sqrt(n), n / 3));

	for (size_t lag = 1; lag <= lags; lag++) {
		double place = (double)lag / (double)lags;
		double taper = place <= 0.5 ? 1 : 2 * (1 - place);

		slope += 2 * taper * (double)lag * covariance[lag];
		sum += 2 * taper * covariance[lag];
	}
	*correlated = fmax(1, sum / covariance[0]);
	if (sum <= 0)
		return 1;
	return fmax(1, fmin(most, cbrt(2 * slope * slope / (4.0 / 3 * sum * sum)) * cbrt(n)));
}

double block_length(double *values, size_t count, double *correlated)
{
	size_t limit = (size_t)ceil(sqrt((double)count)) + SILENT_LAGS, lags;
	double mean = 0, length = 1;
	double *covariance;

	*correlated = 1;
	if (count < SERIES_MIN)
		return 1;
	for (size_t i = 0; i < count; i++)
		mean += values[i] / (double)count;
	for (size_t i = 0; i < count; i++)
		values[i] -= mean;
	covariance = calloc(limit + 1, sizeof(*covariance));
	if (!covariance)
		return NAN;
	lags = find_covariances(values, count, limit < count - 1 ? limit : count - 2, covariance);
	/* Equal values may differ from their mean by rounding. */
	if (covariance[0] > 1e-12 * (1 + mean * mean))
		length = length_of(covariance, lags, count, correlated);
	free(covariance);
	return length;
}

static int compare(const void *left, const void *right)
{
	const struct sorted *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* What the quantile is found in. */
struct search {
	struct sorted *sorted;
	size_t count; /* with a weight */
	double share;
	double total;
	double squares; /* of the weights */
	double correlated;
	size_t block_steps;
	uint32_t blocks;
	size_t from;   /* where draws begin to walk */
	double *mass;  /* of each block: all, … */
	double *below; /* … and before from */
	uint32_t *drawn;
};

static uint32_t block_of(const struct search *search, const struct sorted *step)
{
	size_t block = step->index / search->block_steps;

	/* The last block has the rest too. */
	return block < search->blocks ? (uint32_t)block : search->blocks - 1;
}

/* Index of the first step with at least its share of the weight before and in it. */
static size_t find_plain(const struct search *search)
{
	double sum = 0;

	for (size_t i = 0; i < search->count; i++) {
		sum += search->sorted[i].weight;
		if (sum >= search->share * search->total)
			return i;
	}
	return search->count - 1;
}

/* Steps without a weight do not count, those that follow each other in time do. */
static int sort_steps(struct search *search, const struct weighted *steps, size_t count)
{
	uint32_t index = 0;

	search->sorted = calloc(count ? count : 1, sizeof(*search->sorted));
	if (!search->sorted)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		double weight = steps[i].weight;

		if (weight <= 0)
			continue;
		search->sorted[index] =
			(struct sorted){.ns = steps[i].ns, .index = index, .weight = (float)weight};
		search->total += weight;
		search->squares += weight * weight;
		index++;
	}
	search->count = index;
	qsort(search->sorted, index, sizeof(*search->sorted), compare);
	return 0;
}

/* By the indicator "at most the quantile", averaged in groups if there are many. */
static int choose_blocks(struct search *search, size_t at)
{
	size_t group = (search->count + SERIES_MAX - 1) / SERIES_MAX,
	       groups = search->count / group;
	double *series = calloc(groups + 1, sizeof(*series));
	double length, variance = search->share * (1 - search->share), mean = 0, spread = 0;

	if (!series)
		return -ENOMEM;
	/* Equal values all count as at most the quantile. */
	for (size_t i = 0; i < search->count; i++)
		if (search->sorted[i].ns <= search->sorted[at].ns)
			series[search->sorted[i].index / group] += 1.0 / (double)group;
	for (size_t i = 0; i < groups; i++)
		mean += series[i] / (double)groups;
	for (size_t i = 0; i < groups; i++)
		spread += (series[i] - mean) * (series[i] - mean) / (double)groups;
	length = block_length(series, groups, &search->correlated);
	free(series);
	if (isnan(length))
		return -ENOMEM;
	if (group > 1)
		search->correlated =
			fmax(1, search->correlated * spread / variance * (double)group);
	length = fmax(QUANTILE_LENGTHS * length * (double)group,
		      (double)search->count / QUANTILE_BLOCKS_MAX);
	search->block_steps = (size_t)ceil(length);
	search->blocks = (uint32_t)(search->count / search->block_steps);
	return 0;
}

static int make_blocks(struct search *search)
{
	search->mass = calloc(search->blocks, sizeof(*search->mass));
	search->below = calloc(search->blocks, sizeof(*search->below));
	search->drawn = calloc(search->blocks, sizeof(*search->drawn));
	if (!search->mass || !search->below || !search->drawn)
		return -ENOMEM;
	for (size_t i = 0; i < search->count; i++)
		search->mass[block_of(search, &search->sorted[i])] += search->sorted[i].weight;
	return 0;
}

/* Sets from so far below the quantile that hardly any draw has its quantile before it. */
static void open_window(struct search *search, size_t at)
{
	double variance = 0, skip, sum = 0;

	for (size_t i = 0; i <= at; i++)
		search->below[block_of(search, &search->sorted[i])] += search->sorted[i].weight;
	for (uint32_t i = 0; i < search->blocks; i++) {
		double excess = search->below[i] - search->share * search->mass[i];

		variance += excess * excess;
	}
	skip = search->share * search->total - WINDOW_SIGMAS * sqrt(variance);
	memset(search->below, 0, search->blocks * sizeof(*search->below));
	search->from = 0;
	while (search->from < at && sum + search->sorted[search->from].weight < skip) {
		const struct sorted *step = &search->sorted[search->from++];

		search->below[block_of(search, step)] += step->weight;
		sum += step->weight;
	}
}

static uint64_t draw(const struct search *search, unsigned short seed[3])
{
	double total = 0, before = 0, wanted, sum;
	size_t at = search->from;

	memset(search->drawn, 0, search->blocks * sizeof(*search->drawn));
	for (uint32_t i = 0; i < search->blocks; i++)
		search->drawn[(uint64_t)nrand48(seed) % search->blocks]++;
	for (uint32_t i = 0; i < search->blocks; i++) {
		total += search->drawn[i] * search->mass[i];
		before += search->drawn[i] * search->below[i];
	}
	wanted = search->share * total;
	sum = before;
	if (before >= wanted) {
		at = 0;
		sum = 0;
	}
	for (; at < search->count; at++) {
		sum += search->drawn[block_of(search, &search->sorted[at])] *
		       (double)search->sorted[at].weight;
		if (sum >= wanted)
			return search->sorted[at].ns;
	}
	return search->sorted[search->count - 1].ns;
}

static double log_ns(uint64_t ns)
{
	return log(ns ? (double)ns : 1);
}

static double find_error(const struct search *search)
{
	unsigned short seed[3] = {0x1ea5, 0x5eed, 0xfb7};
	double mean = 0, squares = 0;

	for (int i = 1; i <= DRAWS; i++) {
		double value = log_ns(draw(search, seed)), change = value - mean;

		/* Welford's sums. */
		mean += change / i;
		squares += change * (value - mean);
	}
	return sqrt(squares / (DRAWS - 1));
}

static enum quantile_state judge(const struct search *search, struct quantile *quantile)
{
	double tail = fmin(search->share, 1 - search->share);
	double steps = search->squares > 0 ? search->total * search->total / search->squares : 0;

	quantile->correlated = search->correlated;
	quantile->effective = steps / search->correlated;
	quantile->blocks = search->blocks;
	quantile->block_steps = (double)search->block_steps;
	if (steps * tail < QUANTILE_TAIL_MIN || search->count < QUANTILE_BLOCKS_MIN)
		return QUANTILE_TOO_FEW;
	if (quantile->effective * tail < QUANTILE_EFFECTIVE_MIN ||
	    search->blocks < QUANTILE_BLOCKS_MIN)
		return QUANTILE_TOO_CORRELATED;
	return QUANTILE_KNOWN;
}

int quantile_find(const struct weighted *steps, size_t count, double share,
		  struct quantile *quantile)
{
	struct search search = {.share = share, .correlated = 1, .block_steps = 1};
	int err = sort_steps(&search, steps, count);
	size_t at = 0;

	*quantile = (struct quantile){.state = QUANTILE_TOO_FEW};
	if (err || !search.count)
		goto out;
	at = find_plain(&search);
	quantile->ns = search.sorted[at].ns;
	err = choose_blocks(&search, at);
	if (err)
		goto out;
	quantile->state = judge(&search, quantile);
	if (quantile->state != QUANTILE_KNOWN)
		goto out;
	err = make_blocks(&search);
	if (err)
		goto out;
	open_window(&search, at);
	quantile->error = find_error(&search);
out:
	free(search.sorted);
	free(search.mass);
	free(search.below);
	free(search.drawn);
	return err;
}
