/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "stream/peer_time.h"

#define MS NS_PER_MS

struct sums {
	uint64_t cpu_ns, delay_ns, asleep_ns, stopped_ns;
};

/* Between two looks, 10 ms apart, the thread had a CPU and waited for one for so long. */
static struct sums add(char before, char after, uint64_t cpu_ns, uint64_t wait_ns, bool is_stopped)
{
	const struct peer_reading last = {.use = {.cpu_ns = 7 * MS, .wait_ns = 3 * MS},
					  .state = before};
	const struct peer_reading now = {
		.use = {.cpu_ns = 7 * MS + cpu_ns, .wait_ns = 3 * MS + wait_ns}, .state = after};
	struct fbt_peer record = {.time_ns = 100 * MS};

	peer_time_add(&record, &last, &now, is_stopped, 110 * MS);
	assert_int_equal(record.time_ns, 110 * MS);
	assert_int_equal(record.cpu_ns + record.delay_ns + record.asleep_ns + record.stopped_ns,
			 10 * MS);
	return (struct sums){record.cpu_ns, record.delay_ns, record.asleep_ns, record.stopped_ns};
}

static void what_is_left_it_slept(void **state)
{
	struct sums sums = add('S', 'S', 2 * MS, 1 * MS, false);

	(void)state;
	assert_int_equal(sums.cpu_ns, 2 * MS);
	assert_int_equal(sums.delay_ns, 1 * MS);
	assert_int_equal(sums.asleep_ns, 7 * MS);
}

/* The kernel does not count the wait yet. */
static void ready_at_both_looks_it_waited_for_a_cpu(void **state)
{
	struct sums sums = add('R', 'R', 2 * MS, 0, false);

	(void)state;
	assert_int_equal(sums.cpu_ns, 2 * MS);
	assert_int_equal(sums.delay_ns, 8 * MS);
	/* At the first look its state is not known. */
	assert_int_equal(add(0, 'R', 0, 0, false).delay_ns, 10 * MS);
}

static void asleep_at_the_last_look_it_was_woken_just_now(void **state)
{
	(void)state;
	assert_int_equal(add('S', 'R', 0, 0, false).asleep_ns, 10 * MS);
	assert_int_equal(add('D', 'R', 0, 0, false).asleep_ns, 10 * MS);
	/* But a wait that has ended is one. */
	assert_int_equal(add('S', 'R', 0, 4 * MS, false).delay_ns, 4 * MS);
}

static void stopped_it_neither_slept_nor_waited(void **state)
{
	struct sums sums = add('R', 'T', 1 * MS, 2 * MS, true);

	(void)state;
	assert_int_equal(sums.cpu_ns, 1 * MS);
	assert_int_equal(sums.delay_ns, 2 * MS);
	assert_int_equal(sums.stopped_ns, 7 * MS);
}

/* A wait that began before the last look, and what ran after the clock was read. */
static void it_is_never_more_than_the_time_between_the_looks(void **state)
{
	struct sums sums = add('R', 'S', 4 * MS, 30 * MS, false);

	(void)state;
	assert_int_equal(sums.cpu_ns, 4 * MS);
	assert_int_equal(sums.delay_ns, 6 * MS);
	assert_int_equal(add('R', 'R', 11 * MS, 0, false).cpu_ns, 10 * MS);
}

/* The kernel updates the thread's time on a CPU once a second there. */
static void on_a_cpu_without_a_tick_it_may_as_well_have_run(void **state)
{
	struct fbt_peer record = {.time_ns = 0};
	struct peer_reading last = {.state = 'R', .is_tickless = true}, now = last;

	(void)state;
	for (uint64_t i = 1; i <= 100; i++) {
		if (i == 100)
			now.use.cpu_ns = NS_PER_S;
		peer_time_add(&record, &last, &now, false, i * 10 * MS);
		last = now;
	}
	assert_int_equal(record.time_ns, NS_PER_S);
	assert_int_equal(record.cpu_ns, 10 * MS);
	assert_int_equal(record.delay_ns + record.asleep_ns + record.stopped_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_it_slept),
		cmocka_unit_test(ready_at_both_looks_it_waited_for_a_cpu),
		cmocka_unit_test(asleep_at_the_last_look_it_was_woken_just_now),
		cmocka_unit_test(stopped_it_neither_slept_nor_waited),
		cmocka_unit_test(it_is_never_more_than_the_time_between_the_looks),
		cmocka_unit_test(on_a_cpu_without_a_tick_it_may_as_well_have_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
