/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "judge/escalation.h"

#define SECOND UINT64_C(1000000000)

static const struct {
	enum escalation_reason reason;
	const char *value;
	const char *description;
} texts[] = {
	{ESCALATION_CV_EXCEEDED, "cv_exceeded", "CV exceeded threshold (unstable performance)"},
	{ESCALATION_EFFICIENCY_LOW, "efficiency_low", "Efficiency below threshold"},
	{ESCALATION_BOTH, "both", "Both CV exceeded and efficiency low"},
	{ESCALATION_MEMORY_CLIFF, "memory_cliff", "Memory cliff detected (sudden drop)"},
	{ESCALATION_GPU_TRANSFER_OVERHEAD, "gpu_transfer_overhead",
	 "GPU transfer overhead exceeded threshold"},
	{ESCALATION_MANUAL, "manual", "Manual escalation requested"},
	{ESCALATION_NONE, "", ""},
	{ESCALATION_REASON_COUNT, "", ""},
};

static void reasons_have_the_seeds_texts(void **state)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_string_equal(escalation_otlp_value(texts[i].reason), texts[i].value);
		assert_string_equal(escalation_description(texts[i].reason), texts[i].description);
	}
}

static void default_thresholds_are_the_seeds(void **state)
{
	struct escalation_thresholds thresholds = escalation_default_thresholds();

	assert_true(thresholds.cv_percent == 15.0);
	assert_true(thresholds.efficiency_percent == 25.0);
	assert_true(thresholds.gpu_transfer_percent == 50.0);
	assert_true(thresholds.memory_cliff_percent == 30.0);
	assert_int_equal(thresholds.rate_limit, 100);
	assert_int_equal(thresholds.rate_interval_ns, 60 * SECOND);
}

static bool traces(double cv, double efficiency)
{
	struct escalation_thresholds thresholds = escalation_default_thresholds();

	return escalation_reason(&thresholds, cv, efficiency) != ESCALATION_NONE;
}

static void cv_fires_above_its_threshold_only(void **state)
{
	assert_true(traces(15.1, 50.0));
	assert_false(traces(14.9, 50.0));
	assert_false(traces(15.0, 50.0));
	assert_true(traces(nextafter(15.0, 16.0), 50.0));
	assert_true(traces(INFINITY, 50.0));
}

static void efficiency_fires_below_its_threshold_only(void **state)
{
	assert_true(traces(10.0, 24.9));
	assert_false(traces(10.0, 25.1));
	assert_false(traces(10.0, 25.0));
	assert_true(traces(10.0, nextafter(25.0, 24.0)));
	assert_true(traces(10.0, -1.0));
}

static void gpu_transfer_fires_above_its_threshold_only(void **state)
{
	struct escalation_thresholds thresholds = escalation_default_thresholds();

	assert_true(escalation_gpu_transfer_fires(&thresholds, 51.0));
	assert_false(escalation_gpu_transfer_fires(&thresholds, 49.0));
	assert_false(escalation_gpu_transfer_fires(&thresholds, 50.0));
	assert_false(escalation_gpu_transfer_fires(&thresholds, (double)NAN));
}

static enum escalation_reason reason_of(double cv, double efficiency)
{
	struct escalation_thresholds thresholds = escalation_default_thresholds();

	return escalation_reason(&thresholds, cv, efficiency);
}

static void reason_is_the_seeds(void **state)
{
	assert_int_equal(reason_of(20.0, 20.0), ESCALATION_BOTH);
	assert_int_equal(reason_of(20.0, 50.0), ESCALATION_CV_EXCEEDED);
	assert_int_equal(reason_of(10.0, 20.0), ESCALATION_EFFICIENCY_LOW);
	assert_int_equal(reason_of(10.0, 50.0), ESCALATION_NONE);
	assert_int_equal(reason_of(15.0, 25.0), ESCALATION_NONE);
}

static void reason_of_nan_is_none(void **state)
{
	assert_false(traces((double)NAN, (double)NAN));
	assert_int_equal(reason_of((double)NAN, (double)NAN), ESCALATION_NONE);
	assert_int_equal(reason_of((double)NAN, 20.0), ESCALATION_EFFICIENCY_LOW);
	assert_int_equal(reason_of(20.0, (double)NAN), ESCALATION_CV_EXCEEDED);
}

static void thresholds_can_be_changed(void **state)
{
	struct escalation_thresholds thresholds = escalation_default_thresholds();

	thresholds.cv_percent = 30.0;
	thresholds.efficiency_percent = 10.0;
	assert_int_equal(escalation_reason(&thresholds, 20.0, 20.0), ESCALATION_NONE);
	assert_int_equal(escalation_reason(&thresholds, 30.5, 9.5), ESCALATION_BOTH);
}

static void result_is_over_budget_above_it_only(void **state)
{
	struct trace_result result = {.budget_us = 100, .actual_us = 100};

	assert_false(trace_result_over_budget(&result));
	result.actual_us = 101;
	assert_true(trace_result_over_budget(&result));
	result.actual_us = 99;
	assert_false(trace_result_over_budget(&result));
}

