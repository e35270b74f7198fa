/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Rows of calls that come to nothing are one wait. */
#include "judged_fixture.h"

#include <errno.h>
#include "model/spins.h"

struct fixture {
	struct window *window;
	struct step step; /* of 1 s */
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = new_window();
	fixture->step = make_step(S);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	free_step(&fixture->step);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

/* Adds calls of ns with so much code before each of them. */
static void add_calls(struct fixture *fixture, const char *name, int count, uint64_t ns,
		      uint64_t between_ns)
{
	for (int i = 0; i < count; i++) {
		uint64_t start_ns = end_of_calls(&fixture->step) + between_ns;

		add_call(&fixture->step, name, ns)->start_ns = start_ns;
	}
}

static void add_run(struct fixture *fixture, uint32_t calls, uint64_t calls_ns, uint64_t ns)
{
	struct fbt_call *call = add_call(&fixture->step, "sched_yield", ns);

	call->header.flags = FBT_CALL_RUN;
	call->run = (struct fbt_run){calls, (uint32_t)(calls_ns / calls), calls_ns};
}

static const struct step_spins *find(struct fixture *fixture)
{
	spins_find(fixture->window, &fixture->step);
	return &fixture->step.spins;
}

static void a_row_is_one_wait_with_the_code_between(void **state)
{
	struct fixture *fixture = *state;
	const struct step_spins *spins;

	add_calls(fixture, "read", 2, 10 * US, 0);
	add_calls(fixture, "sched_yield", 100, 2 * US, 3 * US);
	add_calls(fixture, "write", 1, 10 * US, 0);
	spins = find(fixture);
	assert_int_equal(spins->waits, 1);
	assert_int_equal(spins->calls, 100);
	assert_int_equal(spins->ns, 100 * 2 * US + 99 * 3 * US);
	assert_int_equal(spins->longest.calls_ns, 200 * US);
	assert_int_equal(spins->longest.first, 2);
	assert_int_equal(spins->longest.end, 102);
	assert_int_equal(spins->longest.nr, nr_of("sched_yield"));
	assert_false(spins->partial);
}

static void records_of_several_calls_are_counted_by_call(void **state)
{
	struct fixture *fixture = *state;
	const struct step_spins *spins;

	add_calls(fixture, "sched_yield", 1, US, 0);
	add_run(fixture, 4000, 8 * MS, 16 * MS);
	add_run(fixture, 500, MS, 2 * MS);
	spins = find(fixture);
	assert_int_equal(spins->waits, 1);
	assert_int_equal(spins->calls, 4501);
	assert_int_equal(spins->ns, 18 * MS + US);
	assert_int_equal(spins->longest.calls_ns, 9 * MS + US);
	assert_int_equal(step_recorded_calls(&fixture->step), 4501);
}

static void other_calls_and_long_code_end_a_row(void **state)
{
	struct fixture *fixture = *state;

	add_calls(fixture, "sched_yield", 50, 4 * US, US);
	add_calls(fixture, "write", 1, US, 0);
	add_calls(fixture, "sched_yield", 50, 4 * US, US);
	assert_int_equal(find(fixture)->waits, 2);
	add_calls(fixture, "sched_yield", 1, 4 * US, 2 * MS);
	assert_int_equal(find(fixture)->waits, 2);
	assert_int_equal(find(fixture)->calls, 100);
}

static void work_with_a_call_now_and_then_is_no_wait(void **state)
{
	struct fixture *fixture = *state;

	add_calls(fixture, "sched_yield", 100, US, 15 * US);
	assert_int_equal(find(fixture)->waits, 0);
}

static void an_interrupt_does_not_end_a_long_row(void **state)
{
	struct fixture *fixture = *state;

	add_calls(fixture, "sched_yield", 1000, 2 * US, US);
	add_calls(fixture, "sched_yield", 1, 2 * US, 200 * US);
	add_calls(fixture, "sched_yield", 1000, 2 * US, US);
	assert_int_equal(find(fixture)->waits, 1);
	assert_int_equal(find(fixture)->calls, 2001);
}

static void time_without_a_cpu_does_not_end_a_row(void **state)
{
	struct fixture *fixture = *state;

	add_calls(fixture, "sched_yield", 50, 2 * US, US);
	add_calls(fixture, "sched_yield", 50, 2 * US, US);
	fixture->step.calls.items[50].start_ns += 0;
	for (size_t i = 50; i < 100; i++)
		fixture->step.calls.items[i].start_ns += 8 * MS;
	assert_int_equal(find(fixture)->waits, 2);
	fixture->step.record.run_delay_ns = 9 * MS;
	assert_int_equal(find(fixture)->waits, 1);
	assert_int_equal(find(fixture)->longest.delay_ns, 8 * MS + US);
}

static void only_what_came_to_nothing_is_a_wait(void **state)
{
	struct fixture *fixture = *state;

	add_calls(fixture, "epoll_wait", 60, 2 * US, US);
	assert_int_equal(find(fixture)->waits, 1);
	for (size_t i = 0; i < 60; i++)
		fixture->step.calls.items[i].ret = 1;
	assert_int_equal(find(fixture)->waits, 0);
	add_calls(fixture, "clock_nanosleep", 5, 40 * MS, US);
	assert_int_equal(find(fixture)->waits, 0);
	add_calls(fixture, "clock_nanosleep", 5, 200 * US, 90 * US);
	assert_int_equal(find(fixture)->waits, 1);
}

static void a_futex_is_waited_for_at_one_address(void **state)
{
	struct fixture *fixture = *state;

	add_calls(fixture, "futex", 40, 10 * MS, 5 * US);
	for (size_t i = 0; i < 40; i++) {
		fixture->step.calls.items[i].ret = -ETIMEDOUT;
		fixture->step.calls.items[i].args[0] = i < 20 ? 0x1000 : 0x2000;
	}
	assert_int_equal(find(fixture)->waits, 2);
	assert_int_equal(find(fixture)->longest.calls, 20);
	fixture->step.calls.items[10].ret = 0;
	assert_int_equal(find(fixture)->waits, 3);
	/* A wake, with the same numbers. */
	for (size_t i = 0; i < 40; i++)
		fixture->step.calls.items[i].args[1] = 1;
	assert_int_equal(find(fixture)->waits, 0);
}

static void waits_for_the_gil_are_none(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_python python = {.tgid = 7, .gil_start = 0x1000, .gil_end = 0x1100};

	add_calls(fixture, "futex", 10, 5 * MS, US);
	for (size_t i = 0; i < 10; i++) {
		fixture->step.calls.items[i].ret = -ETIMEDOUT;
		fixture->step.calls.items[i].args[0] = 0x1040;
	}
	assert_int_equal(find(fixture)->waits, 1);
	assert_int_equal(window__set_python(fixture->window, &python, "python3"), 0);
	assert_int_equal(find(fixture)->waits, 0);
}

static void lost_records_count_as_far_as_the_sums_have_them(void **state)
{
	struct fixture *fixture = *state;
	const struct step_spins *spins;

	add_calls(fixture, "sched_yield", 50, 2 * US, US);
	add_calls(fixture, "sched_yield", 50, 2 * US, US);
	for (size_t i = 50; i < 100; i++)
		fixture->step.calls.items[i].start_ns += 30 * MS;
	assert_int_equal(find(fixture)->waits, 2);
	fixture->step.record.lost_calls = 5000;
	/* Not one of the lost ones is known to be such a call. */
	assert_int_equal(find(fixture)->waits, 2);
	fixture->step.record.sums[FBT_OTHER].ns += 20 * MS;
	spins = find(fixture);
	assert_int_equal(spins->waits, 1);
	assert_true(spins->partial);
	assert_int_equal(spins->calls, 100);
	assert_int_equal(spins->ns, 100 * 2 * US + 98 * US + 20 * MS);
}

static void an_interval_has_no_rows(void **state)
{
	struct fixture *fixture = *state;

	add_calls(fixture, "sched_yield", 100, 2 * US, US);
	fixture->step.record.kind = 0;
	assert_int_equal(find(fixture)->waits, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_row_is_one_wait_with_the_code_between),
		TEST(records_of_several_calls_are_counted_by_call),
		TEST(other_calls_and_long_code_end_a_row),
		TEST(work_with_a_call_now_and_then_is_no_wait),
		TEST(an_interrupt_does_not_end_a_long_row),
		TEST(time_without_a_cpu_does_not_end_a_row),
		TEST(only_what_came_to_nothing_is_a_wait),
		TEST(a_futex_is_waited_for_at_one_address),
		TEST(waits_for_the_gil_are_none),
		TEST(lost_records_count_as_far_as_the_sums_have_them),
		TEST(an_interval_has_no_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
