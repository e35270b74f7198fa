/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "merge_fixture.h"

/*
 * A step of 1000 ns on thread 7 with two kernels:
 *
 *	host  100 --- launch 200..250 --- launch 300..350 ------------- 1100
 *	GPU              kernel 260..500        kernel 600..900
 */
static void push_example(struct fixture *fixture)
{
	push_launch(fixture, 7, 1, 200, 250);
	push_launch(fixture, 7, 2, 300, 350);
	push_work(fixture, 1, 260, 500);
	push_work(fixture, 2, 600, 900);
	push_step(fixture, 7, 100, 1100);
}

static void check_example(const struct seen *step)
{
	const struct gpu_figures *all = &step->gpu.all;

	assert_true(step->has_gpu);
	assert_string_equal(step->works, "1 2");
	assert_string_equal(step->apis, "1 2");
	assert_int_equal(all->busy_ns, 240 + 300);
	assert_int_equal(all->idle_ns, 460);
	/* 100..200 before the first launch, 900..1100 before nothing. */
	assert_int_equal(all->host_wait_ns, 100 + 200);
	assert_int_equal(all->launch_ns, 50);
	assert_int_equal(all->queue_ns, 10 + 100);
	assert_int_equal(all->unattributed_ns, 0);
	assert_int_equal(all->kernels, 2);
	assert_int_equal(step->gpu.joined, 2);
}

static void a_step_is_held_until_a_flush_later_than_its_end(void **state)
{
	struct fixture *fixture = *state;

	push_example(fixture);
	assert_int_equal(fixture->count, 0);
	push_flush(fixture, 1099);
	assert_int_equal(fixture->count, 0);
	push_flush(fixture, 1100);
	assert_int_equal(fixture->count, 1);
	check_example(seen(fixture, 0));
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_WATERMARK);
	assert_true(seen(fixture, 0)->gpu.complete);
	assert_string_equal(fixture->order, "s1 b1");
	assert_int_equal(counts(fixture)->steps, 1);
	assert_int_equal(counts(fixture)->timeouts, 0);
	assert_int_equal(counts(fixture)->kernels, 2);
	assert_int_equal(counts(fixture)->joined, 2);
	assert_int_equal(counts(fixture)->unjoined, 0);
	assert_int_equal(counts(fixture)->outside, 0);
}

static void a_step_after_a_flush_that_covers_it_is_not_held(void **state)
{
	struct fixture *fixture = *state;

	push_flush(fixture, 2000);
	push_example(fixture);
	assert_int_equal(fixture->count, 1);
	check_example(seen(fixture, 0));
	assert_true(seen(fixture, 0)->gpu.complete);
}

static void without_gpu_nothing_is_held(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(push_step_of(fixture, 8, 8, 1, 100, 200), 0);
	assert_string_equal(fixture->order, "s1");
	assert_false(seen(fixture, 0)->has_gpu);
}

static void steps_keep_their_order_across_processes(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(push_step_of(fixture, 8, 8, 1, 10, 20), 0);
	push_step(fixture, 7, 100, 200);
	assert_int_equal(push_step_of(fixture, 8, 8, 1, 100, 300), 0);
	push_step(fixture, 7, 300, 400);
	assert_int_equal(push_step_of(fixture, 8, 8, 1, 400, 500), 0);
	assert_string_equal(fixture->order, "s1");
	push_flush(fixture, 250);
	assert_string_equal(fixture->order, "s1 s2 s3");
	push_flush(fixture, 450);
	assert_string_equal(fixture->order, "s1 s2 s3 s4 s5");
}

