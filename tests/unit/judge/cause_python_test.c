/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A step that CPython delays: waits for the interpreter lock, and garbage collections. */
#include "judged_fixture.h"

#include <errno.h>
#include "judge/cause.h"
#include "judge/text.h"

enum { GIL = 0x1000, GIL_END = 0x2000, WAIT_BITSET = 137, WAKE = 129 };

struct fixture {
	struct window *window;
	struct step step;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	const struct fbt_python python = {
		.tgid = 7, .minor = 11, .gil_start = GIL, .gil_end = GIL_END};
	struct fbt_thread_name thread = {.tgid = 7, .tid = 8, .comm = "hog"};

	assert_non_null(fixture);
	fixture->window = new_window();
	assert_int_equal(window__set_python(fixture->window, &python, "/usr/bin/python3.11"), 0);
	assert_int_equal(window__add_thread(fixture->window, &thread), 0);
	fixture->step = make_step(100 * MS);
	fixture->step.stalls.gil_known = fixture->step.stalls.gc_known = true;
	fixture->step.stalls.record.gc_generation = FBT_GENERATION_UNKNOWN;
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	vec_free(&fixture->step.wakes);
	free_step(&fixture->step);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

static struct fbt_call *add_futex(struct fixture *fixture, uint64_t address, uint64_t operation,
				  uint64_t ns, int64_t ret)
{
	struct fbt_call *call = add_call(&fixture->step, "futex", ns);

	call->header.flags |= FBT_CALL_BLOCKED;
	call->args[0] = address;
	call->args[1] = operation;
	call->ret = ret;
	return call;
}

/*
 * Waits of 5 ms that time out, then a wait of 3 ms that thread tid ends. The caller fills in what
 * that thread did meanwhile.
 */
static struct fbt_wake *wait_for(struct fixture *fixture, int time_outs, uint32_t tid)
{
	struct fbt_wake wake = {
		.tgid = 7, .tid = 7, .nr = nr_of("clock_nanosleep"), .waker_tid = tid};
	struct fbt_call *call;

	for (int i = 0; i < time_outs; i++) {
		add_futex(fixture, GIL + 8, WAIT_BITSET, 5 * MS, -ETIMEDOUT);
		/* Between two waits, CPython releases a mutex. */
		add_futex(fixture, GIL + 16, WAKE, 0, 0);
	}
	call = add_futex(fixture, GIL + 8, WAIT_BITSET, 3 * MS, 0);
	wake.start_ns = call->start_ns;
	wake.wake_ns = call->start_ns + 3 * MS;
	assert_int_equal(vec_push(&fixture->step.wakes, wake), 0);
	return &fixture->step.wakes.items[fixture->step.wakes.count - 1];
}

static struct cause_times split(struct fixture *fixture)
{
	struct cause_times times;
	uint64_t sum = 0;

	cause_split(fixture->window, &fixture->step, &times);
	for (int i = 0; i < CAUSE_COUNT; i++)
		sum += times.ns[i];
	assert_int_equal(sum, step_total_ns(&fixture->step));
	return times;
}

static enum cause_kind cause_of(struct fixture *fixture, const char *said)
{
	struct cause_times times = split(fixture);
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 100 * MS}};
	char text[EVIDENCE_SIZE];
	struct cause cause;

	cause_find(fixture->window, &fixture->step, &times, &usual, &cause);
	cause_describe(&cause, fixture->window, text, sizeof(text));
	assert_string_equal(text, said);
	return cause.kind;
}

static void a_wait_for_the_gil_is_none_for_a_lock(void **state)
{
	struct fixture *fixture = *state;

	wait_for(fixture, 4, 8)->cpu_ns = 3 * MS;
	add_futex(fixture, GIL_END, WAIT_BITSET, 2 * MS, 0);
	assert_int_equal(split(fixture).ns[CAUSE_GIL], 23 * MS);
	assert_int_equal(split(fixture).ns[CAUSE_LOCK_CONTENTION], 2 * MS);
	/* The lock's holder computes, but that is not work of this step. */
	assert_int_equal(split(fixture).worker_ns, 0);
}

static void the_holder_is_the_one_that_ended_the_last_of_its_waits(void **state)
{
	struct fixture *fixture = *state;

	wait_for(fixture, 4, 8)->cpu_ns = 3 * MS;
	assert_int_equal(cause_of(fixture, "waited 23.0 ms (usually none) for the GIL in 5 calls, "
					   "23.0 ms of it for thread 8 \"hog\", which computed"),
			 CAUSE_GIL);
}

