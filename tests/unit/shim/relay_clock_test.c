/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "shim/relay.h"

#define S	 1000000000ull
#define MS	 1000000ull
#define NOW	 (1000 * S)
#define REALTIME (1700000000ull * S)

static bool add(struct gpu_clock *clock, uint64_t mono_ns, uint64_t gpu_ns)
{
	const struct fbt_gpu_clock sample = {
		.method = FBT_GPU_CLOCK_REALTIME, .mono_ns = mono_ns, .gpu_ns = gpu_ns};

	return gpu_clock_add(clock, &sample, NOW);
}

static bool add_method(struct gpu_clock *clock, uint32_t method, uint64_t mono_ns, uint64_t gpu_ns,
		       uint64_t error_ns)
{
	const struct fbt_gpu_clock sample = {
		.method = method, .mono_ns = mono_ns, .gpu_ns = gpu_ns, .error_ns = error_ns};

	return gpu_clock_add(clock, &sample, NOW);
}

static void zero_stays_zero(void **state)
{
	struct gpu_clock clock = {.timens_ns = -5};

	assert_int_equal(gpu_clock_convert(&clock, 0), 0);
	add(&clock, 10 * S, REALTIME);
	assert_int_equal(gpu_clock_convert(&clock, 0), 0);
}

static void without_a_sample_only_the_namespace_is_taken_off(void **state)
{
	struct gpu_clock clock = {.timens_ns = 300};

	assert_int_equal(gpu_clock_convert(&clock, 1000), 700);
	clock.timens_ns = -300;
	assert_int_equal(gpu_clock_convert(&clock, 1000), 1300);
}

static void by_callback_samples_change_nothing(void **state)
{
	struct gpu_clock clock = {.timens_ns = 300};

	assert_true(add_method(&clock, FBT_GPU_CLOCK_CALLBACK, 5 * S, 9 * S, 0));
	assert_int_equal(gpu_clock_convert(&clock, 10 * S), 10 * S - 300);
	assert_int_equal(clock.method, FBT_GPU_CLOCK_CALLBACK);
}

static void one_sample_gives_the_offset_of_all_times(void **state)
{
	struct gpu_clock clock = {0};

	assert_true(add(&clock, 10 * S, REALTIME));
	assert_int_equal(gpu_clock_convert(&clock, REALTIME), 10 * S);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME - S), 9 * S);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME + S), 11 * S);
}

static void the_namespace_is_taken_off_after_the_offset(void **state)
{
	struct gpu_clock clock = {.timens_ns = (int64_t)(3 * S)};

	assert_true(add(&clock, 10 * S, REALTIME));
	assert_int_equal(gpu_clock_convert(&clock, REALTIME), 7 * S);
}

static void drift_is_interpolated(void **state)
{
	struct gpu_clock clock = {0};

	add(&clock, 10 * S, REALTIME);
	/* The clock gains 100 us in a second. */
	add(&clock, 11 * S, REALTIME + S + 100000);
	assert_int_equal(clock.steps, 0);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME + (S + 100000) / 2), 10 * S + S / 2);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME), 10 * S);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME + S + 100000), 11 * S);
	/* Outside of the samples the nearest offset applies. */
	assert_int_equal(gpu_clock_convert(&clock, REALTIME - 1), 10 * S - 1);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME + S + 100001), 11 * S + 1);
}

static void conversion_never_runs_backwards(void **state)
{
	struct gpu_clock clock = {0};
	uint64_t gpu_ns = REALTIME, before = 0;

	srand(1);
	for (uint64_t i = 1; i < 60; i++) {
		gpu_ns += MS * 500 + (uint64_t)(rand() % 900000);
		assert_true(add(&clock, 10 * S + i * 500 * MS, gpu_ns));
	}
	for (uint64_t time = REALTIME; time < gpu_ns + S; time += 777777) {
		uint64_t converted = gpu_clock_convert(&clock, time);

		assert_true(converted >= before);
		before = converted;
	}
}

static void a_step_forward_is_counted_and_bounds_the_error(void **state)
{
	struct gpu_clock clock = {0};

	add(&clock, 10 * S, REALTIME);
	assert_int_equal(clock.error_ns, 0);
	/* A step of 20 ms within 250 ms. The offset between the two samples is unknown. */
	add(&clock, 10 * S + 250 * MS, REALTIME + 270 * MS);
	assert_int_equal(clock.steps, 1);
	assert_int_equal(clock.error_ns, 20 * MS);
	/* Near a sample that sample's offset applies. */
	assert_int_equal(gpu_clock_convert(&clock, REALTIME + 10 * MS), 10 * S + 10 * MS);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME + 100 * MS), 10 * S + 100 * MS);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME + 200 * MS), 10 * S + 180 * MS);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME + 265 * MS), 10 * S + 245 * MS);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME + 300 * MS), 10 * S + 280 * MS);
}