/* Of the same correlations; the second has all its records before the first has. */
static void processes_have_records_of_their_own(void **state)
{
	struct fixture *fixture = *state;
	union gpu_record work = {.work = {.header = {FBT_EVENT_GPU_WORK, 0, sizeof(work.work)},
					  .tgid = 8,
					  .start_ns = 260,
					  .end_ns = 270,
					  .correlation = 1}};
	union gpu_record flush = {.flush = {.header = {FBT_EVENT_GPU_FLUSH, 0, sizeof(flush.flush)},
					    .tgid = 8,
					    .time_ns = 2000}};
	struct fbt_gpu_api api = launch(8, 1, 200, 210);

	api.tgid = 8;
	push_state(fixture, 8, FBT_GPU_ARMED, 1);
	push_api(fixture, api);
	assert_int_equal(take(fixture, &work), 0);
	push_example(fixture);
	assert_int_equal(push_step_of(fixture, 8, 8, 1, 100, 1100), 0);
	assert_int_equal(take(fixture, &flush), 0);
	assert_int_equal(gpu_table_find(&fixture->window->gpus, 8)->counts.steps, 1);
	assert_int_equal(counts(fixture)->steps, 0);
	assert_string_equal(fixture->order, "");
	push_flush(fixture, 1100);
	assert_string_equal(fixture->order, "s1 b1 s2 b2");
	check_example(seen(fixture, 0));
	assert_int_equal(seen(fixture, 1)->gpu.all.busy_ns, 10);
	assert_true(seen(fixture, 1)->gpu.complete);
}

static void a_launch_without_work_waits_for_it(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 200, 250);
	push_step(fixture, 7, 100, 400);
	push_flush(fixture, 500);
	push_flush(fixture, 600);
	assert_int_equal(fixture->count, 0);
	push_work(fixture, 1, 450, 620);
	push_flush(fixture, 700);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_WATERMARK);
	assert_true(seen(fixture, 0)->gpu.complete);
	assert_string_equal(seen(fixture, 0)->works, "1");
	assert_int_equal(seen(fixture, 0)->gpu.all.view_end_ns, 620);
}

static void a_launch_whose_work_never_comes_ends_by_time_out(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 200, 250);
	push_step(fixture, 7, 100, 400);
	push_flush(fixture, 400 + TIMEOUT - 1);
	assert_int_equal(fixture->count, 0);
	push_flush(fixture, 400 + TIMEOUT);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_TIMEOUT);
	assert_int_equal(seen(fixture, 0)->gpu.missing, 1);
	assert_false(seen(fixture, 0)->gpu.complete);
	assert_int_equal(counts(fixture)->timeouts, 1);
}

static void a_launch_that_failed_is_not_waited_for(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_gpu_api failed = launch(7, 1, 200, 250);

	failed.result = 2;
	push_api(fixture, failed);
	push_step(fixture, 7, 100, 400);
	push_flush(fixture, 500);
	assert_true(seen(fixture, 0)->gpu.complete);
	assert_int_equal(seen(fixture, 0)->gpu.missing, 0);
}

/* Host to host, or of no bytes: there may be nothing for the GPU to do. */
static void a_copy_without_work_is_waited_for_two_flushes(void **state)
{
	struct fixture *fixture = *state;

	push_class(fixture, 7, 1, 200, 250, FBT_GPU_API_MEMCPY);
	push_class(fixture, 7, 2, 260, 270, FBT_GPU_API_MEMSET);
	push_step(fixture, 7, 100, 400);
	push_flush(fixture, 500);
	assert_int_equal(fixture->count, 0);
	push_flush(fixture, 600);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_WATERMARK);
	assert_int_equal(seen(fixture, 0)->gpu.missing, 0);
	assert_true(seen(fixture, 0)->gpu.complete);
}

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

