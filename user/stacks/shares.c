/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stacks/shares.h"

#include <math.h>
#include <stdlib.h>

/* On a thread with a smaller part of its samples in a function, that function is not at home. */
#define HOME_PART 0.2

#define NONE UINT32_MAX

struct counts {
	uint32_t (*functions)[SHARE_THREADS_MAX]; /* samples of each function, by thread */
	uint32_t samples[SHARE_THREADS_MAX];
};

static size_t index_of(const uint32_t *tids, size_t count, uint32_t tid)
{
	size_t at = 0;

	while (at < count && tids[at] != tid)
		at++;
	return at;
}

static int count_all(struct counts *counts, const struct chain_set *set, const uint32_t *tids,
		     size_t tid_count)
{
	counts->functions = calloc(set->function_count + 1, sizeof(*counts->functions));
	if (!counts->functions)
		return -ENOMEM;
	vec_for_each (chain, &set->items) {
		size_t thread = index_of(tids, tid_count, chain->tid);

		if (thread == tid_count)
			continue;
		counts->samples[thread]++;
		for (uint32_t i = 0; i < chain->count; i++)
			counts->functions[set->functions.items[chain->first + i]][thread]++;
	}
	return 0;
}

static double part_of(const struct counts *counts, uint32_t function, size_t thread)
{
	uint32_t samples = counts->samples[thread];

	return samples ? (double)counts->functions[function][thread] / samples : 0;
}

/* A half has a standard deviation of 0.5 / sqrt(samples): two of them more are no chance. */
static bool is_most(const struct counts *counts, uint32_t function, size_t thread)
{
	uint32_t samples = counts->samples[thread];
	double part = part_of(counts, function, thread);

	return samples >= SHARE_SAMPLES_MIN && part >= SHARE_MIN &&
	       part >= 0.5 + 1 / sqrt((double)samples);
}

static struct share share_of(const struct counts *counts, uint32_t function, size_t tid_count,
			     size_t which)
{
	struct share share = {.function = function, .part = part_of(counts, function, which)};

	for (size_t i = 0; i < tid_count; i++) {
		double part = part_of(counts, function, i);

		share.parts[i] = part >= HOME_PART ? part : 0;
	}
	return share;
}

/* Sets after[i] to how many of the others share i is an outer function of. */
static int count_inner(const share_vec *shares, const struct chain_set *set, uint32_t tid,
		       uint32_t *after)
{
	size_t count = shares->count;
	uint32_t *places = malloc((set->function_count + 1) * sizeof(*places));
	int32_t *balance = calloc(count * count + 1, sizeof(*balance));
	int err = places && balance ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < set->function_count; i++)
		places[i] = NONE;
	for (size_t i = 0; !err && i < count; i++)
		places[shares->items[i].function] = (uint32_t)i;
	for (size_t at = 0; !err && at < set->items.count; at++) {
		const struct chain *chain = &set->items.items[at];
		const uint32_t *functions = set->functions.items + chain->first;

		for (uint32_t i = 0; chain->tid == tid && i < chain->count; i++)
			for (uint32_t j = i + 1; j < chain->count; j++) {
				uint32_t outer = places[functions[i]], inner = places[functions[j]];

				if (outer == NONE || inner == NONE)
					continue;
				balance[outer * count + inner]++;
				balance[inner * count + outer]--;
			}
	}
	for (size_t i = 0; !err && i < count * count; i++)
		after[i / count] += balance[i] > 0;
	free(places);
	free(balance);
	return err;
}

/* How many samples of a thread have caller as the caller of function; NONE: none calls it. */
static uint32_t count_calls(const struct chain_set *set, uint32_t tid, uint32_t function,
			    uint32_t caller)
{
	uint32_t count = 0;

	vec_for_each (chain, &set->items) {
		const uint32_t *functions = set->functions.items + chain->first;

		for (uint32_t i = 0; chain->tid == tid && i < chain->count; i++)
			count +=
				functions[i] == function && (i ? functions[i - 1] : NONE) == caller;
	}
	return count;
}

/* Whether nearly all samples of a function have the same caller. */
static bool has_one_caller(const struct chain_set *set, uint32_t tid, uint32_t function)
{
	uint32_t caller = NONE, samples = 0;
	int64_t votes = 0;

	/* The only one that can have more than half of the votes is left over. */
	vec_for_each (chain, &set->items) {
		const uint32_t *functions = set->functions.items + chain->first;

		for (uint32_t i = 0; chain->tid == tid && i < chain->count; i++) {
			uint32_t by = i ? functions[i - 1] : NONE;

			if (functions[i] != function)
				continue;
			samples++;
			if (!votes)
				caller = by;
			votes += by == caller ? 1 : -1;
		}
	}
	return count_calls(set, tid, function, caller) >= SHARE_CALLER_MIN * samples;
}

struct placed {
	struct share share;
	uint32_t after;
};

static int compare(const void *left, const void *right)
{
	const struct placed *a = left, *b = right;

	if (a->after != b->after)
		return a->after > b->after ? -1 : 1;
	if (a->share.part != b->share.part)
		return a->share.part > b->share.part ? -1 : 1;
	return a->share.function < b->share.function ? -1 : 1;
}

static int sort(share_vec *shares, const struct chain_set *set, uint32_t tid)
{
	struct placed *placed = calloc(shares->count + 1, sizeof(*placed));
	uint32_t *after = calloc(shares->count + 1, sizeof(*after));
	int err = placed && after ? count_inner(shares, set, tid, after) : -ENOMEM;

	if (!err) {
		for (size_t i = 0; i < shares->count; i++)
			placed[i] = (struct placed){shares->items[i], after[i]};
		qsort(placed, shares->count, sizeof(*placed), compare);
		for (size_t i = 0; i < shares->count; i++)
			shares->items[i] = placed[i].share;
	}
	free(placed);
	free(after);
	return err;
}

int shares_find(share_vec *shares, const struct chain_set *set, const uint32_t *tids,
		size_t tid_count, size_t which)
{
	struct counts counts = {.samples = {0}};
	int err = count_all(&counts, set, tids, tid_count);

	for (size_t i = 0; !err && i < set->function_count; i++)
		if (is_most(&counts, (uint32_t)i, which) &&
		    has_one_caller(set, tids[which], (uint32_t)i))
			err = vec_push(shares, share_of(&counts, (uint32_t)i, tid_count, which));
	free(counts.functions);
	return err ? err : sort(shares, set, tids[which]);
}
