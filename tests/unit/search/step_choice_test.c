/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "search/step_choice.h"

#define MS     1000000ull
#define SECOND (1000 * MS)

/* What bpf/rates.bpf.c does. */
static void add_lasted(struct choice *choice, uint64_t calls, uint64_t ns)
{
	size_t span = 0;

	while (ns >> FBT_RATE_FIRST_BITS >> span)
		span++;
	choice->lasted[span] += calls;
	choice->calls += calls;
	choice->ended += calls;
	choice->total_ns += calls * ns;
}

/* Spreads the calls over the two seconds, of which the function used a part of a CPU. */
static void spread(struct choice *choice, double cpu)
{
	for (size_t i = 0; i < CHOICE_SLICES; i++) {
		choice->slice_calls[i] =
			choice->calls / CHOICE_SLICES + (i < choice->calls % CHOICE_SLICES);
		choice->slice_cpu_ns[i] = (uint64_t)(cpu * 2 * SECOND / CHOICE_SLICES);
	}
}

/* Calls of one length in two seconds, in which nothing but that was done. */
static struct choice regular(uint64_t calls, uint64_t ns)
{
	struct choice choice = {.calls = 0};

	add_lasted(&choice, calls, ns);
	spread(&choice, (double)choice.total_ns / (2 * SECOND));
	return choice;
}

static struct choice not_called(void)
{
	struct choice choice = {.calls = 0};

	spread(&choice, 1);
	return choice;
}

static void assert_doubt(const struct choice *choice, enum choice_doubt doubt)
{
	assert_string_equal(choice_doubt_text(choice_doubt(choice)), choice_doubt_text(doubt));
}

static void what_is_called_steadily_and_does_the_work_is_a_step(void **state)
{
	struct choice choice = regular(168, 11 * MS);

	(void)state;
	assert_doubt(&choice, CHOICE_SURE);
}

static void decodes_and_some_prefills_are_steps(void **state)
{
	struct choice choice = {.calls = 0};

	(void)state;
	add_lasted(&choice, 150, 6 * MS);
	add_lasted(&choice, 3, 300 * MS);
	spread(&choice, 0.9);
	choice.slice_calls[2] = 2;
	choice.slice_calls[5] = 1;
	assert_doubt(&choice, CHOICE_SURE);
}

static void jitter_is_no_doubt(void **state)
{
	struct choice choice = {.calls = 0};

	(void)state;
	for (uint64_t i = 0; i < 200; i++)
		add_lasted(&choice, 1, 3 * MS + i * 7919 % 100 * MS / 10);
	spread(&choice, 0.8);
	for (size_t i = 0; i < CHOICE_SLICES; i++)
		choice.slice_calls[i] = 15 + i * 5 % 16;
	assert_doubt(&choice, CHOICE_SURE);
}

/* The engine had requests in a part of the time only: calls for CPU time count. */
static void pauses_are_no_doubt(void **state)
{
	struct choice choice = regular(100, 8 * MS);

	(void)state;
	for (size_t i = 3; i < 7; i++)
		choice.slice_calls[i] = choice.slice_cpu_ns[i] = 0;
	choice.slice_cpu_ns[0] *= 2;
	choice.slice_cpu_ns[1] *= 2;
	choice.slice_calls[0] *= 2;
	choice.slice_calls[1] *= 2;
	assert_doubt(&choice, CHOICE_SURE);
}

/* Each second poll of an async function has nothing to do. */
static void polls_are_of_no_usual_length(void **state)
{
	struct choice choice = {.calls = 0};

	(void)state;
	add_lasted(&choice, 168, 11 * MS);
	add_lasted(&choice, 169, 10000);
	spread(&choice, 0.95);
	assert_doubt(&choice, CHOICE_UNEVEN);
}

/* A pool runs tasks of all kinds. The steps are among them, and most are small. */
static void what_runs_all_tasks_is_no_step(void **state)
{
	struct choice all[] = {{.calls = 0}, regular(600, 2 * MS), regular(1150, MS)};

	(void)state;
	add_lasted(&all[0], 600, 2 * MS);
	add_lasted(&all[0], 1500, 10000);
	spread(&all[0], 0.65);
	assert_doubt(&all[0], CHOICE_UNEVEN);
	assert_int_equal(choice_find(all, 3), 1);
}

