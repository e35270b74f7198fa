/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/clock.h"
#include "model/peer_table.h"

#define US NS_PER_US
#define MS NS_PER_MS

struct fixture {
	struct peer_table table;
	struct step step; /* of thread 7, from 1000 to 2000 */
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->step.record = (struct fbt_step){
		.tgid = 7, .tid = 7, .start_ns = 1000, .end_ns = 2000, .thread_ns = 1000};
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	step_clear(&fixture->step);
	free(fixture);
	return 0;
}

static void add(struct fixture *fixture, uint32_t tgid, uint64_t step_start_ns, uint32_t peer,
		uint64_t time_ns)
{
	const struct fbt_peer record = {
		.header.type = FBT_EVENT_PEER,
		.tgid = tgid,
		.tid = tgid,
		.step_start_ns = step_start_ns,
		.first_ns = step_start_ns + 100,
		.time_ns = time_ns,
		.peer = peer,
		.peer_tid = peer,
		.stopped_ns = time_ns - step_start_ns - 100,
	};

	peer_table_add(&fixture->table, &record);
}

static void a_step_gets_the_latest_of_each_of_its_peers(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 7, 1000, 8, 1300);
	add(fixture, 7, 1000, 9, 1300);
	add(fixture, 7, 1000, 8, 1900);
	add(fixture, 7, 500, 8, 900); /* another step of the thread */
	add(fixture, 6, 1000, 8, 1900);
	peer_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.peers.count, 2);
	assert_int_equal(fixture->step.peers.items[0].record.peer, 8);
	assert_int_equal(fixture->step.peers.items[0].record.time_ns, 1900);
	assert_int_equal(fixture->step.peers.items[1].record.peer, 9);
	assert_int_equal(fixture->step.peers.items[0].beyond.header.type, 0);
}

static void the_peer_of_a_peer_is_known_if_both_waited_at_once(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 7, 1000, 8, 1900);
	add(fixture, 8, 1050, 9, 1950);
	add(fixture, 8, 100, 10, 200);
	add(fixture, 8, 1050, 7, 1950); /* back again */
	peer_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.peers.count, 1);
	assert_int_equal(fixture->step.peers.items[0].beyond.peer, 9);
}

static void old_records_make_room(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 7, 1000, 8, 1900);
	for (uint32_t i = 0; i < PEERS_KEPT; i++)
		add(fixture, 100 + i, 1000, 9, 1900);
	peer_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.peers.count, 0);
}

/* A step of the process 8, in its kind 3: computed for a half of it, without a CPU for a quarter.
 */
static void add_own(struct fixture *fixture, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t ns = end_ns - start_ns;
	const struct step step = {.record = {.header.flags = FBT_STEP_CPU_KNOWN,
					     .tgid = 8,
					     .tid = 80,
					     .kind = 3,
					     .start_ns = start_ns,
					     .end_ns = end_ns,
					     .thread_ns = ns,
					     .cpu_ns = ns / 2,
					     .run_delay_ns = ns / 4}};

	peer_table_add_step(&fixture->table, &step, "worker");
}

static void link_to(struct fixture *fixture, uint32_t tgid, uint32_t peer)
{
	const struct fbt_peer_link link = {
		.header.type = FBT_EVENT_PEER_LINK, .tgid = tgid, .peer = peer};

	peer_table_add_link(&fixture->table, &link);
}

/* From 1 to 11 ms. */
static void make_long(struct fixture *fixture)
{
	fixture->step.record.start_ns = MS;
	fixture->step.record.end_ns = 11 * MS;
	fixture->step.record.thread_ns = 10 * MS;
	fixture->step.record.kind = 1;
}