static void a_step_back_that_the_clock_made_up_for_is_one_too(void **state)
{
	struct gpu_clock clock = {0};

	add(&clock, 10 * S, REALTIME);
	add(&clock, 10 * S + 250 * MS, REALTIME + 230 * MS);
	assert_int_equal(clock.steps, 1);
	assert_int_equal(clock.error_ns, 20 * MS);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME + 100 * MS), 10 * S + 100 * MS);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME + 200 * MS), 10 * S + 220 * MS);
}

static void across_a_large_step_there_is_but_one_answer(void **state)
{
	struct gpu_clock clock = {0};

	add(&clock, 10 * S, REALTIME);
	add(&clock, 10 * S + 250 * MS, REALTIME + 3600 * S);
	assert_int_equal(clock.steps, 1);
	assert_int_equal(clock.error_ns, 250 * MS);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME + 200 * MS), 10 * S + 200 * MS);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME + 3600 * S - 100 * MS),
			 10 * S + 150 * MS);
	/* A time that the clock skipped. */
	assert_in_range(gpu_clock_convert(&clock, REALTIME + 1800 * S), 10 * S, 10 * S + 250 * MS);
}

static void a_clock_that_was_set_back_starts_anew(void **state)
{
	struct gpu_clock clock = {0};

	add(&clock, 10 * S, REALTIME);
	assert_true(add(&clock, 11 * S, REALTIME - 3600 * S));
	assert_int_equal(clock.steps, 1);
	assert_int_equal(clock.count, 1);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME - 3600 * S + 5), 11 * S + 5);
}

static void a_long_gap_may_drift_more(void **state)
{
	struct gpu_clock clock = {0};

	add(&clock, 10 * S, REALTIME);
	/* The kernel slews a clock by at most 500 ppm: 10 ms in 20 s. */
	add(&clock, 30 * S, REALTIME + 20 * S + 10 * MS);
	assert_int_equal(clock.steps, 0);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME + 10 * S + 5 * MS), 20 * S);
	add(&clock, 31 * S, REALTIME + 21 * S + 13 * MS);
	assert_int_equal(clock.steps, 1);
}

static void a_clock_that_settles_late_is_a_new_method(void **state)
{
	struct gpu_clock clock = {0};

	assert_true(add_method(&clock, FBT_GPU_CLOCK_CALLBACK, 10 * S, 10 * S, 5));
	assert_true(add_method(&clock, FBT_GPU_CLOCK_REALTIME, 11 * S, REALTIME, 7));
	assert_int_equal(clock.count, 1);
	assert_int_equal(clock.steps, 0);
	assert_int_equal(clock.error_ns, 7);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME + 1), 11 * S + 1);
	assert_true(add_method(&clock, FBT_GPU_CLOCK_CUPTI, 12 * S, 5 * S, 6));
	assert_int_equal(clock.error_ns, 7);
	assert_int_equal(gpu_clock_convert(&clock, 6 * S), 13 * S);
}

static void what_cannot_be_is_not_taken(void **state)
{
	struct gpu_clock clock = {0}, before;

	assert_false(add(&clock, 0, REALTIME));
	assert_true(add(&clock, 10 * S, REALTIME));
	before = clock;
	assert_false(add(&clock, 9 * S, REALTIME + S));
	assert_false(add(&clock, 9 * S, REALTIME - S));
	assert_false(add(&clock, NOW + 2 * S, REALTIME + NOW));
	assert_false(add(&clock, UINT64_MAX, UINT64_MAX));
	assert_false(add(&clock, 0, REALTIME + S));
	assert_false(add(&clock, 11 * S, 0));
	assert_false(add_method(&clock, FBT_GPU_CLOCK_UNKNOWN, 11 * S, REALTIME + S, 0));
	assert_false(add_method(&clock, FBT_GPU_CLOCK_METHOD_COUNT, 11 * S, REALTIME + S, 0));
	assert_false(add_method(&clock, FBT_GPU_CLOCK_REALTIME, 11 * S, REALTIME + S, UINT64_MAX));
	assert_memory_equal(&clock, &before, sizeof(clock));
}