static void doubts(void **state)
{
	struct choice loop = not_called(), often = regular(4000, MS / 2),
		      rare = regular(9, 200 * MS);
	struct choice endless = regular(100, 18 * MS), brief = regular(10000, 40000);
	struct choice part = regular(100, 10 * MS), waits = regular(100, 18 * MS);
	struct choice bursts = regular(800, MS), server = regular(100, 18 * MS);

	(void)state;
	assert_doubt(&loop, CHOICE_NOT_CALLED);
	often.too_often = true;
	assert_doubt(&often, CHOICE_TOO_OFTEN);
	assert_doubt(&rare, CHOICE_RARE);
	endless.ended = 70;
	assert_doubt(&endless, CHOICE_ENDLESS);
	assert_doubt(&brief, CHOICE_SHORT);
	spread(&part, 1);
	assert_doubt(&part, CHOICE_PART);
	spread(&waits, 0.1);
	assert_doubt(&waits, CHOICE_WAITS);
	server.waits_for_events = true;
	assert_doubt(&server, CHOICE_EVENTS);
	for (size_t i = 0; i < CHOICE_SLICES; i++)
		bursts.slice_calls[i] = i % 2 ? 10 : 190;
	assert_doubt(&bursts, CHOICE_UNSTEADY);
}

/* A loaded machine: the thread waited for a CPU in the step, and that is no wait of the engine's.
 */
static void waiting_for_a_cpu_is_no_wait(void **state)
{
	struct choice choice = regular(100, 18 * MS);

	(void)state;
	spread(&choice, 0.3);
	assert_doubt(&choice, CHOICE_WAITS);
	choice.delay_ns = SECOND;
	assert_doubt(&choice, CHOICE_SURE);
}

static void of_nested_loops_the_outermost_that_is_steady_is_the_step(void **state)
{
	const struct choice request = regular(1, 1900 * MS), step = regular(100, 18 * MS);
	const struct choice layer = regular(3200, MS / 2);
	const struct choice all[] = {not_called(), request, step, layer};

	(void)state;
	assert_int_equal(choice_find(all, 4), 2);
	assert_int_equal(choice_find(all + 3, 1), 0);
	assert_int_equal(choice_find(all, 2), 2);
	assert_false(choice_needs_time(all, 2));
	assert_int_equal(choice_find(all, 0), 0);
}

/* A slow step or a short request: what it calls more often may be a layer of it. */
static void within_a_function_that_may_be_the_step_nothing_is(void **state)
{
	struct choice all[] = {not_called(), regular(4, 480 * MS), regular(128, 14 * MS)};

	(void)state;
	assert_int_equal(choice_find(all, 3), 3);
	assert_true(choice_needs_time(all, 3));
	all[1] = regular(16, 120 * MS);
	assert_int_equal(choice_find(all, 3), 1);
	assert_false(choice_needs_time(all, 3));
	all[1].lasted[0] = all[1].lasted[12] = all[1].lasted[17];
	all[1].ended *= 3;
	all[1].calls *= 3;
	assert_doubt(&all[1], CHOICE_UNEVEN);
	assert_int_equal(choice_find(all, 3), 3);
	assert_false(choice_needs_time(all, 3));
	/* What is called as often or less is no part of it. */
	all[2] = regular(16, 118 * MS);
	assert_int_equal(choice_find(all, 3), 2);
}

/* The outer one paces itself: its time is no measure of the step. */
static void what_only_waits_around_a_step_is_not_the_step(void **state)
{
	struct choice all[] = {regular(100, 18 * MS), regular(100, 11 * MS), regular(100, 10 * MS)};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		spread(&all[i], 0.55);
	assert_int_equal(choice_find(all, 3), 1);
	/* One that does only a part of the work is no step either. */
	spread(&all[1], 0.4);
	spread(&all[2], 0.4);
	assert_int_equal(choice_find(all, 3), 0);
}

static void what_handles_events_is_no_step(void **state)
{
	struct choice all[] = {not_called(), regular(40, 49 * MS), regular(1900, MS)};

	(void)state;
	assert_int_equal(choice_find(all, 3), 1);
	all[1].waits_for_events = true;
	assert_int_equal(choice_find(all, 3), 3);
	/* Nor if the loop is called too often to be measured. */
	all[1].too_often = true;
	assert_int_equal(choice_find(all, 3), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_called_steadily_and_does_the_work_is_a_step),
		cmocka_unit_test(decodes_and_some_prefills_are_steps),
		cmocka_unit_test(jitter_is_no_doubt),
		cmocka_unit_test(pauses_are_no_doubt),
		cmocka_unit_test(polls_are_of_no_usual_length),
		cmocka_unit_test(what_runs_all_tasks_is_no_step),
		cmocka_unit_test(doubts),
		cmocka_unit_test(waiting_for_a_cpu_is_no_wait),
		cmocka_unit_test(of_nested_loops_the_outermost_that_is_steady_is_the_step),
		cmocka_unit_test(within_a_function_that_may_be_the_step_nothing_is),
		cmocka_unit_test(what_only_waits_around_a_step_is_not_the_step),
		cmocka_unit_test(what_handles_events_is_no_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
