/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
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

/* Of other processes in one cgroup: so many with 1 ms each, and one with 20 ms. */
static void add_build(struct fixture *fixture, uint64_t cgroup_id, uint32_t count)
{
	for (uint32_t i = 0; i <= count; i++) {
		uint64_t ns = i ? 1000000 : 20000000;
		const struct fbt_taken taken = {
			.tgid = 7,
			.tid = 8,
			.start_ns = 1000,
			.waited_ns = ns,
			.count = 1,
			.takers = {{.tgid = 4000000 + i, .ns = ns, .comm = "cc1"}}};
		struct fbt_taken of = taken;

		of.takers[0].cgroup_id = cgroup_id;
		taken_sums__add(fixture->sums, &of);
	}
}

/* More than have a place each, too. */
static void processes_of_a_cgroup_without_a_name_are_others(void **state)
{
	const struct fbt_taken *taken;

	add_build(*state, UINT64_MAX, 100);
	taken = send(*state);
	assert_int_equal(taken->waited_ns, 120000000);
	assert_int_equal(taken->count, FBT_TAKERS);
	assert_int_equal(taken->takers[0].ns, 20000000);
	for (uint32_t i = 0; i < taken->count; i++) {
		assert_int_not_equal(taken->takers[i].tgid, 0);
		assert_string_equal(taken->takers[i].cgroup, "");
	}
	assert_int_equal(taken->other_ns, 100000000 - (FBT_TAKERS - 1) * 1000000);
}

/* A hog with 70 ms, and so many processes of one cgroup with 7 ms each. */
static const struct fbt_taken *send_some(struct fixture *fixture, uint64_t cgroup_id,
					 uint32_t count)
{
	for (uint32_t i = 0; i <= count; i++) {
		uint64_t ns = i ? 7000000 : 70000000;
		struct fbt_taken of = {.tgid = 7,
				       .tid = 8,
				       .start_ns = 1000,
				       .waited_ns = ns,
				       .count = 1,
				       .takers = {{.tgid = 4000000 + i, .ns = ns}}};

		of.takers[0].cgroup_id = i ? cgroup_id : 0;
		taken_sums__add(fixture->sums, &of);
	}
	return send(fixture);
}

/* Those that have a place keep it then. */
static void without_a_name_processes_are_told(void **state)
{
	const struct fbt_taken *taken = send_some(*state, UINT64_MAX, 3);

	assert_int_equal(taken->count, 4);
	assert_int_equal(taken->other_ns, 0);
	assert_int_equal(taken->takers[3].ns, 7000000);
}

/* An id must not be left where the name belongs. */
static void an_id_is_not_sent(void **state)
{
	const struct fbt_taken *taken;

	add_build(*state, 0x4141414141414141, 2);
	taken = send(*state);
	assert_int_equal(taken->count, 3);
	for (uint32_t i = 0; i < taken->count; i++)
		assert_string_equal(taken->takers[i].cgroup, "");
}

static bool make_cgroup(char *folder, size_t size, struct stat *stat_of)
{
	static const char *const mounts[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"};

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		struct statfs fs;

		if (statfs(mounts[i], &fs) || fs.f_type != CGROUP2_SUPER_MAGIC)
			continue;
		snprintf(folder, size, "%s/fbt_unit_%d", mounts[i], getpid());
		return !mkdir(folder, 0700) && !stat(folder, stat_of);
	}
	return false;
}

static void two_small_ones_are_no_group(void **state)
{
	const struct fbt_taken *taken;
	char folder[64];
	struct stat of;

	if (!make_cgroup(folder, sizeof(folder), &of))
		skip();
	taken = send_some(*state, of.st_ino, 2);
	assert_int_equal(taken->count, 3);
	assert_int_equal(taken->takers[2].ns, 7000000);
	taken = send_some(*state, of.st_ino, 3);
	rmdir(folder);
	assert_int_equal(taken->count, 2);
	assert_int_equal(taken->takers[1].tgid, 0);
	assert_int_equal(taken->takers[1].ns, 21000000);
}

static void processes_of_a_cgroup_are_told_together(void **state)
{
	const struct fbt_taken *taken;
	char folder[64], name[64];
	struct stat of;

	if (!make_cgroup(folder, sizeof(folder), &of))
		skip();
	add_build(*state, of.st_ino, 100);
	taken = send(*state);
	rmdir(folder);
	snprintf(name, sizeof(name), "/fbt_unit_%d", getpid());
	assert_int_equal(taken->count, 2);
	assert_int_equal(taken->takers[0].tgid, 0);
	assert_int_equal(taken->takers[0].ns, 100000000);
	assert_string_equal(taken->takers[0].cgroup, name);
	assert_string_equal(taken->takers[0].comm, "");
	assert_int_equal(taken->takers[1].ns, 20000000);
	assert_int_equal(taken->other_ns, 0);
}

