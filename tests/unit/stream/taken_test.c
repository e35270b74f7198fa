/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "record_keeper.h"
#include "stream/taken.h"

struct fixture {
	struct record_keeper keeper;
	struct record_output output;
	struct taken_sums *sums;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->output = keeper_output(&fixture->keeper);
	fixture->sums = taken_sums__new(&fixture->output);
	assert_non_null(fixture->sums);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	taken_sums__free(fixture->sums);
	free(fixture);
	return 0;
}

/* A wait of the step that began at 1000; cpu as in fbt_taken. */
static void add(struct fixture *fixture, uint64_t waited_ns, uint32_t cpu)
{
	const struct fbt_taken taken = {.tgid = 7,
					.tid = 8,
					.start_ns = 1000,
					.waited_ns = waited_ns,
					.idle_ns = waited_ns,
					.cpu = cpu};

	taken_sums__add(fixture->sums, &taken);
}

static const struct fbt_taken *send(struct fixture *fixture)
{
	const struct fbt_step step = {.tgid = 7, .tid = 8, .start_ns = 1000};

	taken_sums__send(fixture->sums, &step);
	return kept(&fixture->keeper, fixture->keeper.count - 1, FBT_EVENT_TAKEN);
}

static void the_cpu_of_all_waits_is_told(void **state)
{
	const struct fbt_taken *taken;

	add(*state, 300000, 4);
	add(*state, 200000, 4);
	taken = send(*state);
	assert_int_equal(taken->waited_ns, 500000);
	assert_int_equal(taken->idle_ns, 500000);
	assert_int_equal(taken->cpu, 4);
}

static void a_small_part_of_the_wait_does_not_matter(void **state)
{
	add(*state, 50000, 1);
	add(*state, 900000, 4);
	add(*state, 50000, 0);
	assert_int_equal(send(*state)->cpu, 4);
}

static void of_several_cpus_none_is_told(void **state)
{
	add(*state, 850000, 4);
	add(*state, 150000, 2);
	assert_int_equal(send(*state)->cpu, 0);
}

static void a_wait_for_no_known_cpu_is_one_for_another(void **state)
{
	add(*state, 850000, 4);
	add(*state, 150000, 0);
	assert_int_equal(send(*state)->cpu, 0);
}

static void there_may_be_more_cpus_than_are_told_apart(void **state)
{
	for (uint32_t cpu = 1; cpu < 20; cpu++)
		add(*state, 1000, cpu);
	add(*state, 900000, 30);
	assert_int_equal(send(*state)->cpu, 0);
}

/* Of thread tid of the process itself, or of process tgid. */
static void add_taker(struct fixture *fixture, uint32_t tgid, uint32_t tid, uint64_t ns)
{
	const struct fbt_taken taken = {.tgid = 7,
					.tid = 8,
					.start_ns = 1000,
					.waited_ns = ns,
					.own_ns = tid ? ns : 0,
					.count = 1,
					.takers = {{.tgid = tgid, .tid = tid, .ns = ns}}};

	taken_sums__add(fixture->sums, &taken);
}

static void own_threads_leave_room_for_other_processes(void **state)
{
	const struct fbt_taken *taken;
	uint32_t own = 0;

	for (uint32_t tid = 100; tid < 130; tid++)
		add_taker(*state, 7, tid, 1000 + tid);
	for (uint32_t tgid = 9; tgid < 12; tgid++)
		add_taker(*state, tgid, 0, 500);
	taken = send(*state);
	for (uint32_t i = 0; i < taken->count; i++)
		own += taken->takers[i].tid != 0;
	assert_int_equal(own, 2);
	assert_int_equal(taken->count, 5);
	assert_int_equal(taken->other_ns, 0);
	assert_int_equal(taken->own_ns, 30 * 1000 + (100 + 129) * 15);
	assert_int_equal(taken->waited_ns, taken->own_ns + 1500);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_cpu_of_all_waits_is_told),
		TEST(a_small_part_of_the_wait_does_not_matter),
		TEST(of_several_cpus_none_is_told),
		TEST(a_wait_for_no_known_cpu_is_one_for_another),
		TEST(there_may_be_more_cpus_than_are_told_apart),
		TEST(own_threads_leave_room_for_other_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
