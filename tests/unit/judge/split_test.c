/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The time of a step by its parts, which sum up to the step. */
#include "cause_fixture.h"

static void categories_stand_for_calls_that_are_not_known(void **state)
{
	struct step step = make_step(1000);
	struct cause_times times;

	for (uint64_t i = 0; i < FBT_CATEGORY_COUNT; i++)
		step.record.sums[i] = (struct fbt_sum){.ns = UINT64_C(1) << i, .calls = 1};
	times = split(*state, &step);
	assert_int_equal(times.ns[CAUSE_ALLOCATION_CHURN], 1);
	assert_int_equal(times.ns[CAUSE_LOCK_CONTENTION], 2);
	assert_int_equal(times.ns[CAUSE_DRIVER_CALLS], 4);
	assert_int_equal(times.ns[CAUSE_FILE_IO], 8 + 16);
	assert_int_equal(times.ns[CAUSE_OTHER_CALLS], 32);
	assert_int_equal(times.ns[CAUSE_COMPUTE], 1000 - 63);
}

static void categories_stand_for_what_lost_calls_took(void **state)
{
	struct step step = make_step(1000);
	struct cause_times times;

	name_file(*state, 2, S_IFSOCK, "socket:[1]");
	add_call(&step, "write", 30)->file = 2;
	step.record.sums[FBT_WRITE].ns += 12;
	add_call(&step, "nanosleep", 5);
	step.record.sums[FBT_OTHER].ns += 7;
	times = split(*state, &step);
	assert_int_equal(times.ns[CAUSE_SOCKET_IO], 30);
	assert_int_equal(times.ns[CAUSE_FILE_IO], 12);
	assert_int_equal(times.ns[CAUSE_SLEEP], 5);
	assert_int_equal(times.ns[CAUSE_OTHER_CALLS], 7);
	free_step(&step);
}

static void run_queue_and_faults_are_taken_out_of_work(void **state)
{
	struct step step = make_step(1000000);
	struct window *window = *state;
	struct cause_times times;

	window->record.fault_ps = 250500;
	step.record.run_delay_ns = 300;
	step.record.minor_faults = 3;
	times = split(window, &step);
	assert_int_equal(times.ns[CAUSE_RUN_QUEUE], 300);
	assert_int_equal(times.ns[CAUSE_PAGE_FAULTS], 751);
	assert_int_equal(times.ns[CAUSE_COMPUTE], 1000000 - 1051);
	step.record.header.flags = FBT_STEP_SCHED_UNKNOWN;
	times = split(window, &step);
	assert_int_equal(times.ns[CAUSE_COMPUTE], 1000000);
}

static void without_calls_only_faults_that_were_timed_have_waited(void **state)
{
	struct step step = make_step(50 * MS);
	struct cause_times times;

	step.record.header.flags = FBT_STEP_CALLS_UNKNOWN | FBT_STEP_CPU_KNOWN;
	step.record.cpu_ns = 20 * MS;
	step.record.fault_wait_ns = 25 * MS;
	times = split(*state, &step);
	assert_int_equal(times.ns[CAUSE_PAGE_FAULTS], 0);
	step.record.header.flags |= FBT_STEP_FAULTS_TIMED;
	times = split(*state, &step);
	assert_int_equal(times.ns[CAUSE_PAGE_FAULTS], 25 * MS);
	/* It was off its CPU for no longer. */
	step.record.fault_wait_ns = 45 * MS;
	times = split(*state, &step);
	assert_int_equal(times.ns[CAUSE_PAGE_FAULTS], 30 * MS);
}

