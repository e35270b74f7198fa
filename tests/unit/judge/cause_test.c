/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which part of a step is the cause, and the calls and files that are named as evidence. */
#include "cause_fixture.h"

static void growth_decides_not_size(void **state)
{
	struct cause_times usual = {
		.ns = {[CAUSE_LOCK_CONTENTION] = 5 * MS, [CAUSE_COMPUTE] = 80 * MS}};
	struct step step = make_step(100 * MS);
	struct cause cause;

	add_call(&step, "futex", 6 * MS);
	add_call(&step, "munmap", 2 * MS);
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_COMPUTE);
	assert_int_equal(cause.time_ns, 92 * MS);
	assert_int_equal(cause.usual_ns, 80 * MS);
	usual.ns[CAUSE_COMPUTE] = 91 * MS;
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_ALLOCATION_CHURN);
	assert_int_equal(cause.time_ns, 2 * MS);
	assert_int_equal(cause.usual_ns, 0);
	assert_true(cause.usual_known);
	free_step(&step);
}

static void compute_wins_no_tie(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 90 * MS}};
	struct step step = make_step(100 * MS);

	add_call(&step, "futex", 5 * MS);
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_LOCK_CONTENTION);
	usual.ns[CAUSE_COMPUTE]--;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_COMPUTE);
	free_step(&step);
}

static void where_nothing_grew_the_largest_part_is_named(void **state)
{
	struct step step = make_step(100 * MS);
	struct cause_times usual;

	add_call(&step, "futex", 50 * MS);
	usual = split(*state, &step);
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_COMPUTE);
	add_call(&step, "futex", 1 * MS);
	usual = split(*state, &step);
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_LOCK_CONTENTION);
	free_step(&step);
}

static void a_step_of_nothing_is_compute(void **state)
{
	struct step step = make_step(0);
	struct cause cause = find(*state, &step, NULL);

	assert_int_equal(cause.kind, CAUSE_COMPUTE);
	assert_false(cause.usual_known);
}

static void what_calls_would_explain_is_unknown_where_they_were_not_traced(void **state)
{
	struct step step = make_step(100 * MS);
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 20 * MS}};
	struct cause cause;
	char text[EVIDENCE_SIZE];

	step.record.header.flags = FBT_STEP_CALLS_UNKNOWN;
	step.record.run_delay_ns = 30 * MS;
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_UNKNOWN);
	assert_int_equal(cause.time_ns, 70 * MS);
	assert_int_equal(cause.usual_ns, 20 * MS);
	assert_false(cause.calls_known);
	cause_describe(&cause, *state, text, sizeof(text));
	assert_non_null(strstr(text, "not traced"));
	/* Waits for a CPU are measured even if calls are not traced. */
	usual.ns[CAUSE_COMPUTE] = 69 * MS;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_RUN_QUEUE);
}

static void each_part_can_be_the_cause(void **state)
{
	static const struct {
		const char *name;
		enum cause_kind kind;
	} calls[] = {
		{"futex", CAUSE_LOCK_CONTENTION},      {"brk", CAUSE_ALLOCATION_CHURN},
		{"ioctl", CAUSE_DRIVER_CALLS},	       {"fsync", CAUSE_FILE_IO},
		{"recvmsg", CAUSE_SOCKET_IO},	       {"wait4", CAUSE_THREAD_CHURN},
		{"tgkill", CAUSE_SIGNAL_STORM},	       {"epoll_wait", CAUSE_SLEEP},
		{"io_uring_enter", CAUSE_OTHER_CALLS},
	};
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 20 * MS}};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct step step = make_step(30 * MS);
		struct cause cause;

		add_call(&step, calls[i].name, 10 * MS);
		cause = find(*state, &step, &usual);
		assert_int_equal(cause.kind, calls[i].kind);
		assert_int_equal(cause.time_ns, 10 * MS);
		assert_int_equal(cause.calls, 1);
		assert_int_equal(cause.nr, nr_of(calls[i].name));
		assert_int_equal(cause.nr_ns, 10 * MS);
		assert_false(cause.estimated);
		free_step(&step);
	}
}

static void time_without_a_cpu_and_faults_can_be_the_cause(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 20 * MS}};
	struct step step = make_step(30 * MS);
	struct window *window = *state;
	struct cause cause;

	window->record.fault_ps = 500000;
	step.record.run_delay_ns = 10 * MS;
	cause = find(window, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_RUN_QUEUE);
	assert_int_equal(cause.time_ns, 10 * MS);
	assert_false(cause.estimated);
	step.record.run_delay_ns = 0;
	step.record.minor_faults = 20000;
	step.record.major_faults = 2;
	cause = find(window, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_PAGE_FAULTS);
	assert_int_equal(cause.time_ns, 10 * MS);
	assert_int_equal(cause.minor_faults, 20000);
	assert_int_equal(cause.major_faults, 2);
	assert_true(cause.estimated);
	step.record.header.flags = FBT_STEP_SCHED_UNKNOWN;
	cause = find(window, &step, &usual);
	assert_int_equal(cause.minor_faults + cause.major_faults, 0);
}

