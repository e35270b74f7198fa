/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/clock.h"
#include "stream/spin_row.h"

#define TURN_NS	 (10 * NS_PER_MS)
#define OPEN_NS	 (20 * NS_PER_MS)
#define BEGIN_NS (1000 * NS_PER_S)

/* x86-64 */
enum { NR_READ = 0, NR_YIELD = 24, NR_NANOSLEEP = 35, NR_FUTEX = 202 };

struct fixture {
	struct fbt_slot slot;
	struct spin_row row;
	uint64_t now_ns;
};

static int setup(void **state)
{
	static struct fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	fixture.now_ns = BEGIN_NS;
	fixture.slot.step_start_ns = BEGIN_NS;
	fixture.slot.state = FBT_SLOT_LIVE;
	*state = &fixture;
	return 0;
}

static void turn(struct fixture *fixture)
{
	spin_row_turn(&fixture->row, &fixture->slot, FBT_ARCH_X86_64, fixture->now_ns);
}

/* For one turn: so many calls, in which the thread is for so long. */
static void make_calls(struct fixture *fixture, uint32_t nr, uint64_t calls, uint64_t in_ns)
{
	fixture->slot.nr = nr;
	fixture->slot.sums[FBT_OTHER].calls += calls;
	fixture->slot.busy += 2 * in_ns;
	fixture->now_ns += TURN_NS;
	turn(fixture);
}

static void spin_for(struct fixture *fixture, uint64_t ns)
{
	for (uint64_t at_ns = 0; at_ns <= ns; at_ns += TURN_NS)
		make_calls(fixture, NR_YIELD, 10000, TURN_NS / 2);
}

static bool is_long(const struct fixture *fixture)
{
	return spin_row_is_long(&fixture->row, OPEN_NS, fixture->now_ns);
}

static void begin_step(struct fixture *fixture)
{
	fixture->slot.step_start_ns = ++fixture->now_ns;
	memset(fixture->slot.sums, 0, sizeof(fixture->slot.sums));
	fixture->slot.nr = NR_READ;
	turn(fixture);
}

/* So many calls, each of which lasts so long. */
static void make_long_calls(struct fixture *fixture, uint32_t nr, int calls, uint64_t ns)
{
	fixture->slot.nr = nr;
	for (int i = 0; i < calls; i++) {
		fixture->slot.sums[FBT_OTHER].calls++;
		fixture->slot.busy += 2 * ns;
		fixture->now_ns += ns;
		turn(fixture);
	}
}

static void others_may_have_the_cpu_for_long_where_a_thread_yields(void **state)
{
	struct fixture *fixture = *state;

	make_long_calls(fixture, NR_YIELD, 5, 25 * NS_PER_MS);
	assert_true(is_long(fixture));
	begin_step(fixture);
	make_long_calls(fixture, NR_NANOSLEEP, 5, 25 * NS_PER_MS);
	assert_false(is_long(fixture));
}

static void yields_are_a_row_once_they_last(void **state)
{
	struct fixture *fixture = *state;

	turn(fixture);
	spin_for(fixture, 10 * NS_PER_MS);
	assert_false(is_long(fixture));
	make_calls(fixture, NR_YIELD, 10000, TURN_NS / 2);
	assert_true(is_long(fixture));
	assert_int_equal(fixture->row.start_ns, BEGIN_NS + TURN_NS);
}

static void naps_are_a_row_though_some_last_for_a_turn(void **state)
{
	struct fixture *fixture = *state;

	make_calls(fixture, NR_NANOSLEEP, 5, TURN_NS);
	make_calls(fixture, NR_NANOSLEEP, 5, TURN_NS);
	fixture->slot.start_ns = fixture->now_ns + NS_PER_MS;
	fixture->slot.busy -= 2 * fixture->slot.start_ns - 1;
	fixture->now_ns += TURN_NS;
	turn(fixture);
	assert_true(is_long(fixture));
}

static void a_long_call_is_none(void **state)
{
	struct fixture *fixture = *state;

	make_calls(fixture, NR_NANOSLEEP, 1, TURN_NS);
	fixture->slot.start_ns = fixture->now_ns;
	fixture->slot.busy -= 2 * fixture->slot.start_ns - 1;
	for (int i = 0; i < 10; i++) {
		fixture->now_ns += TURN_NS;
		turn(fixture);
		assert_false(is_long(fixture));
	}
}

static void work_between_the_calls_is_none(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 10; i++) {
		make_calls(fixture, NR_YIELD, 10, TURN_NS / 10);
		assert_false(is_long(fixture));
	}
}

static void work_after_the_calls_is_none(void **state)
{
	struct fixture *fixture = *state;

	spin_for(fixture, 10 * NS_PER_MS);
	for (int i = 0; i < 10; i++) {
		make_calls(fixture, NR_YIELD, 0, 0);
		assert_false(is_long(fixture));
	}
}

static void another_call_ends_the_row(void **state)
{
	struct fixture *fixture = *state;

	spin_for(fixture, 100 * NS_PER_MS);
	make_calls(fixture, NR_READ, 1, 0);
	assert_false(is_long(fixture));
}

static void a_wait_for_the_gil_is_none(void **state)
{
	struct fixture *fixture = *state;

	fixture->slot.call_gil = 1;
	for (int i = 0; i < 10; i++) {
		make_calls(fixture, NR_FUTEX, 2, TURN_NS);
		assert_false(is_long(fixture));
	}
}

static void what_is_usual_in_each_step_is_not_long(void **state)
{
	struct fixture *fixture = *state;

	turn(fixture);
	for (int i = 0; i < 50; i++) {
		spin_for(fixture, 50 * NS_PER_MS);
		begin_step(fixture);
	}
	spin_for(fixture, 70 * NS_PER_MS);
	assert_false(is_long(fixture));
	spin_for(fixture, 50 * NS_PER_MS);
	assert_true(is_long(fixture));
}

static void one_that_was_long_makes_the_next_one_no_usual_one(void **state)
{
	struct fixture *fixture = *state;

	turn(fixture);
	for (int i = 0; i < 3; i++) {
		spin_for(fixture, 500 * NS_PER_MS);
		for (int step = 0; step < 20; step++)
			begin_step(fixture);
	}
	spin_for(fixture, 20 * NS_PER_MS);
	assert_true(is_long(fixture));
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		FACT(yields_are_a_row_once_they_last),
		FACT(others_may_have_the_cpu_for_long_where_a_thread_yields),
		FACT(naps_are_a_row_though_some_last_for_a_turn),
		FACT(a_long_call_is_none),
		FACT(work_between_the_calls_is_none),
		FACT(work_after_the_calls_is_none),
		FACT(another_call_ends_the_row),
		FACT(a_wait_for_the_gil_is_none),
		FACT(what_is_usual_in_each_step_is_not_long),
		FACT(one_that_was_long_makes_the_next_one_no_usual_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
