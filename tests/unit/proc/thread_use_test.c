/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/thread_use.h"

static void add(thread_use_vec *threads, uint32_t tid, uint64_t cpu_ns, uint64_t wait_ns)
{
	struct thread_use use = {tid, cpu_ns, wait_ns};

	assert_int_equal(vec_push(threads, use), 0);
}

static void the_use_of_this_thread_is_what_its_clock_says(void **state)
{
	thread_use_vec before = {0}, after = {0};
	uint64_t start_ns;

	(void)state;
	if (thread_use_read(&before, (uint32_t)getpid()) == -ENOENT) {
		print_message("SKIP this kernel has no schedstat\n");
		vec_free(&before);
		skip();
	}
	start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < start_ns + 30 * NS_PER_MS)
		;
	assert_int_equal(thread_use_read(&after, (uint32_t)getpid()), 0);
	thread_use_since(&after, &before);
	assert_int_equal(after.count, 1);
	assert_int_equal(after.items[0].tid, getpid());
	assert_in_range(after.items[0].cpu_ns, 20 * NS_PER_MS, 60 * NS_PER_MS);
	vec_free(&before);
	vec_free(&after);
}

static void threads_that_did_nothing_are_left_out_the_busiest_come_first(void **state)
{
	thread_use_vec before = {0}, after = {0};

	(void)state;
	add(&before, 10, 1000, 0);
	add(&before, 11, 5000, 100);
	add(&before, 12, 7000, 0);
	add(&after, 10, 1200, 0);
	add(&after, 11, 5000, 100);
	add(&after, 12, 7900, 50);
	add(&after, 13, 300, 0);
	thread_use_since(&after, &before);
	assert_int_equal(after.count, 3);
	assert_int_equal(after.items[0].tid, 12);
	assert_int_equal(after.items[0].cpu_ns, 900);
	assert_int_equal(after.items[0].wait_ns, 50);
	assert_int_equal(after.items[1].tid, 13);
	assert_int_equal(after.items[2].tid, 10);
	vec_free(&before);
	vec_free(&after);
}

static void threads_that_wait_for_cpus_are_short_of_them(void **state)
{
	thread_use_vec threads = {0};

	(void)state;
	assert_false(thread_use_is_short(&threads, 1000));
	add(&threads, 10, 900, 190);
	assert_false(thread_use_is_short(&threads, 1000));
	threads.items[0].wait_ns = 250;
	assert_true(thread_use_is_short(&threads, 1000));
	/* The thread is hardly ever runnable, so a few waits do not matter. */
	threads.items[0].cpu_ns = 20;
	threads.items[0].wait_ns = 30;
	assert_false(thread_use_is_short(&threads, 1000));
	vec_free(&threads);
}

static void a_process_that_has_ended_is_told(void **state)
{
	thread_use_vec threads = {0};

	(void)state;
	assert_int_equal(thread_use_read(&threads, 0x7ffffff0), -ESRCH);
	assert_int_equal(threads.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_use_of_this_thread_is_what_its_clock_says),
		cmocka_unit_test(threads_that_did_nothing_are_left_out_the_busiest_come_first),
		cmocka_unit_test(threads_that_wait_for_cpus_are_short_of_them),
		cmocka_unit_test(a_process_that_has_ended_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
