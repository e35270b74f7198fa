/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "fbt_shared.h"
#include "stream/call_limits.h"

#define MS 1000000ull

enum { KIND = 3, OTHER_KIND = 4, FUTEX = 202, READ = 0, TID = 7 };

struct fixture {
	uint64_t table[FBT_KIND_COUNT * FBT_NR_COUNT];
	struct call_limits *limits;
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
	return fixture->table[kind * FBT_NR_COUNT + nr] << FBT_LIMIT_SHIFT;
}

/* Steps with one call each; 0: without. */
static void make_steps(struct fixture *fixture, int count, uint64_t ns)
{
	for (int i = 0; i < count; i++) {
		if (ns)
			call_limits__add_call(fixture->limits, TID, FUTEX, ns);
		call_limits__add_step(fixture->limits, TID, KIND);
	}
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
		call_limits__add_call(fixture->limits, TID, FUTEX, MS);
		call_limits__add_call(fixture->limits, TID, FUTEX, 10 * MS);
		make_steps(fixture, 1, MS);
	}
	assert_in_range(limit_ns(fixture, KIND, FUTEX), 20 * MS, 30 * MS);
}

static void calls_of_another_thread_are_of_another_step(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 20; i++) {
		call_limits__add_call(fixture->limits, TID + 1, FUTEX, 50 * MS);
		make_steps(fixture, 1, 0);
	}
	assert_int_equal(limit_ns(fixture, KIND, FUTEX), 0);
	/* It has ended: its calls are of no step. */
	call_limits__forget(fixture->limits, TID + 1);
	for (int i = 0; i < 30; i++)
		call_limits__add_step(fixture->limits, TID + 1, KIND);
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

static void figures_at_the_ends_stay_in_the_table(void **state)
{
	struct fixture *fixture = *state;

	make_steps(fixture, 20, UINT64_MAX);
	assert_in_range(limit_ns(fixture, KIND, FUTEX), 60000 * MS, UINT64_MAX);
	call_limits__add_call(fixture->limits, TID, UINT32_MAX, MS);
	call_limits__add_step(fixture->limits, TID, UINT32_MAX);
	call_limits__add_step(fixture->limits, TID, KIND);
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FACT(a_usual_call_may_take_twice_as_long),
		FACT(a_rare_call_has_the_least_limit),
		FACT(the_longest_call_of_a_step_counts),
		FACT(calls_of_another_thread_are_of_another_step),
		FACT(what_was_usual_is_forgotten),
		FACT(figures_at_the_ends_stay_in_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
