/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* When a wait is looked at, and how often; with a double of user/look/look.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/syscall.h>
#include "base/clock.h"
#include "look/look.h"
#include "record_keeper.h"
#include "shared_fixture.h"
#include "stream/looks.h"
#include "stream/peers.h"

#define TURN_NS	  (10 * NS_PER_MS)
#define THREADS	  16
#define OPEN_MS	  20
#define NR_READ	  0
#define NR_YIELD  SYS_sched_yield
#define FIRST_TID 4000000

struct look {
	int results[8]; /* of the next looks; 0 after that */
	size_t count;
	struct look_wait waits[64];
};

static struct look double_of_look;

struct look *look__new(struct stacks *stacks, const struct record_output *output,
		       const struct look_source *source)
{
	(void)stacks;
	(void)output;
	(void)source;
	double_of_look = (struct look){.count = 0};
	return &double_of_look;
}

void look__free(struct look *look)
{
	(void)look;
}

int look__take(struct look *look, const struct look_wait *wait)
{
	size_t at = look->count++;

	assert_true(at < sizeof(look->waits) / sizeof(look->waits[0]));
	look->waits[at] = *wait;
	return at < sizeof(look->results) / sizeof(look->results[0]) ? look->results[at] : 0;
}

int task_list__read(struct task_list *list, uint32_t tgid, task_vec *tasks, size_t max)
{
	(void)list;
	(void)tgid;
	(void)tasks;
	(void)max;
	return 0;
}

void peers__know_holder(struct peers *peers, uint32_t tid, const struct peer_wait *holder)
{
	(void)peers;
	(void)tid;
	(void)holder;
}

struct fixture {
	struct shared *shared;
	struct looks *looks;
	struct record_keeper keeper;
	struct record_output output;
	uint64_t begin_ns; /* at a full second */
};

static int setup(void **state)
{
	struct fixture *fixture = shared_alloc(1, sizeof(*fixture));
	const struct looks_options options = {.at_calls = true};

	fixture->shared = shared_new(32, 1, 4);
	fixture->shared->control->free_head = THREADS;
	fixture->output = keeper_output(&fixture->keeper);
	/* The pause after a look is one of the clock: all of the test lies behind it. */
	fixture->begin_ns = (clock_ns(CLOCK_MONOTONIC) / NS_PER_S + 100) * NS_PER_S;
	fixture->looks = looks__new(fixture->shared, (struct task_list *)&double_of_look, NULL,
				    &fixture->output, &options);
	assert_non_null(fixture->looks);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	looks__free(fixture->looks);
	shared_free(fixture->shared);
	free(fixture);
	return 0;
}

/* From now on that thread waits in a call of a step that has just begun. */
static void begin_wait(struct fixture *fixture, uint32_t index, uint64_t now_ns)
{
	fixture->shared->slots[index] = (struct fbt_slot){.state = FBT_SLOT_LIVE,
							  .tgid = FIRST_TID,
							  .tid = FIRST_TID + index,
							  .step_start_ns = now_ns,
							  .start_ns = now_ns,
							  .nr = NR_READ};
}

static void turn_until(struct fixture *fixture, uint64_t from_ms, uint64_t to_ms)
{
	for (uint64_t ms = from_ms; ms < to_ms; ms += TURN_NS / NS_PER_MS)
		looks__turn(fixture->looks, fixture->begin_ns + ms * NS_PER_MS);
}

static struct fbt_looks counts_of(struct fixture *fixture)
{
	looks__send_counts(fixture->looks);
	return *(const struct fbt_looks *)kept(&fixture->keeper, fixture->keeper.count - 1,
					       FBT_EVENT_LOOKS);
}

static uint64_t ms_of(const struct fixture *fixture, size_t look)
{
	return (double_of_look.waits[look].now_ns - fixture->begin_ns) / NS_PER_MS;
}

static void a_wait_is_looked_at_once_when_it_is_long_enough(void **state)
{
	struct fixture *fixture = *state;

	begin_wait(fixture, 1, fixture->begin_ns);
	turn_until(fixture, 0, OPEN_MS);
	assert_int_equal(double_of_look.count, 0);
	turn_until(fixture, OPEN_MS, 5000);
	assert_int_equal(double_of_look.count, 1);
	assert_int_equal(ms_of(fixture, 0), OPEN_MS);
	assert_int_equal(double_of_look.waits[0].tid, FIRST_TID + 1);
	assert_int_equal(counts_of(fixture).taken, 1);
}

static void of_more_than_there_is_room_for_the_others_are_looked_at_later(void **state)
{
	struct fixture *fixture = *state;
	uint32_t seen[THREADS + 1] = {0};

	for (uint32_t i = 1; i <= THREADS; i++)
		begin_wait(fixture, i, fixture->begin_ns);
	turn_until(fixture, 0, 1000);
	assert_int_equal(double_of_look.count, 10);
	assert_int_equal(counts_of(fixture).skipped, THREADS - 10);
	turn_until(fixture, 1000, 5000);
	assert_int_equal(double_of_look.count, THREADS);
	for (size_t i = 0; i < THREADS; i++)
		seen[double_of_look.waits[i].tid - FIRST_TID]++;
	for (uint32_t i = 1; i <= THREADS; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(counts_of(fixture).taken, THREADS);
	assert_int_equal(counts_of(fixture).skipped, 0);
}

static void a_wait_that_ended_without_a_look_was_left_out(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t i = 1; i <= THREADS; i++)
		begin_wait(fixture, i, fixture->begin_ns);
	turn_until(fixture, 0, 500);
	for (uint32_t i = 1; i <= THREADS; i++)
		fixture->shared->slots[i].start_ns = 0;
	turn_until(fixture, 500, 5000);
	assert_int_equal(counts_of(fixture).taken, 10);
	assert_int_equal(counts_of(fixture).skipped, THREADS - 10);
}

