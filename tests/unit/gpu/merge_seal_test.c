/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * How steps are sealed in difficult cases: ends of records, limits, records in any order.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "merge_fixture.h"
#include "gpu/merge.h"

static void push_last(struct fixture *fixture, uint64_t time_ns)
{
	union gpu_record record = {
		.flush = {.header = {FBT_EVENT_GPU_FLUSH, 0, sizeof(record.flush)},
			  .tgid = 7,
			  .last = 1,
			  .time_ns = time_ns}};

	assert_int_equal(take(fixture, &record), 0);
}

static void steps_are_figured_from_arming_on(void **state)
{
	struct fixture *fixture = *state;

	close_merger(fixture);
	open_merger(fixture, false);
	push_state(fixture, 7, FBT_GPU_ARMED, 1000);
	push_step(fixture, 7, 800, 1000);
	push_step(fixture, 7, 900, 1100);
	push_step(fixture, 7, 1000, 1200);
	push_flush(fixture, 1300);
	assert_false(seen(fixture, 0)->has_gpu);
	assert_true(seen(fixture, 1)->has_gpu);
	assert_false(seen(fixture, 1)->gpu.complete);
	assert_true(seen(fixture, 2)->gpu.complete);
}

static void the_last_flush_seals_what_it_covers(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 320, 330);
	push_class(fixture, 7, 2, 120, 130, FBT_GPU_API_MEMCPY);
	push_step(fixture, 7, 100, 200);
	push_step(fixture, 7, 300, 400);
	push_step(fixture, 7, 500, 700);
	push_last(fixture, 600);
	assert_int_equal(fixture->count, 3);
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_WATERMARK);
	assert_int_equal(seen(fixture, 1)->gpu.sealed, GPU_SEAL_ENDED);
	assert_int_equal(seen(fixture, 1)->gpu.missing, 1);
	assert_int_equal(seen(fixture, 2)->gpu.sealed, GPU_SEAL_ENDED);
	assert_false(seen(fixture, 2)->gpu.complete);
	/* Records have ended for good, whatever comes afterwards. */
	push_flush(fixture, 610);
	push_step(fixture, 7, 500, 550);
	push_step(fixture, 7, 800, 900);
	assert_int_equal(seen(fixture, 3)->gpu.sealed, GPU_SEAL_WATERMARK);
	assert_int_equal(seen(fixture, 4)->gpu.sealed, GPU_SEAL_ENDED);
}

static void the_end_of_a_process_seals_its_steps(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 120, 130);
	push_work(fixture, 1, 140, 150);
	push_step(fixture, 7, 100, 200);
	push_state(fixture, 7, FBT_GPU_EXITED, 300);
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_ENDED);
	assert_string_equal(seen(fixture, 0)->works, "1");
	assert_int_equal(seen(fixture, 0)->gpu.joined, 1);
	/* One step that had begun before the exit, and one that began after it. */
	push_step(fixture, 7, 250, 310);
	push_step(fixture, 7, 320, 330);
	assert_int_equal(fixture->count, 3);
	assert_int_equal(seen(fixture, 1)->gpu.sealed, GPU_SEAL_ENDED);
	assert_false(seen(fixture, 2)->has_gpu);
	assert_int_equal(counts(fixture)->timeouts, 2);
}

static void records_end_when_that_was_said_first(void **state)
{
	struct fixture *fixture = *state;

	push_state(fixture, 7, FBT_GPU_ENDED, 300);
	push_state(fixture, 7, FBT_GPU_EXITED, 500);
	push_step(fixture, 7, 250, 310);
	push_step(fixture, 7, 320, 330);
	assert_true(seen(fixture, 0)->has_gpu);
	assert_false(seen(fixture, 1)->has_gpu);
}

/*
 * CUPTI may hold a buffer while the GPU has work. Then time_ns stands still, and sent_ns must
 * count.
 */
