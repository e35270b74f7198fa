/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include "model/pending.h"

struct fixture {
	struct pending *pending;
	size_t outside;	  /* number of calls passed on */
	uint64_t last_ns; /* start of the last of them */
	int result;	  /* what on_outside returns */
	struct step step;
};

static int count_outside(void *ctx, const struct fbt_call *call)
{
	struct fixture *fixture = ctx;

	fixture->outside++;
	fixture->last_ns = call->start_ns;
	return fixture->result;
}

static int open_fixture(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->pending = pending__new(count_outside, fixture);
	assert_non_null(fixture->pending);
	*state = fixture;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *fixture = *state;

	pending__free(fixture->pending);
	vec_free(&fixture->step.calls);
	vec_free(&fixture->step.wakes);
	free(fixture);
	return 0;
}

static int push(struct fixture *fixture, uint32_t tgid, uint32_t tid, uint64_t start_ns)
{
	const struct fbt_call call = {
		.tgid = tgid, .tid = tid, .start_ns = start_ns, .duration_ns = 10};

	return pending__push(fixture->pending, &call);
}

static int take(struct fixture *fixture, uint32_t tid, uint32_t kind, uint64_t start_ns,
		uint64_t end_ns)
{
	vec_free(&fixture->step.calls);
	vec_free(&fixture->step.wakes);
	fixture->step = (struct step){.record = {.tgid = 7,
						 .tid = tid,
						 .kind = kind,
						 .start_ns = start_ns,
						 .end_ns = end_ns}};
	return pending__take(fixture->pending, &fixture->step);
}

static int push_wake(struct fixture *fixture, uint32_t tgid, uint32_t tid, uint64_t start_ns)
{
	const struct fbt_wake wake = {.tgid = tgid, .tid = tid, .start_ns = start_ns};

	return pending__push_wake(fixture->pending, &wake);
}

static void a_step_takes_the_wakes_of_its_own_waits(void **state)
{
	struct fixture *fixture = *state;

	push_wake(fixture, 7, 7, 90);
	push_wake(fixture, 7, 8, 110);
	push_wake(fixture, 7, 7, 100);
	push(fixture, 7, 7, 100);
	push_wake(fixture, 7, 7, 200);
	push_wake(fixture, 7, 7, 201);
	assert_int_equal(take(fixture, 7, 1, 100, 200), 0);
	assert_int_equal(fixture->step.calls.count, 1);
	assert_int_equal(fixture->step.wakes.count, 2);
	assert_int_equal(fixture->step.wakes.items[0].start_ns, 100);
	assert_int_equal(fixture->step.wakes.items[1].start_ns, 200);
	assert_int_equal(take(fixture, 7, 1, 201, 300), 0);
	assert_int_equal(fixture->step.wakes.count, 1);
	assert_int_equal(take(fixture, 8, 1, 100, 200), 0);
	assert_int_equal(fixture->step.wakes.count, 1);
	assert_int_equal(take(fixture, 8, 1, 100, 200), 0);
	assert_int_equal(fixture->step.wakes.count, 0);
}

static void a_thread_number_in_another_process_has_no_wakes(void **state)
{
	struct fixture *fixture = *state;

	push_wake(fixture, 6, 7, 100);
	push_wake(fixture, 7, 7, 110);
	take(fixture, 7, 1, 100, 200);
	assert_int_equal(fixture->step.wakes.count, 1);
	assert_int_equal(fixture->step.wakes.items[0].start_ns, 110);
}

static void wakes_of_all_threads_together_are_bounded(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t i = 0; i < PENDING_WAKES_MAX + 7; i++)
		assert_int_equal(push_wake(fixture, 7, 7 + i % 7, 100), 0);
	take(fixture, 7, 1, 100, 200);
	assert_int_equal(fixture->step.wakes.count, PENDING_WAKES_MAX / 7 + 1);
	assert_int_equal(push_wake(fixture, 7, 7, 300), 0);
	take(fixture, 7, 1, 300, 400);
	assert_int_equal(fixture->step.wakes.count, 1);
}

