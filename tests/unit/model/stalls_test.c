/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/stalls.h"

struct fixture {
	struct window *window;
	struct fbt_stalls next;
	struct step step; /* 1000 ns long, half of it in futex */
};

static void set_python(struct fixture *fixture, uint64_t time_ns, enum fbt_collector collector)
{
	const struct fbt_python python = {.tgid = 7,
					  .minor = 11,
					  .time_ns = time_ns,
					  .gil_start = 0x1000,
					  .gil_end = 0x2000,
					  .collector = collector};

	assert_int_equal(window__set_python(fixture->window, &python, "/usr/bin/python3.11"), 0);
}

static int setup(void **state)
{
	static struct fixture fixture;
	static const char *const strings[WINDOW_STRINGS] = {"tag", "1", "6.1", "host"};
	const struct fbt_window window = {.arch = FBT_ARCH_X86_64};

	fixture = (struct fixture){.window = window__new()};
	assert_non_null(fixture.window);
	assert_int_equal(window__open(fixture.window, &window, strings), 0);
	fixture.step.record = (struct fbt_step){.tgid = 7,
						.tid = 8,
						.kind = 1,
						.start_ns = 5000,
						.end_ns = 6000,
						.thread_ns = 1000,
						.cpu_ns = 500};
	fixture.step.record.header.flags = FBT_STEP_CPU_KNOWN;
	fixture.step.record.asleep_ns = 500;
	fixture.step.record.sums[FBT_FUTEX] = (struct fbt_sum){.ns = 500, .calls = 2};
	fixture.next = (struct fbt_stalls){.tgid = 7,
					   .tid = 8,
					   .start_ns = 5000,
					   .gil_ns = 400,
					   .gil_waits = 2,
					   .gc_ns = 300,
					   .gc_own_ns = 200,
					   .gc_longest_ns = 300,
					   .gc_count = 1,
					   .gc_generation = 2};
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	window__free(((struct fixture *)*state)->window);
	return 0;
}

static uint64_t gil_of(const struct step *step)
{
	struct step_parts parts;

	step_split(step, &parts);
	return step_gil_ns(step, &parts);
}

static uint64_t gc_of(const struct step *step)
{
	struct step_parts parts;

	step_split(step, &parts);
	return step_gc_ns(step, &parts);
}

static void stalls_are_those_of_the_step_that_follows(void **state)
{
	struct fixture *fixture = *state;

	set_python(fixture, 5000, FBT_COLLECTOR_USDT);
	stalls_join(fixture->window, &fixture->next, &fixture->step);
	assert_true(fixture->step.stalls.gil_known && fixture->step.stalls.gc_known);
	assert_int_equal(gil_of(&fixture->step), 400);
	assert_int_equal(gc_of(&fixture->step), 200);
	assert_int_equal(fixture->step.stalls.record.gc_generation, 2);
	/* The next process must be unaffected. */
	stalls_join(fixture->window, &fixture->next, &fixture->step);
	assert_true(fixture->step.stalls.gil_known && fixture->step.stalls.gc_known);
	assert_int_equal(gil_of(&fixture->step), 0);
	assert_int_equal(gc_of(&fixture->step), 0);
	assert_int_equal(fixture->step.stalls.record.gc_count, 0);
}

static void stalls_of_another_step_are_not_taken(void **state)
{
	struct fixture *fixture = *state;

	set_python(fixture, 0, FBT_COLLECTOR_USDT);
	fixture->next.start_ns++;
	stalls_join(fixture->window, &fixture->next, &fixture->step);
	assert_int_equal(gil_of(&fixture->step), 0);
	assert_int_equal(fixture->next.tgid, 0);
}

static void what_was_not_measured_from_its_begin_on_is_not_known(void **state)
{
	struct fixture *fixture = *state;

	set_python(fixture, 5001, FBT_COLLECTOR_USDT);
	stalls_join(fixture->window, &fixture->next, &fixture->step);
	assert_false(fixture->step.stalls.gil_known || fixture->step.stalls.gc_known);
	assert_int_equal(gil_of(&fixture->step), 0);
	assert_int_equal(gc_of(&fixture->step), 0);
}

static void without_a_collector_only_waits_are_known(void **state)
{
	static const enum fbt_collector none[] = {FBT_COLLECTOR_NONE, FBT_COLLECTOR_OFF,
						  FBT_COLLECTOR_FAILED};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		struct fixture *fixture = *state;
		struct fbt_stalls next = fixture->next;

		set_python(fixture, 0, none[i]);
		stalls_join(fixture->window, &next, &fixture->step);
		assert_true(fixture->step.stalls.gil_known);
		assert_false(fixture->step.stalls.gc_known);
		assert_int_equal(gc_of(&fixture->step), 0);
		assert_int_equal(fixture->step.stalls.record.gc_count, 0);
		assert_int_equal(gil_of(&fixture->step), 400);
	}
}

static void without_calls_only_collections_are_known(void **state)
{
	struct fixture *fixture = *state;

	set_python(fixture, 0, FBT_COLLECTOR_SYMBOL);
	fixture->step.record.header.flags |= FBT_STEP_CALLS_UNKNOWN;
	stalls_join(fixture->window, &fixture->next, &fixture->step);
	assert_false(fixture->step.stalls.gil_known);
	assert_true(fixture->step.stalls.gc_known);
	assert_int_equal(fixture->step.stalls.record.gil_waits, 0);
}

static void a_process_without_an_interpreter_has_none(void **state)
{
	struct fixture *fixture = *state;

	stalls_join(fixture->window, &fixture->next, &fixture->step);
	assert_false(fixture->step.stalls.gil_known || fixture->step.stalls.gc_known);
	assert_int_equal(gil_of(&fixture->step), 0);
}

static void they_exceed_no_part(void **state)
{
	struct fixture *fixture = *state;

	set_python(fixture, 0, FBT_COLLECTOR_USDT);
	fixture->next.gil_ns = fixture->next.gc_ns = fixture->next.gc_own_ns = UINT64_MAX;
	stalls_join(fixture->window, &fixture->next, &fixture->step);
	assert_int_equal(gil_of(&fixture->step), 500);
	assert_int_equal(gc_of(&fixture->step), 500);
}

static void collections_of_an_interval_last_from_begin_to_end(void **state)
{
	struct fixture *fixture = *state;

	set_python(fixture, 0, FBT_COLLECTOR_USDT);
	fixture->step.record.kind = 0;
	fixture->step.record.header.flags = FBT_STEP_SCHED_UNKNOWN;
	stalls_join(fixture->window, &fixture->next, &fixture->step);
	assert_int_equal(gc_of(&fixture->step), 300);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(stalls_are_those_of_the_step_that_follows),
		TEST(stalls_of_another_step_are_not_taken),
		TEST(what_was_not_measured_from_its_begin_on_is_not_known),
		TEST(without_a_collector_only_waits_are_known),
		TEST(without_calls_only_collections_are_known),
		TEST(a_process_without_an_interpreter_has_none),
		TEST(they_exceed_no_part),
		TEST(collections_of_an_interval_last_from_begin_to_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