static void a_flush_that_passes_nothing_still_tells_the_time(void **state)
{
	struct fixture *fixture = *state;
	union gpu_record record = {
		.flush = {.header = {FBT_EVENT_GPU_FLUSH, 0, sizeof(record.flush)},
			  .tgid = 7,
			  .time_ns = 50,
			  .sent_ns = 60 + TIMEOUT - 1}};

	push_step(fixture, 7, 20, 60);
	assert_int_equal(take(fixture, &record), 0);
	assert_int_equal(fixture->count, 0);
	record.flush.sent_ns++;
	assert_int_equal(take(fixture, &record), 0);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_TIMEOUT);
	assert_false(seen(fixture, 0)->gpu.complete);
}

static void a_process_that_is_armed_again_has_flushes_to_wait_for(void **state)
{
	struct fixture *fixture = *state;

	push_last(fixture, 100);
	push_state(fixture, 7, FBT_GPU_ENDED, 110);
	push_state(fixture, 7, FBT_GPU_ARMED, 200);
	push_step(fixture, 7, 220, 230);
	assert_int_equal(fixture->count, 0);
	push_flush(fixture, 230);
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_WATERMARK);
}

static void the_end_of_the_window_seals_the_rest(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 120, 130);
	push_work(fixture, 1, 140, 150);
	push_work(fixture, 5, 940, 950);
	push_step(fixture, 7, 100, 200);
	push_step(fixture, 7, 300, 400);
	push_step_of(fixture, 8, 8, 1, 300, 400);
	finish(fixture);
	assert_string_equal(fixture->order, "s1 b1 s2 s3 b0");
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_WINDOW_END);
	assert_false(seen(fixture, 0)->gpu.complete);
	assert_string_equal(fixture->left, "5");
}

/* A second flush that the step might have waited for will not come. */
static void at_the_end_a_flush_that_covers_a_step_is_enough(void **state)
{
	struct fixture *fixture = *state;

	push_class(fixture, 7, 1, 120, 130, FBT_GPU_API_MEMCPY);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 200);
	assert_int_equal(fixture->count, 0);
	finish(fixture);
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_WATERMARK);
	assert_true(seen(fixture, 0)->gpu.complete);
}

/* Launches that make a graph have no work. Nobody waits for it, nor is it missing. */
static void launches_that_are_captured_are_not_awaited(void **state)
{
	struct fixture *fixture = *state;

	push_class(fixture, 7, 1, 110, 111, FBT_GPU_API_CAPTURE);
	push_launch(fixture, 7, 2, 120, 130);
	push_launch(fixture, 7, 3, 130, 140);
	push_class(fixture, 7, 4, 141, 142, FBT_GPU_API_CAPTURE_END);
	push_launch(fixture, 7, 5, 150, 160);
	push_work(fixture, 5, 170, 180);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 210);
	push_flush(fixture, 220);
	assert_int_equal(fixture->count, 1);
	assert_true(seen(fixture, 0)->gpu.complete);
	assert_int_equal(seen(fixture, 0)->gpu.missing, 0);
	/* After the capture, and on another thread, they are. */
	push_class(fixture, 7, 6, 310, 311, FBT_GPU_API_CAPTURE);
	push_launch(fixture, 8, 7, 320, 330);
	push_class(fixture, 7, 8, 331, 332, FBT_GPU_API_CAPTURE_END);
	push_launch(fixture, 7, 9, 340, 350);
	push_step(fixture, 7, 300, 400);
	push_flush(fixture, 410);
	push_flush(fixture, 420);
	assert_int_equal(fixture->count, 1);
	push_work(fixture, 7, 360, 370);
	push_work(fixture, 9, 370, 380);
	push_flush(fixture, 430);
	assert_int_equal(fixture->count, 2);
}

/* A flush covered the step, but the launched work has not come. */
static void at_the_end_a_launch_without_work_is_not_covered(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 120, 130);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 210);
	assert_int_equal(fixture->count, 0);
	finish(fixture);
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_WINDOW_END);
	assert_int_equal(seen(fixture, 0)->gpu.missing, 1);
}

