/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which work, calls and syncs are assigned to which step, and how the work of other steps counts.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "merge_fixture.h"

static void all_nodes_of_a_graph_are_of_the_step_that_launched_it(void **state)
{
	struct fixture *fixture = *state;

	push_work(fixture, 5, 300, 310);
	push_class(fixture, 7, 5, 200, 250, FBT_GPU_API_GRAPH);
	push_work(fixture, 5, 320, 330);
	push_work(fixture, 5, 340, 350);
	push_step(fixture, 7, 100, 400);
	push_flush(fixture, 500);
	assert_string_equal(seen(fixture, 0)->works, "5 5 5");
	assert_int_equal(seen(fixture, 0)->gpu.joined, 3);
	assert_true(seen(fixture, 0)->gpu.complete);
}

static void work_without_a_call_goes_by_its_own_start(void **state)
{
	struct fixture *fixture = *state;

	push_work(fixture, 0, 150, 160);
	push_work(fixture, 9, 170, 180);
	push_work(fixture, 8, 90, 120);
	push_step(fixture, 7, 100, 400);
	push_flush(fixture, 500);
	assert_string_equal(seen(fixture, 0)->works, "0 9");
	assert_int_equal(seen(fixture, 0)->gpu.by_time, 2);
	/* Work that overlaps the step makes the GPU busy, whoever launched it. */
	assert_int_equal(seen(fixture, 0)->gpu.all.busy_ns, 20 + 10 + 10);
	assert_int_equal(counts(fixture)->unjoined, 2);
	finish(fixture);
	assert_string_equal(fixture->left, "8");
	assert_int_equal(counts(fixture)->outside, 1);
}

static void other_threads_launch_for_the_step_that_began_last(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 20, 1, 150, 151); /* during the first step only */
	push_launch(fixture, 20, 2, 250, 251); /* during both steps */
	push_launch(fixture, 20, 3, 450, 451); /* during the second step only */
	push_launch(fixture, 8, 4, 260, 261);  /* by the second step's own thread */
	push_launch(fixture, 7, 5, 270, 271);  /* by the first step's own thread */
	push_launch(fixture, 20, 6, 700, 701); /* during no step */
	for (uint32_t i = 1; i <= 6; i++)
		push_work(fixture, i, 800 + i * 10, 805 + i * 10);
	push_step(fixture, 7, 100, 400);
	push_step(fixture, 8, 200, 600);
	push_flush(fixture, 1000);
	assert_string_equal(seen(fixture, 0)->works, "1 5");
	assert_string_equal(seen(fixture, 1)->works, "2 3 4");
	finish(fixture);
	assert_string_equal(fixture->left, "6");
	assert_string_equal(fixture->left_apis, "6");
	assert_int_equal(counts(fixture)->outside, 1);
}

/* The first step waits for its records, and the second is sealed before it. */
static void a_step_does_not_take_what_a_step_that_waits_launched(void **state)
{
	struct fixture *fixture = *state;
	union gpu_record sync = {.sync = {.header = {FBT_EVENT_GPU_SYNC, 0, 48},
					  .tgid = 7,
					  .start_ns = 305,
					  .end_ns = 309,
					  .correlation = 3}};

	push_launch(fixture, 7, 1, 150, 151);
	push_launch(fixture, 7, 2, 270, 271);
	push_class(fixture, 7, 3, 300, 310, FBT_GPU_API_SYNC);
	assert_int_equal(take(fixture, &sync), 0);
	push_work(fixture, 2, 280, 290);
	push_step(fixture, 7, 100, 400);
	push_step(fixture, 8, 200, 600);
	push_flush(fixture, 700);
	assert_int_equal(counts(fixture)->steps, 1);
	assert_int_equal(fixture->count, 0);
	push_work(fixture, 1, 160, 170);
	push_flush(fixture, 800);
	assert_string_equal(seen(fixture, 0)->works, "1 2");
	assert_string_equal(seen(fixture, 1)->works, "");
	assert_int_equal(seen(fixture, 0)->syncs, 1);
	assert_int_equal(seen(fixture, 1)->syncs, 0);
}

static void strict_steps_have_what_their_thread_launched(void **state)
{
	struct fixture *fixture = *state;

	close_merger(fixture);
	open_merger(fixture, true);
	push_state(fixture, 7, FBT_GPU_ARMED, 1);
	push_launch(fixture, 20, 1, 150, 151);
	push_launch(fixture, 7, 2, 160, 161);
	push_work(fixture, 1, 170, 180);
	push_work(fixture, 2, 190, 200);
	push_work(fixture, 0, 210, 220);
	push_step(fixture, 7, 100, 400);
	push_flush(fixture, 500);
	assert_string_equal(seen(fixture, 0)->works, "2");
	assert_int_equal(seen(fixture, 0)->gpu.all.busy_ns, 30);
	assert_true(window__is_gpu_strict(fixture->window));
}

