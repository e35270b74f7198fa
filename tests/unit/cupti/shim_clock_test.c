/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "shim_clock.h"

#define SECOND 1000000000ull

static struct {
	uint32_t registrations;
	uint32_t result;
	int64_t offset_ns; /* CUPTI's clock minus CLOCK_REALTIME */
	bool ticks;	   /* it counts ticks of a CPU instead */
	bool mute;
} cupti;

static uint32_t register_timestamp(cupti_timestamp_fn *callback)
{
	assert_non_null(callback);
	cupti.registrations++;
	return cupti.result;
}

static uint32_t get_timestamp(uint64_t *time)
{
	*time = cupti.ticks ? shim_clock__now() / 2 * 5
			    : shim_clock__realtime() + (uint64_t)cupti.offset_ns;
	return cupti.mute ? CUPTI_UNKNOWN : CUPTI_OK;
}

static const struct cupti_calls calls = {
	.register_timestamp = register_timestamp,
	.get_timestamp = get_timestamp,
};

static int setup(void **state)
{
	memset(&cupti, 0, sizeof(cupti));
	return 0;
}

static void test_method_by_version(void **state)
{
	static const struct {
		uint32_t version;
		uint32_t method;
	} rows[] = {
		{18, FBT_GPU_CLOCK_CALLBACK},	  {23, FBT_GPU_CLOCK_CALLBACK},
		{24, FBT_GPU_CLOCK_REALTIME},	  {26, FBT_GPU_CLOCK_REALTIME},
		{28, FBT_GPU_CLOCK_REALTIME},	  {130000, FBT_GPU_CLOCK_REALTIME},
		{130001, FBT_GPU_CLOCK_REALTIME}, {130099, FBT_GPU_CLOCK_REALTIME},
		{130100, FBT_GPU_CLOCK_CALLBACK}, {130401, FBT_GPU_CLOCK_CALLBACK},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(shim_clock__method_for(rows[i].version), rows[i].method);
}

static void test_registered_once(void **state)
{
	struct shim_clock clock = {0};

	shim_clock__begin(&clock, &calls, 130001);
	assert_int_equal(cupti.registrations, 0);
	shim_clock__begin(&clock, &calls, 130100);
	shim_clock__begin(&clock, &calls, 130100);
	assert_int_equal(cupti.registrations, 1);
	assert_int_equal(clock.method, FBT_GPU_CLOCK_CALLBACK);
}

static void test_not_registered(void **state)
{
	static const struct cupti_calls without = {.get_timestamp = get_timestamp};
	struct shim_clock clock = {0};

	cupti.result = CUPTI_UNKNOWN;
	shim_clock__begin(&clock, &calls, 130100);
	assert_int_equal(clock.method, FBT_GPU_CLOCK_REALTIME);
	shim_clock__begin(&clock, &without, 18);
	assert_int_equal(clock.method, FBT_GPU_CLOCK_REALTIME);
}

static void test_samples(void **state)
{
	struct shim_clock clock = {0};
	struct fbt_gpu_clock sample;

	shim_clock__begin(&clock, &calls, 26);
	assert_true(shim_clock__sample(&clock, NULL, &sample));
	assert_int_equal(sample.method, FBT_GPU_CLOCK_REALTIME);
	assert_in_range(shim_clock__realtime() - sample.gpu_ns, 0, 10 * SECOND);
	assert_in_range(shim_clock__now() - sample.mono_ns, 0, 10 * SECOND);
	shim_clock__begin(&clock, &calls, 18);
	assert_true(shim_clock__sample(&clock, NULL, &sample));
	assert_int_equal(sample.gpu_ns, sample.mono_ns);
	assert_int_equal(sample.error_ns, 0);
	/* Reading CUPTI's clock needs CUPTI. */
	clock.method = FBT_GPU_CLOCK_CUPTI;
	cupti.offset_ns = 77 * (int64_t)SECOND;
	assert_false(shim_clock__sample(&clock, NULL, &sample));
	assert_true(shim_clock__sample(&clock, &calls, &sample));
	assert_in_range(sample.gpu_ns - shim_clock__realtime(), 67 * SECOND, 77 * SECOND);
	cupti.mute = true;
	assert_false(shim_clock__sample(&clock, &calls, &sample));
}

static void begin_realtime(struct shim_clock *clock)
{
	shim_clock__begin(clock, &calls, 26);
	assert_int_equal(clock->method, FBT_GPU_CLOCK_REALTIME);
	assert_false(clock->settled);
}

static void test_check_agrees(void **state)
{
	struct shim_clock clock = {0};

	begin_realtime(&clock);
	shim_clock__check(&clock, &calls);
	assert_false(clock.settled);
	clock.record_ns = shim_clock__realtime();
	shim_clock__check(&clock, &calls);
	assert_true(clock.settled);
	assert_int_equal(clock.method, FBT_GPU_CLOCK_REALTIME);
}

static void test_check_finds_another_clock(void **state)
{
	static const int64_t offsets[] = {5000000, -5000000, 3600 * (int64_t)SECOND};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		struct shim_clock clock = {0};

		begin_realtime(&clock);
		cupti.offset_ns = offsets[i];
		clock.record_ns = shim_clock__realtime() + (uint64_t)offsets[i] - 1000;
		shim_clock__check(&clock, &calls);
		assert_int_equal(clock.method, FBT_GPU_CLOCK_CUPTI);
	}
}