static void late_nodes_of_a_graph_are_no_work_outside_of_steps(void **state)
{
	struct fixture *fixture = *state;

	push_class(fixture, 7, 1, 120, 130, FBT_GPU_API_GRAPH);
	push_work(fixture, 1, 140, 150);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 210);
	assert_int_equal(fixture->count, 1);
	push_work(fixture, 1, 150, 160);
	push_flush(fixture, 220);
	push_step(fixture, 7, 300, 400);
	push_flush(fixture, 410);
	assert_int_equal(fixture->count, 1);
	finish(fixture);
	assert_string_equal(fixture->left, "1");
	assert_int_equal(counts(fixture)->outside, 0);
	assert_int_equal(counts(fixture)->joined, 2);
}

/* The work may come much later, and must find its call until the time-out. */
static void a_launch_outside_of_steps_is_kept_until_its_work_comes(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 20, 1, 20, 30);
	push_launch(fixture, 20, 2, 40, 50);
	for (uint64_t i = 1; i <= 3; i++) {
		push_step(fixture, 7, i * 1000, i * 1000 + 100);
		push_flush(fixture, i * 1000 + 100);
	}
	assert_string_equal(fixture->left_apis, "");
	push_work(fixture, 1, 3150, 3160);
	push_step(fixture, 7, 3200, 3300);
	push_flush(fixture, 3300);
	push_flush(fixture, 3400);
	assert_int_equal(counts(fixture)->joined, 1);
	assert_string_equal(fixture->left_apis, "1");
	push_flush(fixture, 50 + TIMEOUT);
	assert_string_equal(fixture->left_apis, "1 2");
}

/* Once a buffer came out of order, steps wait for more than one flush. */
static void what_comes_late_makes_steps_wait_longer(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 120, 130);
	push_work(fixture, 1, 140, 150);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 210);
	assert_int_equal(fixture->count, 1);
	push_launch(fixture, 7, 2, 160, 170);
	push_work(fixture, 2, 180, 190);
	push_flush(fixture, 220);
	push_step(fixture, 7, 300, 400);
	/* A flush that does not cover the step does not count. */
	push_flush(fixture, 350);
	push_flush(fixture, 410);
	assert_int_equal(fixture->count, 1);
	push_flush(fixture, 420);
	assert_int_equal(fixture->count, 2);
	assert_int_equal(seen(fixture, 1)->gpu.sealed, GPU_SEAL_WATERMARK);
	/* The time-out still applies. */
	push_step(fixture, 7, 500, 600);
	push_flush(fixture, 600 + TIMEOUT);
	assert_int_equal(fixture->count, 3);
	assert_int_equal(seen(fixture, 2)->gpu.sealed, GPU_SEAL_WATERMARK);
	finish(fixture);
	assert_string_equal(fixture->left, "2");
}

static void whatever_comes_late_eight_flushes_are_enough(void **state)
{
	struct fixture *fixture = *state;
	uint64_t time_ns = 100;

	for (uint32_t round = 1; round <= 9; round++) {
		push_class(fixture, 7, round, time_ns + 1, time_ns + 2, FBT_GPU_API_GRAPH);
		push_work(fixture, round, time_ns + 3, time_ns + 4);
		push_step(fixture, 7, time_ns, time_ns + 10);
		for (uint64_t i = 1; i <= 8 && fixture->count < round; i++)
			push_flush(fixture, time_ns + 10 + i);
		assert_int_equal(fixture->count, round);
		push_work(fixture, round, time_ns + 5, time_ns + 6);
		push_flush(fixture, time_ns + 20);
		time_ns += 100;
	}
	push_step(fixture, 7, time_ns, time_ns + 10);
	for (uint64_t i = 1; i <= 7; i++)
		push_flush(fixture, time_ns + 10 + i);
	assert_int_equal(fixture->count, 9);
	push_flush(fixture, time_ns + 18);
	assert_int_equal(fixture->count, 10);
}

