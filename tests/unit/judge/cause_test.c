/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judged_fixture.h"

#include "judge/cause.h"
#include "judge/text.h"

static uint64_t sum_of(const struct cause_times *times)
{
	uint64_t sum = 0;

	for (int i = 0; i < CAUSE_COUNT; i++)
		sum += times->ns[i];
	return sum;
}

static struct cause_times split(const struct window *window, const struct step *step)
{
	struct cause_times times;

	cause_split(window, step, &times);
	assert_int_equal(sum_of(&times), step_total_ns(step));
	assert_int_equal(cause_work_ns(&times), times.ns[CAUSE_COMPUTE]);
	return times;
}

/* --- parts ---------------------------------------------------------------------------------- */

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

/* In a loop of calls, the time between two calls is overhead of the calls, not work. */
static void time_between_calls_close_to_each_other_is_theirs(void **state)
{
	struct step step = make_step(10 * MS);
	struct cause_times times;

	add_call(&step, "ioctl", 100 * US);
	add_call(&step, "ioctl", 100 * US)->start_ns += 999;
	add_call(&step, "futex", 100 * US)->start_ns += 400;
	add_call(&step, "futex", 100 * US)->start_ns += 1000;
	times = split(*state, &step);
	assert_int_equal(times.ns[CAUSE_DRIVER_CALLS], 200 * US + 999);
	assert_int_equal(times.ns[CAUSE_LOCK_CONTENTION], 200 * US + 400);
	assert_int_equal(cause_work_ns(&times), 10 * MS - 400 * US - 1399);
	/* In an interval, the next call may belong to another thread. */
	step.record.kind = 0;
	times = split(*state, &step);
	assert_int_equal(times.ns[CAUSE_DRIVER_CALLS], 200 * US);
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

/* --- the part that has grown most ----------------------------------------------------------- */

static struct cause find(const struct window *window, const struct step *step,
			 const struct cause_times *usual)
{
	struct cause_times times = split(window, step);
	struct cause cause;

	cause_find(window, step, &times, usual, &cause);
	return cause;
}

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

/* --- evidence ------------------------------------------------------------------------------- */

static struct fbt_call *wait_on(struct step *step, uint64_t lock, uint64_t ns)
{
	struct fbt_call *call = add_call(step, "futex", ns);

	call->args[0] = lock;
	call->header.flags |= FBT_CALL_BLOCKED;
	return call;
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
static void write_tiny(struct step *step, uint64_t calls, uint64_t bytes, uint64_t ns)
{
	for (uint64_t i = 0; i < calls; i++) {
		struct fbt_call *call = add_call(step, i % 2 ? "write" : "sendto", ns / calls);

		call->file = 2;
		call->ret = (int64_t)(bytes / calls + (i < bytes % calls));
	}
}

static struct cause find_writes(struct window *window, uint64_t calls, uint64_t bytes, uint64_t ns)
{
	struct step step = make_step(100 * MS);
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 100 * MS}};
	struct cause cause;

	name_file(window, 2, S_IFSOCK, "socket:[5]");
	write_tiny(&step, calls, bytes, ns);
	add_call(&step, "recvfrom", 32 * MS)->ret = 100000;
	cause = find(window, &step, &usual);
	free_step(&step);
	return cause;
}

static void many_tiny_writes_are_a_cause_of_their_own(void **state)
{
	struct cause cause = find_writes(*state, 32, 32 * 512 - 1, 32 * MS);

	assert_int_equal(cause.kind, CAUSE_TINY_WRITES);
	assert_int_equal(cause.calls, 32);
	assert_int_equal(cause.bytes, 32 * 512 - 1);
	assert_int_equal(cause.time_ns, 64 * MS);
	assert_int_equal(cause.writes_ns, 32 * MS);
	assert_int_equal(cause.file, 2);
	assert_int_equal(cause.file_ns, 32 * MS);
	assert_int_equal(find_writes(*state, 31, 31, 31 * MS).kind, CAUSE_SOCKET_IO);
	assert_int_equal(find_writes(*state, 32, 32 * 512, 32 * MS).kind, CAUSE_SOCKET_IO);
	assert_int_equal(find_writes(*state, 32, 0, 32 * MS).kind, CAUSE_TINY_WRITES);
	assert_int_equal(find_writes(*state, 64, 64, 31 * MS).kind, CAUSE_SOCKET_IO);
	assert_int_equal(find_writes(*state, 32, 32, 31 * MS).calls, 33);
}

