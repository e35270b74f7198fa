/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Threads that are really stopped, with slots and times that the test sets. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record_keeper.h"
#include "shared_fixture.h"
#include "base/clock.h"
#include "stream/stops.h"

#define MS    NS_PER_MS
#define BEGIN (1000 * MS) /* of the step */

enum { SLOTS = 128 };

struct fixture {
	struct shared *shared;
	struct record_keeper keeper;
	struct record_output output;
	struct stops *stops;
	pid_t child;
};

/* Starts a process that spins, so that its state is R unless it is stopped. */
static pid_t start_spinning(void)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		;
}

static struct fbt_slot *take_slot(struct fixture *fixture, pid_t tgid)
{
	uint32_t index = (uint32_t)++fixture->shared->control->free_head;
	struct fbt_slot *slot = &fixture->shared->slots[index];

	slot->state = FBT_SLOT_LIVE;
	slot->tgid = (uint32_t)tgid;
	slot->tid = (uint32_t)fixture->child;
	return slot;
}

static int setup(void **state)
{
	struct fixture *fixture = shared_alloc(1, sizeof(*fixture));

	fixture->shared = shared_new(SLOTS, 1, 10);
	fixture->output = keeper_output(&fixture->keeper);
	fixture->stops = stops__new(fixture->shared, &fixture->output);
	assert_non_null(fixture->stops);
	fixture->child = start_spinning();
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	kill(fixture->child, SIGKILL);
	kill(fixture->child, SIGCONT);
	waitpid(fixture->child, NULL, 0);
	stops__free(fixture->stops);
	shared_free(fixture->shared);
	free(fixture);
	return 0;
}

static void stop_child(const struct fixture *fixture)
{
	int status;

	assert_int_equal(kill(fixture->child, SIGSTOP), 0);
	assert_int_equal(waitpid(fixture->child, &status, WUNTRACED), fixture->child);
	assert_true(WIFSTOPPED(status));
}

static void go_on(const struct fixture *fixture)
{
	int status;

	assert_int_equal(kill(fixture->child, SIGCONT), 0);
	assert_int_equal(waitpid(fixture->child, &status, WCONTINUED), fixture->child);
}

static const struct fbt_stop *last_stop(const struct fixture *fixture)
{
	return kept(&fixture->keeper, fixture->keeper.count - 1, FBT_EVENT_STOP);
}

static void a_stop_is_as_long_as_it_can_have_been(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_slot *slot = take_slot(fixture, fixture->child);
	const struct fbt_stop *stop;

	slot->step_start_ns = BEGIN;
	stops__look(fixture->stops, BEGIN + 30 * MS);
	stop_child(fixture);
	stops__look(fixture->stops, BEGIN + 40 * MS);
	assert_int_equal(fixture->keeper.count, 0);
	stops__look(fixture->stops, BEGIN + 50 * MS);
	stop = last_stop(fixture);
	assert_int_equal(stop->reason, FBT_STOP_SIGNAL);
	assert_int_equal(stop->tid, fixture->child);
	assert_int_equal(stop->time_ns, BEGIN + 50 * MS);
	/* Counted from the look before, and possibly up to the next look. */
	assert_int_equal(stop->stopped_ns, 40 * MS);
	stops__look(fixture->stops, BEGIN + 56 * MS);
	assert_int_equal(last_stop(fixture)->stopped_ns, 46 * MS);
	go_on(fixture);
	stops__look(fixture->stops, BEGIN + 62 * MS);
	assert_int_equal(last_stop(fixture)->stopped_ns, 32 * MS);
	assert_int_equal(last_stop(fixture)->reason, FBT_STOP_SIGNAL);
	assert_int_equal(fixture->keeper.count, 3);
	/* The record does not change until there is another stop, which is added. */
	stops__look(fixture->stops, BEGIN + 90 * MS);
	stops__look(fixture->stops, BEGIN + 120 * MS);
	assert_int_equal(fixture->keeper.count, 3);
	stop_child(fixture);
	stops__look(fixture->stops, BEGIN + 140 * MS);
	assert_int_equal(last_stop(fixture)->stopped_ns, (32 + 20 + 20) * MS);
	/* A new step starts counting again. */
	slot->step_start_ns = BEGIN + 150 * MS;
	stops__look(fixture->stops, BEGIN + 175 * MS);
	assert_int_equal(last_stop(fixture)->stopped_ns, (25 + 20) * MS);
}