/* Late records of a step that timed out do not show that buffers come out of order. */
static void what_comes_after_a_time_out_makes_no_step_wait_longer(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 120, 130);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 200 + TIMEOUT);
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_TIMEOUT);
	push_work(fixture, 1, 140, 150);
	push_launch(fixture, 7, 2, 160, 170);
	push_flush(fixture, 300 + TIMEOUT);
	push_step(fixture, 7, 400 + TIMEOUT, 500 + TIMEOUT);
	push_flush(fixture, 500 + TIMEOUT);
	assert_int_equal(fixture->count, 2);
	assert_true(seen(fixture, 1)->gpu.complete);
}

/* A thread without a step so far may have been within its first step all the time. */
static void a_step_from_before_what_was_given_away_is_not_complete(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 20, 1, 10, 20);
	push_work(fixture, 1, 30, 40);
	push_step(fixture, 7, 100, 200);
	push_flush(fixture, 210);
	push_flush(fixture, 220);
	assert_string_equal(fixture->left, "1");
	push_step(fixture, 8, 35, 300);
	push_step(fixture, 9, 45, 300);
	push_flush(fixture, 310);
	assert_false(seen(fixture, 1)->gpu.complete);
	assert_true(seen(fixture, 2)->gpu.complete);
}

static void nothing_leaves_that_a_step_under_way_may_have(void **state)
{
	struct fixture *fixture = *state;

	push_step(fixture, 8, 10, 50);
	push_launch(fixture, 8, 1, 60, 70);
	push_work(fixture, 1, 80, 90);
	for (uint64_t i = 1; i < 20; i++) {
		push_step(fixture, 7, i * 100, i * 100 + 50);
		push_flush(fixture, i * 100 + 60);
	}
	assert_string_equal(fixture->left, "");
	push_step(fixture, 8, 55, 2000);
	push_flush(fixture, 2010);
	assert_string_equal(seen(fixture, 20)->works, "1");
	assert_true(seen(fixture, 20)->gpu.complete);
}

static void steps_after_one_that_waits_are_bounded(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 120, 130);
	push_step(fixture, 7, 100, 200);
	for (int i = 1; i < MERGE_STEPS_MAX; i++)
		assert_int_equal(push_step_of(fixture, 8, 8, 1, 300, 400), 0);
	assert_int_equal(fixture->count, 0);
	fixture->is_quiet = true;
	assert_int_equal(push_step_of(fixture, 8, 8, 1, 300, 400), 0);
	/* All of them were waiting for the first one. */
	assert_int_equal(fixture->count, MERGE_STEPS_MAX + 1);
	assert_int_equal(counts(fixture)->timeouts, 1);
}

static void the_oldest_step_makes_room_for_more(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 120, 130);
	for (int i = 0; i <= MERGE_STEPS_MAX; i++)
		push_step(fixture, 7, 100 + i * 10, 109 + i * 10);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_ROOM);
	assert_false(seen(fixture, 0)->gpu.complete);
}

static void calls_of_held_steps_are_bounded(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 120, 130);
	for (uint64_t i = 0; i < MERGE_CALLS_MAX / 65536 + 1; i++) {
		struct step step = {.number = i + 1,
				    .record = {.tgid = 7,
					       .tid = 7,
					       .kind = 1,
					       .start_ns = 100 * (i + 1),
					       .end_ns = 100 * (i + 1) + 50}};

		step.calls.items = calloc(65536, sizeof(struct fbt_call));
		step.calls.count = step.calls.capacity = 65536;
		assert_int_equal(merger__push_step(fixture->merger, fixture->window, &step), 0);
		assert_null(step.calls.items);
	}
	assert_int_equal(fixture->count, 1);
	assert_int_equal(seen(fixture, 0)->calls, 65536);
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_ROOM);
}