/* Its nodes still came when it was asked for: there may be more. */
static void a_graph_that_runs_on_after_its_step_waits_for_one_more_flush(void **state)
{
	struct fixture *fixture = *state;

	push_class(fixture, 7, 5, 200, 250, FBT_GPU_API_GRAPH);
	push_work(fixture, 5, 320, 450);
	push_step(fixture, 7, 100, 400);
	push_flush(fixture, 500);
	assert_int_equal(fixture->count, 0);
	push_work(fixture, 5, 480, 550);
	push_flush(fixture, 600);
	assert_string_equal(seen(fixture, 0)->works, "5 5");
	/* No more came between two flushes. */
	push_class(fixture, 7, 6, 720, 750, FBT_GPU_API_GRAPH);
	push_work(fixture, 6, 760, 950);
	push_flush(fixture, 890);
	push_step(fixture, 7, 700, 900);
	push_flush(fixture, 1000);
	assert_string_equal(seen(fixture, 1)->works, "6");
}

static void a_driver_call_stands_back_for_the_runtime_call_around_it(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_gpu_api driver = launch(7, 1, 210, 240);

	driver.header.flags = FBT_GPU_API_DRIVER;
	push_api(fixture, driver);
	push_work(fixture, 1, 260, 300);
	push_flush(fixture, 305);
	push_launch(fixture, 7, 1, 200, 250);
	push_step(fixture, 7, 100, 400);
	push_flush(fixture, 500);
	assert_string_equal(seen(fixture, 0)->apis, "1 (1)");
	assert_string_equal(seen(fixture, 0)->works, "1");
	assert_true(seen(fixture, 0)->gpu.complete);
	/* 100..200 and 300..400; launch 200..250, queue 250..260 of the runtime's call. */
	assert_int_equal(seen(fixture, 0)->gpu.all.launch_ns, 50);
	assert_int_equal(seen(fixture, 0)->gpu.all.queue_ns, 10);
	assert_int_equal(counts(fixture)->joined, 1);
}

/* The runtime call began before the step: so did the launch. */
static void a_nested_call_is_where_the_one_around_it_is(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_gpu_api driver = launch(7, 1, 110, 140);

	driver.header.flags = FBT_GPU_API_DRIVER;
	push_api(fixture, driver);
	push_launch(fixture, 7, 1, 90, 150);
	push_work(fixture, 1, 160, 170);
	push_step(fixture, 7, 100, 400);
	push_flush(fixture, 500);
	assert_string_equal(seen(fixture, 0)->works, "");
	assert_string_equal(seen(fixture, 0)->apis, "");
}

static void a_driver_call_of_its_own_launches(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_gpu_api driver = launch(7, 1, 210, 240);

	driver.header.flags = FBT_GPU_API_DRIVER;
	push_api(fixture, driver);
	/* The same id, but long before. */
	push_launch(fixture, 7, 1, 20, 30);
	push_work(fixture, 1, 260, 300);
	push_step(fixture, 7, 100, 400);
	push_flush(fixture, 500);
	assert_string_equal(seen(fixture, 0)->apis, "1");
	assert_string_equal(seen(fixture, 0)->works, "1");
	assert_int_equal(seen(fixture, 0)->gpu.all.launch_ns, 30);
}

static void of_ids_that_wrap_the_latest_call_before_the_work_wins(void **state)
{
	struct fixture *fixture = *state;

	push_work(fixture, 1, 360, 380);
	push_launch(fixture, 7, 1, 320, 330);
	push_launch(fixture, 7, 1, 120, 130);
	push_work(fixture, 1, 160, 180);
	push_step(fixture, 7, 100, 200);
	push_step(fixture, 7, 300, 400);
	push_flush(fixture, 500);
	assert_int_equal(fixture->count, 2);
	assert_int_equal(seen(fixture, 0)->gpu.all.view_start_ns, 160);
	assert_int_equal(seen(fixture, 1)->gpu.all.view_start_ns, 360);
	assert_string_equal(seen(fixture, 0)->works, "1");
	assert_string_equal(seen(fixture, 1)->works, "1");
	assert_int_equal(counts(fixture)->violations, 0);
}

