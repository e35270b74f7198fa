/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which API call launched which work. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "merge_fixture.h"
#include "gpu/join.h"

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
	/*
	 * Host wait 100..200 and 300..400. Launch 200..250 and queue 250..260 are those of the
	 * runtime call.
	 */
	assert_int_equal(seen(fixture, 0)->gpu.all.launch_ns, 50);
	assert_int_equal(seen(fixture, 0)->gpu.all.queue_ns, 10);
	assert_int_equal(counts(fixture)->joined, 1);
}

/* The runtime call began before the step, so the launch did too. */
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
	/* The same correlation id, long before. */
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

/* The work has already been looked up at each of these flushes, without finding its call. */
static void work_that_comes_flushes_before_its_call_finds_it(void **state)
{
	struct fixture *fixture = *state;

	push_work(fixture, 1, 160, 170);
	push_flush(fixture, 40);
	push_flush(fixture, 50);
	assert_int_equal(counts(fixture)->unjoined, 1);
	push_launch(fixture, 7, 1, 110, 120);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 210);
	assert_int_equal(seen(fixture, 0)->gpu.joined, 1);
	assert_int_equal(seen(fixture, 0)->gpu.by_time, 0);
	assert_int_equal(counts(fixture)->unjoined, 0);
	assert_true(seen(fixture, 0)->gpu.complete);
}

static void work_of_a_call_that_has_left_finds_none(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 20, 1, 20, 30);
	push_step(fixture, 7, 1000, 1100);
	push_flush(fixture, 1100);
	push_flush(fixture, 30 + TIMEOUT);
	push_flush(fixture, 40 + TIMEOUT);
	assert_string_equal(fixture->left_apis, "1");
	push_work(fixture, 1, 50 + TIMEOUT, 60 + TIMEOUT);
	push_flush(fixture, 70 + TIMEOUT);
	assert_int_equal(counts(fixture)->joined, 0);
	assert_int_equal(counts(fixture)->unjoined, 1);
}

/* The tool decides which calls are nested. Otherwise a process could hide its launches. */
static void a_call_is_not_nested_because_it_says_so(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_gpu_api api = launch(7, 1, 120, 130);

	api.header.flags = FBT_GPU_API_NESTED;
	push_api(fixture, api);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 210);
	assert_int_equal(fixture->count, 0);
	push_work(fixture, 1, 140, 150);
	push_flush(fixture, 220);
	assert_string_equal(seen(fixture, 0)->apis, "1");
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

/* Until the call has come, the step of work without times is unknown. */
static void work_without_times_is_kept_until_its_call_can_have_come(void **state)
{
	struct fixture *fixture = *state;

	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 300);
	push_work(fixture, 1, 0, 0);
	push_flush(fixture, 305);
	push_flush(fixture, 310);
	push_launch(fixture, 7, 1, 320, 330);
	push_step(fixture, 7, 315, 400);
	push_flush(fixture, 500);
	assert_string_equal(fixture->left, "");
	assert_string_equal(seen(fixture, 1)->works, "1");
	assert_int_equal(seen(fixture, 1)->gpu.unmeasured, 1);
	assert_false(seen(fixture, 1)->gpu.complete);
}

static void work_without_times_is_not_before_its_call(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 120, 130);
	push_work(fixture, 1, 0, 0);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 210);
	assert_int_equal(counts(fixture)->joined, 1);
	assert_int_equal(counts(fixture)->violations, 0);
}

static void work_of_a_call_without_times_goes_by_its_own(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 0, 0);
	push_work(fixture, 1, 150, 160);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 210);
	assert_string_equal(seen(fixture, 0)->works, "1");
	assert_int_equal(seen(fixture, 0)->gpu.by_time, 1);
	assert_true(seen(fixture, 0)->gpu.complete);
}

/* Of CUPTI before 13.1 U1, where it was used before: the copy has the number of the graph. */
static void work_of_a_graph_is_not_given_to_a_call_that_launches_none(void **state)
{
	struct fixture *fixture = *state;
	union gpu_record node = {.work = {.header = {FBT_EVENT_GPU_WORK, 0, 104},
					  .tgid = 7,
					  .start_ns = 150,
					  .end_ns = 160,
					  .stream = 7,
					  .graph_node = 51,
					  .correlation = 1}};

	push_class(fixture, 7, 1, 110, 120, FBT_GPU_API_MEMCPY);
	push_work(fixture, 1, 125, 130);
	assert_int_equal(take(fixture, &node), 0);
	push_class(fixture, 7, 2, 170, 180, FBT_GPU_API_GRAPH);
	node.work.correlation = 2;
	node.work.start_ns = 185;
	node.work.end_ns = 190;
	assert_int_equal(take(fixture, &node), 0);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 210);
	assert_int_equal(counts(fixture)->misnumbered, 1);
	assert_int_equal(counts(fixture)->unjoined, 1);
	assert_int_equal(counts(fixture)->joined, 2);
	assert_int_equal(seen(fixture, 0)->gpu.by_time, 1);
	assert_int_equal(seen(fixture, 0)->gpu.joined, 2);
	assert_int_equal(seen(fixture, 0)->gpu.all.busy_ns, 20);
}

/* gpu_join without a merger around it. */
struct joined {
	struct gpu_join *join;
	struct gpu_counts counts;
};

static void add_call(struct joined *joined, uint32_t correlation, uint64_t start_ns,
		     uint64_t end_ns)
{
	struct fbt_gpu_api api = launch(7, correlation, start_ns, end_ns);

	assert_int_equal(gpu_join__add(joined->join, &api.header, &joined->counts), 0);
}