/* A step that has ended is sealed with its records before any of them is passed on. */
static void the_oldest_steps_are_sealed_to_make_room_for_records(void **state)
{
	struct fixture *fixture = *state;

	push_launch(fixture, 7, 1, 120, 130);
	push_work(fixture, 0, 150, 160);
	push_step(fixture, 7, 100, 200);
	push_launch(fixture, 7, 2, 2000010, 2000020);
	push_step(fixture, 7, 2000000, 3000000);
	for (uint64_t i = 1; i <= MERGE_RECORDS_MAX - 3; i++)
		push_work(fixture, 0, 1000 + i, 1001 + i);
	assert_int_equal(fixture->count, 0);
	fixture->is_quiet = true;
	push_work(fixture, 0, 500, 600);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(fixture->given, 1 + 1 + MERGE_RECORDS_MAX - 3);
	fixture->is_quiet = false;
	push_work(fixture, 2, 2000030, 2000040);
	push_flush(fixture, 3000000);
	assert_int_equal(counts(fixture)->timeouts, 1);
	assert_int_equal(fixture->count, 2);
	assert_string_equal(seen(fixture, 1)->works, "2");
	assert_true(seen(fixture, 1)->gpu.complete);
}

/*
 * The thread's next step may take long to end, so steps that have ended keep their records first.
 */
static void what_is_kept_for_a_thread_with_rare_steps_leaves_before_a_step_is_sealed(void **state)
{
	struct fixture *fixture = *state;

	push_step(fixture, 8, 50, 60);
	push_step(fixture, 7, 60, 70);
	push_flush(fixture, 80);
	for (uint64_t i = 1; i <= MERGE_RECORDS_MAX - 2; i++)
		push_work(fixture, 0, 1000 + i, 1001 + i);
	push_launch(fixture, 7, 1, 2000010, 2000020);
	push_step(fixture, 7, 2000000, 3000000);
	assert_int_equal(fixture->count, 2);
	fixture->is_quiet = true;
	push_work(fixture, 1, 2000030, 2000040);
	push_work(fixture, 0, 2000050, 2000060);
	assert_int_equal(fixture->count, 2);
	fixture->is_quiet = false;
	push_flush(fixture, 3000000);
	assert_int_equal(fixture->count, 3);
	assert_int_equal(counts(fixture)->timeouts, 0);
	assert_true(seen(fixture, 2)->gpu.complete);
	fixture->is_quiet = true;
}

static uint64_t figures_of(const struct fixture *fixture)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < fixture->count; i++) {
		const struct step_gpu *gpu = &seen(fixture, i)->gpu;
		const uint64_t figures[] = {gpu->sealed,
					    gpu->complete,
					    gpu->all.busy_ns,
					    gpu->all.host_wait_ns,
					    gpu->all.launch_ns,
					    gpu->all.queue_ns,
					    gpu->all.unattributed_ns,
					    gpu->all.kernels,
					    gpu->all.graph_nodes,
					    gpu->all.view_start_ns,
					    gpu->all.view_end_ns,
					    gpu->all.view_busy_ns,
					    gpu->all.launch_latency_ns,
					    gpu->joined,
					    gpu->by_time,
					    gpu->unmeasured,
					    gpu->missing,
					    gpu->violations,
					    gpu->sync_ns,
					    gpu->records.works.count,
					    gpu->records.apis.count};

		for (size_t j = 0; j < sizeof(figures) / sizeof(figures[0]); j++)
			hash = (hash ^ figures[j]) * UINT64_C(0x100000001b3) + 1;
	}
	return hash;
}

/*
 * Two threads with steps, a helper thread, a graph, nested calls, a correlation id that wraps, and
 * work without a call.
 */