/* Whether a time is in the future is decided in the target's time namespace. */
static void the_future_is_that_of_the_target(void **state)
{
	struct gpu_clock clock = {.timens_ns = (int64_t)(100 * S)};

	assert_true(add(&clock, NOW + 100 * S, REALTIME));
	/* The clocks of two CPUs may differ slightly. */
	assert_true(add(&clock, NOW + 100 * S + MS, REALTIME + MS));
	assert_false(add(&clock, NOW + 102 * S, REALTIME + S));
}

static void more_samples_than_there_is_room_for_push_the_oldest_out(void **state)
{
	struct gpu_clock clock = {0};

	/* The clock drifts back and forth, so a sample that is gone would give another result. */
	for (uint64_t i = 0; i < 3 * GPU_CLOCK_SAMPLES + 7; i++)
		assert_true(add(&clock, S + i * S, REALTIME + i * S + i % 2 * 1000));
	assert_int_equal(clock.count, GPU_CLOCK_SAMPLES);
	assert_int_equal(clock.steps, 0);
	for (uint64_t i = 3 * GPU_CLOCK_SAMPLES + 6; i > 2 * GPU_CLOCK_SAMPLES + 7; i--)
		assert_int_equal(gpu_clock_convert(&clock, REALTIME + i * S + i % 2 * 1000),
				 S + i * S);
}

static void results_saturate(void **state)
{
	struct gpu_clock clock = {0};

	assert_true(add(&clock, 10 * S, REALTIME));
	assert_int_equal(gpu_clock_convert(&clock, 1), 1);
	assert_int_equal(gpu_clock_convert(&clock, REALTIME - 10 * S), 1);
	clock = (struct gpu_clock){0};
	assert_true(add(&clock, NOW, 5));
	assert_true(gpu_clock_convert(&clock, UINT64_MAX) == UINT64_MAX);
	clock = (struct gpu_clock){.timens_ns = INT64_MIN};
	assert_true(gpu_clock_convert(&clock, UINT64_MAX) == UINT64_MAX);
	clock.timens_ns = INT64_MAX;
	assert_int_equal(gpu_clock_convert(&clock, 5), 1);
}

/* For the sanitizers: no input overflows or leaves its bounds. */
static void hostile_samples_do_no_harm(void **state)
{
	static const uint64_t extremes[] = {
		1, 2, S, NOW, NOW + S, INT64_MAX, 1ull << 63, UINT64_MAX - 1, UINT64_MAX};
	struct gpu_clock clock = {.timens_ns = -5};
	size_t count = sizeof(extremes) / sizeof(extremes[0]);

	srand(2);
	for (int i = 0; i < 20000; i++) {
		struct fbt_gpu_clock sample = {
			.method = (uint32_t)(rand() % 5),
			.mono_ns = extremes[(size_t)rand() % count] + (uint64_t)(rand() % 3),
			.gpu_ns = extremes[(size_t)rand() % count] - (uint64_t)(rand() % 3),
			.error_ns = (uint64_t)rand() % (2 * S)};

		gpu_clock_add(&clock, &sample, NOW);
		assert_true(clock.count <= GPU_CLOCK_SAMPLES);
		assert_true(clock.error_ns <= NOW + 2 * S);
		assert_true(gpu_clock_convert(&clock, extremes[(size_t)rand() % count]) > 0);
		if (i % 500 == 0)
			clock = (struct gpu_clock){.timens_ns = i % 1000 ? -5 : 5};
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zero_stays_zero),
		cmocka_unit_test(without_a_sample_only_the_namespace_is_taken_off),
		cmocka_unit_test(by_callback_samples_change_nothing),
		cmocka_unit_test(one_sample_gives_the_offset_of_all_times),
		cmocka_unit_test(the_namespace_is_taken_off_after_the_offset),
		cmocka_unit_test(drift_is_interpolated),
		cmocka_unit_test(conversion_never_runs_backwards),
		cmocka_unit_test(a_step_forward_is_counted_and_bounds_the_error),
		cmocka_unit_test(a_step_back_that_the_clock_made_up_for_is_one_too),
		cmocka_unit_test(across_a_large_step_there_is_but_one_answer),
		cmocka_unit_test(a_clock_that_was_set_back_starts_anew),
		cmocka_unit_test(a_long_gap_may_drift_more),
		cmocka_unit_test(a_clock_that_settles_late_is_a_new_method),
		cmocka_unit_test(what_cannot_be_is_not_taken),
		cmocka_unit_test(the_future_is_that_of_the_target),
		cmocka_unit_test(more_samples_than_there_is_room_for_push_the_oldest_out),
		cmocka_unit_test(results_saturate),
		cmocka_unit_test(hostile_samples_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
