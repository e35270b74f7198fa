/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report_fixture.h"

#include "report/tally.h"

static int setup(void **state)
{
	*state = new_fixture(REPORT_NONE);
	return 0;
}

static int teardown(void **state)
{
	free_fixture(*state);
	return 0;
}

static void a_kind_that_cannot_be_is_left_out(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, MS);
	struct tally tally = {0};

	step.record.kind = FBT_KIND_COUNT;
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	assert_int_equal(tally_main_kind(&tally), -1);
}

static void sums_saturate(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, UINT64_MAX);
	struct tally tally = {0};

	step.record.sums[FBT_READ].ns = UINT64_MAX;
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	assert_true(tally.kinds[1]->total_ns == UINT64_MAX);
	assert_true(tally_syscall_ns(tally.kinds[1]) == UINT64_MAX);
	tally_clear(&tally);
}

static void the_main_kind_is_the_one_with_the_most_time(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, 5 * MS);
	struct tally tally = {0};

	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	step.record.kind = 7;
	step.record.thread_ns = 6 * MS;
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	assert_int_equal(tally_main_kind(&tally), 7);
	tally_clear(&tally);
}

static void a_process_is_traced_from_its_start_to_its_exit(void **state)
{
	struct fixture *fixture = *state;
	struct process *process = window__touch_process(fixture->window, 42);

	process->record.start_ns = START_NS + 1000 * MS;
	assert_int_equal(tally_process_ns(fixture->window, process), 9000 * MS);
	process->exit_ns = START_NS + 3000 * MS;
	assert_int_equal(tally_process_ns(fixture->window, process), 2000 * MS);
	process->record.start_ns = 0;
	assert_int_equal(tally_process_ns(fixture->window, process), 3000 * MS);
}

static void cost_without_a_table_uses_the_calls_of_steps(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, 100 * MS);
	struct tally tally = {0};
	struct tally_cost cost;

	fixture->window->cost.call_ps = 500000;
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	tally_cost(&tally, fixture->window, &cost);
	assert_int_equal(cost.calls, 2);
	assert_int_equal(cost.call_ns, 1000);
	assert_int_equal(cost.traced_ns, 10000 * MS);
	assert_true(cost.step_percent > 0.00099 && cost.step_percent < 0.00101);
	tally_clear(&tally);
}

/* Figures of a capture may be anything, and what no integer holds is the largest. */
static void impossible_costs_saturate(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, 100 * MS);
	struct fbt_sampling *sampling = &fixture->window->sampling[1];
	struct tally tally = {0};
	struct tally_cost cost;

	fixture->window->cost.call_ps = UINT64_MAX;
	fixture->window->cost.step_ns = UINT64_MAX;
	step.record.sums[0].calls = UINT64_MAX;
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	tally_cost(&tally, fixture->window, &cost);
	assert_int_equal(cost.call_ns, UINT64_MAX);
	assert_int_equal(cost.step_ns, UINT64_MAX);
	tally_clear(&tally);
	*sampling = (struct fbt_sampling){.kind = 1, .calls = UINT64_MAX, .watched_ns = 1};
	assert_int_equal(window__sampled_calls_per_s(fixture->window, 1), UINT64_MAX);
}

static void intervals_cost_no_probes(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, 100 * MS);
	struct tally tally = {0};
	struct tally_cost cost;

	step.record.kind = 0;
	fixture->window->cost.step_ns = 1000;
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	tally_cost(&tally, fixture->window, &cost);
	assert_int_equal(cost.step_ns, 0);
	tally_clear(&tally);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_kind_that_cannot_be_is_left_out),
		TEST(sums_saturate),
		TEST(the_main_kind_is_the_one_with_the_most_time),
		TEST(a_process_is_traced_from_its_start_to_its_exit),
		TEST(cost_without_a_table_uses_the_calls_of_steps),
		TEST(impossible_costs_saturate),
		TEST(intervals_cost_no_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
