/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"

static int setup(void **state)
{
	*state = stats__new();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	stats__free(*state);
	return 0;
}

static void stats_free_accepts_null(void **state)
{
	(void)state;
	stats__free(NULL);
}

static void stats_of_nothing_are_zero(void **state)
{
	struct stats *stats = *state;

	assert_int_equal(stats__count(stats), 0);
	assert_int_equal(stats__sum(stats), 0);
	assert_int_equal(stats__min(stats), 0);
	assert_int_equal(stats__max(stats), 0);
	assert_int_equal(stats__percentile(stats, 0.5), 0);
	assert_true(stats__mean(stats) == 0);
	assert_true(stats__cv_percent(stats) == 0);
}

static void cv_of_zeros_is_zero(void **state)
{
	stats__add(*state, 0);
	stats__add(*state, 0);
	assert_true(stats__cv_percent(*state) == 0);
}

static void sum_saturates(void **state)
{
	stats__add(*state, UINT64_MAX);
	stats__add(*state, UINT64_MAX);
	assert_true(stats__sum(*state) == UINT64_MAX);
	assert_true(stats__max(*state) == UINT64_MAX);
	assert_true(fabs(stats__mean(*state) / 18446744073709551615.0 - 1) < 1e-12);
}

static void percentile_outside_zero_to_one_is_min_or_max(void **state)
{
	stats__add(*state, 3);
	stats__add(*state, 4000000);
	stats__add(*state, 9000000);
	assert_int_equal(stats__percentile(*state, -1), 3);
	assert_int_equal(stats__percentile(*state, NAN), 3);
	assert_int_equal(stats__percentile(*state, 7), 9000000);
}

static void one_value_is_every_percentile(void **state)
{
	stats__add(*state, 123456789);
	for (int i = 0; i <= 8; i++)
		assert_int_equal(stats__percentile(*state, i / 8.0), 123456789);
}

static void small_values_are_exact(void **state)
{
	for (uint64_t i = 0; i < 1024; i++)
		stats__add(*state, i);
	for (uint64_t i = 0; i < 1024; i++)
		assert_int_equal(stats__percentile(*state, (double)i / 1023.0), i);
}

static void percentile_rank_rounds_half_up_as_the_seed_does(void **state)
{
	/* rank 0.95 * 10 = 9.5 */
	for (uint64_t i = 0; i <= 10; i++)
		stats__add(*state, i);
	assert_int_equal(stats__percentile(*state, 0.95), 10);
	/* rank 0.25 * 10 = 2.5 */
	assert_int_equal(stats__percentile(*state, 0.25), 3);
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static void percentiles_are_within_a_thousandth(void **state)
{
	static const double points[] = {0.001, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999};
	enum { COUNT = 20000 };
	uint64_t *values = calloc(COUNT, sizeof(*values));
	uint64_t seed = 42;

	assert_non_null(values);
	for (int i = 0; i < COUNT; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		values[i] = seed >> (seed >> 58); /* all magnitudes */
		stats__add(*state, values[i]);
	}
	qsort(values, COUNT, sizeof(*values), compare);
	for (size_t i = 0; i < sizeof(points) / sizeof(*points); i++) {
		double exact = (double)values[(size_t)round(points[i] * (COUNT - 1))];
		double got = (double)stats__percentile(*state, points[i]);

		assert_true(fabs(got - exact) <= exact / 1000);
	}
	free(values);
}

static void cv_is_the_population_one(void **state)
{
	static const uint64_t values[] = {2, 4, 4, 4, 5, 5, 7, 9}; /* mean 5, deviation 2 */

	for (size_t i = 0; i < 8; i++)
		stats__add(*state, values[i]);
	assert_true(fabs(stats__cv_percent(*state) - 40) < 1e-9);
}

static void cv_of_large_close_values_keeps_its_digits(void **state)
{
	/* A sum of squares in doubles would lose this deviation entirely. */
	for (int i = 0; i < 1000; i++)
		stats__add(*state, 1000000000000000ull + (uint64_t)(i % 2 ? 1 : 3));
	assert_true(fabs(stats__cv_percent(*state) / 1e-13 - 1) < 1e-4);
}

static void count_sum_min_max_and_mean_are_exact(void **state)
{
	stats__add(*state, 10);
	stats__add(*state, 1000000007);
	stats__add(*state, 4);
	assert_int_equal(stats__count(*state), 3);
	assert_int_equal(stats__sum(*state), 1000000021);
	assert_int_equal(stats__min(*state), 4);
	assert_int_equal(stats__max(*state), 1000000007);
	assert_true(fabs(stats__mean(*state) - 1000000021 / 3.0) < 1e-6);
}

static uint64_t random_below(uint64_t *seed, uint64_t limit)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*seed >> 33) % limit;
}

static int compare_values(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static void a_median_is_the_value_of_its_rank(void **state)
{
	uint64_t values[300], sorted[300], seed = 4;

	assert_int_equal(median_u64(NULL, 0), 0);
	for (int round = 0; round < 5000; round++) {
		size_t count = 1 + random_below(&seed, 300);
		uint64_t shape = random_below(&seed, 4), range = 1 + random_below(&seed, 300);

		for (size_t i = 0; i < count; i++) {
			values[i] = random_below(&seed, range);
			if (shape == 1)
				values[i] = i;
			else if (shape == 2)
				values[i] = count - i;
			else if (shape == 3)
				values[i] = i < count / 2 ? i : count - i;
		}
		memcpy(sorted, values, sizeof(values));
		qsort(sorted, count, sizeof(*sorted), compare_values);
		assert_int_equal(median_u64(values, count), sorted[count / 2]);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stats_free_accepts_null),
		TEST(stats_of_nothing_are_zero),
		TEST(cv_of_zeros_is_zero),
		TEST(sum_saturates),
		TEST(percentile_outside_zero_to_one_is_min_or_max),
		TEST(one_value_is_every_percentile),
		TEST(small_values_are_exact),
		TEST(percentile_rank_rounds_half_up_as_the_seed_does),
		TEST(percentiles_are_within_a_thousandth),
		TEST(cv_is_the_population_one),
		TEST(cv_of_large_close_values_keeps_its_digits),
		TEST(count_sum_min_max_and_mean_are_exact),
		cmocka_unit_test(a_median_is_the_value_of_its_rank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