static void work_before_its_call_is_a_violation_beyond_the_clock_error(void **state)
{
	struct fixture *fixture = *state;
	union gpu_record flush = {.flush = {.header = {FBT_EVENT_GPU_FLUSH, 0, sizeof(flush.flush)},
					    .tgid = 7,
					    .time_ns = 500,
					    .clock_error_ns = 20}};

	push_launch(fixture, 7, 1, 200, 250);
	push_work(fixture, 1, 180, 190);
	push_launch(fixture, 7, 2, 300, 350);
	push_work(fixture, 2, 279, 390);
	push_step(fixture, 7, 100, 400);
	assert_int_equal(take(fixture, &flush), 0);
	assert_int_equal(counts(fixture)->violations, 1);
	assert_int_equal(counts(fixture)->joined, 2);
	assert_int_equal(seen(fixture, 0)->gpu.clock_error_ns, 20);
}

static void work_without_times_is_counted_and_passed_on(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 200, 250);
	push_work(fixture, 1, 0, 0);
	push_step(fixture, 7, 100, 400);
	push_flush(fixture, 500);
	assert_int_equal(seen(fixture, 0)->gpu.unmeasured, 1);
	assert_int_equal(seen(fixture, 0)->gpu.missing, 0);
	assert_false(seen(fixture, 0)->gpu.complete);
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_WATERMARK);
	assert_string_equal(seen(fixture, 0)->works, "1");
	assert_int_equal(counts(fixture)->unmeasured, 1);
	assert_int_equal(seen(fixture, 0)->gpu.all.busy_ns, 0);
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
	/* What runs into the step makes the GPU busy, whoever launched it. */
	assert_int_equal(seen(fixture, 0)->gpu.all.busy_ns, 20 + 10 + 10);
	assert_int_equal(counts(fixture)->unjoined, 2);
	finish(fixture);
	assert_string_equal(fixture->left, "8");
	assert_int_equal(counts(fixture)->outside, 1);
}

static void other_threads_launch_for_the_step_that_began_last(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 20, 1, 150, 151); /* in the first only */
	push_launch(fixture, 20, 2, 250, 251); /* in both */
	push_launch(fixture, 20, 3, 450, 451); /* in the second only */
	push_launch(fixture, 8, 4, 260, 261);  /* the second's own */
	push_launch(fixture, 7, 5, 270, 271);  /* the first's own */
	push_launch(fixture, 20, 6, 700, 701); /* in none */
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

/* The first waits, the second is sealed before it. */
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

/* Thread 8 launches in its own step. The step of thread 7 ends before, and is passed on first. */
static void push_steps_of_two_threads(struct fixture *fixture)
{
	push_launch(fixture, 8, 1, 150, 151);
	push_work(fixture, 1, 160, 170);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 210);
	push_step(fixture, 8, 110, 300);
	push_flush(fixture, 310);
}

/* A thread that has had a step launches for its steps, also for one that has not ended yet. */
static void a_step_does_not_take_what_a_step_that_goes_on_launched(void **state)
{
	struct fixture *fixture = *state;

	push_step(fixture, 8, 50, 90);
	push_steps_of_two_threads(fixture);
	assert_string_equal(seen(fixture, 1)->works, "");
	assert_string_equal(seen(fixture, 2)->works, "1");
	assert_true(seen(fixture, 2)->gpu.complete);
}

/* Before its first step ends, nothing shows that a thread has steps. */
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

/* The gap up to the end of the first step is charged by what the other launched in it. */
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

/* An engine that is steps ahead of its GPU: the queue holds what the steps before launched. */
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
	/* The second launch all the time, the third for 80 of 100. */
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

/* It was launched long ago, and waits for something else than the host. */
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