static void locks_are_named_by_the_time_waited_for_them(void **state)
{
	struct step step = make_step(200 * MS);
	struct cause cause;

	wait_on(&step, 0x1000, 30 * MS);
	wait_on(&step, 0x2000, 20 * MS);
	wait_on(&step, 0x2000, 20 * MS);
	add_call(&step, "futex", MS)->args[0] = 0x3000;
	/* Without known arguments, a call names no lock. */
	add_call(&step, "futex", 50 * MS)->header.flags = 0;
	cause = find(*state, &step, NULL);
	assert_int_equal(cause.kind, CAUSE_LOCK_CONTENTION);
	assert_int_equal(cause.calls, 5);
	assert_int_equal(cause.blocked, 3);
	assert_int_equal(cause.lock, 0x2000);
	assert_true(cause.calls_known);
	assert_false(cause.calls_partial);
	free_step(&step);
}

static void memory_is_counted_in_bytes(void **state)
{
	struct step step = make_step(100 * MS);
	struct fbt_call *call;
	struct cause cause;

	call = add_call(&step, "mmap", 10 * MS);
	call->args[1] = 1000;
	call->ret = 0x7f0000000000;
	call = add_call(&step, "mmap", 10 * MS);
	call->args[1] = 5000;
	call->ret = -12;
	add_call(&step, "munmap", 40 * MS)->args[1] = 300;
	add_call(&step, "mprotect", MS)->args[1] = 7000;
	add_call(&step, "brk", MS)->ret = 10000;
	add_call(&step, "brk", MS)->ret = 10020;
	add_call(&step, "brk", MS)->ret = 10015;
	call = add_call(&step, "munmap", MS);
	call->args[1] = 90;
	call->header.flags |= FBT_CALL_UNFINISHED;
	call = add_call(&step, "munmap", MS);
	call->args[1] = 90;
	call->header.flags = 0;
	cause = find(*state, &step, NULL);
	assert_int_equal(cause.kind, CAUSE_ALLOCATION_CHURN);
	assert_int_equal(cause.bytes, 1000 + 300 + 20 + 5);
	assert_int_equal(cause.calls, 9);
	assert_int_equal(cause.nr, nr_of("munmap"));
	assert_int_equal(cause.nr_calls, 3);
	assert_int_equal(cause.nr_ns, 42 * MS);
	free_step(&step);
}

static void ask_driver(struct step *step, uint64_t command, uint32_t file, uint64_t ns)
{
	struct fbt_call *call = add_call(step, "ioctl", ns);

	call->args[1] = command;
	call->file = file;
}

static void driver_calls_are_named_by_command_and_its_file(void **state)
{
	struct step step = make_step(100 * MS);
	struct cause cause;

	name_file(*state, 1, S_IFCHR, "/dev/nvidiactl");
	name_file(*state, 2, S_IFCHR, "/dev/null");
	ask_driver(&step, 0x20801303c020462a, 1, 15 * MS);
	ask_driver(&step, 0x20801303c020462a, 1, 16 * MS);
	ask_driver(&step, 0x2080014ac020462a, 1, 17 * MS);
	ask_driver(&step, 1, 2, 20 * MS);
	ask_driver(&step, 2, 2, 21 * MS);
	cause = find(*state, &step, NULL);
	assert_int_equal(cause.kind, CAUSE_DRIVER_CALLS);
	assert_int_equal(cause.calls, 5);
	assert_true(cause.command == 0x20801303c020462a);
	assert_int_equal(cause.command_calls, 2);
	assert_int_equal(cause.command_ns, 31 * MS);
	assert_int_equal(cause.file, 1);
	assert_int_equal(cause.file_calls, 2);
	free_step(&step);
}

static void file_io_is_named_by_the_file_with_the_most_time(void **state)
{
	struct step step = make_step(100 * MS);
	struct fbt_call *call;
	struct cause cause;

	name_file(*state, 1, S_IFREG, "/model.gguf");
	name_file(*state, 2, S_IFREG, "/log");
	for (int i = 0; i < 10; i++) {
		call = add_call(&step, "pread64", 6 * MS);
		call->file = 1;
		call->ret = 4096;
	}
	call = add_call(&step, "write", 20 * MS);
	call->file = 2;
	call->ret = -5;
	add_call(&step, "openat", 10 * MS)->ret = 77;
	cause = find(*state, &step, NULL);
	assert_int_equal(cause.kind, CAUSE_FILE_IO);
	assert_int_equal(cause.file, 1);
	assert_int_equal(cause.file_calls, 10);
	assert_int_equal(cause.bytes, 40960);
	assert_int_equal(cause.calls, 12);
	free_step(&step);
}

/* Writes of that many bytes in all, which take ns in all. */