static void nobody_is_looked_at_in_a_call_or_soon(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_slot *slot = take_slot(fixture, fixture->child);

	stop_child(fixture);
	slot->step_start_ns = BEGIN;
	stops__look(fixture->stops, BEGIN + 19 * MS);
	slot->start_ns = BEGIN + 15 * MS;
	stops__look(fixture->stops, BEGIN + 300 * MS);
	slot->start_ns = 0;
	slot->step_start_ns = 0;
	stops__look(fixture->stops, BEGIN + 400 * MS);
	slot->step_start_ns = BEGIN;
	slot->state = FBT_SLOT_DEAD;
	stops__look(fixture->stops, BEGIN + 500 * MS);
	assert_int_equal(fixture->keeper.count, 0);
	slot->state = FBT_SLOT_LIVE;
	stops__look(fixture->stops, BEGIN + 600 * MS);
	assert_int_equal(fixture->keeper.count, 1);
}

static void a_tracer_is_named(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_slot *slot = take_slot(fixture, fixture->child);
	char name[16] = "";
	int status;

	if (ptrace(PTRACE_ATTACH, fixture->child, NULL, NULL) != 0)
		skip();
	assert_int_equal(waitpid(fixture->child, &status, 0), fixture->child);
	slot->step_start_ns = BEGIN;
	stops__look(fixture->stops, BEGIN + 20 * MS);
	prctl(PR_GET_NAME, name);
	assert_int_equal(last_stop(fixture)->reason, FBT_STOP_TRACER);
	assert_int_equal(last_stop(fixture)->tracer, getpid());
	assert_string_equal(last_stop(fixture)->comm, name);
	ptrace(PTRACE_DETACH, fixture->child, NULL, NULL);
}

/* A thread's step waits in a call while another thread of the process is stopped. */
static void a_thread_that_a_step_may_wait_for_is_looked_at(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_slot *step = take_slot(fixture, 7), *worker = take_slot(fixture, 7);

	step->step_start_ns = BEGIN;
	worker->tgid = (uint32_t)fixture->child;
	stop_child(fixture);
	/* The stopped thread belongs to another process. */
	step->start_ns = BEGIN + MS;
	stops__look(fixture->stops, BEGIN + 22 * MS);
	assert_int_equal(fixture->keeper.count, 0);
	step->tgid = (uint32_t)fixture->child;
	/*
	 * First the step computes, so it waits for no thread. Then it waits, but not long enough
	 * yet.
	 */
	step->start_ns = 0;
	step->step_start_ns = BEGIN + 30 * MS;
	stops__look(fixture->stops, BEGIN + 40 * MS);
	step->start_ns = BEGIN + 41 * MS;
	stops__look(fixture->stops, BEGIN + 60 * MS);
	assert_int_equal(fixture->keeper.count, 0);
	stops__look(fixture->stops, BEGIN + 61 * MS);
	assert_int_equal(fixture->keeper.count, 1);
	assert_int_equal(last_stop(fixture)->stopped_ns, (20 + 20) * MS);
	/* The worker is within a call now, so it does not count as stopped. */
	worker->start_ns = BEGIN + 70 * MS;
	stops__look(fixture->stops, BEGIN + 100 * MS);
	assert_int_equal(fixture->keeper.count, 1);
}

