/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "metrics/histogram.h"

#include <math.h>

#include "base/arith.h"

#define NS_PER_S_F 1e9L

static uint64_t bound_ns(int index)
{
	return (uint64_t)floorl(exp2l((long double)index / HISTOGRAM_PER_EXP) * NS_PER_S_F);
}

void histogram_bounds_init(struct histogram_bounds *bounds)
{
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		bounds->ns[i] = bound_ns(HISTOGRAM_OFFSET + i + 1);
	bounds->ns[HISTOGRAM_BUCKETS - 1] = UINT64_MAX;
}

void histogram_add(struct histogram *histogram, const struct histogram_bounds *bounds, uint64_t ns)
{
	int low = 0, high = HISTOGRAM_BUCKETS - 1;

	histogram->count++;
	histogram->sum_ns = add_saturating(histogram->sum_ns, ns);
	if (ns <= bound_ns(HISTOGRAM_OFFSET)) {
		histogram->below++;
		return;
	}
	while (low < high) {
		int middle = (low + high) / 2;

		if (ns <= bounds->ns[middle])
			high = middle;
		else
			low = middle + 1;
	}
	histogram->buckets[low]++;
}

double classic_bound(int bucket)
{
	return exp2((double)bucket / 2 + CLASSIC_MIN_EXP);
}

uint64_t classic_count(const struct histogram *histogram, int bucket)
{
	int end = (CLASSIC_MIN_EXP - HISTOGRAM_MIN_EXP) * HISTOGRAM_PER_EXP +
		  bucket * HISTOGRAM_PER_EXP / 2;
	uint64_t count = histogram->below;

	for (int i = 0; i < end; i++)
		count += histogram->buckets[i];
	return count;
}
