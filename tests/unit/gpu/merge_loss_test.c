/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Records that are lost, and steps that have to do without. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include "merge_fixture.h"
#include "gpu/merge.h"
#include "output/pipeline.h"
#include "stream_fixture.h"

static void losses_are_told_once_and_spoil_the_steps_of_their_time(void **state)
{
	struct fixture *fixture = *state;

	push_totals(fixture, 100, 5, 0, 0, 10); /* before all steps */
	push_step(fixture, 7, 110, 150);
	push_totals(fixture, 200, 5, 0, 0, 30);
	push_step(fixture, 7, 210, 250);
	push_step(fixture, 7, 260, 290);
	push_totals(fixture, 300, 7, 0, 0, 60);
	push_step(fixture, 7, 310, 350);
	push_totals(fixture, 400, 7, 2, 1, 60);
	push_step(fixture, 7, 410, 450);
	push_totals(fixture, 500, 7, 2, 1, 60);
	assert_int_equal(fixture->count, 5);
	assert_true(seen(fixture, 0)->gpu.complete);
	assert_int_equal(seen(fixture, 0)->gpu.cupti_dropped, 5);
	assert_int_equal(seen(fixture, 0)->gpu.shim_ns, 30);
	assert_false(seen(fixture, 1)->gpu.complete);
	assert_int_equal(seen(fixture, 1)->gpu.cupti_dropped, 2);
	assert_int_equal(seen(fixture, 1)->gpu.shim_ns, 30);
	assert_false(seen(fixture, 2)->gpu.complete);
	assert_int_equal(seen(fixture, 2)->gpu.cupti_dropped, 0);
	assert_false(seen(fixture, 3)->gpu.complete);
	assert_int_equal(seen(fixture, 3)->gpu.ring_lost, 3);
	assert_true(seen(fixture, 4)->gpu.complete);
}

/* Records that are lost while a step waits may belong to that step. */
static void losses_between_the_end_and_the_seal_count(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 120, 130);
	push_step(fixture, 7, 110, 150);
	push_totals(fixture, 200, 0, 0, 0, 0);
	push_totals(fixture, 300, 1, 0, 0, 0);
	push_work(fixture, 1, 140, 390);
	push_totals(fixture, 400, 1, 0, 0, 0);
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_WATERMARK);
	assert_false(seen(fixture, 0)->gpu.complete);
}

static void records_of_an_unknown_form_are_lost(void **state)
{
	struct fixture *fixture = *state;
	union gpu_record record = {
		.flush = {.header = {FBT_EVENT_GPU_FLUSH, 0, sizeof(record.flush)},
			  .tgid = 7,
			  .time_ns = 200,
			  .unknown = 1}};

	push_totals(fixture, 100, 0, 0, 0, 0);
	push_step(fixture, 7, 110, 150);
	assert_int_equal(take(fixture, &record), 0);
	assert_false(seen(fixture, 0)->gpu.complete);
}

/* Records may be lost up to sent_ns, not only up to time_ns. */
static void records_are_lost_up_to_when_that_was_said(void **state)
{
	struct fixture *fixture = *state;
	union gpu_record record = {
		.flush = {.header = {FBT_EVENT_GPU_FLUSH, 0, sizeof(record.flush)},
			  .tgid = 7,
			  .time_ns = 50,
			  .sent_ns = 100,
			  .cupti_dropped = 1}};

	assert_int_equal(take(fixture, &record), 0);
	push_step(fixture, 7, 60, 90);
	push_step(fixture, 7, 110, 120);
	push_totals(fixture, 200, 1, 0, 0, 0);
	assert_false(seen(fixture, 0)->gpu.complete);
	assert_true(seen(fixture, 1)->gpu.complete);
}

static void a_process_that_is_armed_again_counts_from_zero(void **state)
{
	struct fixture *fixture = *state;

	push_totals(fixture, 100, 9, 0, 0, 0);
	push_step(fixture, 7, 50, 60);
	push_state(fixture, 7, FBT_GPU_ENDED, 110);
	push_state(fixture, 7, FBT_GPU_ARMED, 200);
	push_totals(fixture, 210, 12, 0, 0, 0);
	push_step(fixture, 7, 220, 230);
	push_totals(fixture, 300, 12, 0, 0, 0);
	assert_int_equal(seen(fixture, 0)->gpu.cupti_dropped, 9);
	assert_true(seen(fixture, 1)->gpu.complete);
	assert_int_equal(seen(fixture, 1)->gpu.cupti_dropped, 12);
}

/* A process that was stopped goes on with its totals: nothing was armed anew. */
static void a_process_that_goes_on_counts_on(void **state)
{
	struct fixture *fixture = *state;

	push_totals(fixture, 100, 9, 0, 0, 70);
	push_step(fixture, 7, 50, 60);
	push_state(fixture, 7, FBT_GPU_STALLED, 110);
	push_state(fixture, 7, FBT_GPU_ARMED, 200);
	push_step(fixture, 7, 220, 230);
	push_totals(fixture, 300, 9, 0, 0, 90);
	assert_int_equal(seen(fixture, 0)->gpu.cupti_dropped, 9);
	assert_true(seen(fixture, 1)->gpu.complete);
	assert_int_equal(seen(fixture, 1)->gpu.cupti_dropped, 0);
	assert_int_equal(seen(fixture, 1)->gpu.shim_ns, 20);
}

