/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/clock.h"
#include "fbt_shared.h"
#include "stream/call_limits.h"

#define MS 1000000ull

enum { KIND = 3, OTHER_KIND = 4, FUTEX = 202, READ = 0, TID = 7 };

struct fixture {
	uint64_t table[FBT_KIND_COUNT * FBT_LIMITS];
	struct call_limits *limits;
	uint64_t now_ns;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->limits = call_limits__new(fixture->table);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	call_limits__free(fixture->limits);
	free(fixture);
	return 0;
}

static uint64_t limit_ns(const struct fixture *fixture, uint32_t kind, uint32_t nr)
{
	return fixture->table[kind * FBT_LIMITS + nr] << FBT_LIMIT_SHIFT;
}

static void add_call(struct fixture *fixture, uint32_t tid, uint64_t start_ns, uint64_t ns)
{
	call_limits__add_call(fixture->limits, tid, FUTEX, start_ns, ns);
}

/* One step, 2 ms after the last one, with such a call at its begin; 0: without. */
static void make_step(struct fixture *fixture, uint32_t tid, uint64_t ns)
{
	uint64_t start_ns = fixture->now_ns + 2 * MS;

	if (ns)
		add_call(fixture, tid, start_ns, ns);
	fixture->now_ns = start_ns + (ns < 1000000 * MS ? ns : 0);
	call_limits__add_step(fixture->limits, tid, KIND, start_ns, fixture->now_ns);
}

static void make_steps(struct fixture *fixture, int count, uint64_t ns)
{
	for (int i = 0; i < count; i++)
		make_step(fixture, TID, ns);
}

static void a_usual_call_may_take_twice_as_long(void **state)
{
	struct fixture *fixture = *state;

	make_steps(fixture, 20, 10 * MS);
	assert_in_range(limit_ns(fixture, KIND, FUTEX), 20 * MS, 30 * MS);
	assert_int_equal(limit_ns(fixture, KIND, READ), 0);
	assert_int_equal(limit_ns(fixture, OTHER_KIND, FUTEX), 0);
}

static void a_rare_call_has_the_least_limit(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 10; i++) {
		make_steps(fixture, 9, 0);
		make_steps(fixture, 1, 100 * MS);
	}
	assert_int_equal(limit_ns(fixture, KIND, FUTEX), 0);
}

static void the_longest_call_of_a_step_counts(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 20; i++) {
		uint64_t start_ns = fixture->now_ns;

		add_call(fixture, TID, start_ns, MS);
		add_call(fixture, TID, start_ns + MS, 10 * MS);
		add_call(fixture, TID, start_ns + 11 * MS, MS);
		fixture->now_ns += 12 * MS;
		call_limits__add_step(fixture->limits, TID, KIND, start_ns, fixture->now_ns);
	}
	assert_in_range(limit_ns(fixture, KIND, FUTEX), 20 * MS, 30 * MS);
}

/* As when the calls and the steps of some milliseconds are read together. */
static void each_step_has_its_own_calls(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t begin = 0; begin < 20; begin += 4) {
		for (uint64_t i = begin; i < begin + 4; i++) {
			add_call(fixture, TID, i * 100 * MS, 10 * MS);
			add_call(fixture, TID, i * 100 * MS + 20 * MS, 5 * MS);
		}
		for (uint64_t i = begin; i < begin + 4; i++)
			call_limits__add_step(fixture->limits, TID, KIND, i * 100 * MS,
					      i * 100 * MS + 50 * MS);
		assert_in_range(limit_ns(fixture, KIND, FUTEX), 20 * MS, 30 * MS);
	}
}

static void a_call_of_a_later_step_is_none_of_this_one(void **state)
{
	struct fixture *fixture = *state;

	add_call(fixture, TID, 100 * MS, 50 * MS);
	call_limits__add_step(fixture->limits, TID, KIND, 0, 50 * MS);
	assert_int_equal(limit_ns(fixture, KIND, FUTEX), 0);
	/* Nor is one of an earlier step, which was lost. */
	call_limits__add_step(fixture->limits, TID, KIND, 200 * MS, 250 * MS);
	assert_int_equal(limit_ns(fixture, KIND, FUTEX), 0);
}

static void what_was_usual_in_the_first_steps_is_so_no_longer_without_such_calls(void **state)
{
	struct fixture *fixture = *state;

	make_steps(fixture, 1, 300 * MS);
	assert_in_range(limit_ns(fixture, KIND, FUTEX), 600 * MS, 900 * MS);
	make_steps(fixture, 1, 0);
	assert_int_equal(limit_ns(fixture, KIND, FUTEX), 0);
}

static void a_step_may_have_more_calls_than_there_is_room_for(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 0; i < 5000; i++)
		add_call(fixture, TID, i * 20 * MS, i == 2500 ? 10 * MS : MS);
	call_limits__add_step(fixture->limits, TID, KIND, 0, 100000 * MS);
	assert_in_range(limit_ns(fixture, KIND, FUTEX), 20 * MS, 30 * MS);
}

