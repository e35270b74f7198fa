/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "metrics/histogram.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static int find(const struct histogram *histogram)
{
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (histogram->buckets[i])
			return i;
	return -1;
}

static int bucket_of(uint64_t ns)
{
	struct histogram histogram = {0};
	struct histogram_bounds bounds;

	histogram_bounds_init(&bounds);
	histogram_add(&histogram, &bounds, ns);
	assert_int_equal(histogram.count, 1);
	assert_int_equal(histogram.sum_ns, ns);
	return find(&histogram);
}

/* Bounds belong to the bucket below them: 2^-3 s is 125 ms exactly. */
static void a_bound_is_in_the_bucket_below(void **state)
{
	int below = (-3 - HISTOGRAM_MIN_EXP) * HISTOGRAM_PER_EXP - 1;

	assert_int_equal(bucket_of(125000000), below);
	assert_int_equal(bucket_of(125000001), below + 1);
	assert_int_equal(bucket_of(1000000000), -HISTOGRAM_MIN_EXP * HISTOGRAM_PER_EXP - 1);
}

static void each_duration_is_within_its_bounds(void **state)
{
	for (uint64_t ns = 1000; ns < UINT64_C(8000000000000); ns = ns * 21 / 20 + 1) {
		int index = HISTOGRAM_OFFSET + bucket_of(ns);
		double s = (double)ns / 1e9;

		assert_true(s > exp2((double)index / 8) * (1 - 1e-9));
		assert_true(s <= exp2((double)(index + 1) / 8) * (1 + 1e-9));
	}
}

static void the_shortest_and_the_longest_are_kept(void **state)
{
	struct histogram histogram = {0};
	struct histogram_bounds bounds;

	histogram_bounds_init(&bounds);
	histogram_add(&histogram, &bounds, 0);
	histogram_add(&histogram, &bounds, 953);
	histogram_add(&histogram, &bounds, UINT64_MAX);
	assert_int_equal(histogram.below, 2);
	assert_int_equal(histogram.buckets[HISTOGRAM_BUCKETS - 1], 1);
	assert_int_equal(histogram.count, 3);
	assert_true(histogram.sum_ns == UINT64_MAX);
}

static void classic_buckets_count_the_same(void **state)
{
	struct histogram histogram = {0};
	struct histogram_bounds bounds;
	uint64_t counts[CLASSIC_BUCKETS] = {0};

	histogram_bounds_init(&bounds);
	for (uint64_t ns = 1; ns < UINT64_C(300000000000); ns = ns * 9 / 8 + 1) {
		histogram_add(&histogram, &bounds, ns);
		for (int i = 0; i < CLASSIC_BUCKETS; i++)
			counts[i] += (double)ns <= classic_bound(i) * 1e9;
	}
	assert_true(classic_bound(0) == exp2(-14));
	assert_true(classic_bound(CLASSIC_BUCKETS - 1) == 128);
	for (int i = 0; i < CLASSIC_BUCKETS; i++)
		assert_int_equal(classic_count(&histogram, i), counts[i]);
	assert_true(histogram.count > counts[CLASSIC_BUCKETS - 1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bound_is_in_the_bucket_below),
		cmocka_unit_test(each_duration_is_within_its_bounds),
		cmocka_unit_test(the_shortest_and_the_longest_are_kept),
		cmocka_unit_test(classic_buckets_count_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
