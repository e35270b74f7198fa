/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "model/stop_table.h"

enum { STEP = 7, WORKER = 8, OTHER = 9 };

struct fixture {
	struct stop_table table;
	struct step step; /* from 1000 to 2000 */
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->step.record = (struct fbt_step){
		.tgid = 7, .tid = STEP, .start_ns = 1000, .end_ns = 2000, .thread_ns = 1000};
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	vec_free(&fixture->step.wakes);
	free(fixture);
	return 0;
}

static void add(struct fixture *fixture, uint32_t tid, uint64_t time_ns, uint64_t stopped_ns)
{
	const struct fbt_stop stop = {.header.type = FBT_EVENT_STOP,
				      .tgid = 7,
				      .tid = tid,
				      .time_ns = time_ns,
				      .stopped_ns = stopped_ns};

	stop_table_add(&fixture->table, &stop);
}

/* Adds a wait from 1200 to 1800 for a thread that was off its CPU for off_ns. */
static struct fbt_wake *add_wake(struct fixture *fixture, uint32_t waker, uint64_t off_ns)
{
	const struct fbt_wake wake = {.tgid = 7,
				      .tid = STEP,
				      .start_ns = 1200,
				      .wake_ns = 1800,
				      .off_ns = off_ns,
				      .waker_tid = waker};

	assert_int_equal(vec_push(&fixture->step.wakes, wake), 0);
	return &fixture->step.wakes.items[fixture->step.wakes.count - 1];
}

static void of_several_looks_at_a_step_the_latest_counts(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, STEP, 1500, 300);
	add(fixture, STEP, 1400, 200);
	add(fixture, OTHER, 1600, 400);
	add(fixture, STEP, 999, 500);
	add(fixture, STEP, 2001, 600);
	stop_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.stop.stopped_ns, 300);
}

static void a_step_that_nobody_stopped_has_no_stop(void **state)
{
	const struct fbt_stop stranger = {.header.type = FBT_EVENT_STOP,
					  .tgid = 8,
					  .tid = OTHER,
					  .time_ns = 1600,
					  .stopped_ns = 400};
	struct fixture *fixture = *state;

	stop_table_add(&fixture->table, &stranger);
	add(fixture, OTHER, 999, 400);
	add(fixture, OTHER, 2001, 400);
	add_wake(fixture, WORKER, 300);
	stop_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.stop.header.type, 0);
	assert_int_equal(fixture->step.wakes.items[0].off_ns, 300);
	assert_int_equal(fixture->step.wakes.items[0].stopped_ns, 0);
}

/* No call of the step waited for it, but the step may have spun. */
static void a_step_has_the_longest_stop_beside_it(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, OTHER, 1500, 300);
	add(fixture, OTHER, 1600, 400);
	add(fixture, WORKER, 1700, 200);
	add_wake(fixture, WORKER, 0);
	stop_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.stop.tid, OTHER);
	assert_int_equal(fixture->step.stop.stopped_ns, 400);
	assert_int_equal(fixture->step.wakes.items[0].stopped_ns, 0);
}

/* From 1100 on, by its parts: the record has only its last call. */
static void a_wait_of_several_calls_has_the_stops_of_all_of_them(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = add_wake(fixture, WORKER, 700);

	wake->flags = FBT_WAKE_ROW;
	add(fixture, WORKER, 1099, 500);
	add(fixture, WORKER, 1150, 400);
	stop_table_join(&fixture->table, &fixture->step);
	assert_int_equal(wake->stopped_ns, 400);
	assert_int_equal(wake->off_ns, 300);
}

static void a_worker_was_stopped_as_far_as_it_was_off_its_cpu(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_wake *wakes;

	add_wake(fixture, WORKER, 300);
	add_wake(fixture, OTHER, 300);
	add_wake(fixture, WORKER, 0);
	add(fixture, WORKER, 1700, 1000);
	add(fixture, OTHER, 1500, 100);
	stop_table_join(&fixture->table, &fixture->step);
	wakes = fixture->step.wakes.items;
	assert_int_equal(wakes[0].stopped_ns, 300);
	assert_int_equal(wakes[0].off_ns, 0);
	assert_int_equal(wakes[1].stopped_ns, 100);
	assert_int_equal(wakes[1].off_ns, 200);
	assert_int_equal(wakes[2].stopped_ns, 0);
	/* The longest stop is reported. */
	assert_int_equal(fixture->step.stop.tid, WORKER);
}

static void the_steps_own_stop_comes_first(void **state)
{
	struct fixture *fixture = *state;

	add_wake(fixture, WORKER, 300);
	add(fixture, WORKER, 1700, 1000);
	add(fixture, STEP, 1900, 50);
	stop_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.stop.tid, STEP);
	assert_int_equal(fixture->step.wakes.items[0].stopped_ns, 300);
}

