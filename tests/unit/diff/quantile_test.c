/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Wanted values are those of other implementations for the same series: lengths of blocks of
 * arch.bootstrap.optimal_block_length (Python's arch 8.0.0, "circular"), errors of a block
 * bootstrap in numpy, with 4,000 draws, other random numbers and other blocks.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff/quantile.h"

#define SHARE_MEDIAN 0.5

/* An autoregression of a linear congruential generator's numbers. */
static double *series(size_t count, double correlation)
{
	double *values = calloc(count, sizeof(*values)), value = 0;
	uint32_t state = 1;

	assert_non_null(values);
	for (size_t i = 0; i < count; i++) {
		state = (state * 1103515245u + 12345u) & 0x7fffffff;
		value = correlation * value + (double)state / 0x1p31 - 0.5;
		values[i] = value;
	}
	return values;
}

static void test_block_length(void **unused)
{
	static const struct {
		size_t count;
		double correlation;
		double length;
	} cases[] = {
		{1000, 0.0, 2.2511827958227486},
		{1000, 0.5, 12.255819585941762},
		{2000, 0.9, 61.507845062183875},
		{5000, 0.98, 163.50391648266609},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double *values = series(cases[i].count, cases[i].correlation), correlated;

		assert_float_equal(block_length(values, cases[i].count, &correlated),
				   cases[i].length, 1e-6);
		free(values);
	}
}

static void test_correlated(void **unused)
{
	double *values = series(50000, 0.5), correlated;

	/* (1 + r) / (1 - r) */
	block_length(values, 50000, &correlated);
	assert_true(correlated > 2.7 && correlated < 3.3);
	free(values);
	values = series(50000, 0);
	block_length(values, 50000, &correlated);
	assert_true(correlated < 1.2);
	free(values);
}

static void test_equal_values(void **unused)
{
	double values[100], correlated;

	for (int i = 0; i < 100; i++)
		values[i] = 7;
	assert_float_equal(block_length(values, 100, &correlated), 1, 0);
	assert_float_equal(correlated, 1, 0);
	assert_float_equal(block_length(values, 0, &correlated), 1, 0);
	for (size_t count = 1; count < 40; count++) {
		for (size_t i = 0; i < count; i++)
			values[i] = (double)(i % 3);
		assert_true(block_length(values, count, &correlated) >= 1);
	}
}

static struct weighted *steps_of(size_t count, double correlation)
{
	double *values = series(count, correlation);
	struct weighted *steps = calloc(count, sizeof(*steps));

	assert_non_null(steps);
	for (size_t i = 0; i < count; i++)
		steps[i] = (struct weighted){(uint64_t)llround(1e6 * exp(0.2 * values[i])), 1};
	free(values);
	return steps;
}

static void test_error(void **unused)
{
	static const struct {
		double correlation, share;
		uint64_t ns;
		double error;
		double tolerance;
	} cases[] = {
		{0, 0.5, 1000886, 0.0016223858513988664, 0.15},
		{0, 0.95, 1093648, 0.0009038900944111176, 0.15},
		/* Blocks have other lengths there. */
		{0.9, 0.5, 1004019, 0.008017866552822911, 0.25},
		{0.9, 0.95, 1238219, 0.01029175295732277, 0.25},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct weighted *steps = steps_of(4000, cases[i].correlation);
		struct quantile quantile, again;

		assert_int_equal(quantile_find(steps, 4000, cases[i].share, &quantile), 0);
		assert_int_equal(quantile.state, QUANTILE_KNOWN);
		assert_int_equal(quantile.ns, cases[i].ns);
		assert_float_equal(quantile.error / cases[i].error, 1, cases[i].tolerance);
		assert_int_equal(quantile_find(steps, 4000, cases[i].share, &again), 0);
		assert_memory_equal(&quantile, &again, sizeof(quantile));
		free(steps);
	}
}

static void test_too_few(void **unused)
{
	struct weighted *steps = steps_of(1999, 0);
	struct quantile quantile;

	assert_int_equal(quantile_find(steps, 0, 0.5, &quantile), 0);
	assert_int_equal(quantile.state, QUANTILE_TOO_FEW);
	assert_int_equal(quantile.ns, 0);
	assert_int_equal(quantile_find(steps, 39, 0.5, &quantile), 0);
	assert_int_equal(quantile.state, QUANTILE_TOO_FEW);
	assert_int_equal(quantile_find(steps, 100, 0.5, &quantile), 0);
	assert_int_equal(quantile.state, QUANTILE_KNOWN);
	assert_int_equal(quantile_find(steps, 1999, 0.99, &quantile), 0);
	assert_int_equal(quantile.state, QUANTILE_TOO_FEW);
	assert_true(quantile.ns > 0);
	free(steps);
}

/* One slow half and one fast half are two steps, however many there are. */
static void test_too_correlated(void **unused)
{
	struct weighted *steps = steps_of(2000, 0);
	struct quantile quantile;

	for (int i = 1000; i < 2000; i++)
		steps[i].ns *= 3;
	assert_int_equal(quantile_find(steps, 2000, 0.5, &quantile), 0);
	assert_int_equal(quantile.state, QUANTILE_TOO_CORRELATED);
	free(steps);
}

static void test_weights(void **unused)
{
	struct weighted *steps = calloc(1000, sizeof(*steps));
	struct quantile quantile;

	/* Of 1 … 1000 in some order; those above 500 count half, 1 … 100 do not. */
	for (unsigned int i = 0; i < 1000; i++) {
		steps[i].ns = 1 + i * 379 % 1000;
		steps[i].weight = steps[i].ns > 500 ? 0.5f : steps[i].ns <= 100 ? 0 : 1;
	}
	assert_int_equal(quantile_find(steps, 1000, 0.5, &quantile), 0);
	/* 400 + 250 = 650 in all: the 325th is 425. */
	assert_int_equal(quantile.ns, 425);
	assert_int_equal(quantile_find(steps, 1000, 0.9, &quantile), 0);
	assert_int_equal(quantile.ns, 870);
	free(steps);
}

/* The series is longer than what its correlation is found in, and as correlated. */
static void test_long(void **unused)
{
	struct weighted *steps = steps_of(300000, 0.9);
	struct quantile quantile;

	assert_int_equal(quantile_find(steps, 300000, SHARE_MEDIAN, &quantile), 0);
	assert_int_equal(quantile.state, QUANTILE_KNOWN);
	assert_true(quantile.blocks > 100);
	/* The error of 4,000 steps, by the root of 75. */
	assert_float_equal(quantile.error / (0.008017866552822911 / sqrt(75)), 1, 0.3);
	assert_true(quantile.correlated > 8 && quantile.correlated < 20);
	free(steps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_block_length), cmocka_unit_test(test_correlated),
		cmocka_unit_test(test_equal_values), cmocka_unit_test(test_error),
		cmocka_unit_test(test_too_few),	     cmocka_unit_test(test_too_correlated),
		cmocka_unit_test(test_weights),	     cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