/* Shortly after CUDA starts, CUPTI's clock can differ widely from the clock of its records. */
static void test_check_waits_for_it_to_settle(void **state)
{
	struct shim_clock clock = {0};

	begin_realtime(&clock);
	cupti.offset_ns = -100000 * (int64_t)SECOND;
	shim_clock__check(&clock, &calls);
	assert_int_equal(clock.method, FBT_GPU_CLOCK_REALTIME);
	clock.record_ns = shim_clock__realtime();
	shim_clock__check(&clock, &calls);
	assert_int_equal(clock.method, FBT_GPU_CLOCK_REALTIME);
	cupti.offset_ns = 100000 * (int64_t)SECOND;
	shim_clock__check(&clock, &calls);
	assert_int_equal(clock.method, FBT_GPU_CLOCK_REALTIME);
}

/* Another profiler in the engine has replaced our timestamp callback. */
static void test_check_callback_was_replaced(void **state)
{
	struct shim_clock clock = {0};

	shim_clock__begin(&clock, &calls, 18);
	clock.record_ns = shim_clock__now();
	shim_clock__check(&clock, &calls);
	assert_int_equal(clock.method, FBT_GPU_CLOCK_CALLBACK);
	clock.record_ns = shim_clock__realtime();
	shim_clock__check(&clock, &calls);
	assert_int_equal(clock.method, FBT_GPU_CLOCK_REALTIME);
}

/* … by one that counts ticks of the CPU: 2.5 a nanosecond since the machine started. */
static void test_check_finds_the_clock_of_another_tool(void **state)
{
	struct shim_clock clock = {0};

	cupti.ticks = true;
	shim_clock__begin(&clock, &calls, 130100);
	assert_true(clock.registered);
	clock.record_ns = shim_clock__now() / 2 * 5;
	shim_clock__check(&clock, &calls);
	assert_true(clock.foreign);
	assert_false(clock.registered);
	/* The next arming registers our clock again. */
	shim_clock__begin(&clock, &calls, 130100);
	assert_false(clock.foreign);
	assert_int_equal(cupti.registrations, 2);
	begin_realtime(&clock);
	clock.record_ns = shim_clock__now() / 2 * 5;
	shim_clock__check(&clock, &calls);
	assert_true(clock.foreign);
}