static void list_scenario(struct fixture *fixture)
{
	struct fbt_gpu_api driver = launch(7, 2, 305, 345);

	fixture->is_listing = true;
	driver.header.flags = FBT_GPU_API_DRIVER;
	push_launch(fixture, 7, 1, 200, 250);
	push_launch(fixture, 7, 2, 300, 350);
	push_api(fixture, driver);
	push_class(fixture, 8, 3, 400, 440, FBT_GPU_API_GRAPH);
	push_launch(fixture, 20, 4, 500, 520);
	push_launch(fixture, 7, 1, 1300, 1310);
	push_class(fixture, 7, 6, 1400, 1800, FBT_GPU_API_SYNC);
	push_class(fixture, 8, 7, 450, 460, FBT_GPU_API_MEMCPY);
	push_launch(fixture, 20, 8, 5000, 5010);
	push_work(fixture, 1, 260, 310);
	push_work(fixture, 2, 380, 390);
	for (uint64_t i = 0; i < 40; i++)
		push_work(fixture, 3, 450 + i * 10, 457 + i * 10);
	push_work(fixture, 4, 900, 1250);
	push_work(fixture, 1, 1320, 1700);
	push_work(fixture, 7, 860, 870);
	push_work(fixture, 0, 1350, 1360);
	push_work(fixture, 99, 610, 640);
	push_work(fixture, 8, 5020, 5030);
	fixture->is_listing = false;
}

static void shuffle(struct fixture *fixture, uint32_t seed)
{
	for (size_t i = fixture->list_count - 1; i; i--) {
		size_t other;
		union gpu_record kept = fixture->list[i];

		seed = seed * 1664525 + 1013904223;
		other = (seed >> 8) % (i + 1);
		fixture->list[i] = fixture->list[other];
		fixture->list[other] = kept;
	}
}

static uint64_t play_shuffled(uint32_t seed, struct gpu_counts *kept, struct seen *first)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	uint64_t hash;

	assert_non_null(fixture);
	open_merger(fixture, false);
	push_state(fixture, 7, FBT_GPU_ARMED, 1);
	list_scenario(fixture);
	if (seed)
		shuffle(fixture, seed);
	for (size_t i = 0; i < fixture->list_count; i++) {
		/* The steps come in their order, at places that depend on the seed. */
		if (i == seed % 20)
			push_step(fixture, 7, 100, 1100);
		if (i == 20 + seed % 10)
			push_step(fixture, 8, 350, 1150);
		if (i == 30 + seed % 5)
			push_step(fixture, 7, 1200, 2000);
		assert_int_equal(take(fixture, &fixture->list[i]), 0);
	}
	push_flush(fixture, 6000);
	assert_int_equal(fixture->count, 3);
	hash = figures_of(fixture);
	*first = fixture->steps[0];
	finish(fixture);
	assert_int_equal(fixture->given, fixture->list_count);
	*kept = *counts(fixture);
	close_merger(fixture);
	free(fixture);
	return hash;
}

static void figures_do_not_depend_on_the_order_of_records(void **state)
{
	struct gpu_counts counts, shuffled;
	struct seen first;
	uint64_t expected = play_shuffled(0, &counts, &first);

	assert_string_equal(first.works, "1 2");
	assert_true(first.gpu.complete);
	assert_int_equal(counts.joined, 46);
	assert_int_equal(counts.unjoined, 1);
	assert_int_equal(counts.outside, 1);
	for (uint32_t seed = 1; seed <= 500; seed++) {
		assert_int_equal(play_shuffled(seed, &shuffled, &first), expected);
		assert_memory_equal(&shuffled, &counts, sizeof(counts));
	}
}

static void errors_of_the_receivers_are_passed_up_and_all_goes_on(void **state)
{
	struct fixture *fixture = *state;

	push_work(fixture, 0, 150, 160);
	push_step(fixture, 7, 100, 200);
	push_step(fixture, 7, 300, 400);
	fixture->step_result = -EIO;
	fixture->gpu_result = -ENOSPC;
	assert_int_equal(merger__flush(fixture->merger, fixture->window), -EIO);
	assert_string_equal(fixture->order, "s1 b1 s2");
}

/*
 * One correlation id for a million records, and times from the far past and future. None of it may
 * take long.
 */
