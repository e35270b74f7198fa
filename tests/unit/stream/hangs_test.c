/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Steps that hang together, of which one at a time may be looked at. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/clock.h"
#include "shared_fixture.h"
#include "stream/hangs.h"

#define HANG_NS	 (10 * NS_PER_S)
#define PAUSE_NS (NS_PER_S / 2)
#define BEGIN_NS (1000 * NS_PER_S)
#define TURN_NS	 (100 * NS_PER_MS)

struct fixture {
	struct shared *shared;
	struct hangs *hangs;
	uint64_t look_ns; /* the last look */
	uint64_t pause_ns;
	size_t count;
	struct fbt_hang told[8];
	bool was_looked_at[8];
};

static bool must_wait(void *ctx, uint64_t now_ns)
{
	const struct fixture *fixture = ctx;

	return fixture->look_ns && now_ns < fixture->look_ns + fixture->pause_ns;
}

static void make_call(void *ctx, const struct fbt_slot *slot, uint64_t now_ns,
		      struct fbt_call *call)
{
	(void)ctx;
	*call = (struct fbt_call){.nr = slot->nr, .duration_ns = now_ns - slot->start_ns};
}

static void tell(void *ctx, const struct fbt_hang *hang)
{
	struct fixture *fixture = ctx;

	assert_true(fixture->count < 8);
	fixture->was_looked_at[fixture->count] = !must_wait(fixture, hang->time_ns);
	if (fixture->was_looked_at[fixture->count])
		fixture->look_ns = hang->time_ns;
	fixture->told[fixture->count++] = *hang;
}

/* Two threads, whose steps began together. */
static int setup(void **state)
{
	struct fixture *fixture = shared_alloc(1, sizeof(*fixture));
	const struct hangs_options options = {.hang_ns = HANG_NS,
					      .must_wait = must_wait,
					      .make_call = make_call,
					      .tell = tell,
					      .ctx = fixture};

	fixture->pause_ns = PAUSE_NS;
	fixture->shared = shared_new(8, 1, 4);
	fixture->shared->control->free_head = 2;
	for (uint32_t i = 1; i <= 2; i++)
		fixture->shared->slots[i] = (struct fbt_slot){.state = FBT_SLOT_LIVE,
							      .tgid = 4000000 + i,
							      .tid = 4000000 + i,
							      .step_kind = 3,
							      .step_start_ns = BEGIN_NS};
	fixture->hangs = hangs__new(fixture->shared, &options);
	assert_non_null(fixture->hangs);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	hangs__free(fixture->hangs);
	shared_free(fixture->shared);
	free(fixture);
	return 0;
}

static void turn_until(struct fixture *fixture, uint64_t open_ns)
{
	for (uint64_t at_ns = 0; at_ns <= open_ns; at_ns += TURN_NS)
		hangs__turn(fixture->hangs, BEGIN_NS + at_ns);
}

static void a_hang_is_told_of_at_once_and_once(void **state)
{
	struct fixture *fixture = *state;

	fixture->shared->slots[2].step_start_ns = 0;
	fixture->shared->slots[1].nr = 7;
	fixture->shared->slots[1].start_ns = BEGIN_NS + 5;
	turn_until(fixture, HANG_NS - TURN_NS);
	assert_int_equal(fixture->count, 0);
	turn_until(fixture, 3 * HANG_NS);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(fixture->told[0].time_ns, BEGIN_NS + HANG_NS);
	assert_int_equal(fixture->told[0].step_start_ns, BEGIN_NS);
	assert_int_equal(fixture->told[0].tid, 4000001);
	assert_int_equal(fixture->told[0].kind, 3);
	assert_int_equal(fixture->told[0].call.nr, 7);
	assert_int_equal(fixture->told[0].call.duration_ns, HANG_NS - 5);
}

static void of_two_that_hang_together_both_are_looked_at(void **state)
{
	struct fixture *fixture = *state;

	turn_until(fixture, 2 * HANG_NS);
	assert_int_equal(fixture->count, 2);
	assert_int_equal(fixture->told[0].tid, 4000001);
	assert_int_equal(fixture->told[1].tid, 4000002);
	assert_true(fixture->was_looked_at[0]);
	assert_true(fixture->was_looked_at[1]);
	assert_int_equal(fixture->told[1].time_ns, fixture->told[0].time_ns + PAUSE_NS);
}

static void a_hang_does_not_wait_for_ever(void **state)
{
	struct fixture *fixture = *state;

	fixture->pause_ns = 100 * NS_PER_S;
	turn_until(fixture, 2 * HANG_NS);
	assert_int_equal(fixture->count, 2);
	assert_false(fixture->was_looked_at[1]);
	assert_int_equal(fixture->told[1].time_ns, BEGIN_NS + HANG_NS + HANGS_PATIENCE_NS);
}

static void one_that_waits_is_told_of_when_the_window_ends(void **state)
{
	struct fixture *fixture = *state;

	turn_until(fixture, HANG_NS);
	assert_int_equal(fixture->count, 1);
	hangs__finish(fixture->hangs, BEGIN_NS + HANG_NS + TURN_NS);
	assert_int_equal(fixture->count, 2);
	hangs__finish(fixture->hangs, BEGIN_NS + HANG_NS + TURN_NS);
	assert_int_equal(fixture->count, 2);
}

static void a_step_that_ends_while_it_waits_does_not_hang(void **state)
{
	struct fixture *fixture = *state;

	turn_until(fixture, HANG_NS);
	fixture->shared->slots[2].step_start_ns = BEGIN_NS + HANG_NS + 1;
	turn_until(fixture, HANG_NS + HANG_NS - TURN_NS);
	assert_int_equal(fixture->count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_hang_is_told_of_at_once_and_once, setup,
						teardown),
		cmocka_unit_test_setup_teardown(of_two_that_hang_together_both_are_looked_at, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_hang_does_not_wait_for_ever, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_waits_is_told_of_when_the_window_ends,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_step_that_ends_while_it_waits_does_not_hang,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
