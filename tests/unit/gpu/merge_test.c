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
	/* 100..200 is before the first launch; 900..1100 is before no launch. */
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
/* Both processes use the same correlation ids. The second process has all its records first. */
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
/* A copy within host memory or of no bytes may need no GPU work. */
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
/* Nodes of the graph came at the last flush, so more may come. */
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
	/* No more nodes come between two flushes. */
	push_class(fixture, 7, 6, 720, 750, FBT_GPU_API_GRAPH);
	push_work(fixture, 6, 760, 950);
	push_flush(fixture, 890);
	push_step(fixture, 7, 700, 900);
	push_flush(fixture, 1000);
	assert_string_equal(seen(fixture, 1)->works, "6");
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
	/* The missing work can only make the GPU busier. */
	assert_false(seen(fixture, 1)->gpu.complete);
	assert_int_equal(seen(fixture, 1)->gpu.bound, GPU_BOUND_GPU);
}
/* The first of those steps, without the launch whose work is missing. */
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
/*
 * The first work waited for more than 50 us after its call: for work that was launched before the
 * records began, and has none. Until then nothing can be said of idle time.
 */
static void idle_before_the_first_work_that_waited_is_unattributed(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 2000, 3000);
	push_work(fixture, 1, 70000, 75000);
	push_launch(fixture, 7, 2, 76000, 77000);
	push_work(fixture, 2, 77000, 78000);
	push_step(fixture, 7, 1000, 80000);
	push_step(fixture, 7, 81000, 82000);
	push_flush(fixture, 90000);
	assert_int_equal(seen(fixture, 0)->gpu.all.idle_ns, 73000);
	assert_int_equal(seen(fixture, 0)->gpu.all.unattributed_ns, 69000);
	assert_int_equal(seen(fixture, 0)->gpu.all.host_wait_ns, 3000);
	assert_int_equal(seen(fixture, 0)->gpu.all.launch_ns, 1000);
	assert_int_equal(seen(fixture, 0)->gpu.all.queue_ns, 0);
	assert_int_equal(seen(fixture, 0)->gpu.bound, GPU_BOUND_UNKNOWN);
	assert_int_equal(seen(fixture, 1)->gpu.all.unattributed_ns, 0);
	assert_int_equal(seen(fixture, 1)->gpu.all.host_wait_ns, 1000);
}

static void idle_before_first_work_that_began_at_once_is_the_hosts(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 16000, 17000);
	push_work(fixture, 1, 60000, 65000);
	push_step(fixture, 7, 1000, 70000);
	push_flush(fixture, 80000);
	assert_int_equal(seen(fixture, 0)->gpu.all.unattributed_ns, 0);
	assert_int_equal(seen(fixture, 0)->gpu.all.host_wait_ns, 20000);
	assert_int_equal(seen(fixture, 0)->gpu.all.queue_ns, 43000);
}

/* Another device comes in, and its first work waits for the first device, not for hidden work. */
static void first_work_long_after_the_records_began_hides_nothing(void **state)
{
	const uint64_t late = 3000000000;
	struct fixture *fixture = *state;
	union gpu_record work = {.work = {.header = {FBT_EVENT_GPU_WORK, 0, sizeof(work.work)},
					  .tgid = 7,
					  .start_ns = late + 200000,
					  .end_ns = late + 210000,
					  .device = 1,
					  .correlation = 3}};

	push_launch(fixture, 7, 1, 2000, 3000);
	push_work(fixture, 1, 3000, 4000);
	push_step(fixture, 7, 1000, 5000);
	push_flush(fixture, 6000);
	push_launch(fixture, 7, 2, late + 50000, late + 51000);
	push_work(fixture, 2, late + 51000, late + 60000);
	push_launch(fixture, 7, 3, late + 90000, late + 91000);
	assert_int_equal(take(fixture, &work), 0);
	push_step(fixture, 7, late, late + 100000);
	push_flush(fixture, late + 300000);
	assert_int_equal(seen(fixture, 1)->gpu.all.unattributed_ns, 0);
	assert_int_equal(seen(fixture, 1)->gpu.all.host_wait_ns, 80000);
	assert_int_equal(seen(fixture, 1)->gpu.all.launch_ns, 2000);
	assert_int_equal(seen(fixture, 1)->gpu.all.queue_ns, 9000);
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
		MERGE_TEST(a_graph_that_runs_on_after_its_step_waits_for_one_more_flush),
		MERGE_TEST(an_incomplete_step_is_bound_by_nothing_that_is_known),
		MERGE_TEST(a_complete_step_is_bound_by_what_is_known),
		MERGE_TEST(idle_before_the_first_work_that_waited_is_unattributed),
		MERGE_TEST(idle_before_first_work_that_began_at_once_is_the_hosts),
		MERGE_TEST(first_work_long_after_the_records_began_hides_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