static void a_holder_in_a_call_is_named_with_it(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = wait_for(fixture, 4, 8);

	wake->call_ns = wake->nr_ns = 3 * MS;
	assert_int_equal(cause_of(fixture, "waited 23.0 ms (usually none) for the GIL in 5 calls, "
					   "23.0 ms of it for thread 8 \"hog\", which was in "
					   "clock_nanosleep"),
			 CAUSE_GIL);
}

static void what_the_holder_did_most_of_the_time_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = wait_for(fixture, 4, 8);

	assert_int_equal(cause_of(fixture, "waited 23.0 ms (usually none) for the GIL in 5 calls, "
					   "23.0 ms of it for thread 8 \"hog\""),
			 CAUSE_GIL);
	wake->cpu_ns = MS;
	wake->fault_wait_ns = 2 * MS;
	assert_int_equal(cause_of(fixture, "waited 23.0 ms (usually none) for the GIL in 5 calls, "
					   "23.0 ms of it for thread 8 \"hog\", which waited for a "
					   "disk in page faults"),
			 CAUSE_GIL);
	wake->off_ns = 3 * MS;
	assert_int_equal(cause_of(fixture, "waited 23.0 ms (usually none) for the GIL in 5 calls, "
					   "23.0 ms of it for thread 8 \"hog\", which was off the "
					   "CPU outside of calls"),
			 CAUSE_GIL);
	wake->stopped_ns = 4 * MS;
	wake->call_ns = wake->nr_ns = 5 * MS;
	assert_int_equal(cause_of(fixture, "waited 23.0 ms (usually none) for the GIL in 5 calls, "
					   "23.0 ms of it for thread 8 \"hog\", which was in "
					   "clock_nanosleep"),
			 CAUSE_GIL);
}

static void a_holder_in_calls_of_several_waits_is_named_with_them(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 2; i++) {
		struct fbt_wake *wake = wait_for(fixture, 1, 8);

		wake->cpu_ns = 2 * MS;
		wake->call_ns = wake->nr_ns = 3 * MS;
	}
	assert_int_equal(cause_of(fixture, "waited 16.0 ms (usually none) for the GIL in 4 calls, "
					   "16.0 ms of it for thread 8 \"hog\", which was in "
					   "clock_nanosleep"),
			 CAUSE_GIL);
}

static void a_holder_that_collected_is_named_for_that(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_wake *wake = wait_for(fixture, 4, 8);

	wake->cpu_ns = 3 * MS;
	wake->flags = FBT_WAKE_GC;
	assert_int_equal(cause_of(fixture, "waited 23.0 ms (usually none) for the GIL in 5 calls, "
					   "23.0 ms of it for thread 8 \"hog\", which collected "
					   "garbage"),
			 CAUSE_GIL);
}

static void of_several_holders_the_one_is_named_that_kept_it_longest(void **state)
{
	struct fixture *fixture = *state;

	wait_for(fixture, 1, 9)->cpu_ns = 3 * MS;
	wait_for(fixture, 5, 8)->cpu_ns = 3 * MS;
	assert_int_equal(cause_of(fixture, "waited 36.0 ms (usually none) for the GIL in 8 calls, "
					   "28.0 ms of it for thread 8 \"hog\", which computed"),
			 CAUSE_GIL);
}

static void a_wait_whose_end_is_not_known_is_of_no_later_holder(void **state)
{
	struct fixture *fixture = *state;

	wait_for(fixture, 4, 9);
	vec_free(&fixture->step.wakes);
	wait_for(fixture, 1, 8)->cpu_ns = 3 * MS;
	assert_int_equal(cause_of(fixture, "waited 31.0 ms (usually none) for the GIL in 7 calls, "
					   "8.00 ms of it for thread 8 \"hog\", which computed"),
			 CAUSE_GIL);
}

static void without_records_the_sum_stands_for_the_waits(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.record.sums[FBT_FUTEX] = (struct fbt_sum){.ns = 50 * MS, .calls = 9};
	fixture->step.stalls.record.gil_ns = 40 * MS;
	assert_int_equal(split(fixture).ns[CAUSE_GIL], 40 * MS);
	assert_int_equal(split(fixture).ns[CAUSE_LOCK_CONTENTION], 10 * MS);
	assert_int_equal(cause_of(fixture, "waited 40.0 ms (usually none) for the GIL; the calls "
					   "were not recorded"),
			 CAUSE_GIL);
}