static void the_oldest_stops_are_forgotten(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, STEP, 1500, 300);
	for (int i = 1; i < STOPS_KEPT; i++)
		add(fixture, OTHER, 1500, 300);
	stop_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.stop.tid, STEP);
	fixture->step.stop = (struct fbt_stop){0};
	add(fixture, OTHER, 1500, 300);
	stop_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.stop.tid, OTHER);
}

/* A gap of 500 before the step, of which the thread was so long off its CPU. */
static void make_gap(struct fixture *fixture, uint64_t off_ns)
{
	fixture->step.record.gap_ns = 500;
	fixture->step.gap = (struct step_gap){.known = true, .off_ns = off_ns};
}

static void a_gap_has_the_stop_that_was_seen_in_it(void **state)
{
	struct fixture *fixture = *state;

	make_gap(fixture, 400);
	add(fixture, STEP, 499, 90);
	add(fixture, STEP, 800, 300);
	stop_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.stop.header.type, 0);
	assert_int_equal(fixture->step.gap.stop.tid, STEP);
	assert_int_equal(fixture->step.gap.stopped_ns, 300);
	assert_int_equal(fixture->step.gap.off_ns, 100);
}

static void a_gap_was_stopped_as_far_as_its_thread_was_off_its_cpu(void **state)
{
	struct fixture *fixture = *state;

	make_gap(fixture, 100);
	add(fixture, STEP, 800, 300);
	add(fixture, STEP, 1500, 200);
	stop_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.gap.stopped_ns, 100);
	assert_int_equal(fixture->step.gap.off_ns, 0);
	assert_int_equal(fixture->step.stop.stopped_ns, 200);
}

static void add_sender(struct fixture *fixture, uint32_t tgid, uint64_t time_ns, uint32_t sender)
{
	const struct fbt_stop_sender record = {.header.type = FBT_EVENT_STOP_SENDER,
					       .tgid = tgid,
					       .time_ns = time_ns,
					       .number = 19,
					       .sender = sender};

	stop_table_add_sender(&fixture->table, &record);
}

static void the_signal_before_it_was_seen_stopped_is_the_one(void **state)
{
	struct fixture *fixture = *state;
	struct step *step = &fixture->step;

	add_sender(fixture, 7, 1100, 1);
	add_sender(fixture, 7, 1400, 2);
	add_sender(fixture, 7, 1600, 3);
	add_sender(fixture, 8, 1450, 4);
	add(fixture, STEP, 1500, 300);
	stop_table_join(&fixture->table, step);
	step->stop.reason = FBT_STOP_TRACER;
	stop_table_join_senders(&fixture->table, step);
	assert_int_equal(step->stop_sender.header.type, 0);
	step->stop.reason = FBT_STOP_SIGNAL;
	stop_table_join_senders(&fixture->table, step);
	assert_int_equal(step->stop_sender.sender, 2);
	assert_int_equal(step->gap.sender.header.type, 0);
	assert_int_equal(stop_table_sender(&fixture->table, 9, 5000).header.type, 0);
}

static void a_peer_has_the_sender_of_its_own_stop(void **state)
{
	struct fixture *fixture = *state;
	struct step_peer peer = {.record = {.header.type = FBT_EVENT_PEER,
					    .peer = 8,
					    .time_ns = 1500,
					    .stopped_ns = 100}};

	add_sender(fixture, 7, 1400, 2);
	add_sender(fixture, 8, 1300, 4);
	peer.beyond = peer.record;
	peer.beyond.stopped_ns = 0;
	assert_int_equal(vec_push(&fixture->step.peers, peer), 0);
	stop_table_join_senders(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.peers.items[0].sender.sender, 4);
	assert_int_equal(fixture->step.peers.items[0].beyond_sender.header.type, 0);
	vec_free(&fixture->step.peers);
}

int main(void)
{

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(of_several_looks_at_a_step_the_latest_counts),
		TEST(a_step_that_nobody_stopped_has_no_stop),
		TEST(a_step_has_the_longest_stop_beside_it),
		TEST(a_wait_of_several_calls_has_the_stops_of_all_of_them),
		TEST(a_worker_was_stopped_as_far_as_it_was_off_its_cpu),
		TEST(the_steps_own_stop_comes_first),
		TEST(the_oldest_stops_are_forgotten),
		TEST(a_gap_has_the_stop_that_was_seen_in_it),
		TEST(a_gap_was_stopped_as_far_as_its_thread_was_off_its_cpu),
		TEST(the_signal_before_it_was_seen_stopped_is_the_one),
		TEST(a_peer_has_the_sender_of_its_own_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
