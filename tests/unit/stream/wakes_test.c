/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <cmocka.h>

#include "stream/wakes.h"

#define FUTEX 202
#define READ  0
#define SLEEP 230

/*
 * Tells a waker's history from old to new. Times are in us from 1,000,000, where the history
 * begins.
 */
struct story {
	struct fbt_ring_wake wake;
	uint64_t busy_us;
	uint64_t delay_us;
};

static uint64_t at(uint64_t us)
{
	return (1000000 + us) * 1000;
}

static struct story begin(uint64_t start_us)
{
	return (struct story){.wake = {.tgid = 7,
				       .tid = 8,
				       .start_ns = at(start_us),
				       .waker = {.since_ns = at(0), .past = {.tid = 9}}},
			      .delay_us = 5000000};
}

/* A long call, at whose end the waker waited delay_us for a CPU. */
static void call(struct story *story, uint32_t nr, uint64_t from_us, uint64_t to_us,
		 uint64_t delay_us)
{
	struct fbt_past *past = &story->wake.waker.past;

	story->busy_us += to_us - from_us;
	story->delay_us += delay_us;
	past->calls[past->count++ % FBT_PAST_CALLS] =
		(struct fbt_past_call){.end_ns = at(to_us),
				       .duration_ns = (to_us - from_us) * 1000,
				       .busy_ns = story->busy_us * 1000,
				       .delay_ns = story->delay_us * 1000,
				       .call_delay_ns = (uint32_t)delay_us * 1000,
				       .nr = nr};
}

/* Time outside of long calls: short calls and waits for a CPU. */
static void between(struct story *story, uint64_t busy_us, uint64_t delay_us)
{
	story->busy_us += busy_us;
	story->delay_us += delay_us;
}

static uint64_t sum_of(const struct fbt_wake *wake)
{
	return wake->cpu_ns + wake->delay_ns + wake->call_ns + wake->unknown_ns +
	       wake->fault_wait_ns + wake->off_ns;
}

static struct fbt_wake end(struct story *story, uint64_t wake_us)
{
	struct fbt_waker *waker = &story->wake.waker;
	struct fbt_wake wake;

	waker->wake_ns = at(wake_us);
	waker->busy_ns = story->busy_us * 1000;
	waker->delay_ns = story->delay_us * 1000;
	wake_split(&story->wake, &wake);
	if (!(wake.flags & FBT_WAKE_ROW))
		assert_int_equal(sum_of(&wake), wake.wake_ns - wake.start_ns);
	assert_int_equal(wake.stopped_ns, 0);
	assert_in_range(wake.nr_ns, 0, wake.call_ns);
	return wake;
}

static void assert_split(const struct fbt_wake *wake, uint64_t cpu_us, uint64_t delay_us,
			 uint64_t call_us, uint64_t unknown_us)
{
	assert_int_equal(wake->cpu_ns, cpu_us * 1000);
	assert_int_equal(wake->delay_ns, delay_us * 1000);
	assert_int_equal(wake->call_ns, call_us * 1000);
	assert_int_equal(wake->unknown_ns, unknown_us * 1000);
}

static void a_worker_that_is_woken_and_computes_has_computed(void **state)
{
	struct story story = begin(1000);
	struct fbt_wake wake;

	story.wake.waker.flags = FBT_WAKE_ALL;
	call(&story, FUTEX, 100, 1010, 0);
	wake = end(&story, 61010);
	assert_split(&wake, 60000, 0, 10, 0);
	assert_int_equal(wake.nr, FUTEX);
	assert_int_equal(wake.nr_ns, 10000);
	assert_int_equal(wake.tgid, 7);
	assert_int_equal(wake.tid, 8);
	assert_int_equal(wake.waker_tid, 9);
	assert_int_equal(wake.flags, FBT_WAKE_ALL);
	assert_int_equal(wake.header.size, sizeof(wake));
}

static void a_worker_that_was_given_its_work_earlier_computed_in_the_wait_only(void **state)
{
	struct story story = begin(1000);
	struct fbt_wake wake;

	call(&story, FUTEX, 100, 500, 0);
	wake = end(&story, 61000);
	assert_split(&wake, 60000, 0, 0, 0);
}

static void a_worker_without_a_cpu_waited_for_it(void **state)
{
	struct story story = begin(1000);
	struct fbt_wake wake;

	call(&story, FUTEX, 100, 31000, 29900);
	between(&story, 0, 7000);
	wake = end(&story, 61000);
	assert_split(&wake, 23000, 36900, 100, 0);
}

static void short_calls_are_no_work(void **state)
{
	struct story story = begin(1000);
	struct fbt_wake wake;

	call(&story, FUTEX, 100, 1000, 0);
	between(&story, 12000, 0);
	wake = end(&story, 61000);
	assert_split(&wake, 48000, 0, 12000, 0);
	assert_int_equal(wake.nr_ns, 0);
}