static void whether_calls_blocked_is_known_of_those_with_arguments(void **state)
{
	struct step step = make_step(100 * MS);
	struct cause cause;

	wait_on(&step, 0x10, 60 * MS);
	cause = find(*state, &step, NULL);
	assert_true(cause.blocked_known);
	assert_int_equal(cause.blocked, 1);
	add_call(&step, "futex", MS)->header.flags = 0;
	assert_false(find(*state, &step, NULL).blocked_known);
	free_step(&step);
}

static void lost_calls_are_said(void **state)
{
	struct step step = make_step(100 * MS);
	struct cause cause;

	wait_on(&step, 0x10, 60 * MS);
	step.record.sums[FBT_FUTEX].calls++;
	cause = find(*state, &step, NULL);
	assert_true(cause.calls_known && cause.calls_partial);
	step.record.sums[FBT_FUTEX].calls--;
	step.record.lost_calls = 1;
	assert_true(find(*state, &step, NULL).calls_partial);
	step.record.lost_calls = 0;
	step.calls_truncated = true;
	assert_true(find(*state, &step, NULL).calls_partial);
	free_step(&step);
}

static void calls_that_were_not_sent_are_not_known(void **state)
{
	struct step step = make_step(100 * MS);
	struct cause cause;

	step.record.sums[FBT_FUTEX] = (struct fbt_sum){.ns = 60 * MS, .calls = 4};
	cause = find(*state, &step, NULL);
	assert_int_equal(cause.kind, CAUSE_LOCK_CONTENTION);
	assert_int_equal(cause.time_ns, 60 * MS);
	assert_false(cause.calls_known);
	assert_false(cause.calls_partial);
	assert_int_equal(cause.calls + cause.nr_calls + cause.lock, 0);
}

/*
 * Calls are assigned to the interval in which they return. Of a call that began earlier, only the
 * part within the interval counts.
 */
static void an_interval_has_of_a_call_what_lies_between_its_edges(void **state)
{
	struct step step = make_step(200 * MS);
	struct cause_times times;
	struct cause cause;
	struct fbt_call *call;

	step.record.kind = 0;
	step.record.end_ns = step.record.start_ns + 100 * MS;
	call = add_call(&step, "futex", S);
	call->start_ns = step.record.start_ns - S + 30 * MS;
	add_call(&step, "read", 40 * MS)->start_ns = step.record.start_ns + 50 * MS;
	/* The sum as measured. It includes the call of another thread that still waits. */
	step.record.sums[FBT_FUTEX] = (struct fbt_sum){.ns = 36 * MS, .calls = 2};
	times = split(*state, &step);
	assert_int_equal(times.ns[CAUSE_LOCK_CONTENTION], 36 * MS);
	assert_int_equal(times.ns[CAUSE_FILE_IO], 40 * MS);
	assert_int_equal(times.ns[CAUSE_COMPUTE], 124 * MS);
	cause = find(*state, &step,
		     &(struct cause_times){
			     .ns = {[CAUSE_COMPUTE] = 200 * MS, [CAUSE_FILE_IO] = 40 * MS}});
	assert_int_equal(cause.kind, CAUSE_LOCK_CONTENTION);
	assert_int_equal(cause.nr_ns, 30 * MS);
	/*
	 * The kernel reads an interval's two edges at different instants, so the number of calls
	 * proves nothing.
	 */
	assert_true(cause.calls_known);
	assert_false(cause.calls_partial);
	step.record.lost_calls = 1;
	assert_true(find(*state, &step, NULL).calls_partial);
	free_step(&step);
}

static void thousands_of_locks_are_no_trouble(void **state)
{
	struct step step = make_step(100 * MS);
	struct cause cause;

	wait_on(&step, 0x10, 20 * MS);
	for (uint64_t i = 0; i < 5000; i++)
		wait_on(&step, 0x1000 + i * 64, 10 * US);
	cause = find(*state, &step, NULL);
	assert_int_equal(cause.lock, 0x10);
	assert_int_equal(cause.calls, 5001);
	free_step(&step);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_window, teardown_window)
	const struct CMUnitTest tests[] = {
		TEST(growth_decides_not_size),
		TEST(compute_wins_no_tie),
		TEST(where_nothing_grew_the_largest_part_is_named),
		TEST(a_step_of_nothing_is_compute),
		TEST(what_calls_would_explain_is_unknown_where_they_were_not_traced),
		TEST(each_part_can_be_the_cause),
		TEST(time_without_a_cpu_and_faults_can_be_the_cause),
		TEST(locks_are_named_by_the_time_waited_for_them),
		TEST(memory_is_counted_in_bytes),
		TEST(driver_calls_are_named_by_command_and_its_file),
		TEST(file_io_is_named_by_the_file_with_the_most_time),
		TEST(whether_calls_blocked_is_known_of_those_with_arguments),
		TEST(lost_calls_are_said),
		TEST(calls_that_were_not_sent_are_not_known),
		TEST(an_interval_has_of_a_call_what_lies_between_its_edges),
		TEST(thousands_of_locks_are_no_trouble),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