/* The clock of the machine was set by a day after the first record. */
static void test_check_bears_a_clock_that_is_set(void **state)
{
	struct shim_clock clock = {0};

	begin_realtime(&clock);
	clock.record_ns = shim_clock__realtime();
	shim_clock__check(&clock, &calls);
	clock.record_ns += 86400 * SECOND;
	shim_clock__check(&clock, &calls);
	assert_false(clock.foreign);
	assert_int_equal(clock.method, FBT_GPU_CLOCK_REALTIME);
}

/* A call that waited for the GPU may have begun long before arming. */
static void test_check_knows_a_long_call(void **state)
{
	struct shim_clock clock = {0};

	shim_clock__begin(&clock, &calls, 18);
	clock.record_ns = shim_clock__now() - 50 * SECOND;
	shim_clock__check(&clock, &calls);
	assert_int_equal(clock.method, FBT_GPU_CLOCK_CALLBACK);
	assert_false(clock.foreign);
	begin_realtime(&clock);
	clock.record_ns = shim_clock__realtime() - 50 * SECOND;
	shim_clock__check(&clock, &calls);
	assert_int_equal(clock.method, FBT_GPU_CLOCK_REALTIME);
	assert_false(clock.foreign);
}

static void test_records_from_before_arming(void **state)
{
	struct shim_clock clock = {0};

	begin_realtime(&clock);
	assert_false(shim_clock__is_before_arming(&clock, 0));
	assert_false(shim_clock__is_before_arming(&clock, shim_clock__realtime()));
	assert_true(shim_clock__is_before_arming(&clock, shim_clock__realtime() - SECOND));
	shim_clock__begin(&clock, &calls, 18);
	assert_false(shim_clock__is_before_arming(&clock, shim_clock__now()));
	assert_true(shim_clock__is_before_arming(&clock, shim_clock__now() - SECOND));
	/* Nothing is known of a clock of CUPTI's own. */
	clock.method = FBT_GPU_CLOCK_CUPTI;
	assert_false(shim_clock__is_before_arming(&clock, 1));
}

static void test_account(void **state)
{
	struct shim_clock clock = {.method = FBT_GPU_CLOCK_REALTIME};
	struct fbt_gpu_clock sample = {
		.method = FBT_GPU_CLOCK_REALTIME, .mono_ns = 5 * SECOND, .gpu_ns = 2 * SECOND};

	sample.error_ns = 40;
	shim_clock__account(&clock, &sample);
	sample.gpu_ns += 999999;
	sample.error_ns = 90;
	shim_clock__account(&clock, &sample);
	assert_int_equal(clock.steps, 0);
	sample.gpu_ns -= 1500000;
	sample.error_ns = 10;
	shim_clock__account(&clock, &sample);
	assert_int_equal(clock.steps, 1);
	assert_int_equal(clock.error_ns, 90);
	sample.gpu_ns += 4 * SECOND;
	shim_clock__account(&clock, &sample);
	assert_int_equal(clock.steps, 2);
	shim_clock__begin(&clock, &calls, 26);
	assert_int_equal(clock.steps, 0);
	assert_int_equal(clock.error_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_method_by_version, setup),
		cmocka_unit_test_setup(test_registered_once, setup),
		cmocka_unit_test_setup(test_not_registered, setup),
		cmocka_unit_test_setup(test_samples, setup),
		cmocka_unit_test_setup(test_check_agrees, setup),
		cmocka_unit_test_setup(test_check_finds_another_clock, setup),
		cmocka_unit_test_setup(test_check_waits_for_it_to_settle, setup),
		cmocka_unit_test_setup(test_check_callback_was_replaced, setup),
		cmocka_unit_test_setup(test_check_finds_the_clock_of_another_tool, setup),
		cmocka_unit_test_setup(test_check_bears_a_clock_that_is_set, setup),
		cmocka_unit_test_setup(test_check_knows_a_long_call, setup),
		cmocka_unit_test_setup(test_records_from_before_arming, setup),
		cmocka_unit_test_setup(test_account, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