/*
 * Only the usual time of all I/O is known. Usual reads must not shrink the extra time of tiny
 * writes.
 */
static void reads_as_usual_take_nothing_from_tiny_writes(void **state)
{
	struct cause_times usual = {
		.ns = {[CAUSE_COMPUTE] = 100 * MS, [CAUSE_SOCKET_IO] = 20 * MS}};
	struct step step = make_step(100 * MS);
	struct cause cause;

	name_file(*state, 2, S_IFSOCK, "socket:[5]");
	add_call(&step, "recvfrom", 20 * MS)->ret = 100000;
	write_tiny(&step, 50, 50, 25 * MS);
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_TINY_WRITES);
	assert_int_equal(cause.time_ns - cause.usual_ns, 25 * MS);
	assert_int_equal(cause.writes_ns, 25 * MS);
	free_step(&step);
}

static void writes_that_fail_are_not_tiny(void **state)
{
	struct step step = make_step(100 * MS);
	struct cause cause;

	for (int i = 0; i < 100; i++)
		add_call(&step, "write", MS)->ret = -11;
	cause = find(*state, &step, NULL);
	assert_int_equal(cause.kind, CAUSE_FILE_IO);
	assert_int_equal(cause.calls, 100);
	free_step(&step);
}

/* The calls by which glibc creates and joins a thread. */
static void make_thread(struct step *step, uint64_t clone_ns, uint64_t stack_ns, uint64_t join_ns)
{
	add_call(step, "mmap", stack_ns)->ret = 0x7f0000000000;
	add_call(step, "mprotect", stack_ns);
	add_call(step, "rt_sigprocmask", 0);
	add_call(step, "clone3", clone_ns)->ret = 1000;
	add_call(step, "futex", 0);
	wait_on(step, 0x7f0000000910, join_ns);
	add_call(step, "munmap", stack_ns);
}

static void threads_claim_their_stacks_and_joins(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 100 * MS}};
	struct step step = make_step(100 * MS);
	struct cause cause;

	for (int i = 0; i < 4; i++)
		make_thread(&step, 1 * MS, MS / 2, 5 * MS);
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_THREAD_CHURN);
	assert_int_equal(cause.time_ns, 4 * (1 * MS + 3 * MS / 2 + 5 * MS));
	assert_int_equal(cause.calls, 4 * 5);
	assert_int_equal(cause.threads_made, 4);
	free_step(&step);
}

static void threads_claim_one_wait_and_one_unmap_each(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 100 * MS}};
	struct step step = make_step(100 * MS);
	struct cause cause;

	/*
	 * One wait and one unmap before the thread is created, and one of each after it was joined.
	 */
	wait_on(&step, 0x10, 11 * MS);
	add_call(&step, "munmap", 4 * MS);
	make_thread(&step, 1 * MS, MS, 8 * MS);
	add_call(&step, "futex", MS);
	wait_on(&step, 0x10, 12 * MS);
	add_call(&step, "munmap", 3 * MS);
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_LOCK_CONTENTION);
	assert_int_equal(cause.time_ns, 24 * MS);
	assert_int_equal(cause.calls, 4);
	assert_int_equal(cause.blocked, 2);
	assert_int_equal(cause.lock, 0x10);
	free_step(&step);
}

static void mappings_far_from_a_clone_are_no_stacks(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 100 * MS}};
	struct step step = make_step(100 * MS);
	struct cause cause;

	add_call(&step, "mmap", 5 * MS);
	add_call(&step, "mmap", 6 * MS);
	add_call(&step, "clone3", MS)->ret = -11;
	add_call(&step, "getpid", 0);
	add_call(&step, "mmap", 7 * MS);
	for (int i = 0; i < 4; i++)
		add_call(&step, "getpid", 0);
	add_call(&step, "mmap", 9 * MS);
	add_call(&step, "mmap", 1 * MS);
	add_call(&step, "clone3", MS)->ret = 1000;
	add_call(&step, "mmap", 8 * MS);
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_ALLOCATION_CHURN);
	assert_int_equal(cause.time_ns, 35 * MS);
	assert_int_equal(cause.calls, 5);
	free_step(&step);
}

