/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "search/text_rates.h"

#define MS 1000000ull

/* The busiest thread used 800 ms of a CPU, another one 10 ms. */
static bool is_busy(uint32_t tid, uint64_t ns)
{
	struct thread_use items[] = {{.tid = 7, .cpu_ns = 800 * MS}, {.tid = 8, .cpu_ns = 10 * MS}};
	const thread_use_vec threads = {.items = items, .count = 2};
	const struct rate rate = {.calls = 10, .busiest_tid = tid, .busiest_ns = ns};

	return text_rates_is_busy(&rate, &threads);
}

static void a_step_is_on_a_thread_that_is_busy(void **state)
{
	(void)state;
	assert_true(is_busy(7, 700 * MS));
	/* A thread that waits for requests spends as long in a function, but asleep. */
	assert_false(is_busy(8, 700 * MS));
	/* A small part of a busy thread's time, and a thread that has done nothing. */
	assert_false(is_busy(7, 100 * MS));
	assert_false(is_busy(9, 700 * MS));
}

static void without_schedstat_any_thread_will_do(void **state)
{
	const thread_use_vec none = {0};
	const struct rate rate = {.calls = 10, .busiest_tid = 7, .busiest_ns = MS};

	(void)state;
	assert_true(text_rates_is_busy(&rate, &none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_on_a_thread_that_is_busy),
		cmocka_unit_test(without_schedstat_any_thread_will_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