static void efficiency_is_budget_over_actual_uncapped(void **state)
{
	struct trace_result result = {.budget_us = 100, .actual_us = 200};

	assert_true(trace_result_efficiency(&result) == 50.0);
	result.actual_us = 50;
	assert_true(trace_result_efficiency(&result) == 200.0);
	result.actual_us = 0;
	assert_true(trace_result_efficiency(&result) == 100.0);
	result.budget_us = 0;
	assert_true(trace_result_efficiency(&result) == 100.0);
	result.actual_us = 1;
	assert_true(trace_result_efficiency(&result) == 0.0);
}

static void check_percent(double value, const char *expected)
{
	char text[PERCENT_SIZE];

	percent_text(text, value);
	assert_string_equal(text, expected);
}

/* Expected texts are outputs of Rust's format!("{:.1}"). */
static void percent_text_is_as_rust_prints_it(void **state)
{
	check_percent(0.0, "0.0");
	check_percent(0.25, "0.2");
	check_percent(0.35, "0.3");
	check_percent(66.75, "66.8");
	check_percent(99.95, "100.0");
	check_percent(-0.04, "-0.0");
	check_percent(1e21, "1000000000000000000000.0");
	check_percent((double)NAN, "NaN");
	check_percent(-(double)NAN, "NaN");
	check_percent((double)INFINITY, "inf");
	check_percent(-(double)INFINITY, "-inf");
}

static void percent_text_has_room_for_any_double(void **state)
{
	char text[PERCENT_SIZE];

	percent_text(text, -DBL_MAX);
	assert_int_equal(strlen(text), 312);
	assert_string_equal(text + 310, ".0");
}

static void check_attribute(const struct trace_attributes *attributes, int index, const char *key,
			    const char *value)
{
	assert_string_equal(attributes->items[index].key, key);
	assert_string_equal(attributes->items[index].value, value);
}

static void result_has_the_seeds_attributes(void **state)
{
	struct trace_result result = {
		.brick_name = "llama_decode",
		.budget_us = 267,
		.actual_us = 400,
		.reason = ESCALATION_MEMORY_CLIFF,
		.breakdown = {.category_us = {300}, .total_us = 1000},
	};
	struct trace_attributes attributes;

	trace_result_attributes(&result, &attributes);
	check_attribute(&attributes, 0, "brick.name", "llama_decode");
	check_attribute(&attributes, 1, "brick.budget_us", "267");
	check_attribute(&attributes, 2, "brick.actual_us", "400");
	check_attribute(&attributes, 3, "brick.efficiency", "66.8");
	check_attribute(&attributes, 4, "brick.over_budget", "true");
	check_attribute(&attributes, 5, "escalation.reason", "memory_cliff");
	check_attribute(&attributes, 6, "syscall.overhead_percent", "30.0");
	check_attribute(&attributes, 7, "syscall.dominant", "mmap");
}

static void without_calls_there_are_no_shares_of_them(void **state)
{
	struct trace_result result = {.brick_name = "llama_decode",
				      .actual_us = 1000,
				      .breakdown = {.total_us = 1000, .unknown = true}};
	struct breakdown_attribute parts[BREAKDOWN_ATTRIBUTES];
	struct trace_attributes attributes;

	trace_result_attributes(&result, &attributes);
	assert_int_equal(attributes.count, 6);
	check_attribute(&attributes, 5, "escalation.reason", "");
	assert_int_equal(breakdown_attributes(&result.breakdown, parts), 0);
	result.breakdown.unknown = false;
	trace_result_attributes(&result, &attributes);
	assert_int_equal(attributes.count, TRACE_ATTRIBUTES);
	assert_int_equal(breakdown_attributes(&result.breakdown, parts), BREAKDOWN_ATTRIBUTES);
}

static void attributes_of_extreme_values_are_whole(void **state)
{
	struct trace_result result = {
		.brick_name = "",
		.budget_us = UINT64_MAX,
		.actual_us = 0,
		.breakdown = {.category_us = {UINT64_MAX, UINT64_MAX}, .total_us = 1},
	};
	struct trace_attributes attributes;

	trace_result_attributes(&result, &attributes);
	check_attribute(&attributes, 1, "brick.budget_us", "18446744073709551615");
	check_attribute(&attributes, 3, "brick.efficiency", "100.0");
	check_attribute(&attributes, 4, "brick.over_budget", "false");
	check_attribute(&attributes, 6, "syscall.overhead_percent", "1844674407370955161600.0");
	check_attribute(&attributes, 7, "syscall.dominant", "futex");
	result.breakdown = (struct breakdown){0};
	result.actual_us = 1;
	trace_result_attributes(&result, &attributes);
	check_attribute(&attributes, 3, "brick.efficiency", "1844674407370955161600.0");
	check_attribute(&attributes, 6, "syscall.overhead_percent", "0.0");
	check_attribute(&attributes, 7, "syscall.dominant", "none");
}