static void as_many_threads_as_usual_claim_nothing(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 100 * MS}, .threads_made = 2};
	struct step step = make_step(100 * MS);
	struct cause cause;

	make_thread(&step, 1 * MS, MS, 20 * MS);
	make_thread(&step, 1 * MS, MS, 20 * MS);
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_LOCK_CONTENTION);
	assert_int_equal(cause.time_ns, 40 * MS);
	usual.threads_made = 1;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_THREAD_CHURN);
	free_step(&step);
}

/* The usual cost of the usual threads was charged to other causes. */
static void one_more_thread_claims_no_more_than_has_grown(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 100 * MS,
					   [CAUSE_THREAD_CHURN] = 4 * MS,
					   [CAUSE_LOCK_CONTENTION] = 20 * MS,
					   [CAUSE_ALLOCATION_CHURN] = 4 * MS},
				    .threads_made = 4};
	struct step step = make_step(100 * MS);
	struct cause cause;

	for (int i = 0; i < 5; i++)
		make_thread(&step, MS, MS / 3, 5 * MS);
	add_call(&step, "pread64", 12 * MS);
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_FILE_IO);
	assert_int_equal(cause.time_ns, 12 * MS);
	usual.ns[CAUSE_FILE_IO] = 12 * MS;
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_THREAD_CHURN);
	assert_in_range(cause.time_ns, 10 * MS, 12 * MS);
	free_step(&step);
}

static struct cause find_signals(const struct window *window, int signals, uint32_t usual_signals,
				 uint64_t lock_ns)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 80 * MS}, .signals = usual_signals};
	struct step step = make_step(100 * MS);
	struct cause cause;

	for (int i = 0; i < signals; i++)
		add_call(&step, "rt_sigreturn", US);
	add_call(&step, "futex", lock_ns);
	cause = find(window, &step, &usual);
	free_step(&step);
	return cause;
}

static void signals_explain_compute(void **state)
{
	struct cause cause = find_signals(*state, 11, 0, MS);

	assert_int_equal(cause.kind, CAUSE_SIGNAL_STORM);
	assert_int_equal(cause.signals, 11);
	assert_int_equal(cause.calls, 11);
	assert_int_equal(cause.usual_ns, 0);
	/* 100 ms minus 1 ms of locks minus 80 ms of usual compute. */
	assert_int_equal(cause.time_ns, 19 * MS);
	assert_true(cause.estimated);
	assert_int_equal(find_signals(*state, 10, 0, MS).kind, CAUSE_COMPUTE);
	assert_int_equal(find_signals(*state, 20, 5, MS).kind, CAUSE_COMPUTE);
	assert_int_equal(find_signals(*state, 21, 5, MS).kind, CAUSE_SIGNAL_STORM);
	assert_int_equal(find_signals(*state, 100, 1u << 30, MS).kind, CAUSE_COMPUTE);
}

static void signals_explain_nothing_that_a_lock_does(void **state)
{
	assert_int_equal(find_signals(*state, 100, 0, 50 * MS).kind, CAUSE_LOCK_CONTENTION);
}

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
		TEST(categories_stand_for_calls_that_are_not_known),
		TEST(categories_stand_for_what_lost_calls_took),
		TEST(run_queue_and_faults_are_taken_out_of_work),
		TEST(time_between_calls_close_to_each_other_is_theirs),
		TEST(faults_take_no_more_than_is_left),
		TEST(parts_never_exceed_a_step_that_its_sums_exceed),
		TEST(parts_of_random_steps_sum_to_their_total),
		TEST(threads_and_signals_are_counted),
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
		TEST(many_tiny_writes_are_a_cause_of_their_own),
		TEST(reads_as_usual_take_nothing_from_tiny_writes),
		TEST(writes_that_fail_are_not_tiny),
		TEST(threads_claim_their_stacks_and_joins),
		TEST(threads_claim_one_wait_and_one_unmap_each),
		TEST(mappings_far_from_a_clone_are_no_stacks),
		TEST(as_many_threads_as_usual_claim_nothing),
		TEST(one_more_thread_claims_no_more_than_has_grown),
		TEST(signals_explain_compute),
		TEST(signals_explain_nothing_that_a_lock_does),
		TEST(whether_calls_blocked_is_known_of_those_with_arguments),
		TEST(lost_calls_are_said),
		TEST(calls_that_were_not_sent_are_not_known),
		TEST(an_interval_has_of_a_call_what_lies_between_its_edges),
		TEST(thousands_of_locks_are_no_trouble),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