static void made_up_records_are_taken_in_their_stride(void **state)
{
	struct fixture *fixture = *state;

	fixture->is_quiet = true;
	for (uint64_t i = 0; i < 300000; i++) {
		struct fbt_gpu_api api = launch(7, 5, i % 2 ? 1 : UINT64_MAX - i, UINT64_MAX);
		struct fbt_gpu_work work = {.header = {FBT_EVENT_GPU_WORK, 0, sizeof(work)},
					    .tgid = 7,
					    .correlation = 5,
					    .start_ns = i % 3 ? i : UINT64_MAX - i,
					    .end_ns = UINT64_MAX};

		merger__push_gpu(fixture->merger, fixture->window, &api.header);
		merger__push_gpu(fixture->merger, fixture->window, &work.header);
		if (i % 1000 == 0)
			push_flush(fixture, i);
	}
	push_step(fixture, 7, 1, 100000);
	push_flush(fixture, UINT64_MAX);
	finish(fixture);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(fixture->given, 600000);
}

/*
 * A shim that never flushes, or says that it did so at no time. The bound is that of the merger: a
 * step that ends so much later.
 */
static void a_process_that_never_flushes_does_not_hold_back_the_others(void **state)
{
	const uint64_t bound_ns = TIMEOUT + MERGE_SILENCE_NS;
	struct fixture *fixture = *state;

	push_flush(fixture, 10);
	push_step(fixture, 7, 20, 60);
	push_step(fixture, 7, 70, 90);
	assert_int_equal(push_step_of(fixture, 8, 8, 1, 30, 60 + bound_ns), 0);
	assert_int_equal(fixture->count, 0);
	assert_int_equal(push_step_of(fixture, 8, 8, 1, 30, 61 + bound_ns), 0);
	assert_string_equal(fixture->order, "s1");
	assert_int_equal(seen(fixture, 0)->gpu.sealed, GPU_SEAL_TIMEOUT);
	assert_false(seen(fixture, 0)->gpu.complete);
	assert_int_equal(push_step_of(fixture, 8, 8, 1, 30, 91 + bound_ns), 0);
	assert_string_equal(fixture->order, "s1 s2 s3 s4 s5");
	assert_int_equal(counts(fixture)->timeouts, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MERGE_TEST(launches_that_are_captured_are_not_awaited),
		MERGE_TEST(steps_are_figured_from_arming_on),
		MERGE_TEST(the_last_flush_seals_what_it_covers),
		MERGE_TEST(the_end_of_a_process_seals_its_steps),
		MERGE_TEST(a_process_that_is_armed_again_has_flushes_to_wait_for),
		MERGE_TEST(records_end_when_that_was_said_first),
		MERGE_TEST(the_end_of_the_window_seals_the_rest),
		MERGE_TEST(at_the_end_a_launch_without_work_is_not_covered),
		MERGE_TEST(at_the_end_a_flush_that_covers_a_step_is_enough),
		MERGE_TEST(late_nodes_of_a_graph_are_no_work_outside_of_steps),
		MERGE_TEST(a_launch_outside_of_steps_is_kept_until_its_work_comes),
		MERGE_TEST(what_comes_late_makes_steps_wait_longer),
		MERGE_TEST(whatever_comes_late_eight_flushes_are_enough),
		MERGE_TEST(what_comes_after_a_time_out_makes_no_step_wait_longer),
		MERGE_TEST(a_step_from_before_what_was_given_away_is_not_complete),
		MERGE_TEST(nothing_leaves_that_a_step_under_way_may_have),
		MERGE_TEST(steps_after_one_that_waits_are_bounded),
		MERGE_TEST(the_oldest_step_makes_room_for_more),
		MERGE_TEST(calls_of_held_steps_are_bounded),
		MERGE_TEST(a_flush_that_passes_nothing_still_tells_the_time),
		MERGE_TEST(the_oldest_steps_are_sealed_to_make_room_for_records),
		MERGE_TEST(
			what_is_kept_for_a_thread_with_rare_steps_leaves_before_a_step_is_sealed),
		cmocka_unit_test(figures_do_not_depend_on_the_order_of_records),
		MERGE_TEST(errors_of_the_receivers_are_passed_up_and_all_goes_on),
		MERGE_TEST(made_up_records_are_taken_in_their_stride),
		MERGE_TEST(a_process_that_never_flushes_does_not_hold_back_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