static void breakdown_has_the_seeds_attributes(void **state)
{
	static const struct breakdown_attribute expected[BREAKDOWN_ATTRIBUTES] = {
		{"syscall.mmap_us", 1},	     {"syscall.futex_us", 2},	 {"syscall.ioctl_us", 3},
		{"syscall.read_us", 4},	     {"syscall.write_us", 5},	 {"syscall.other_us", 6},
		{"syscall.compute_us", 979}, {"syscall.total_us", 1000},
	};
	struct breakdown breakdown = {.category_us = {1, 2, 3, 4, 5, 6}, .total_us = 1000};
	struct breakdown_attribute attributes[BREAKDOWN_ATTRIBUTES];

	breakdown_attributes(&breakdown, attributes);
	for (int i = 0; i < BREAKDOWN_ATTRIBUTES; i++) {
		assert_string_equal(attributes[i].key, expected[i].key);
		assert_int_equal(attributes[i].us, expected[i].us);
	}
}

static struct rate_limiter limiter_of(uint32_t limit, uint64_t interval_ns, uint64_t now_ns)
{
	struct escalation_thresholds thresholds = escalation_default_thresholds();
	struct rate_limiter limiter;

	thresholds.rate_limit = limit;
	thresholds.rate_interval_ns = interval_ns;
	rate_limiter_init(&limiter, &thresholds, now_ns);
	return limiter;
}

static void limiter_allows_its_limit_in_an_interval(void **state)
{
	struct rate_limiter limiter = limiter_of(3, 60 * SECOND, SECOND);

	for (int i = 0; i < 3; i++)
		assert_true(rate_limiter_allow(&limiter, SECOND + i));
	assert_false(rate_limiter_allow(&limiter, SECOND + 3));
	assert_int_equal(limiter.count, 3);
}

static void limiter_begins_anew_after_exactly_an_interval(void **state)
{
	struct rate_limiter limiter = limiter_of(2, 60 * SECOND, SECOND);

	assert_true(rate_limiter_allow(&limiter, 2 * SECOND));
	assert_true(rate_limiter_allow(&limiter, 2 * SECOND));
	assert_false(rate_limiter_allow(&limiter, 61 * SECOND - 1));
	assert_int_equal(limiter.count, 2);
	assert_true(rate_limiter_allow(&limiter, 61 * SECOND));
	assert_int_equal(limiter.count, 1);
	assert_int_equal(limiter.start_ns, 61 * SECOND);
}

/* The next window begins with the first call after the last window, not at a multiple of 60 s. */
static void limiter_window_begins_with_who_asks(void **state)
{
	struct rate_limiter limiter = limiter_of(1, 60 * SECOND, SECOND);

	assert_true(rate_limiter_allow(&limiter, 100 * SECOND));
	assert_false(rate_limiter_allow(&limiter, 159 * SECOND));
	assert_true(rate_limiter_allow(&limiter, 160 * SECOND));
}

static void limiter_takes_no_harm_from_times_that_go_back(void **state)
{
	struct rate_limiter limiter = limiter_of(2, 60 * SECOND, 10 * SECOND);

	assert_true(rate_limiter_allow(&limiter, 9 * SECOND));
	assert_true(rate_limiter_allow(&limiter, 0));
	assert_false(rate_limiter_allow(&limiter, 5 * SECOND));
	assert_int_equal(limiter.start_ns, 10 * SECOND);
}

static void limiter_of_none_allows_none_and_of_no_interval_all(void **state)
{
	struct rate_limiter limiter = limiter_of(0, 60 * SECOND, 0);

	assert_false(rate_limiter_allow(&limiter, 0));
	assert_false(rate_limiter_allow(&limiter, 61 * SECOND));
	limiter = limiter_of(1, 0, SECOND);
	for (int i = 0; i < 5; i++)
		assert_true(rate_limiter_allow(&limiter, SECOND));
	assert_true(rate_limiter_allow(&limiter, 0));
}

int main(void)
{
#define TEST(name) cmocka_unit_test(name)
	const struct CMUnitTest tests[] = {
		TEST(reasons_have_the_seeds_texts),
		TEST(default_thresholds_are_the_seeds),
		TEST(cv_fires_above_its_threshold_only),
		TEST(efficiency_fires_below_its_threshold_only),
		TEST(gpu_transfer_fires_above_its_threshold_only),
		TEST(reason_is_the_seeds),
		TEST(reason_of_nan_is_none),
		TEST(thresholds_can_be_changed),
		TEST(result_is_over_budget_above_it_only),
		TEST(efficiency_is_budget_over_actual_uncapped),
		TEST(percent_text_is_as_rust_prints_it),
		TEST(percent_text_has_room_for_any_double),
		TEST(result_has_the_seeds_attributes),
		TEST(without_calls_there_are_no_shares_of_them),
		TEST(attributes_of_extreme_values_are_whole),
		TEST(breakdown_has_the_seeds_attributes),
		TEST(limiter_allows_its_limit_in_an_interval),
		TEST(limiter_begins_anew_after_exactly_an_interval),
		TEST(limiter_window_begins_with_who_asks),
		TEST(limiter_takes_no_harm_from_times_that_go_back),
		TEST(limiter_of_none_allows_none_and_of_no_interval_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
