/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "trace/wall_clock.h"

#define OFFSET (1700000000 * NS_PER_S)
#define HOUR   (3600 * NS_PER_S)
#define NOW    (500 * NS_PER_S)

/* A reading of 200 ns, of clocks that are so far apart. */
static bool take(struct wall_clock *clock, uint64_t offset_ns)
{
	return wall_clock_take(clock, NOW, NOW + offset_ns, NOW + 200);
}

static void a_clock_that_only_goes_on_is_not_sent(void **state)
{
	struct wall_clock clock = {OFFSET};

	assert_false(take(&clock, OFFSET));
	assert_false(take(&clock, OFFSET + WALL_CLOCK_MOVED_NS - 1));
	assert_false(take(&clock, OFFSET - WALL_CLOCK_MOVED_NS + 1));
}

static void a_step_is_sent_once_in_both_directions(void **state)
{
	struct wall_clock clock = {OFFSET};

	assert_true(take(&clock, OFFSET + HOUR));
	assert_false(take(&clock, OFFSET + HOUR));
	assert_true(take(&clock, OFFSET));
	assert_false(take(&clock, OFFSET));
}

/* A clock that is slewed, or drifts, moves little in a second, but far in a week. */
static void what_moves_slowly_is_sent_when_it_has_moved_far(void **state)
{
	struct wall_clock clock = {OFFSET};
	unsigned int sent = 0;

	for (uint64_t i = 1; i <= 1000; i++)
		sent += take(&clock, OFFSET + i * NS_PER_MS);
	assert_int_equal(sent, 10);
}

static void a_clock_before_the_epoch_is_sent_too(void **state)
{
	struct wall_clock clock = {OFFSET};

	assert_true(take(&clock, -NOW / 2));
	assert_true(take(&clock, OFFSET));
}

static void an_interrupted_reading_says_nothing(void **state)
{
	struct wall_clock clock = {OFFSET};

	assert_false(wall_clock_take(&clock, NOW, NOW + OFFSET + HOUR, NOW + 2 * NS_PER_MS));
	assert_true(take(&clock, OFFSET + HOUR));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_that_only_goes_on_is_not_sent),
		cmocka_unit_test(a_step_is_sent_once_in_both_directions),
		cmocka_unit_test(what_moves_slowly_is_sent_when_it_has_moved_far),
		cmocka_unit_test(a_clock_before_the_epoch_is_sent_too),
		cmocka_unit_test(an_interrupted_reading_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