static void a_linked_process_is_a_peer_by_its_own_step(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_peer *peer;

	make_long(fixture);
	link_to(fixture, 7, 8);
	link_to(fixture, 7, 8);
	/* Of which there is no step. */
	link_to(fixture, 7, 9);
	add_own(fixture, 2 * MS, 4 * MS);
	add_own(fixture, 4 * MS, 10 * MS);
	peer_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.peers.count, 1);
	peer = &fixture->step.peers.items[0].record;
	assert_int_equal(peer->header.type, FBT_EVENT_PEER);
	assert_int_equal(peer->header.flags, FBT_PEER_OF_STEP);
	assert_int_equal(peer->step_start_ns, MS);
	assert_int_equal(peer->peer, 8);
	assert_int_equal(peer->peer_tid, 80);
	assert_int_equal(peer->kind, 3);
	assert_int_equal(peer->kind_start_ns, 4 * MS);
	assert_int_equal(peer->first_ns, 4 * MS);
	assert_int_equal(peer->time_ns, 10 * MS);
	assert_int_equal(peer->cpu_ns, 3 * MS);
	assert_int_equal(peer->delay_ns, 1500 * US);
	assert_int_equal(peer->stopped_ns, 0);
	assert_int_equal(peer->asleep_ns, 1500 * US);
	assert_int_equal(peer->others, 0);
	assert_string_equal(peer->comm, "worker");
}

static void of_a_step_that_began_before_only_the_common_part_counts(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_peer *peer;

	make_long(fixture);
	link_to(fixture, 7, 8);
	add_own(fixture, 0, 4 * MS);
	peer_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.peers.count, 1);
	peer = &fixture->step.peers.items[0].record;
	assert_int_equal(peer->first_ns, MS);
	assert_int_equal(peer->time_ns, 4 * MS);
	assert_int_equal(peer->cpu_ns, 1500 * US);
	assert_int_equal(peer->delay_ns, 750 * US);
	assert_int_equal(peer->asleep_ns, 750 * US);
}

/* It spun on its CPU for 5 of 8 ms, and had none for 2. */
static void what_it_spun_it_did_not_compute(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_peer *peer;
	const struct step step = {.record = {.header.flags = FBT_STEP_CPU_KNOWN,
					     .tgid = 8,
					     .tid = 80,
					     .kind = 3,
					     .start_ns = 2 * MS,
					     .end_ns = 10 * MS,
					     .thread_ns = 8 * MS,
					     .cpu_ns = 6 * MS,
					     .run_delay_ns = 2 * MS},
				  .spins = {.ns = 7 * MS, .longest.nr = 24}};

	make_long(fixture);
	link_to(fixture, 7, 8);
	peer_table_add_step(&fixture->table, &step, "worker");
	peer_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.peers.count, 1);
	peer = &fixture->step.peers.items[0].record;
	assert_int_equal(peer->cpu_ns, MS);
	assert_int_equal(peer->delay_ns, 2 * MS);
	assert_int_equal(peer->asleep_ns, 5 * MS);
	assert_int_equal(peer->nr, 24);
}

static void steps_of_others_do_not_count(void **state)
{
	struct fixture *fixture = *state;

	make_long(fixture);
	/* Before it is known that 7 may wait for it. */
	add_own(fixture, 2 * MS, 10 * MS);
	link_to(fixture, 6, 8);
	add_own(fixture, 2 * MS, 10 * MS);
	peer_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.peers.count, 0);
	/* Before and after the step, and too short for a wait. */
	link_to(fixture, 7, 8);
	fixture->table.step_count = 0;
	add_own(fixture, 0, MS);
	add_own(fixture, 11 * MS, 20 * MS);
	add_own(fixture, 2 * MS, 2 * MS + 10 * US);
	peer_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.peers.count, 0);
	/* An interval is no step that waits. */
	fixture->step.record.kind = 0;
	add_own(fixture, 2 * MS, 10 * MS);
	peer_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.peers.count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_step_gets_the_latest_of_each_of_its_peers),
		TEST(the_peer_of_a_peer_is_known_if_both_waited_at_once),
		TEST(old_records_make_room),
		TEST(a_linked_process_is_a_peer_by_its_own_step),
		TEST(of_a_step_that_began_before_only_the_common_part_counts),
		TEST(what_it_spun_it_did_not_compute),
		TEST(steps_of_others_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
