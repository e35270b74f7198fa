/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "model/peer_table.h"

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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_step_gets_the_latest_of_each_of_its_peers),
		TEST(the_peer_of_a_peer_is_known_if_both_waited_at_once),
		TEST(old_records_make_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