/* A wait of thread tid of process tgid, outside of steps; a hog had all of it. */
static void add_outside(struct fixture *fixture, uint32_t tgid, uint32_t tid, uint64_t start_ns,
			uint64_t ns)
{
	const struct fbt_taken taken = {.header.flags = FBT_TAKEN_OUTSIDE,
					.tgid = tgid,
					.tid = tid,
					.start_ns = start_ns,
					.waited_ns = ns,
					.count = 1,
					.takers = {{.tgid = 99, .ns = ns, .comm = "hog"}}};

	taken_sums__add(fixture->sums, &taken);
}

/* A step of 8 ms; how many records were sent before it. */
static uint32_t send_long(struct fixture *fixture, uint32_t starved_tid)
{
	const struct fbt_step step = {.tgid = 7,
				      .tid = 8,
				      .start_ns = 10000000,
				      .end_ns = 18000000,
				      .starved_tid = starved_tid};
	uint32_t before = fixture->keeper.count;

	taken_sums__send(fixture->sums, &step);
	return fixture->keeper.count - before;
}

static void waits_of_other_threads_are_summed_up_for_each(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_taken *taken;

	add_outside(fixture, 7, 9, 11000000, 1000000);
	add_outside(fixture, 7, 10, 11000000, 2000000);
	add_outside(fixture, 7, 9, 13000000, 2000000);
	assert_int_equal(send_long(fixture, 0), 2);
	taken = kept(&fixture->keeper, 0, FBT_EVENT_TAKEN);
	assert_int_equal(taken->tid, 9);
	assert_int_equal(taken->start_ns, 10000000);
	assert_int_equal(taken->header.flags, FBT_TAKEN_OUTSIDE);
	assert_int_equal(taken->waited_ns, 3000000);
	assert_int_equal(taken->takers[0].ns, 3000000);
	taken = kept(&fixture->keeper, 1, FBT_EVENT_TAKEN);
	assert_int_equal(taken->tid, 10);
	assert_int_equal(taken->waited_ns, 2000000);
}

static void of_a_wait_only_what_is_in_the_step_counts(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_taken *taken;

	add_outside(fixture, 7, 9, 6000000, 6000000);
	add_outside(fixture, 7, 9, 17000000, 4000000);
	assert_int_equal(send_long(fixture, 0), 1);
	taken = kept(&fixture->keeper, 0, FBT_EVENT_TAKEN);
	assert_int_equal(taken->waited_ns, 3000000);
	assert_in_range(taken->takers[0].ns, 2999990, 3000000);
	/* It is still there for the next step, which another thread may be in. */
	assert_int_equal(send_long(fixture, 0), 1);
}

static void waits_before_the_step_and_of_others_do_not_count(void **state)
{
	struct fixture *fixture = *state;

	add_outside(fixture, 7, 9, 1000000, 8500000);
	add_outside(fixture, 7, 8, 11000000, 5000000);
	add_outside(fixture, 6, 5, 11000000, 5000000);
	assert_int_equal(send_long(fixture, 0), 0);
}

static void the_starved_thread_is_among_those_that_are_sent(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t tid = 20; tid < 40; tid++)
		add_outside(fixture, 7, tid, 11000000, tid == 30 ? 1000000 : 2000000 + tid);
	assert_int_equal(send_long(fixture, 30), 4);
	assert_int_equal(
		((const struct fbt_taken *)kept(&fixture->keeper, 0, FBT_EVENT_TAKEN))->tid, 30);
	assert_int_equal(
		((const struct fbt_taken *)kept(&fixture->keeper, 1, FBT_EVENT_TAKEN))->tid, 39);
}

static void short_waits_of_others_are_not_sent(void **state)
{
	add_outside(*state, 7, 9, 11000000, 400000);
	assert_int_equal(send_long(*state, 9), 0);
	/* Nor do they keep those of a thread that waited for longer. */
	add_outside(*state, 7, 10, 11000000, 2000000);
	assert_int_equal(send_long(*state, 9), 1);
}

/* The oldest give way. */
static void many_waits_take_the_places_of_others(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_taken *taken;

	for (int i = 0; i < 2000; i++)
		add_outside(fixture, 7, 9, 10000000 + (uint64_t)i * 1000, 1000);
	assert_int_equal(send_long(fixture, 0), 1);
	taken = kept(&fixture->keeper, 0, FBT_EVENT_TAKEN);
	assert_int_equal(taken->waited_ns, 512000);
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
		TEST(processes_of_a_cgroup_without_a_name_are_others),
		TEST(without_a_name_processes_are_told),
		TEST(an_id_is_not_sent),
		TEST(two_small_ones_are_no_group),
		TEST(processes_of_a_cgroup_are_told_together),
		TEST(waits_of_other_threads_are_summed_up_for_each),
		TEST(of_a_wait_only_what_is_in_the_step_counts),
		TEST(waits_before_the_step_and_of_others_do_not_count),
		TEST(the_starved_thread_is_among_those_that_are_sent),
		TEST(short_waits_of_others_are_not_sent),
		TEST(many_waits_take_the_places_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
