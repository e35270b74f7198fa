/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "diff/interval.h"

#define MARGIN 0.05

/* scipy.stats.t.isf */
static void test_student(void **unused)
{
	assert_float_equal(student_upper(0.025, 19), 2.09302405440831, 1e-4);
	assert_float_equal(student_upper(0.005, 30), 2.749995653567226, 1e-4);
	assert_float_equal(student_upper(0.0001, 25), 4.351653866405276, 1e-3);
	assert_float_equal(student_upper(0.00001, 60), 4.631251938520876, 1e-4);
	assert_float_equal(student_upper(0.1, 14), 1.3450303744546508, 1e-4);
	assert_float_equal(student_upper(0.025, 1000), 1.9623390808264085, 1e-6);
}

static struct change between(uint64_t a, uint64_t b, double error)
{
	struct quantile left = {.ns = a, .error = error, .blocks = 100};
	struct quantile right = {.ns = b, .error = error, .blocks = 100};

	return change_find(&left, &right, 1, 1, MARGIN);
}

static void test_interval(void **unused)
{
	struct change change = between(1000000, 1200000, 0.01);
	/* Degrees of freedom are 198: t = 1.972. */
	double reach = 1.972 * sqrt(2) * 0.01;

	assert_float_equal(change.ratio, 0.2, 1e-9);
	assert_float_equal(change.low, 1.2 * exp(-reach) - 1, 1e-4);
	assert_float_equal(change.high, 1.2 * exp(reach) - 1, 1e-4);
}

static void test_verdicts(void **unused)
{
	assert_int_equal(between(1000000, 1200000, 0.01).verdict, VERDICT_WORSE);
	assert_int_equal(between(1200000, 1000000, 0.01).verdict, VERDICT_BETTER);
	assert_int_equal(between(1000000, 1000000, 0.01).verdict, VERDICT_SAME);
	/* Not different, but not known to be the same either. */
	assert_int_equal(between(1000000, 1000000, 0.1).verdict, VERDICT_CANNOT_TELL);
	assert_int_equal(between(1000000, 1200000, 0.1).verdict, VERDICT_CANNOT_TELL);
	/* Certainly different, and certainly by less than the margin. */
	assert_int_equal(between(1000000, 1020000, 0.001).verdict, VERDICT_SAME);
	/* Certainly different, by more or by less. */
	assert_int_equal(between(1000000, 1050000, 0.005).verdict, VERDICT_WORSE);
	/* The margin is as wide to both sides. */
	assert_int_equal(between(1048000, 1000000, 0.0001).verdict, VERDICT_SAME);
	assert_int_equal(between(1052000, 1000000, 0.0001).verdict, VERDICT_BETTER);
}

static void test_unknown(void **unused)
{
	struct quantile known = {.ns = 1000, .error = 0.001, .blocks = 100};
	struct quantile few = {.ns = 2000, .state = QUANTILE_TOO_FEW}, none = {.ns = 0};
	struct change change = change_find(&known, &few, 1, 1, MARGIN);

	assert_int_equal(change.verdict, VERDICT_CANNOT_TELL);
	assert_float_equal(change.ratio, 1, 1e-9);
	assert_true(isnan(change.low) && isnan(change.high));
	change = change_find(&few, &few, 1, 1, MARGIN);
	assert_int_equal(change.verdict, VERDICT_CANNOT_TELL);
	change = change_find(&none, &known, 1, 1, MARGIN);
	assert_true(isnan(change.ratio));
	assert_int_equal(change.verdict, VERDICT_CANNOT_TELL);
}

/* Of 3 us and 4 us in whole microseconds nothing can be told, however many steps there are. */
static void test_resolution(void **unused)
{
	struct quantile a = {.ns = 3000, .error = 0, .blocks = 100};
	struct quantile b = {.ns = 4000, .error = 0, .blocks = 100};

	assert_int_equal(change_find(&a, &b, 1, 1, MARGIN).verdict, VERDICT_WORSE);
	assert_int_equal(change_find(&a, &b, 1000, 1, MARGIN).verdict, VERDICT_CANNOT_TELL);
	assert_int_equal(change_find(&a, &a, 1000, 1, MARGIN).verdict, VERDICT_CANNOT_TELL);
}

static void test_comparisons(void **unused)
{
	struct quantile a = {.ns = 1000000, .error = 0.01, .blocks = 100};
	struct quantile b = {.ns = 1030000, .error = 0.01, .blocks = 100};
	struct change one = change_find(&a, &b, 1, 1, 0.01);
	struct change many = change_find(&a, &b, 1, 30, 0.01);

	assert_int_equal(one.verdict, VERDICT_WORSE);
	assert_int_equal(many.verdict, VERDICT_CANNOT_TELL);
	assert_true(many.low < one.low && many.high > one.high);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_student),	   cmocka_unit_test(test_interval),
		cmocka_unit_test(test_verdicts),   cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_resolution), cmocka_unit_test(test_comparisons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
