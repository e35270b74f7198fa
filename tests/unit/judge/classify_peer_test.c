/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Steps that wait for another process which had more to do. */
#include "classify_fixture.h"

#include "model/spins.h"

/* What the process did, from 10 ms of the wait to its end. */
static struct step_peer make_peer(const struct step *step, uint64_t work_ns, uint64_t cpu_ns)
{
	uint64_t from_ns = step->record.start_ns + work_ns + 10 * MS;

	return (struct step_peer){.record = {.header.type = FBT_EVENT_PEER,
					     .tgid = 7,
					     .tid = 7,
					     .step_start_ns = step->record.start_ns,
					     .first_ns = from_ns,
					     .time_ns = step->record.end_ns,
					     .cpu_ns = cpu_ns,
					     .peer = 9,
					     .peer_tid = 9,
					     .way = FBT_PEER_MEMORY,
					     .kind = 2,
					     .nr = FBT_PEER_NR_UNKNOWN,
					     .comm = "worker"}};
}

/* A step that works, and then spins until the other process has done its part. */
static struct step spinning_step(const struct fixture *fixture, const struct window *window,
				 uint64_t work_ns, uint64_t wait_ns)
{
	struct step step = make_step(work_ns + wait_ns);
	struct fbt_call *call;

	/* As push() has it. */
	step.record.end_ns = fixture->now_ns;
	step.record.start_ns = fixture->now_ns - work_ns - wait_ns;
	call = add_call(&step, "sched_yield", wait_ns);
	call->start_ns = step.record.start_ns + work_ns;
	call->header.flags = FBT_CALL_RUN;
	call->run = (struct fbt_run){20000, 90 * US, wait_ns - MS};
	step.record.sums[FBT_OTHER].ns = wait_ns - MS;
	step.record.sums[FBT_OTHER].calls = 20000;
	spins_find(window, &step);
	return step;
}

static bool push_spin(struct fixture *fixture, uint64_t work_ns, uint64_t wait_ns)
{
	fixture->now_ns += work_ns + wait_ns;
	return push(fixture, spinning_step(fixture, fixture->window, work_ns, wait_ns));
}

/* Of 2 ms of work and 800 ms of waiting. The process computes, and sleeps for the rest. */
static bool push_waiting(struct fixture *fixture, uint64_t cpu_ns, uint32_t kind, bool is_beyond)
{
	struct step_peer peer;
	struct step step;
	bool is_named;

	fixture->now_ns += 802 * MS;
	step = spinning_step(fixture, fixture->window, 2 * MS, 800 * MS);
	peer = make_peer(&step, 2 * MS, cpu_ns);
	peer.record.kind = kind;
	peer.record.asleep_ns = 790 * MS - cpu_ns;
	if (is_beyond) {
		peer.beyond = peer.record;
		peer.beyond.cpu_ns = 0;
		peer.beyond.asleep_ns = 0;
		peer.beyond.stopped_ns = 790 * MS;
	}
	assert_int_equal(vec_push(&step.peers, peer), 0);
	is_named = push(fixture, step);
	vec_free(&step.peers);
	return is_named;
}

/* Each hundredth step is a prefill, for which the process computes. */
static void a_wait_for_a_process_that_computes_in_its_step_is_work(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 1; i <= 2000; i++)
		assert_false(i % 100 ? push_spin(fixture, MS, 20 * MS)
				     : push_waiting(fixture, 790 * MS, 2, false));
	assert_int_equal(classifier__counts(fixture->classifier)->escalated, 0);
}

/* Nobody judges what it does outside of steps. */
static void outside_of_its_steps_it_is_named(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 20; i++)
		assert_false(push_spin(fixture, MS, 20 * MS));
	assert_true(push_waiting(fixture, 790 * MS, 0, false));
	assert_int_equal(fixture->last.cause.kind, CAUSE_PEER_PROCESS);
	assert_int_equal(fixture->last.number, 1);
	/* Nor for whom it waited while it spun. */
	assert_true(push_waiting(fixture, 790 * MS, 2, true));
	assert_int_equal(fixture->last.number, 2);
}

/* 316 of 790 ms are less than half: it slept. Of 60 % the rest of the wait is within the budget. */
static void only_what_it_computed_is_work(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 20; i++)
		assert_false(push_spin(fixture, MS, 20 * MS));
	assert_true(push_waiting(fixture, 316 * MS, 2, false));
	assert_false(push_waiting(fixture, 474 * MS, 2, false));
	fixture->options.thresholds.efficiency_percent = 80;
	begin(fixture);
	for (int i = 0; i < 20; i++)
		assert_false(push_spin(fixture, MS, 20 * MS));
	assert_true(push_waiting(fixture, 474 * MS, 2, false));
}

static void a_budget_or_a_user_names_it_all_the_same(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 20; i++)
		assert_false(push_spin(fixture, MS, 20 * MS));
	classifier__request_manual(fixture->classifier);
	assert_true(push_waiting(fixture, 790 * MS, 2, false));
	fixture->options.budget_us = 100000;
	begin(fixture);
	for (int i = 0; i < 20; i++)
		assert_false(push_spin(fixture, MS, 20 * MS));
	assert_true(push_waiting(fixture, 790 * MS, 2, false));
	assert_int_equal(fixture->last.cause.kind, CAUSE_PEER_PROCESS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_wait_for_a_process_that_computes_in_its_step_is_work),
		TEST(outside_of_its_steps_it_is_named),
		TEST(only_what_it_computed_is_work),
		TEST(a_budget_or_a_user_names_it_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