/* Half of that time was before the wait. */
static void of_a_stretch_that_began_before_the_wait_a_part_counts(void **state)
{
	struct story story = begin(11000);
	struct fbt_wake wake;

	call(&story, FUTEX, 100, 1000, 0);
	between(&story, 4000, 2000);
	wake = end(&story, 21000);
	assert_split(&wake, 7000, 1000, 2000, 0);
}

static void the_call_that_it_was_in_is_named(void **state)
{
	struct story story = begin(1000);
	struct fbt_wake wake;

	call(&story, FUTEX, 100, 2000, 0);
	call(&story, SLEEP, 3000, 10000, 0);
	call(&story, READ, 11000, 16000, 500);
	call(&story, READ, 17000, 20000, 0);
	wake = end(&story, 21000);
	assert_split(&wake, 4000, 500, 15500, 0);
	assert_int_equal(wake.nr, READ);
	assert_int_equal(wake.nr_ns, 7500000);
}

static void what_was_before_the_wait_is_not_in_it(void **state)
{
	struct story story = begin(50000);
	struct fbt_wake wake;

	call(&story, SLEEP, 100, 30000, 0);
	call(&story, FUTEX, 40000, 50000, 5000);
	wake = end(&story, 60000);
	assert_split(&wake, 10000, 0, 0, 0);
	assert_int_equal(wake.nr_ns, 0);
}

static void what_is_older_than_its_history_is_unknown(void **state)
{
	struct story story = begin(0);
	struct fbt_wake wake;

	for (uint64_t i = 0; i < FBT_PAST_CALLS + 1; i++)
		call(&story, SLEEP, i * 2000 + 1000, i * 2000 + 2000, 0);
	wake = end(&story, 20000);
	/* The first call, which ended at 2000, has left the history. The second began at 3000. */
	assert_split(&wake, 9000, 0, 8000, 3000);
}

static void a_thread_without_history_was_there_since_it_is_known(void **state)
{
	struct story story = begin(1000);
	struct fbt_wake wake;

	between(&story, 300, 0);
	story.wake.waker.since_ns = at(1000);
	wake = end(&story, 2000);
	assert_split(&wake, 700, 0, 300, 0);
	story.wake.waker.since_ns = at(1500);
	wake = end(&story, 2000);
	assert_int_equal(wake.unknown_ns, 500000);
	story.wake.waker.since_ns = UINT64_MAX;
	wake = end(&story, 2000);
	assert_split(&wake, 0, 0, 0, 1000);
}

/* Sets the waker's clocks as of the end of its latest call, or as of the wake. */
static void set_clocks(struct story *story, bool at_wake, uint64_t cpu_us, uint32_t switches,
		       uint32_t faults)
{
	struct fbt_waker *waker = &story->wake.waker;
	struct fbt_past_call *call = &waker->past.calls[(waker->past.count - 1) % FBT_PAST_CALLS];

	if (at_wake) {
		waker->cpu_ns = cpu_us * 1000;
		waker->switches = switches;
		waker->faults = faults;
		waker->minor_faults = 5 * faults;
	} else {
		call->cpu_ns = cpu_us * 1000;
		call->switches = switches;
		call->faults = faults;
		call->minor_faults = 5 * faults;
	}
}

/* 60 ms, of which the waker computed for 15 ms and waited for a CPU for 5 ms. */
static struct fbt_wake sleep_outside(uint32_t switches, uint32_t faults)
{
	struct story story = begin(1000);

	call(&story, FUTEX, 100, 1000, 0);
	set_clocks(&story, false, 700, 10, 3);
	between(&story, 2000, 5000);
	set_clocks(&story, true, 15700, 10 + switches, 3 + faults);
	return end(&story, 61000);
}

static void a_worker_that_slept_outside_of_calls_did_not_compute(void **state)
{
	struct fbt_wake wake = sleep_outside(1, 0);

	/* Its short calls may have slept too, so they are not counted as off the CPU. */
	assert_int_equal(wake.off_ns, 38000000);
	assert_split(&wake, 15000, 5000, 2000, 0);
	wake = sleep_outside(1, 7);
	assert_int_equal(wake.off_ns, 0);
	assert_int_equal(wake.fault_wait_ns, 38000000);
	assert_int_equal(wake.faults, 7);
	assert_int_equal(wake.minor_faults, 35);
	/* The waker was never switched out, so interrupts or the host took the time. */
	wake = sleep_outside(0, 0);
	assert_int_equal(wake.off_ns, 0);
	assert_split(&wake, 53000, 5000, 2000, 0);
}