static void waits_are_counted_once(void **state)
{
	struct fixture *fixture = *state;

	wait_for(fixture, 4, 8);
	fixture->step.stalls.record.gil_ns = 23 * MS;
	assert_int_equal(split(fixture).ns[CAUSE_GIL], 23 * MS);
}

static void without_an_interpreter_they_are_waits_for_a_lock(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_python none = {.tgid = 7, .minor = 11};

	wait_for(fixture, 4, 8);
	assert_int_equal(window__set_python(fixture->window, &none, ""), 0);
	assert_int_equal(split(fixture).ns[CAUSE_GIL], 0);
	assert_int_equal(split(fixture).ns[CAUSE_LOCK_CONTENTION], 23 * MS);
}

static void set_collections(struct fixture *fixture, uint32_t count, uint64_t ns,
			    uint64_t longest_ns)
{
	struct fbt_stalls *stalls = &fixture->step.stalls.record;

	stalls->gc_count = count;
	stalls->gc_ns = ns + MS;
	stalls->gc_own_ns = ns;
	stalls->gc_longest_ns = longest_ns;
	stalls->gc_generation = 2;
}

static void a_collection_is_no_work(void **state)
{
	struct fixture *fixture = *state;

	set_collections(fixture, 3, 60 * MS, 58 * MS);
	assert_int_equal(split(fixture).ns[CAUSE_GARBAGE_COLLECTION], 60 * MS);
	assert_int_equal(split(fixture).ns[CAUSE_COMPUTE], 40 * MS);
	assert_int_equal(cause_of(fixture, "collected garbage for 60.0 ms (usually none), 3 "
					   "collections, the longest 58.0 ms of generation 2"),
			 CAUSE_GARBAGE_COLLECTION);
}

static void one_collection_is_told_with_its_generation_if_that_is_known(void **state)
{
	struct fixture *fixture = *state;

	set_collections(fixture, 1, 60 * MS, 61 * MS);
	cause_of(fixture, "collected garbage for 60.0 ms (usually none), one collection of "
			  "generation 2");
	fixture->step.stalls.record.gc_generation = FBT_GENERATION_UNKNOWN;
	cause_of(fixture, "collected garbage for 60.0 ms (usually none), one collection");
	fixture->step.stalls.record.gc_count = 0;
	cause_of(fixture, "collected garbage for 60.0 ms (usually none), in one that has not "
			  "ended");
}

static void collections_take_no_more_than_is_left(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->record.fault_ps = 1000 * 1000;
	fixture->step.record.minor_faults = 50000;
	set_collections(fixture, 1, 90 * MS, 91 * MS);
	assert_int_equal(split(fixture).ns[CAUSE_PAGE_FAULTS], 50 * MS);
	assert_int_equal(split(fixture).ns[CAUSE_GARBAGE_COLLECTION], 50 * MS);
	assert_int_equal(split(fixture).ns[CAUSE_COMPUTE], 0);
}

static void a_wait_for_the_gil_begins_with_its_first_call(void **state)
{
	struct fixture *fixture = *state;
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 100 * MS}}, times;
	struct cause cause;

	wait_for(fixture, 4, 8)->cpu_ns = 3 * MS;
	times = split(fixture);
	cause_find(fixture->window, &fixture->step, &times, &usual, &cause);
	assert_int_equal(cause.waker.tid, 8);
	assert_int_equal(cause.waker.after_ns, 23 * MS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_wait_for_the_gil_is_none_for_a_lock),
		TEST(a_wait_for_the_gil_begins_with_its_first_call),
		TEST(the_holder_is_the_one_that_ended_the_last_of_its_waits),
		TEST(a_holder_in_a_call_is_named_with_it),
		TEST(what_the_holder_did_most_of_the_time_is_told),
		TEST(a_holder_in_calls_of_several_waits_is_named_with_them),
		TEST(a_holder_that_collected_is_named_for_that),
		TEST(of_several_holders_the_one_is_named_that_kept_it_longest),
		TEST(a_wait_whose_end_is_not_known_is_of_no_later_holder),
		TEST(without_records_the_sum_stands_for_the_waits),
		TEST(waits_are_counted_once),
		TEST(without_an_interpreter_they_are_waits_for_a_lock),
		TEST(a_collection_is_no_work),
		TEST(one_collection_is_told_with_its_generation_if_that_is_known),
		TEST(collections_take_no_more_than_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