/* As with hundreds of threads in steps that do not end. */
static void calls_that_find_no_room_cost_little(void **state)
{
	struct fixture *fixture = *state;
	uint64_t begin_ns, ns;

	for (uint32_t tid = 1; tid <= 1100; tid++)
		add_call(fixture, tid, MS, MS);
	begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (uint32_t i = 0; i < 20000; i++)
		add_call(fixture, 1 + i % 1100, 2 * MS, 10 * MS);
	ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns;
	assert_in_range(ns, 0, 500 * MS);
	/* Those that had room have kept the longest call, and others get the room of one that ends.
	 */
	for (int i = 0; i < 20; i++) {
		call_limits__add_step(fixture->limits, 1, KIND, 0, 100 * MS);
		add_call(fixture, 1, 2 * MS, 10 * MS);
	}
	assert_in_range(limit_ns(fixture, KIND, FUTEX), 20 * MS, 30 * MS);
}

static void calls_of_another_thread_are_of_another_step(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 20; i++) {
		add_call(fixture, TID + 1, fixture->now_ns + 2 * MS, 50 * MS);
		make_steps(fixture, 1, 0);
	}
	assert_int_equal(limit_ns(fixture, KIND, FUTEX), 0);
	/* It has ended: its calls are of no step. */
	call_limits__forget(fixture->limits, TID + 1);
	call_limits__add_step(fixture->limits, TID + 1, KIND, 0, fixture->now_ns);
	for (int i = 0; i < 30; i++)
		make_step(fixture, TID + 1, 0);
	assert_int_equal(limit_ns(fixture, KIND, FUTEX), 0);
}

static void what_was_usual_is_forgotten(void **state)
{
	struct fixture *fixture = *state;

	make_steps(fixture, 500, 100 * MS);
	make_steps(fixture, 3000, 0);
	assert_int_equal(limit_ns(fixture, KIND, FUTEX), 0);
	make_steps(fixture, 1000, 4 * MS);
	assert_in_range(limit_ns(fixture, KIND, FUTEX), 8 * MS, 12 * MS);
}

static void add_sum(struct fixture *fixture, enum fbt_category category, uint64_t ns)
{
	struct fbt_sum sums[FBT_CATEGORY_COUNT] = {0};

	sums[category] = (struct fbt_sum){.calls = 100, .ns = ns};
	make_step(fixture, TID, 0);
	call_limits__add_sums(fixture->limits, KIND, sums);
}

static void short_calls_have_a_limit_together(void **state)
{
	struct fixture *fixture = *state;
	const uint32_t memory = FBT_NR_COUNT + FBT_MMAP;

	for (int i = 0; i < 20; i++)
		add_sum(fixture, FBT_MMAP, 10 * MS);
	assert_in_range(limit_ns(fixture, KIND, memory), 20 * MS, 30 * MS);
	assert_int_equal(limit_ns(fixture, KIND, FBT_NR_COUNT + FBT_FUTEX), 0);
	assert_int_equal(limit_ns(fixture, OTHER_KIND, memory), 0);
	/* Now they are rare. */
	for (int i = 0; i < 30; i++)
		add_sum(fixture, FBT_MMAP, FBT_LONG_NS - 1);
	assert_int_equal(limit_ns(fixture, KIND, memory), 0);
	call_limits__add_sums(fixture->limits, UINT32_MAX, (struct fbt_sum[FBT_CATEGORY_COUNT]){0});
}

static void figures_at_the_ends_stay_in_the_table(void **state)
{
	struct fixture *fixture = *state;

	make_steps(fixture, 20, UINT64_MAX);
	assert_in_range(limit_ns(fixture, KIND, FUTEX), 60000 * MS, UINT64_MAX);
	call_limits__add_call(fixture->limits, TID, UINT32_MAX, 0, MS);
	call_limits__add_step(fixture->limits, TID, UINT32_MAX, 0, MS);
	call_limits__add_step(fixture->limits, TID, KIND, 0, MS);
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FACT(a_usual_call_may_take_twice_as_long),
		FACT(a_rare_call_has_the_least_limit),
		FACT(the_longest_call_of_a_step_counts),
		FACT(each_step_has_its_own_calls),
		FACT(a_call_of_a_later_step_is_none_of_this_one),
		FACT(what_was_usual_in_the_first_steps_is_so_no_longer_without_such_calls),
		FACT(a_step_may_have_more_calls_than_there_is_room_for),
		FACT(calls_that_find_no_room_cost_little),
		FACT(calls_of_another_thread_are_of_another_step),
		FACT(what_was_usual_is_forgotten),
		FACT(short_calls_have_a_limit_together),
		FACT(figures_at_the_ends_stay_in_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
