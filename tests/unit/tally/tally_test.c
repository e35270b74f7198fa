/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report_fixture.h"

#include "tally/tally.h"

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
	assert_int_equal(tally_open_steps(&tally, fixture->window), 0);
	/* But it is one of those that were open at the end. */
	step.record.end = FBT_END_TRUNCATED;
	assert_int_equal(tally_add(&tally, fixture->window, &step), 0);
	assert_int_equal(tally_open_steps(&tally, fixture->window), 1);
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

static void add_open_and_known(struct tally *tally, struct fixture *fixture, bool open_first)
{
	struct step known = make_step(fixture, 5 * MS), open = make_step(fixture, 3 * MS);

	known.record.header.flags |= FBT_STEP_CPU_KNOWN;
	known.record.sums[FBT_FUTEX].ns = 2 * MS;
	known.record.call_delay_ns[FBT_FUTEX] = 0;
	known.record.cpu_ns = 5 * MS;
	open.record.sums[FBT_FUTEX].ns = MS;
	open.record.call_delay_ns[FBT_FUTEX] = 0;
	if (open_first)
		assert_int_equal(tally_add(tally, fixture->window, &open), 0);
	assert_int_equal(tally_add(tally, fixture->window, &known), 0);
	assert_int_equal(tally_add(tally, fixture->window, &open), 0);
}

/* Own code is what was measured as such. The rest of a step that was not measured has its own name.
 */
static void what_was_not_measured_is_no_own_code(void **state)
{
	struct fixture *fixture = *state;

	for (int open_first = 0; open_first < 2; open_first++) {
		struct tally tally = {0};
		const struct tally_kind *kind;

		add_open_and_known(&tally, fixture, open_first);
		kind = tally.kinds[1];
		assert_int_equal(kind->parts_ns[STEP_OWN] + kind->parts_ns[STEP_CALLS + FBT_FUTEX],
				 (5 + 1 + open_first) * MS);
		assert_int_equal(kind->parts_ns[STEP_CALLS + FBT_FUTEX], (2 + 1 + open_first) * MS);
		assert_int_equal(kind->unmeasured_ns, (2 + 2 * open_first) * MS);
		tally_clear(&tally);
	}
}

/* Where none was measured, it is all called own code, and the report says so. */
static void where_nothing_was_measured_there_is_one_name_for_all(void **state)
{
	struct fixture *fixture = *state;
	struct step open = make_step(fixture, 4 * MS);
	struct tally tally = {0};

	open.record.call_delay_ns[FBT_FUTEX] = 0;
	assert_int_equal(tally_add(&tally, fixture->window, &open), 0);
	assert_int_equal(tally.kinds[1]->unmeasured_ns, 0);
	assert_int_equal(tally.kinds[1]->parts_ns[STEP_OWN], 3 * MS);
	tally_clear(&tally);
}

/* After a frame was unwound, what followed its true end is in the step's parts too. */
static void the_parts_of_a_step_that_ended_late_are_not_measured(void **state)
{
	struct fixture *fixture = *state;
	struct step known = make_step(fixture, 5 * MS), late = make_step(fixture, 3 * MS);
	struct tally tally = {0};

	known.record.header.flags |= FBT_STEP_CPU_KNOWN;
	known.record.cpu_ns = 5 * MS;
	late.record.header.flags |= FBT_STEP_CPU_KNOWN;
	late.record.end = FBT_END_UNWOUND;
	assert_int_equal(tally_add(&tally, fixture->window, &known), 0);
	assert_int_equal(tally_add(&tally, fixture->window, &late), 0);
	assert_int_equal(tally.kinds[1]->unmeasured_ns, 3 * MS);
	assert_int_equal(tally.kinds[1]->parts_known, 1);
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
		TEST(what_was_not_measured_is_no_own_code),
		TEST(where_nothing_was_measured_there_is_one_name_for_all),
		TEST(the_parts_of_a_step_that_ended_late_are_not_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
