/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "child_fixture.h"
#include "stream/stacks.h"
#include "proc/process.h"

static void places_are_the_words_in_code(void **state)
{
	struct mapping code[] = {{.start = 0x1000, .end = 0x2000},
				 {.start = 0x5000, .end = 0x6000}};
	const mapping_vec maps = {.items = code, .count = 2, .capacity = 2};
	const uint64_t first[] = {0x1800, 7, 0x1800, 0x2000, 0x5fff, 0x6000};
	const uint64_t second[] = {0x1800, 0xfff, 0x3000};
	struct stacks stacks = {.threads = 0};

	(void)state;
	assert_int_equal(stacks_add(&stacks, &maps, 1, first, sizeof(first)), 0);
	assert_int_equal(stacks_add(&stacks, &maps, 2, second, sizeof(second)), 0);
	assert_int_equal(stacks.places.count, 2);
	assert_int_equal(stacks.places.items[0].address, 0x1800);
	assert_int_equal(stacks.places.items[0].samples, 2);
	assert_int_equal(stacks.places.items[1].address, 0x5fff);
	assert_int_equal(stacks.places.items[1].samples, 1);
	stacks_clear(&stacks);
}

static volatile int stop_spinning;

__attribute__((noinline)) static void spin(void)
{
	while (!stop_spinning)
		;
}

__attribute__((noinline)) static void spin_below(void)
{
	spin();
	stop_spinning++;
}

/* Samples the child until it is seen running. On a busy machine this may take several tries. */
static int sample(struct stacks *stacks, pid_t child)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + 10 * NS_PER_S;
	int err;

	do {
		stacks_clear(stacks);
		err = stacks_sample(stacks, (uint32_t)child, false);
	} while (!err && !stacks->places.count && clock_ns(CLOCK_MONOTONIC) < end_ns);
	return err;
}

/* Parent and child were not re-executed, so the code has the same addresses in both. */
static bool has_place_in(const struct stacks *stacks, void (*function)(void), size_t size)
{
	vec_for_each (place, &stacks->places) {
		if (place->address > (uintptr_t)function &&
		    place->address < (uintptr_t)function + size)
			return true;
	}
	return false;
}

static void a_busy_thread_is_seen_in_its_function_and_in_its_caller(void **state)
{
	struct stacks stacks = {.threads = 0};
	pid_t child = child_fork();
	int err;

	(void)state;
	if (!child) {
		spin_below();
		_exit(0);
	}
	err = sample(&stacks, child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	if (err == -EACCES || err == -ENOENT) {
		stacks_clear(&stacks);
		print_message("SKIP no samples here (%d)\n", err);
		skip();
	}
	assert_int_equal(err, 0);
	assert_int_equal(stacks.threads, 1);
	assert_true(stacks.samples > 0);
	assert_true(has_place_in(&stacks, spin, 40));
	assert_true(has_place_in(&stacks, spin_below, 40));
	stacks_clear(&stacks);
}

static void an_idle_process_has_no_places(void **state)
{
	struct stacks stacks = {.threads = 0};
	pid_t child = child_fork();
	int err;

	(void)state;
	if (!child) {
		pause();
		_exit(0);
	}
	child_await_state(child, 'S');
	err = stacks_sample(&stacks, (uint32_t)child, true);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(!err || err == -ENOENT);
	assert_int_equal(stacks.threads, 0);
	assert_int_equal(stacks.places.count, 0);
	stacks_clear(&stacks);
}

static void a_process_that_has_ended_has_no_stacks(void **state)
{
	struct stacks stacks;

	(void)state;
	assert_int_equal(stacks_sample(&stacks, 0x7ffffff0, true), -ESRCH);
	stacks_clear(&stacks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_are_the_words_in_code),
		cmocka_unit_test(a_busy_thread_is_seen_in_its_function_and_in_its_caller),
		cmocka_unit_test(an_idle_process_has_no_places),
		cmocka_unit_test(a_process_that_has_ended_has_no_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