static void pending_free_takes_null(void **state)
{
	pending__free(NULL);
}

static void an_error_of_the_receiver_is_passed_up_and_nothing_stops(void **state)
{
	struct fixture *fixture = *state;

	push(fixture, 7, 7, 100);
	push(fixture, 7, 7, 200);
	fixture->result = -EIO;
	assert_int_equal(pending__flush(fixture->pending), -EIO);
	assert_int_equal(fixture->outside, 2);
}

static void a_step_of_an_unknown_thread_takes_nothing(void **state)
{
	struct fixture *fixture = *state;

	push(fixture, 7, 8, 100);
	assert_int_equal(take(fixture, 9, 1, 0, 1000), 0);
	assert_int_equal(fixture->step.calls.count, 0);
	assert_int_equal(pending__call_count(fixture->pending), 1);
}

static void a_step_takes_no_calls_of_another_process(void **state)
{
	struct fixture *fixture = *state;

	push(fixture, 6, 8, 100);
	assert_int_equal(take(fixture, 8, 1, 0, 1000), 0);
	assert_int_equal(fixture->step.calls.count, 0);
}

static void a_step_takes_the_calls_that_began_in_it(void **state)
{
	struct fixture *fixture = *state;

	push(fixture, 7, 7, 99);
	push(fixture, 7, 7, 100);
	push(fixture, 7, 7, 200);
	push(fixture, 7, 7, 201);
	assert_int_equal(take(fixture, 7, 1, 100, 200), 0);
	assert_int_equal(fixture->step.calls.count, 2);
	assert_int_equal(fixture->step.calls.items[0].start_ns, 100);
	assert_int_equal(fixture->step.calls.items[1].start_ns, 200);
}

static void calls_before_a_step_are_passed_on(void **state)
{
	struct fixture *fixture = *state;

	push(fixture, 7, 7, 50);
	push(fixture, 7, 7, 100);
	take(fixture, 7, 1, 100, 200);
	assert_int_equal(fixture->outside, 1);
	assert_int_equal(fixture->last_ns, 50);
}

static void calls_after_a_step_wait_for_the_next(void **state)
{
	struct fixture *fixture = *state;

	push(fixture, 7, 7, 300);
	take(fixture, 7, 1, 100, 200);
	assert_int_equal(fixture->step.calls.count, 0);
	take(fixture, 7, 1, 250, 350);
	assert_int_equal(fixture->step.calls.count, 1);
	assert_int_equal(fixture->outside, 0);
}

static void an_interval_takes_the_calls_that_returned_in_it_from_all_threads(void **state)
{
	struct fixture *fixture = *state;

	push(fixture, 7, 8, 92);
	push(fixture, 7, 7, 90);
	push(fixture, 7, 9, 95);
	push(fixture, 7, 9, 195);
	assert_int_equal(take(fixture, 7, 0, 100, 200), 0);
	assert_int_equal(fixture->step.calls.count, 2);
	assert_int_equal(fixture->step.calls.items[0].start_ns, 92);
	assert_int_equal(fixture->step.calls.items[1].start_ns, 95);
	assert_int_equal(fixture->outside, 1);
	assert_int_equal(pending__call_count(fixture->pending), 1);
}

static void a_step_keeps_no_more_calls_than_the_limit(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 0; i < STEP_CALLS_MAX + 1; i++)
		push(fixture, 7, 7, 100 + i);
	take(fixture, 7, 1, 100, 1000000);
	assert_int_equal(fixture->step.calls.count, STEP_CALLS_MAX);
	assert_true(fixture->step.calls_truncated);
	assert_int_equal(pending__call_count(fixture->pending), 0);
}