/* It stopped, then ended its records for lack of a tracer, and is armed again. */
static void a_process_that_ended_while_it_was_silent_counts_from_zero(void **state)
{
	struct fixture *fixture = *state;

	push_totals(fixture, 100, 9, 0, 0, 0);
	push_step(fixture, 7, 50, 60);
	push_state(fixture, 7, FBT_GPU_STALLED, 110);
	push_state(fixture, 7, FBT_GPU_ENDED, 120);
	push_state(fixture, 7, FBT_GPU_STALLED, 150);
	push_state(fixture, 7, FBT_GPU_ARMED, 200);
	push_step(fixture, 7, 220, 230);
	push_totals(fixture, 300, 12, 0, 0, 0);
	assert_int_equal(seen(fixture, 1)->gpu.cupti_dropped, 12);
}

/* More losses than the merger can tell apart. */
static void of_many_losses_each_counts(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t losses = 200;

	push_launch(fixture, 8, 1, 20, 30);
	push_step(fixture, 8, 10, 40);
	for (uint64_t i = 1; i <= losses; i++)
		push_totals(fixture, 100 + i * 10, i, 0, 0, 0);
	push_step(fixture, 7, 105 + losses * 10 - 10, 105 + losses * 10);
	push_step(fixture, 7, 105 + losses * 10, 110 + losses * 10);
	push_totals(fixture, 200 + losses * 10, losses, 0, 0, 0);
	push_work(fixture, 1, 32, 35);
	push_totals(fixture, 210 + losses * 10, losses, 0, 0, 0);
	assert_int_equal(fixture->count, 3);
	assert_false(seen(fixture, 0)->gpu.complete);
	assert_false(seen(fixture, 1)->gpu.complete);
	assert_true(seen(fixture, 2)->gpu.complete);
}

/* A process may send any totals. */
static void losses_that_cannot_be_are_all_that_can_be_told(void **state)
{
	struct fixture *fixture = *state;

	push_totals(fixture, 100, 0, UINT64_MAX, 5, 0);
	push_step(fixture, 7, 110, 150);
	push_totals(fixture, 200, 0, UINT64_MAX, 5, 0);
	assert_true(seen(fixture, 0)->gpu.ring_lost == UINT64_MAX);
}

/* More records than there is room for, of one step: it is not complete, and for which reason. */
static void a_step_that_gives_up_records_says_so(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t end_ns = 1000 + (MERGE_RECORDS_MAX + 2) * 10;

	push_flush(fixture, 500);
	fixture->is_quiet = true;
	for (uint64_t i = 1; i <= MERGE_RECORDS_MAX + 1; i++)
		push_work(fixture, 0, 1000 + i * 10, 1000 + i * 10 + 5);
	push_step(fixture, 7, 400, end_ns);
	push_step(fixture, 7, end_ns + 10, end_ns + 20);
	push_flush(fixture, end_ns + 30);
	push_flush(fixture, end_ns + 40);
	assert_int_equal(counts(fixture)->steps, 2);
	assert_int_equal(counts(fixture)->timeouts, 1);
}

static void records_are_bounded_the_oldest_leave_first(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t eighth = MERGE_RECORDS_MAX / 8;

	fixture->is_quiet = true;
	for (uint64_t i = 1; i <= MERGE_RECORDS_MAX; i++) {
		if (i % 2)
			push_class(fixture, 7, 0, i * 10, i * 10 + 5, FBT_GPU_API_OTHER);
		else
			push_work(fixture, 0, i * 10, i * 10 + 5);
	}
	assert_int_equal(fixture->given, 0);
	push_work(fixture, 0, (MERGE_RECORDS_MAX + 1) * 10, (MERGE_RECORDS_MAX + 1) * 10 + 5);
	assert_int_equal(fixture->given, eighth);
	assert_int_equal(fixture->left_ns, eighth * 10 + 5);
	/*
	 * A step that begins after the dropped records is complete; one that began before is not.
	 */
	fixture->is_quiet = false;
	push_step(fixture, 7, eighth * 10 + 4, eighth * 10 + 100);
	push_step(fixture, 7, eighth * 10 + 100, eighth * 10 + 200);
	push_flush(fixture, eighth * 10 + 200);
	assert_false(seen(fixture, 0)->gpu.complete);
	assert_true(seen(fixture, 1)->gpu.complete);
	fixture->is_quiet = true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MERGE_TEST(losses_are_told_once_and_spoil_the_steps_of_their_time),
		MERGE_TEST(losses_between_the_end_and_the_seal_count),
		MERGE_TEST(records_of_an_unknown_form_are_lost),
		MERGE_TEST(records_are_lost_up_to_when_that_was_said),
		MERGE_TEST(a_process_that_is_armed_again_counts_from_zero),
		MERGE_TEST(a_process_that_goes_on_counts_on),
		MERGE_TEST(a_process_that_ended_while_it_was_silent_counts_from_zero),
		MERGE_TEST(of_many_losses_each_counts),
		MERGE_TEST(losses_that_cannot_be_are_all_that_can_be_told),
		MERGE_TEST(a_step_that_gives_up_records_says_so),
		MERGE_TEST(records_are_bounded_the_oldest_leave_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