/* In a loop of calls, the time between two calls is overhead of the calls, not work. */
static void time_between_calls_close_to_each_other_is_theirs(void **state)
{
	struct step step = make_step(10 * MS);
	struct cause_times times;

	add_call(&step, "ioctl", 100 * US);
	add_call(&step, "ioctl", 100 * US)->start_ns += 999;
	add_call(&step, "futex", 100 * US)->start_ns += 400;
	add_call(&step, "futex", 100 * US)->start_ns += 1001;
	times = split(*state, &step);
	assert_int_equal(times.ns[CAUSE_DRIVER_CALLS], 200 * US + 999);
	assert_int_equal(times.ns[CAUSE_LOCK_CONTENTION], 200 * US + 1400);
	assert_int_equal(cause_work_ns(&times), 10 * MS - 400 * US - 2399);
	/* In an interval, the next call may belong to another thread. */
	step.record.kind = 0;
	times = split(*state, &step);
	assert_int_equal(times.ns[CAUSE_DRIVER_CALLS], 200 * US);
	free_step(&step);
}

/* Where tracing a call takes long, so do the ways into the kernel and out of it. */
static void what_tracing_costs_here_is_no_work_between_calls(void **state)
{
	struct step step = make_step(10 * MS);
	struct window *window = *state;
	struct cause_times times;

	add_call(&step, "ioctl", 100 * US);
	add_call(&step, "ioctl", 100 * US)->start_ns += 1599;
	add_call(&step, "futex", 100 * US)->start_ns += 1700;
	window->record.call_ps = 400000;
	times = split(window, &step);
	assert_int_equal(times.ns[CAUSE_DRIVER_CALLS], 200 * US + 1599);
	assert_int_equal(times.ns[CAUSE_LOCK_CONTENTION], 101600);
	/* Where it is cheap, a microsecond is still no time to work in. */
	window->record.call_ps = 100000;
	times = split(window, &step);
	assert_int_equal(times.ns[CAUSE_DRIVER_CALLS], 201 * US);
	free_step(&step);
}

/* A step keeps 65,536 of its calls: a loop of more is no work after that. */
static void between_calls_that_are_not_known_it_is_as_between_the_others(void **state)
{
	struct step step = make_step(10 * MS);
	struct cause_times times;

	add_call(&step, "ioctl", 100 * US);
	for (int i = 0; i < 3; i++)
		add_call(&step, "ioctl", 100 * US)->start_ns += 400;
	step.record.sums[FBT_IOCTL].calls += 8;
	step.record.sums[FBT_FUTEX].calls += 1;
	times = split(*state, &step);
	assert_int_equal(times.ns[CAUSE_DRIVER_CALLS], 400 * US + 1200 + 8 * 300);
	assert_int_equal(times.ns[CAUSE_LOCK_CONTENTION], 300);
	/* No more than is left. */
	step.record.sums[FBT_IOCTL].calls = UINT64_MAX;
	times = split(*state, &step);
	assert_int_equal(cause_work_ns(&times), 0);
	free_step(&step);
}

static void faults_take_no_more_than_is_left(void **state)
{
	struct step step = make_step(100);
	struct window *window = *state;
	struct cause_times times;

	add_call(&step, "futex", 60);
	step.record.run_delay_ns = 30;
	/* 2^64 ns, which overflows 64 bits. */
	step.record.minor_faults = UINT32_C(1) << 31;
	window->record.fault_ps = (UINT64_C(1) << 33) * 1000;
	times = split(window, &step);
	assert_int_equal(times.ns[CAUSE_RUN_QUEUE], 30);
	assert_int_equal(times.ns[CAUSE_PAGE_FAULTS], 10);
	assert_int_equal(times.ns[CAUSE_COMPUTE], 0);
	free_step(&step);
}

static void parts_never_exceed_a_step_that_its_sums_exceed(void **state)
{
	struct step step = make_step(100);
	struct cause_times times;

	add_call(&step, "futex", 60);
	add_call(&step, "mmap", UINT64_MAX);
	add_call(&step, "mmap", UINT64_MAX);
	step.record.sums[FBT_READ].ns = UINT64_MAX;
	step.record.run_delay_ns = UINT64_MAX;
	times = split(*state, &step);
	assert_int_equal(times.ns[CAUSE_LOCK_CONTENTION], 60);
	assert_int_equal(times.ns[CAUSE_ALLOCATION_CHURN], 40);
	free_step(&step);
}

