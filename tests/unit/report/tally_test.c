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

static void a_profiled_step_is_in_no_other_figure(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, 5 * MS);
	struct tally tally = {0};

	step.record.header.flags |= FBT_STEP_PROFILED;
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	assert_null(tally.kinds[1]);
	assert_int_equal(stats__count(tally.profiled[1]), 1);
	assert_int_equal(stats__max(tally.profiled[1]), step_total_ns(&step));
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

/* Classes have tails up to a maximum number. The tail of the kind covers all of them. */
static void classes_have_tails_of_their_own(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, MS);
	struct tail_group slowest, median;
	struct tally tally = {0};

	step.record.header.flags |= FBT_STEP_CPU_KNOWN;
	step.class.is_known = true;
	for (uint32_t bits = 0; bits < 20; bits++) {
		step.class.bits = bits;
		for (int i = 0; i < 200; i++) {
			step.record.thread_ns = (bits + 1) * MS + (i < 2 ? 50 * MS : 0);
			assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
		}
	}
	assert_int_equal(tally.kinds[1]->classes.count, TALLY_CLASSES);
	assert_int_equal(tally.kinds[1]->classes.items[3].class.bits, 3);
	assert_int_equal(tally.kinds[1]->classes.items[3].steps, 200);
	assert_true(tail__find(tally.kinds[1]->classes.items[3].tail, &slowest, &median));
	assert_int_equal(slowest.steps, 2);
	assert_float_equal(slowest.total_ns / MS, 54, 0.001);
	assert_float_equal(median.total_ns / MS, 4, 0.001);
	assert_true(tail__find(tally.kinds[1]->tail, &slowest, &median));
	assert_int_equal(slowest.steps, 40);
	tally_clear(&tally);
}

static void what_other_threads_did_is_summed_up_where_it_was_measured(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, MS);
	struct tally tally = {0};

	step.record.team_ns = 30;
	step.record.team_cpu_ns = 20;
	step.record.team_delay_ns = 5;
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	assert_int_equal(tally.kinds[1]->team_steps, 0);
	assert_int_equal(tally.kinds[1]->team_ns, 0);
	step.record.header.flags |= FBT_STEP_TEAM_TIMED;
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	assert_int_equal(tally.kinds[1]->team_steps, 2);
	assert_int_equal(tally.kinds[1]->team_ns, 60);
	assert_int_equal(tally.kinds[1]->team_cpu_ns, 40);
	assert_int_equal(tally.kinds[1]->team_delay_ns, 10);
	assert_int_equal(step_team_blocked_ns(&step.record), 5);
	tally_clear(&tally);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_kind_that_cannot_be_is_left_out),
		TEST(sums_saturate),
		TEST(a_profiled_step_is_in_no_other_figure),
		TEST(the_main_kind_is_the_one_with_the_most_time),
		TEST(a_process_is_traced_from_its_start_to_its_exit),
		TEST(classes_have_tails_of_their_own),
		TEST(what_other_threads_did_is_summed_up_where_it_was_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