/* As in a recording, which is replayed without the option. */
static void a_strict_window_needs_no_option(void **state)
{
	struct fixture *fixture = *state;

	close_merger(fixture);
	open_merger(fixture, false);
	fixture->window->record.header.flags = FBT_WINDOW_GPU_STRICT;
	push_state(fixture, 7, FBT_GPU_ARMED, 1);
	push_launch(fixture, 20, 1, 150, 151);
	push_launch(fixture, 7, 2, 160, 161);
	push_work(fixture, 1, 170, 180);
	push_work(fixture, 2, 190, 200);
	push_step(fixture, 7, 100, 400);
	push_flush(fixture, 500);
	assert_string_equal(seen(fixture, 0)->works, "2");
}

static void an_interval_has_what_any_thread_launched(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 20, 1, 150, 151);
	push_launch(fixture, 21, 2, 260, 261);
	push_work(fixture, 1, 170, 280);
	push_work(fixture, 2, 290, 300);
	push_launch(fixture, 21, 3, 200, 201);
	push_work(fixture, 3, 275, 279);
	assert_int_equal(push_step_of(fixture, 7, 7, 0, 100, 200), 0);
	assert_int_equal(push_step_of(fixture, 7, 7, 0, 200, 300), 0);
	push_flush(fixture, 300);
	assert_string_equal(seen(fixture, 0)->works, "1");
	assert_string_equal(seen(fixture, 1)->works, "3 2");
	assert_int_equal(seen(fixture, 0)->gpu.all.busy_ns, 30);
	assert_int_equal(seen(fixture, 1)->gpu.all.busy_ns, 80 + 10);
}

/* Thread 8 launches in its own step. The step of thread 7 ends earlier and is passed on first. */
static void push_steps_of_two_threads(struct fixture *fixture)
{
	push_launch(fixture, 8, 1, 150, 151);
	push_work(fixture, 1, 160, 170);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 210);
	push_step(fixture, 8, 110, 300);
	push_flush(fixture, 310);
}

/*
 * Launches of a thread that has had a step belong to that thread's steps, even to one that has not
 * ended.
 */
static void a_step_does_not_take_what_a_step_that_goes_on_launched(void **state)
{
	struct fixture *fixture = *state;

	push_step(fixture, 8, 50, 90);
	push_steps_of_two_threads(fixture);
	assert_string_equal(seen(fixture, 1)->works, "");
	assert_string_equal(seen(fixture, 2)->works, "1");
	assert_true(seen(fixture, 2)->gpu.complete);
}

/* Before the first step of a thread ends, nothing shows that the thread has steps. */
static void a_step_that_others_took_from_is_not_complete(void **state)
{
	struct fixture *fixture = *state;

	push_steps_of_two_threads(fixture);
	assert_string_equal(seen(fixture, 0)->works, "1");
	assert_string_equal(seen(fixture, 1)->works, "");
	assert_string_equal(seen(fixture, 1)->apis, "");
	assert_false(seen(fixture, 1)->gpu.complete);
}

static void work_of_other_steps_makes_the_gpu_busy_in_this_one(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 150, 151);
	push_work(fixture, 1, 160, 500);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 600);
	assert_int_equal(seen(fixture, 0)->gpu.all.busy_ns, 40);
	push_flush(fixture, 700);
	push_step(fixture, 7, 300, 800);
	push_flush(fixture, 900);
	assert_int_equal(seen(fixture, 1)->gpu.all.busy_ns, 200);
	assert_string_equal(seen(fixture, 1)->works, "");
	assert_true(seen(fixture, 1)->gpu.complete);
}

/* The gap at the end of the first step is charged by the launch that the other step made in it. */
static void what_others_launched_in_a_step_and_runs_after_it_judges_its_last_gap(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 8, 1, 150, 160);
	push_work(fixture, 1, 250, 260);
	push_step(fixture, 7, 100, 200);
	push_step(fixture, 8, 120, 300);
	push_flush(fixture, 400);
	assert_string_equal(seen(fixture, 0)->works, "");
	assert_int_equal(seen(fixture, 0)->gpu.all.host_wait_ns, 50);
	assert_int_equal(seen(fixture, 0)->gpu.all.launch_ns, 10);
	assert_int_equal(seen(fixture, 0)->gpu.all.queue_ns, 40);
}