static void an_incomplete_step_is_bound_by_nothing_that_is_known(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 110, 120);
	push_launch(fixture, 7, 2, 150, 160);
	push_work(fixture, 1, 160, 170);
	push_step(fixture, 7, 100, 200);
	push_launch(fixture, 7, 3, 206, 207);
	push_launch(fixture, 7, 4, 250, 260);
	push_work(fixture, 3, 207, 298);
	push_step(fixture, 7, 205, 300);
	push_flush(fixture, 300 + TIMEOUT);
	assert_false(seen(fixture, 0)->gpu.complete);
	assert_true(seen(fixture, 0)->gpu.bound_idle > 0.2);
	assert_int_equal(seen(fixture, 0)->gpu.bound, GPU_BOUND_UNKNOWN);
	/* What is missing can only make it busier. */
	assert_false(seen(fixture, 1)->gpu.complete);
	assert_int_equal(seen(fixture, 1)->gpu.bound, GPU_BOUND_GPU);
}

/* The same as the first of those, but for the launch whose work is missing. */
static void a_complete_step_is_bound_by_what_is_known(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 110, 120);
	push_work(fixture, 1, 160, 170);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 300);
	assert_true(seen(fixture, 0)->gpu.complete);
	assert_true(seen(fixture, 0)->gpu.bound_idle > 0.2);
	assert_int_not_equal(seen(fixture, 0)->gpu.bound, GPU_BOUND_UNKNOWN);
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
		MERGE_TEST(a_step_is_held_until_a_flush_later_than_its_end),
		MERGE_TEST(a_step_after_a_flush_that_covers_it_is_not_held),
		MERGE_TEST(without_gpu_nothing_is_held),
		MERGE_TEST(steps_keep_their_order_across_processes),
		MERGE_TEST(processes_have_records_of_their_own),
		MERGE_TEST(a_launch_without_work_waits_for_it),
		MERGE_TEST(a_launch_whose_work_never_comes_ends_by_time_out),
		MERGE_TEST(a_launch_that_failed_is_not_waited_for),
		MERGE_TEST(a_copy_without_work_is_waited_for_two_flushes),
		MERGE_TEST(all_nodes_of_a_graph_are_of_the_step_that_launched_it),
		MERGE_TEST(a_graph_that_runs_on_after_its_step_waits_for_one_more_flush),
		MERGE_TEST(a_driver_call_stands_back_for_the_runtime_call_around_it),
		MERGE_TEST(a_nested_call_is_where_the_one_around_it_is),
		MERGE_TEST(a_driver_call_of_its_own_launches),
		MERGE_TEST(of_ids_that_wrap_the_latest_call_before_the_work_wins),
		MERGE_TEST(work_before_its_call_is_a_violation_beyond_the_clock_error),
		MERGE_TEST(work_without_times_is_counted_and_passed_on),
		MERGE_TEST(work_without_a_call_goes_by_its_own_start),
		MERGE_TEST(other_threads_launch_for_the_step_that_began_last),
		MERGE_TEST(a_step_does_not_take_what_a_step_that_waits_launched),
		MERGE_TEST(strict_steps_have_what_their_thread_launched),
		MERGE_TEST(an_interval_has_what_any_thread_launched),
		MERGE_TEST(a_step_does_not_take_what_a_step_that_goes_on_launched),
		MERGE_TEST(a_step_that_others_took_from_is_not_complete),
		MERGE_TEST(work_of_other_steps_makes_the_gpu_busy_in_this_one),
		MERGE_TEST(what_others_launched_in_a_step_and_runs_after_it_judges_its_last_gap),
		MERGE_TEST(what_was_launched_before_a_step_and_runs_after_it_is_queued_in_it),
		MERGE_TEST(others_work_after_a_step_makes_the_gpu_busy_while_its_own_runs),
		MERGE_TEST(a_gap_that_work_from_before_the_step_is_queued_in_is_no_host_wait),
		MERGE_TEST(an_incomplete_step_is_bound_by_nothing_that_is_known),
		MERGE_TEST(a_complete_step_is_bound_by_what_is_known),
		MERGE_TEST(syncs_and_overheads_go_with_their_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
