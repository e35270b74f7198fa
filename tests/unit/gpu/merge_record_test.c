/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which GPU records are counted, kept for a step, or passed on without one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "merge_fixture.h"
#include "gpu/merge.h"

static void push_kind(struct fixture *fixture, enum fbt_gpu_work_kind kind, uint64_t start_ns)
{
	union gpu_record record = {.work = {.header = {FBT_EVENT_GPU_WORK, 0, 104},
					    .tgid = 7,
					    .kind = kind,
					    .start_ns = start_ns,
					    .end_ns = start_ns + 5}};

	assert_int_equal(take(fixture, &record), 0);
}

static void push_sync(struct fixture *fixture, uint64_t start_ns, uint64_t end_ns)
{
	union gpu_record record = {.sync = {.header = {FBT_EVENT_GPU_SYNC, 0, 48},
					    .tgid = 7,
					    .start_ns = start_ns,
					    .end_ns = end_ns}};

	assert_int_equal(take(fixture, &record), 0);
}

static void push_overhead(struct fixture *fixture, uint64_t start_ns, uint64_t end_ns)
{
	union gpu_record record = {.overhead = {.header = {FBT_EVENT_GPU_OVERHEAD, 0, 40},
						.tgid = 7,
						.tid = 20,
						.start_ns = start_ns,
						.end_ns = end_ns}};

	assert_int_equal(take(fixture, &record), 0);
}

static void records_are_counted_by_kind(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 0; i < 12; i++)
		push_kind(fixture,
			  i < 3	  ? FBT_GPU_KERNEL
			  : i < 7 ? FBT_GPU_MEMCPY
				  : FBT_GPU_MEMSET,
			  100 + i);
	for (int i = 0; i < 6; i++)
		push_class(fixture, 7, 0, 10, 20, FBT_GPU_API_OTHER);
	for (int i = 0; i < 7; i++)
		push_sync(fixture, 10, 20);
	assert_int_equal(counts(fixture)->kernels, 3);
	assert_int_equal(counts(fixture)->memcpys, 4);
	assert_int_equal(counts(fixture)->memsets, 5);
	assert_int_equal(counts(fixture)->apis, 6);
	assert_int_equal(counts(fixture)->syncs, 7);
}
/* A call that launches nothing has no work to wait for. */
static void other_calls_outside_of_steps_are_not_kept(void **state)
{
	struct fixture *fixture = *state;

	push_class(fixture, 20, 1, 20, 30, FBT_GPU_API_SYNC);
	push_launch(fixture, 20, 2, 40, 50);
	push_step(fixture, 7, 1000, 1100);
	push_flush(fixture, 1100);
	push_flush(fixture, 1200);
	assert_string_equal(fixture->left_apis, "1");
}

/*
 * The record that was passed on may have belonged to the step from before it, which is therefore
 * incomplete.
 */
static void check_gone(struct fixture *fixture)
{
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 210);
	push_flush(fixture, 220);
	assert_int_equal(fixture->given, 1);
	push_step(fixture, 8, 35, 300);
	push_step(fixture, 9, 45, 300);
	push_flush(fixture, 310);
	assert_false(seen(fixture, 1)->gpu.complete);
	assert_true(seen(fixture, 2)->gpu.complete);
}

static void a_call_that_was_given_away_spoils_steps_from_before(void **state)
{
	push_class(*state, 20, 1, 10, 40, FBT_GPU_API_OTHER);
	check_gone(*state);
}

static void a_sync_that_was_given_away_spoils_steps_from_before(void **state)
{
	push_sync(*state, 10, 40);
	check_gone(*state);
}

static void overhead_that_was_given_away_spoils_steps_from_before(void **state)
{
	push_overhead(*state, 10, 40);
	check_gone(*state);
}

static void overhead_from_before_a_step_costs_what_is_in_it(void **state)
{
	struct fixture *fixture = *state;

	push_overhead(fixture, 50, 130);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 210);
	assert_int_equal(seen(fixture, 0)->gpu.cupti_overhead_ns, 30);
}
/* Syncs and overheads must be dropped by number, since none of them counts as old. */
static void syncs_and_overheads_are_bounded_too(void **state)
{
	struct fixture *fixture = *state;

	fixture->is_quiet = true;
	for (uint64_t i = 1; i <= MERGE_RECORDS_MAX; i++) {
		if (i % 2)
			push_sync(fixture, i * 10, i * 10 + 5);
		else
			push_overhead(fixture, i * 10, i * 10 + 5);
	}
	assert_int_equal(fixture->given, 0);
	push_sync(fixture, (MERGE_RECORDS_MAX + 1) * 10, (MERGE_RECORDS_MAX + 1) * 10 + 5);
	assert_int_equal(fixture->given, MERGE_RECORDS_MAX / 8);
}

static void of_one_process_too_many_nothing_is_taken(void **state)
{
	struct fixture *fixture = *state;
	union gpu_record record = {.state = {.header = {FBT_EVENT_GPU_STATE, 0, 48},
					     .status = FBT_GPU_ARMED,
					     .time_ns = 1}};

	for (uint32_t tgid = 1000; tgid < 1000 + GPU_PROCESSES_MAX - 1; tgid++) {
		record.state.tgid = tgid;
		assert_int_equal(merger__push_gpu(fixture->merger, fixture->window, &record.header),
				 0);
	}
	record.state.tgid = 1;
	assert_int_equal(merger__push_gpu(fixture->merger, fixture->window, &record.header),
			 -ENOSPC);
	record.state.tgid = 1000;
	record.state.status = FBT_GPU_EXITED;
	assert_int_equal(merger__push_gpu(fixture->merger, fixture->window, &record.header), 0);
}
int main(void)
{
	const struct CMUnitTest tests[] = {
		MERGE_TEST(records_are_counted_by_kind),
		MERGE_TEST(other_calls_outside_of_steps_are_not_kept),
		MERGE_TEST(a_call_that_was_given_away_spoils_steps_from_before),
		MERGE_TEST(a_sync_that_was_given_away_spoils_steps_from_before),
		MERGE_TEST(overhead_that_was_given_away_spoils_steps_from_before),
		MERGE_TEST(overhead_from_before_a_step_costs_what_is_in_it),
		MERGE_TEST(syncs_and_overheads_are_bounded_too),
		MERGE_TEST(of_one_process_too_many_nothing_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