/* The call that was reported as late; NULL if there was none. */
static const struct join_record *add_work(struct joined *joined, uint32_t correlation,
					  uint64_t start_ns)
{
	struct fbt_gpu_work work = {.header = {FBT_EVENT_GPU_WORK, 0, sizeof(work)},
				    .tgid = 7,
				    .start_ns = start_ns,
				    .end_ns = start_ns + 5,
				    .correlation = correlation};
	const struct join_record *late;

	assert_int_equal(gpu_join__add(joined->join, &work.header, &joined->counts), 0);
	assert_int_equal(gpu_join__resolve(joined->join, 0, &joined->counts, &late), 0);
	return late;
}

static uint64_t start_of(const struct join_record *call)
{
	return call ? call->api.start_ns : 0;
}

static void a_call_is_found_by_its_id_and_a_time(void **state)
{
	struct joined joined = {.join = gpu_join__new()};

	(void)state;
	assert_non_null(joined.join);
	add_call(&joined, 1, 300, 310);
	add_call(&joined, 1, 100, 110);
	assert_int_equal(start_of(gpu_join__find_call(joined.join, 1, 105)), 100);
	assert_int_equal(start_of(gpu_join__find_call(joined.join, 1, 299)), 100);
	assert_int_equal(start_of(gpu_join__find_call(joined.join, 1, 300)), 300);
	assert_null(gpu_join__find_call(joined.join, 2, 105));
	assert_null(gpu_join__find_call(joined.join, 0, 105));
	gpu_join__free(joined.join);
}

static void work_of_a_call_that_a_step_has_is_late(void **state)
{
	struct joined joined = {.join = gpu_join__new()};
	struct gpu_timeline_cursor cursor;
	struct join_record *call;

	(void)state;
	assert_non_null(joined.join);
	add_call(&joined, 1, 100, 110);
	assert_null(add_work(&joined, 1, 120));
	cursor = gpu_join__overlapping(joined.join, JOIN_CALL, 0, 200);
	call = join_next(&cursor);
	assert_null(join_next(&cursor));
	assert_true(gpu_join__has_news(joined.join, call));
	call->step = 3;
	gpu_join__flush(joined.join, 200);
	assert_false(gpu_join__has_news(joined.join, call));
	assert_ptr_equal(add_work(&joined, 1, 130), call);
	assert_true(gpu_join__has_news(joined.join, call));
	assert_null(add_work(&joined, 2, 140));
	assert_int_equal(joined.counts.joined, 2);
	assert_int_equal(joined.counts.unjoined, 1);
	gpu_join__free(joined.join);
}

static void a_launch_that_waits_for_its_work_is_dropped_later(void **state)
{
	struct joined joined = {.join = gpu_join__new()};
	struct gpu_records left = {0};

	(void)state;
	assert_non_null(joined.join);
	add_call(&joined, 1, 100, 110);
	assert_null(add_work(&joined, 9, 112));
	assert_int_equal(gpu_join__drop_until(joined.join, 150, 109, &joined.counts, &left), 0);
	assert_int_equal(gpu_join__count(joined.join), 1);
	assert_int_equal(left.works.count, 1);
	assert_int_equal(joined.counts.outside, 1);
	assert_int_equal(gpu_join__drop_until(joined.join, 150, 110, &joined.counts, &left), 0);
	assert_int_equal(gpu_join__count(joined.join), 0);
	assert_int_equal(left.apis.count, 1);
	/* The last record to end is the work, at 117. */
	assert_true(gpu_join__lost_since(joined.join, 116));
	assert_false(gpu_join__lost_since(joined.join, 117));
	gpu_records_free(&left);
	gpu_join__free(joined.join);
}

static void kernels_without_a_name_are_counted(void **state)
{
	struct gpu_join *join = gpu_join__new();
	struct fbt_gpu_work work = {.header = {FBT_EVENT_GPU_WORK, 0, sizeof(work)},
				    .tgid = 7,
				    .start_ns = 10,
				    .end_ns = 20,
				    .kind = FBT_GPU_KERNEL};
	struct gpu_counts counts = {0};

	(void)state;
	assert_non_null(join);
	assert_int_equal(gpu_join__add(join, &work.header, &counts), 0);
	work.name = 3;
	assert_int_equal(gpu_join__add(join, &work.header, &counts), 0);
	work.name = 0;
	work.kind = FBT_GPU_MEMSET;
	assert_int_equal(gpu_join__add(join, &work.header, &counts), 0);
	assert_int_equal(counts.unnamed, 1);
	assert_int_equal(counts.kernels, 2);
	gpu_join__free(join);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_found_by_its_id_and_a_time),
		cmocka_unit_test(work_of_a_call_that_a_step_has_is_late),
		cmocka_unit_test(a_launch_that_waits_for_its_work_is_dropped_later),
		cmocka_unit_test(kernels_without_a_name_are_counted),
		MERGE_TEST(a_driver_call_stands_back_for_the_runtime_call_around_it),
		MERGE_TEST(a_nested_call_is_where_the_one_around_it_is),
		MERGE_TEST(a_driver_call_of_its_own_launches),
		MERGE_TEST(of_ids_that_wrap_the_latest_call_before_the_work_wins),
		MERGE_TEST(work_before_its_call_is_a_violation_beyond_the_clock_error),
		MERGE_TEST(work_that_comes_flushes_before_its_call_finds_it),
		MERGE_TEST(work_of_a_call_that_has_left_finds_none),
		MERGE_TEST(a_call_is_not_nested_because_it_says_so),
		MERGE_TEST(work_without_times_is_counted_and_passed_on),
		MERGE_TEST(work_without_times_is_kept_until_its_call_can_have_come),
		MERGE_TEST(work_without_times_is_not_before_its_call),
		MERGE_TEST(work_of_a_call_without_times_goes_by_its_own),
		MERGE_TEST(work_of_a_graph_is_not_given_to_a_call_that_launches_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