static void random_step(uint64_t *seed, struct step *step)
{
	uint64_t calls = random_below(seed, 40);

	*step = make_step(random_below(seed, 10) ? random_below(seed, MS) : next_random(seed));
	for (uint64_t i = 0; i < calls; i++) {
		uint64_t ns =
			random_below(seed, 50) ? random_below(seed, 50 * US) : next_random(seed);
		struct fbt_call *call = add_nr(step, (uint32_t)random_below(seed, 600), ns);

		call->file = (uint32_t)random_below(seed, 5);
		call->ret = (int64_t)random_below(seed, 3) - 1;
		call->header.flags = (uint16_t)random_below(seed, 8);
		call->args[0] = random_below(seed, 4);
		call->args[1] = next_random(seed);
	}
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		if (!random_below(seed, 4))
			step->record.sums[i].ns = random_below(seed, 200 * US);
	}
	step->record.run_delay_ns = random_below(seed, 100 * US);
	step->record.minor_faults = (uint32_t)random_below(seed, 500);
	step->record.header.flags = (uint16_t)random_below(seed, 8);
}

static void parts_of_random_steps_sum_to_their_total(void **state)
{
	struct window *window = *state;
	struct cause_times usual = {0};
	uint64_t seed = 42;

	window->record.fault_ps = 250000;
	name_file(window, 1, S_IFREG, "/a");
	name_file(window, 2, S_IFSOCK, "socket:[1]");
	for (int i = 0; i < 20000; i++) {
		struct cause_times times;
		struct cause cause;
		struct step step;
		char text[200];

		random_step(&seed, &step);
		times = split(window, &step);
		cause_find(window, &step, &times, i % 3 ? &usual : NULL, &cause);
		assert_true(cause.estimated || cause.time_ns <= step_total_ns(&step));
		assert_true(cause.calls <= step.calls.count);
		assert_true(cause.blocked <= cause.calls && cause.nr_calls <= cause.calls);
		cause_describe(&cause, window, text, sizeof(text));
		assert_true(strlen(text) > 5);
		usual = times;
		free_step(&step);
	}
}

static void threads_and_signals_are_counted(void **state)
{
	struct step step = make_step(1000);
	struct cause_times times;

	add_call(&step, "clone3", 1)->ret = 100;
	add_call(&step, "clone", 1)->ret = -11;
	add_call(&step, "fork", 1)->ret = 0;
	add_call(&step, "clone3", 1)->ret = 101;
	step.calls.items[3].header.flags |= FBT_CALL_UNFINISHED;
	add_call(&step, "vfork", 1)->ret = 102;
	add_call(&step, "rt_sigreturn", 1)->ret = -4;
	add_call(&step, "rt_sigreturn", 1);
	add_call(&step, "rt_sigprocmask", 1);
	times = split(*state, &step);
	assert_int_equal(times.threads_made, 2);
	assert_int_equal(times.signals, 2);
	free_step(&step);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_window, teardown_window)
	const struct CMUnitTest tests[] = {
		TEST(categories_stand_for_calls_that_are_not_known),
		TEST(categories_stand_for_what_lost_calls_took),
		TEST(run_queue_and_faults_are_taken_out_of_work),
		TEST(without_calls_only_faults_that_were_timed_have_waited),
		TEST(time_between_calls_close_to_each_other_is_theirs),
		TEST(what_tracing_costs_here_is_no_work_between_calls),
		TEST(between_calls_that_are_not_known_it_is_as_between_the_others),
		TEST(faults_take_no_more_than_is_left),
		TEST(parts_never_exceed_a_step_that_its_sums_exceed),
		TEST(parts_of_random_steps_sum_to_their_total),
		TEST(threads_and_signals_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