/* A step of one process takes long, and a thread of another one is stopped before its next step. */
static void a_thread_between_steps_is_looked_at_while_another_step_lasts(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_slot *step = take_slot(fixture, 7), *rank = take_slot(fixture, 8);

	rank->tgid = (uint32_t)fixture->child;
	rank->step_end_ns = BEGIN;
	stop_child(fixture);
	/* No step lasts; then one does, but not for long yet. */
	stops__look(fixture->stops, BEGIN + 30 * MS);
	step->step_start_ns = BEGIN + 20 * MS;
	stops__look(fixture->stops, BEGIN + 39 * MS);
	assert_int_equal(fixture->keeper.count, 0);
	/* A step that computes may wait as well: in a loop. */
	stops__look(fixture->stops, BEGIN + 40 * MS);
	assert_int_equal(fixture->keeper.count, 1);
	assert_int_equal(last_stop(fixture)->tid, fixture->child);
	assert_int_equal(last_stop(fixture)->stopped_ns, (40 + 20) * MS);
	/* Not in a call, nor if it has long had nothing to do. */
	rank->start_ns = BEGIN + 41 * MS;
	stops__look(fixture->stops, BEGIN + 100 * MS);
	rank->start_ns = 0;
	stops__look(fixture->stops, BEGIN + 10000 * MS);
	assert_int_equal(fixture->keeper.count, 1);
	/* Nor before its first step. */
	rank->step_end_ns = 0;
	stops__look(fixture->stops, BEGIN + 200 * MS);
	assert_int_equal(fixture->keeper.count, 1);
}

/* Its steps take 3 ms. */
static void a_step_that_is_late_is_looked_at_sooner(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_slot *step = take_slot(fixture, fixture->child);

	step->step_start_ns = BEGIN;
	step->step_usual_ns = 3 * MS;
	stop_child(fixture);
	stops__look(fixture->stops, BEGIN + 5 * MS);
	assert_int_equal(fixture->keeper.count, 0);
	stops__look(fixture->stops, BEGIN + 7 * MS);
	assert_int_equal(fixture->keeper.count, 1);
	assert_int_equal(last_stop(fixture)->stopped_ns, (7 + 20) * MS);
}

/* It computes for longer than its steps do, so it may spin until the other thread comes. */
static void a_thread_that_a_step_may_spin_for_is_looked_at(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_slot *step = take_slot(fixture, fixture->child);

	take_slot(fixture, fixture->child);
	step->tid = (uint32_t)getpid(); /* of another process, which is not found to be stopped */
	step->step_start_ns = BEGIN;
	step->step_usual_ns = 20 * MS;
	stop_child(fixture);
	stops__look(fixture->stops, BEGIN + 40 * MS);
	assert_int_equal(fixture->keeper.count, 0);
	stops__look(fixture->stops, BEGIN + 41 * MS);
	assert_int_equal(fixture->keeper.count, 1);
	assert_int_equal(last_stop(fixture)->tid, fixture->child);
	assert_int_equal(last_stop(fixture)->stopped_ns, (41 + 20) * MS);
}

static void of_many_threads_some_are_looked_at_in_turn(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_slot *step = take_slot(fixture, fixture->child);
	size_t before = 0;

	step->step_start_ns = BEGIN;
	step->start_ns = BEGIN;
	for (int i = 0; i < 30; i++)
		take_slot(fixture, fixture->child);
	stop_child(fixture);
	for (int i = 0; i < 8; i++) {
		stops__look(fixture->stops, BEGIN + 30 * MS);
		assert_in_range(fixture->keeper.count - before, i < 7 ? 4 : 2, 4);
		before = fixture->keeper.count;
	}
	assert_int_equal(before, 30);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_stop_is_as_long_as_it_can_have_been),
		TEST(nobody_is_looked_at_in_a_call_or_soon),
		TEST(a_tracer_is_named),
		TEST(a_thread_that_a_step_may_wait_for_is_looked_at),
		TEST(a_thread_between_steps_is_looked_at_while_another_step_lasts),
		TEST(a_step_that_is_late_is_looked_at_sooner),
		TEST(a_thread_that_a_step_may_spin_for_is_looked_at),
		TEST(of_many_threads_some_are_looked_at_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
