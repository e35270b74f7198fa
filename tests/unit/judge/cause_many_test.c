/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Causes that are many calls, each of them short: tiny writes, threads that are made, signals. */
#include "cause_fixture.h"

#define WAIT_PRIVATE 128

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

/* Their reader stops for a while: a pipe takes none until there is room again. */
static void a_few_writes_that_wait_are_not_tiny(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 100 * MS}};
	struct cause cause;

	name_file(*state, 2, S_IFIFO, "pipe:[5]");
	for (uint64_t waits = 0; waits <= 3; waits++) {
		struct step step = make_step(100 * MS);

		write_tiny(&step, 40, 4000, 200 * US);
		for (uint64_t i = 0; i < waits; i++) {
			struct fbt_call *call = add_call(&step, "write", 90 * MS / waits);

			call->header.flags |= FBT_CALL_BLOCKED;
			call->file = 2;
			call->ret = 100;
		}
		cause = find(*state, &step, &usual);
		assert_int_equal(cause.kind, waits ? CAUSE_SOCKET_IO : CAUSE_TINY_WRITES);
		assert_int_equal(cause.wants_waker, waits != 0);
		assert_int_equal(cause.calls, 40 + waits);
		free_step(&step);
	}
}

/* None is half of it, but each is long: what is known of the longest one belongs together. */
static void a_wait_in_several_pieces_has_the_stack_of_the_longest(void **state)
{
	struct step step = make_step(200 * MS);
	struct fbt_stack stack = {.tid = 7, .owner = 7, .nr = nr_of("nanosleep"), .count = 1};
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 200 * MS}};
	struct cause cause;

	for (uint32_t i = 0; i < 3; i++) {
		stack.start_ns = add_call(&step, "nanosleep", (i == 1 ? 25 : 20) * MS)->start_ns;
		stack.codes[0] = i == 1 ? 6 : 5;
		assert_int_equal(vec_push(&step.stacks, stack), 0);
	}
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_SLEEP);
	assert_int_equal(cause.stack.codes[0], 6);
	vec_free(&step.stacks);
	free_step(&step);
}

/* One call is long enough for a stack of its own, but most of the time is in the others. */
static void of_many_calls_the_commonest_stack_is_told(void **state)
{
	struct step step = make_step(100 * MS);
	struct fbt_stack stack = {.tid = 7, .owner = 7, .nr = nr_of("munmap"), .count = 1};
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 100 * MS}};
	struct cause cause;

	for (int i = 0; i < 100; i++) {
		stack.start_ns = add_call(&step, "munmap", 400 * US)->start_ns;
		stack.codes[0] = 5;
		if (i % 20 == 0)
			assert_int_equal(vec_push(&step.stacks, stack), 0);
	}
	stack.start_ns = add_call(&step, "munmap", 2 * MS)->start_ns;
	stack.codes[0] = 6;
	assert_int_equal(vec_push(&step.stacks, stack), 0);
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_ALLOCATION_CHURN);
	assert_int_equal(cause.stack.codes[0], 5);
	vec_free(&step.stacks);
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

/* A pool grows by a thread, which nobody joins. */
static void a_thread_claims_no_wait_that_another_thread_ended(void **state)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 100 * MS}};
	struct step step = make_step(400 * MS);
	struct fbt_wake wake = {.tgid = 7,
				.tid = 7,
				.waker_tid = 8,
				.flags = FBT_WAKE_LOCK,
				.call_ns = 300 * MS,
				.nr_ns = 300 * MS,
				.nr = nr_of("read")};
	struct cause cause;

	make_thread(&step, MS, MS / 10, 0);
	step.calls.items[5].header.flags = FBT_CALL_ARGS;
	wake.start_ns = wait_on(&step, 0x10, 300 * MS)->start_ns;
	wake.wake_ns = wake.start_ns + 300 * MS;
	assert_int_equal(vec_push(&step.wakes, wake), 0);
	cause = find(*state, &step, &usual);
	assert_int_equal(cause.kind, CAUSE_LOCK_CONTENTION);
	assert_int_equal(cause.waker.tid, 8);
	assert_int_equal(cause.lock, 0x10);
	/* Nor one of which it is not known who ended it, if that cannot have been the kernel. */
	vec_free(&step.wakes);
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_THREAD_CHURN);
	step.calls.items[step.calls.count - 1].args[1] = WAIT_PRIVATE;
	assert_int_equal(find(*state, &step, &usual).kind, CAUSE_LOCK_CONTENTION);
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_window, teardown_window)
	const struct CMUnitTest tests[] = {
		TEST(many_tiny_writes_are_a_cause_of_their_own),
		TEST(reads_as_usual_take_nothing_from_tiny_writes),
		TEST(a_few_writes_that_wait_are_not_tiny),
		TEST(a_wait_in_several_pieces_has_the_stack_of_the_longest),
		TEST(of_many_calls_the_commonest_stack_is_told),
		TEST(writes_that_fail_are_not_tiny),
		TEST(threads_claim_their_stacks_and_joins),
		TEST(threads_claim_one_wait_and_one_unmap_each),
		TEST(a_thread_claims_no_wait_that_another_thread_ended),
		TEST(mappings_far_from_a_clone_are_no_stacks),
		TEST(as_many_threads_as_usual_claim_nothing),
		TEST(one_more_thread_claims_no_more_than_has_grown),
		TEST(signals_explain_compute),
		TEST(signals_explain_nothing_that_a_lock_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