static void a_look_that_saw_nothing_is_repeated(void **state)
{
	struct fixture *fixture = *state;

	double_of_look.results[0] = double_of_look.results[1] = -EBUSY;
	begin_wait(fixture, 1, fixture->begin_ns);
	turn_until(fixture, 0, 9000);
	assert_int_equal(double_of_look.count, 3);
	assert_int_equal(ms_of(fixture, 1), OPEN_MS + 50);
	assert_int_equal(ms_of(fixture, 2), OPEN_MS + 250);
	assert_int_equal(counts_of(fixture).taken, 1);
	assert_int_equal(counts_of(fixture).blind, 0);
}

static void after_three_looks_it_is_known_that_nothing_can_be_seen(void **state)
{
	struct fixture *fixture = *state;

	for (size_t i = 0; i < 8; i++)
		double_of_look.results[i] = -EBUSY;
	begin_wait(fixture, 1, fixture->begin_ns);
	turn_until(fixture, 0, 9000);
	assert_int_equal(double_of_look.count, 3);
	assert_int_equal(counts_of(fixture).blind, 1);
	assert_int_equal(counts_of(fixture).taken, 0);
}

static void what_is_not_allowed_is_not_tried_again(void **state)
{
	struct fixture *fixture = *state;

	double_of_look.results[0] = -EPERM;
	begin_wait(fixture, 1, fixture->begin_ns);
	turn_until(fixture, 0, 9000);
	assert_int_equal(double_of_look.count, 1);
	assert_int_equal(counts_of(fixture).blind, 1);
}

static void a_look_at_a_thread_that_went_on_is_repeated(void **state)
{
	struct fixture *fixture = *state;

	double_of_look.results[0] = LOOK_IS_PARTIAL;
	double_of_look.results[1] = -EBUSY;
	double_of_look.results[2] = LOOK_IS_PARTIAL;
	begin_wait(fixture, 1, fixture->begin_ns);
	turn_until(fixture, 0, 9000);
	assert_int_equal(double_of_look.count, 3);
	assert_int_equal(counts_of(fixture).taken, 1);
	assert_int_equal(counts_of(fixture).blind, 0);
}

static void the_next_wait_of_a_thread_is_another_one(void **state)
{
	struct fixture *fixture = *state;

	double_of_look.results[0] = -EBUSY;
	begin_wait(fixture, 1, fixture->begin_ns);
	turn_until(fixture, 0, 30);
	begin_wait(fixture, 1, fixture->begin_ns + 30 * NS_PER_MS);
	turn_until(fixture, 30, 2000);
	assert_int_equal(double_of_look.count, 2);
	assert_int_equal(ms_of(fixture, 1), 30 + OPEN_MS);
	assert_int_equal(counts_of(fixture).blind, 1);
	assert_int_equal(counts_of(fixture).taken, 1);
}

/* It times out every 5 ms, and is made again at once. */
static void wait_for_gil(struct fixture *fixture, uint64_t from_ms, uint64_t to_ms)
{
	struct fbt_slot *slot = &fixture->shared->slots[1];

	slot->call_gil = 1;
	for (uint64_t ms = from_ms; ms < to_ms; ms += 5) {
		uint64_t now_ns = fixture->begin_ns + ms * NS_PER_MS;

		slot->stalls.gil_ns = ms * NS_PER_MS;
		slot->start_ns = now_ns;
		looks__turn(fixture->looks, now_ns + NS_PER_MS);
	}
}

static void a_wait_for_the_gil_is_one_and_its_look_is_repeated_too(void **state)
{
	struct fixture *fixture = *state;

	double_of_look.results[0] = -EBUSY;
	begin_wait(fixture, 1, fixture->begin_ns);
	wait_for_gil(fixture, 0, 1000);
	assert_int_equal(double_of_look.count, 2);
	assert_true(double_of_look.waits[1].is_gil);
	assert_int_equal(double_of_look.waits[1].start_ns, fixture->begin_ns);
	assert_in_range(ms_of(fixture, 1), OPEN_MS + 50, OPEN_MS + 60);
}

static void a_row_of_yields_is_one_wait(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_slot *slot = &fixture->shared->slots[1];

	begin_wait(fixture, 1, fixture->begin_ns);
	slot->start_ns = 0;
	slot->nr = NR_YIELD;
	for (uint64_t ms = 0; ms < 1000; ms += TURN_NS / NS_PER_MS) {
		looks__turn(fixture->looks, fixture->begin_ns + ms * NS_PER_MS);
		slot->sums[FBT_OTHER].calls += 10000;
		slot->busy += TURN_NS;
	}
	assert_int_equal(double_of_look.count, 1);
	assert_true(double_of_look.waits[0].is_spin);
	assert_int_equal(double_of_look.waits[0].step_ns, slot->step_start_ns);
	assert_int_equal(double_of_look.waits[0].start_ns, fixture->begin_ns);
	assert_int_equal(ms_of(fixture, 0), OPEN_MS);
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		FACT(a_wait_is_looked_at_once_when_it_is_long_enough),
		FACT(of_more_than_there_is_room_for_the_others_are_looked_at_later),
		FACT(a_wait_that_ended_without_a_look_was_left_out),
		FACT(a_look_that_saw_nothing_is_repeated),
		FACT(after_three_looks_it_is_known_that_nothing_can_be_seen),
		FACT(what_is_not_allowed_is_not_tried_again),
		FACT(a_look_at_a_thread_that_went_on_is_repeated),
		FACT(the_next_wait_of_a_thread_is_another_one),
		FACT(a_wait_for_the_gil_is_one_and_its_look_is_repeated_too),
		FACT(a_row_of_yields_is_one_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