static void a_step_of_exactly_the_limit_is_not_truncated(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 0; i < STEP_CALLS_MAX; i++)
		push(fixture, 7, 7, 100 + i);
	take(fixture, 7, 1, 100, 1000000);
	assert_int_equal(fixture->step.calls.count, STEP_CALLS_MAX);
	assert_false(fixture->step.calls_truncated);
}

static void a_step_whose_calls_had_to_leave_is_truncated(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 0; i < PENDING_THREAD_CALLS_MAX + 1; i++)
		push(fixture, 7, 7, 1000 + i * 20);
	assert_true(fixture->outside > 0);
	take(fixture, 7, 1, fixture->last_ns, fixture->last_ns + 100);
	assert_int_equal(fixture->step.calls.count, 5);
	assert_true(fixture->step.calls_truncated);
}

static void a_step_after_calls_that_had_to_leave_is_not_truncated(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 0; i < PENDING_THREAD_CALLS_MAX + 1; i++)
		push(fixture, 7, 7, 1000 + i * 20);
	take(fixture, 7, 1, fixture->last_ns + 20, fixture->last_ns + 100);
	assert_int_equal(fixture->step.calls.count, 5);
	assert_false(fixture->step.calls_truncated);
}

static void calls_of_all_threads_together_are_bounded(void **state)
{
	struct fixture *fixture = *state;
	const size_t pushed = 3 * PENDING_CALLS_MAX;

	for (size_t i = 0; i < pushed; i++) {
		push(fixture, 7, 100 + i % 50, 1000 + i * 20);
		assert_true(pending__call_count(fixture->pending) <= PENDING_CALLS_MAX);
	}
	assert_int_equal(fixture->outside + pending__call_count(fixture->pending), pushed);
}

static void threads_without_steps_go_before_those_with(void **state)
{
	struct fixture *fixture = *state;

	push(fixture, 7, 7, 10);
	take(fixture, 7, 1, 0, 50);
	push(fixture, 7, 7, 100);
	for (size_t i = 0; i < PENDING_CALLS_MAX; i++)
		push(fixture, 7, 100 + i % 50, 1000 + i * 20);
	assert_true(fixture->outside > 0);
	take(fixture, 7, 1, 60, 150);
	assert_int_equal(fixture->step.calls.count, 1);
	assert_false(fixture->step.calls_truncated);
}

static void exited_processes_go_before_running_ones(void **state)
{
	struct fixture *fixture = *state;

	push(fixture, 7, 7, 100);
	for (size_t i = 0; i < PENDING_CALLS_MAX - 1; i++)
		push(fixture, 6, 1000 + i % 50, 1000 + i * 20);
	pending__mark_exited(fixture->pending, 6);
	push(fixture, 7, 7, 200);
	assert_int_equal(fixture->outside, PENDING_CALLS_MAX - 1);
	take(fixture, 7, 1, 0, 300);
	assert_int_equal(fixture->step.calls.count, 2);
}

static void short_threads_are_forgotten(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t tid = 1; tid <= 50000; tid++) {
		push(fixture, 7, tid, 1000 + tid);
		assert_true(pending__thread_count(fixture->pending) <= PENDING_THREADS_MAX);
	}
	pending__flush(fixture->pending);
	assert_int_equal(fixture->outside, 50000);
	assert_int_equal(pending__thread_count(fixture->pending), 0);
}

static void a_thread_number_in_another_process_is_another_thread(void **state)
{
	struct fixture *fixture = *state;

	push(fixture, 6, 8, 100);
	push(fixture, 7, 8, 200);
	assert_int_equal(fixture->outside, 1);
	take(fixture, 8, 1, 0, 300);
	assert_int_equal(fixture->step.calls.count, 1);
}

static void a_process_that_is_released_leaves_nothing_behind(void **state)
{
	struct fixture *fixture = *state;

	push(fixture, 6, 5, 100);
	push(fixture, 7, 7, 100);
	push(fixture, 7, 8, 200);
	assert_int_equal(pending__release(fixture->pending, 7), 0);
	assert_int_equal(fixture->outside, 2);
	assert_int_equal(pending__thread_count(fixture->pending), 1);
}

