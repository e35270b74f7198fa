/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff/cluster.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

struct sizes {
	uint64_t a[SIZE_BINS];
	uint64_t b[SIZE_BINS];
};

/* Steps around a size, spread by some percent. */
static void add(uint64_t bins[SIZE_BINS], uint64_t size, int count)
{
	for (int i = 0; i < count; i++)
		bins[size_bin(size * (uint64_t)(92 + i * 7919 % 17) / 100)]++;
}

static bool is_in(const struct cluster *cluster, uint64_t size)
{
	uint32_t bin = size_bin(size);

	return bin >= cluster->from && bin < cluster->to;
}

static void test_bins(void **unused)
{
	for (uint32_t bin = 0; bin < SIZE_BINS; bin++) {
		assert_int_equal(size_bin(size_bin_low(bin)), bin);
		if (bin)
			assert_int_equal(size_bin(size_bin_low(bin) - 1), bin - 1);
	}
	assert_int_equal(size_bin(UINT64_MAX), SIZE_BINS - 1);
}

/* The small steps are slower in B, the large ones are as before: two classes, not three. */
static void test_slower_code(void **unused)
{
	struct sizes sizes = {{0}};
	struct cluster clusters[CLUSTERS_MAX];

	add(sizes.a, MS, 900);
	add(sizes.a, 8 * MS, 100);
	add(sizes.b, 13 * MS / 10, 900);
	add(sizes.b, 8 * MS, 100);
	assert_int_equal(cluster_by_work(sizes.a, sizes.b, clusters), 2);
	assert_true(is_in(&clusters[0], MS) && is_in(&clusters[0], 13 * MS / 10));
	assert_true(is_in(&clusters[1], 8 * MS));
	assert_false(clusters[0].by_bin);
}

/* Both have both sorts, which are less than an octave apart; there are more large ones in B. */
static void test_near_modes(void **unused)
{
	struct sizes sizes = {{0}};
	struct cluster clusters[CLUSTERS_MAX];

	add(sizes.a, MS, 900);
	add(sizes.a, 17 * MS / 10, 100);
	add(sizes.b, MS, 400);
	add(sizes.b, 17 * MS / 10, 600);
	assert_int_equal(cluster_by_work(sizes.a, sizes.b, clusters), 2);
	assert_true(is_in(&clusters[0], MS) && is_in(&clusters[1], 17 * MS / 10));
}

static void test_only_in_one(void **unused)
{
	struct sizes sizes = {{0}};
	struct cluster clusters[CLUSTERS_MAX];

	add(sizes.a, MS, 900);
	add(sizes.b, MS, 800);
	add(sizes.b, 40 * MS, 100);
	assert_int_equal(cluster_by_work(sizes.a, sizes.b, clusters), 2);
	assert_int_equal(cluster_by_work(sizes.a, sizes.a, clusters), 1);
}

/* A few steps between two modes do not join them. */
static void test_stragglers(void **unused)
{
	struct sizes sizes = {{0}};
	struct cluster clusters[CLUSTERS_MAX];

	for (int i = 0; i < 2; i++) {
		uint64_t *bins = i ? sizes.b : sizes.a;

		add(bins, MS, 10000);
		add(bins, 20 * MS, 1000);
		for (uint64_t size = MS; size < 20 * MS; size += 200 * US)
			bins[size_bin(size)]++;
	}
	assert_int_equal(cluster_by_work(sizes.a, sizes.b, clusters), 2);
}

/* Sizes of all lengths: octaves, in which each size is held against the same. */
static void test_no_gaps(void **unused)
{
	struct sizes sizes = {{0}};
	struct cluster clusters[CLUSTERS_MAX];
	int count;

	for (uint64_t size = 100 * US; size < 100 * MS; size += size / 50) {
		sizes.a[size_bin(size)] += 3;
		sizes.b[size_bin(size)] += 1;
	}
	count = cluster_by_work(sizes.a, sizes.b, clusters);
	assert_true(count >= 10 && count <= 12);
	for (int i = 0; i < count; i++) {
		assert_true(clusters[i].by_bin && clusters[i].is_cut);
		assert_true(clusters[i].to - clusters[i].from <= 16);
	}
}

static void test_arguments(void **unused)
{
	struct sizes sizes = {{0}};
	struct cluster clusters[CLUSTERS_MAX];

	sizes.a[size_bin(0)] = 1;
	sizes.a[size_bin(1)] = 100;
	sizes.b[size_bin(5)] = 100;
	sizes.b[size_bin(7)] = 100;
	sizes.b[size_bin(1000)] = 10;
	assert_int_equal(cluster_by_argument(sizes.a, sizes.b, clusters), 4);
	assert_true(is_in(&clusters[2], 4) && is_in(&clusters[2], 7) && !is_in(&clusters[2], 8));
	assert_true(is_in(&clusters[3], 512) && is_in(&clusters[3], 1023) &&
		    !is_in(&clusters[3], 1024));
	assert_true(clusters[3].by_bin && !clusters[3].is_cut);
}

/* Whatever the sizes: in order, apart from each other, no more than there is room for, and all in.
 */
static void test_any(void **unused)
{
	struct cluster clusters[CLUSTERS_MAX];

	srand48(3);
	for (int run = 0; run < 300; run++) {
		struct sizes sizes = {{0}};
		int every = 1 + (int)(lrand48() % 60), count;

		for (uint32_t bin = 0; bin < SIZE_BINS; bin++) {
			sizes.a[bin] = lrand48() % every ? 0 : (uint64_t)(lrand48() % 1000);
			sizes.b[bin] = lrand48() % every ? 0 : (uint64_t)(lrand48() % 1000);
		}
		count = run % 2 ? cluster_by_work(sizes.a, sizes.b, clusters)
				: cluster_by_argument(sizes.a, sizes.b, clusters);
		assert_true(count <= CLUSTERS_MAX);
		for (int i = 0; i < count; i++) {
			assert_true(clusters[i].from < clusters[i].to);
			assert_true(!i || clusters[i].from >= clusters[i - 1].to);
			for (uint32_t bin = clusters[i].from; bin < clusters[i].to; bin++)
				sizes.a[bin] = sizes.b[bin] = 0;
		}
		for (uint32_t bin = 0; bin < SIZE_BINS; bin++)
			assert_int_equal(sizes.a[bin] + sizes.b[bin], 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bins),	   cmocka_unit_test(test_slower_code),
		cmocka_unit_test(test_near_modes), cmocka_unit_test(test_only_in_one),
		cmocka_unit_test(test_stragglers), cmocka_unit_test(test_no_gaps),
		cmocka_unit_test(test_arguments),  cmocka_unit_test(test_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