/* The time off the CPU before a call is the sum that is left if the call slept all of its time. */
static void of_what_was_before_a_call_the_least_counts(void **state)
{
	struct story story = begin(1000);
	struct fbt_wake wake;

	call(&story, FUTEX, 100, 1000, 0);
	set_clocks(&story, false, 500, 10, 0);
	call(&story, SLEEP, 41000, 51000, 2000);
	set_clocks(&story, false, 10500, 12, 0);
	set_clocks(&story, true, 20500, 12, 0);
	wake = end(&story, 61000);
	assert_int_equal(wake.off_ns, 30000000);
	assert_split(&wake, 20000, 2000, 8000, 0);
	/* Half of that time was before the wait. Nothing is known of a thread without a clock. */
	story.wake.start_ns = at(21000);
	wake = end(&story, 61000);
	assert_int_equal(wake.off_ns, 15000000);
	story.wake.waker.past.calls[0].cpu_ns = 0;
	wake = end(&story, 61000);
	assert_int_equal(wake.off_ns, 0);
}

/* The last call of 5 ms has only the end of it. */
static void a_wait_for_the_gil_begins_with_its_first_call(void **state)
{
	struct story story = begin(72000);
	struct fbt_wake wake;

	call(&story, FUTEX, 100, 1000, 0);
	call(&story, READ, 1000, 71000, 0);
	wake = end(&story, 77000);
	assert_split(&wake, 5000, 0, 0, 0);
	assert_int_equal(wake.flags, 0);
	story.wake.since_ns = at(1000);
	wake = end(&story, 77000);
	assert_split(&wake, 6000, 0, 70000, 0);
	assert_int_equal(wake.flags, FBT_WAKE_ROW);
	assert_int_equal(wake.nr, READ);
	assert_int_equal(wake.nr_ns, 70000000);
	assert_int_equal(wake.start_ns, at(72000));
	assert_int_equal(sum_of(&wake), 76000000);
}

static void before_it_took_the_gil_a_thread_kept_nobody_waiting(void **state)
{
	struct story story = begin(72000);
	struct fbt_wake wake;

	call(&story, FUTEX, 1000, 61000, 0);
	story.wake.since_ns = at(1000);
	story.wake.waker.took_ns = at(60500);
	wake = end(&story, 77000);
	assert_split(&wake, 16000, 0, 500, 0);
	/* In the last call: that is all there is. */
	story.wake.waker.took_ns = at(74000);
	wake = end(&story, 77000);
	assert_split(&wake, 5000, 0, 0, 0);
	assert_int_equal(wake.flags, 0);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *seed >> 20;
}

/* The kernel side is trusted, but reads its clocks and counters at different instants. */
static void parts_sum_up_whatever_the_history_says(void **state)
{
	uint64_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		struct story story = begin(next_random(&seed) % 3000);
		struct fbt_past *past = &story.wake.waker.past;

		past->count = (uint32_t)(next_random(&seed) % 20);
		for (int i = 0; i < FBT_PAST_CALLS; i++)
			past->calls[i] = (struct fbt_past_call){
				.end_ns = at(next_random(&seed) % 4000),
				.duration_ns = next_random(&seed) % 2000000,
				.busy_ns = next_random(&seed) % 5000000,
				.delay_ns = next_random(&seed) % 5000000,
				.call_delay_ns = (uint32_t)(next_random(&seed) % 3000000),
				.cpu_ns = next_random(&seed) % 4000000,
				.switches = (uint32_t)(next_random(&seed) % 5),
				.faults = (uint32_t)(next_random(&seed) % 2),
				.nr = (uint32_t)(next_random(&seed) % 3)};
		story.wake.waker.cpu_ns = next_random(&seed) % 4000000;
		story.wake.waker.switches = (uint32_t)(next_random(&seed) % 5);
		story.busy_us = next_random(&seed) % 6000;
		story.delay_us = next_random(&seed) % 6000;
		end(&story, next_random(&seed) % 5000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_that_is_woken_and_computes_has_computed),
		cmocka_unit_test(
			a_worker_that_was_given_its_work_earlier_computed_in_the_wait_only),
		cmocka_unit_test(a_worker_without_a_cpu_waited_for_it),
		cmocka_unit_test(short_calls_are_no_work),
		cmocka_unit_test(of_a_stretch_that_began_before_the_wait_a_part_counts),
		cmocka_unit_test(the_call_that_it_was_in_is_named),
		cmocka_unit_test(what_was_before_the_wait_is_not_in_it),
		cmocka_unit_test(what_is_older_than_its_history_is_unknown),
		cmocka_unit_test(a_thread_without_history_was_there_since_it_is_known),
		cmocka_unit_test(a_worker_that_slept_outside_of_calls_did_not_compute),
		cmocka_unit_test(of_what_was_before_a_call_the_least_counts),
		cmocka_unit_test(a_wait_for_the_gil_begins_with_its_first_call),
		cmocka_unit_test(before_it_took_the_gil_a_thread_kept_nobody_waiting),
		cmocka_unit_test(parts_sum_up_whatever_the_history_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