static void a_process_without_calls_can_be_released(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(pending__release(fixture->pending, 7), 0);
	pending__mark_exited(fixture->pending, 7);
	assert_int_equal(fixture->outside, 0);
}

/* Removing the steps one by one from the front of the queue would take minutes. */
static void a_backlog_of_many_steps_is_taken_in_no_time(void **state)
{
	const uint64_t steps = 20000, each = 6;
	struct fixture *fixture = *state;
	const clock_t begin = clock();

	for (uint64_t i = 0; i < steps * each; i++)
		assert_int_equal(push(fixture, 7, 7, 1000 + i * 100), 0);
	for (uint64_t i = 0; i < steps; i++) {
		assert_int_equal(take(fixture, 7, 1, 1000 + i * each * 100,
				      1099 + ((i + 1) * each - 1) * 100),
				 0);
		assert_int_equal(fixture->step.calls.count, each);
		assert_false(fixture->step.calls_truncated);
	}
	assert_int_equal(pending__call_count(fixture->pending), 0);
	assert_int_equal(fixture->outside, 0);
	assert_true(clock() - begin < 10 * CLOCKS_PER_SEC);
}

static void calls_that_come_out_of_order_are_taken_all_the_same(void **state)
{
	struct fixture *fixture = *state;

	push(fixture, 7, 7, 500);
	push(fixture, 7, 7, 150);
	push(fixture, 7, 7, 50);
	push(fixture, 7, 7, 400);
	take(fixture, 7, 1, 100, 200);
	assert_int_equal(fixture->step.calls.count, 1);
	assert_int_equal(fixture->step.calls.items[0].start_ns, 150);
	assert_int_equal(fixture->outside, 1);
	assert_int_equal(pending__call_count(fixture->pending), 2);
	take(fixture, 7, 1, 300, 600);
	assert_int_equal(fixture->step.calls.count, 2);
	assert_int_equal(pending__call_count(fixture->pending), 0);
}

#define PENDING_TEST(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pending_free_takes_null),
		PENDING_TEST(an_error_of_the_receiver_is_passed_up_and_nothing_stops),
		PENDING_TEST(a_step_of_an_unknown_thread_takes_nothing),
		PENDING_TEST(a_step_takes_no_calls_of_another_process),
		PENDING_TEST(a_step_takes_the_calls_that_began_in_it),
		PENDING_TEST(calls_before_a_step_are_passed_on),
		PENDING_TEST(calls_after_a_step_wait_for_the_next),
		PENDING_TEST(an_interval_takes_the_calls_that_returned_in_it_from_all_threads),
		PENDING_TEST(a_step_keeps_no_more_calls_than_the_limit),
		PENDING_TEST(a_step_of_exactly_the_limit_is_not_truncated),
		PENDING_TEST(a_step_takes_the_wakes_of_its_own_waits),
		PENDING_TEST(a_thread_number_in_another_process_has_no_wakes),
		PENDING_TEST(wakes_of_all_threads_together_are_bounded),
		PENDING_TEST(a_step_whose_calls_had_to_leave_is_truncated),
		PENDING_TEST(a_step_after_calls_that_had_to_leave_is_not_truncated),
		PENDING_TEST(calls_of_all_threads_together_are_bounded),
		PENDING_TEST(threads_without_steps_go_before_those_with),
		PENDING_TEST(exited_processes_go_before_running_ones),
		PENDING_TEST(short_threads_are_forgotten),
		PENDING_TEST(a_thread_number_in_another_process_is_another_thread),
		PENDING_TEST(a_process_that_is_released_leaves_nothing_behind),
		PENDING_TEST(a_process_without_calls_can_be_released),
		PENDING_TEST(a_backlog_of_many_steps_is_taken_in_no_time),
		PENDING_TEST(calls_that_come_out_of_order_are_taken_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