/* The engine runs ahead of its GPU, so the queue holds launches of earlier steps. */
static void what_was_launched_before_a_step_and_runs_after_it_is_queued_in_it(void **state)
{
	struct fixture *fixture = *state;
	const struct gpu_figures *all = &fixture->steps[1].gpu.all;

	push_launch(fixture, 7, 1, 110, 120);
	push_launch(fixture, 7, 2, 130, 140);
	push_launch(fixture, 7, 3, 210, 220);
	push_work(fixture, 1, 150, 400);
	push_work(fixture, 2, 400, 600);
	push_work(fixture, 3, 600, 700);
	push_step(fixture, 7, 100, 200);
	push_step(fixture, 7, 200, 300);
	push_flush(fixture, 800);
	assert_string_equal(seen(fixture, 1)->works, "3");
	assert_int_equal(all->queue_delay_ns, 0);
	assert_int_equal(all->wait_behind_ns, 380);
	assert_int_equal(all->tklqt_ns, 10);
	/* The second launch is queued all the time, the third for 80 of 100 ns. */
	assert_true(all->queue_depth > 1.799 && all->queue_depth < 1.801);
}

static void others_work_after_a_step_makes_the_gpu_busy_while_its_own_runs(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 110, 120);
	push_launch(fixture, 8, 2, 210, 220);
	push_work(fixture, 0, 230, 240);
	push_work(fixture, 2, 250, 300);
	push_work(fixture, 1, 290, 400);
	push_work(fixture, 0, 500, 600);
	push_work(fixture, 1, 150, 160);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 700);
	assert_string_equal(seen(fixture, 0)->works, "1 1");
	assert_int_equal(seen(fixture, 0)->gpu.all.view_end_ns, 400);
	assert_int_equal(seen(fixture, 0)->gpu.all.view_busy_ns, 10 + 10 + 150);
	assert_int_equal(seen(fixture, 0)->gpu.all.busy_ns, 10);
	assert_int_equal(seen(fixture, 0)->gpu.devices.count, 1);
}

/* The work was launched long ago, so it waits for something other than the host. */
static void a_gap_that_work_from_before_the_step_is_queued_in_is_no_host_wait(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 110, 120);
	push_work(fixture, 1, 400, 500);
	push_step(fixture, 7, 100, 200);
	push_step(fixture, 7, 200, 300);
	push_flush(fixture, 600);
	assert_int_equal(seen(fixture, 1)->gpu.all.host_wait_ns, 0);
	assert_int_equal(seen(fixture, 1)->gpu.all.queue_ns, 100);
}

static void syncs_and_overheads_go_with_their_step(void **state)
{
	struct fixture *fixture = *state;
	union gpu_record sync = {.sync = {.header = {FBT_EVENT_GPU_SYNC, 0, 48},
					  .tgid = 7,
					  .start_ns = 320,
					  .end_ns = 380,
					  .correlation = 9}};
	union gpu_record overhead = {.overhead = {.header = {FBT_EVENT_GPU_OVERHEAD, 0, 40},
						  .tgid = 7,
						  .tid = 7,
						  .start_ns = 350,
						  .end_ns = 360}};

	push_class(fixture, 7, 9, 310, 390, FBT_GPU_API_SYNC);
	assert_int_equal(take(fixture, &sync), 0);
	assert_int_equal(take(fixture, &overhead), 0);
	sync.sync.start_ns = 520;
	sync.sync.end_ns = 530;
	sync.sync.correlation = 10;
	overhead.overhead.start_ns = 90;
	assert_int_equal(take(fixture, &sync), 0);
	assert_int_equal(take(fixture, &overhead), 0);
	push_step(fixture, 7, 100, 400);
	push_flush(fixture, 500);
	assert_int_equal(seen(fixture, 0)->syncs, 1);
	assert_int_equal(seen(fixture, 0)->overheads, 1);
	assert_int_equal(seen(fixture, 0)->gpu.sync_ns, 80);
	finish(fixture);
	assert_int_equal(fixture->left_syncs, 1);
	assert_int_equal(fixture->left_overheads, 1);
	assert_int_equal(fixture->given, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MERGE_TEST(all_nodes_of_a_graph_are_of_the_step_that_launched_it),
		MERGE_TEST(work_without_a_call_goes_by_its_own_start),
		MERGE_TEST(other_threads_launch_for_the_step_that_began_last),
		MERGE_TEST(a_step_does_not_take_what_a_step_that_waits_launched),
		MERGE_TEST(strict_steps_have_what_their_thread_launched),
		MERGE_TEST(a_strict_window_needs_no_option),
		MERGE_TEST(an_interval_has_what_any_thread_launched),
		MERGE_TEST(a_step_does_not_take_what_a_step_that_goes_on_launched),
		MERGE_TEST(a_step_that_others_took_from_is_not_complete),
		MERGE_TEST(work_of_other_steps_makes_the_gpu_busy_in_this_one),
		MERGE_TEST(what_others_launched_in_a_step_and_runs_after_it_judges_its_last_gap),
		MERGE_TEST(what_was_launched_before_a_step_and_runs_after_it_is_queued_in_it),
		MERGE_TEST(others_work_after_a_step_makes_the_gpu_busy_while_its_own_runs),
		MERGE_TEST(a_gap_that_work_from_before_the_step_is_queued_in_is_no_host_wait),
		MERGE_TEST(syncs_and_overheads_go_with_their_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
