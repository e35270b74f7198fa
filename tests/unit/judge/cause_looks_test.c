/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What was seen of a process while its step waited. */
#include "judged_fixture.h"

#include "judge/cause.h"
#include "model/spins.h"

struct fixture {
	struct window *window;
	struct step step;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = new_window();
	fixture->step = make_step(400 * MS);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	vec_free(&fixture->step.looks);
	free_step(&fixture->step);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

static struct fbt_look_thread *see(struct fixture *fixture, uint64_t time_ns, uint32_t owner,
				   uint32_t depth)
{
	struct fbt_look_thread thread = {.tgid = 7,
					 .tid = 7,
					 .start_ns = fixture->step.record.start_ns,
					 .time_ns = fixture->step.record.start_ns + time_ns,
					 .owner = owner,
					 .depth = depth,
					 .threads = 1,
					 .doing = FBT_DOING_CALL};

	assert_int_equal(vec_push(&fixture->step.looks, thread), 0);
	return &fixture->step.looks.items[fixture->step.looks.count - 1];
}

static struct cause cause_of(const struct fixture *fixture)
{
	struct cause_times usual = {.ns = {[CAUSE_COMPUTE] = 10 * MS}}, times;
	struct cause cause;

	cause_split(fixture->window, &fixture->step, &times);
	cause_find(fixture->window, &fixture->step, &times, &usual, &cause);
	return cause;
}

static void of_several_looks_at_a_wait_the_last_one_counts(void **state)
{
	struct fixture *fixture = *state;
	struct cause cause;

	add_call(&fixture->step, "futex", 380 * MS)->header.flags |= FBT_CALL_BLOCKED;
	see(fixture, 20 * MS, 8, 1)->doing = FBT_DOING_UNKNOWN;
	see(fixture, 20 * MS, 9, 0)->header.flags = FBT_LOOK_GROUP;
	see(fixture, 70 * MS, 8, 1)->nr = nr_of("read");
	see(fixture, 70 * MS, 8, 0)->header.flags = FBT_LOOK_GROUP;
	see(fixture, 70 * MS, 9, 1)->header.flags = FBT_LOOK_GROUP;
	cause = cause_of(fixture);
	assert_int_equal(cause.kind, CAUSE_LOCK_CONTENTION);
	assert_int_equal(cause.holder_count, 1);
	assert_int_equal(cause.holders[0].doing, FBT_DOING_CALL);
	assert_int_equal(cause.holders[0].nr, nr_of("read"));
	assert_int_equal(cause.other_count, 2);
	assert_int_equal(cause.others[0].time_ns, fixture->step.record.start_ns + 70 * MS);
}

static void a_later_look_that_saw_no_holder_does_not_hide_one(void **state)
{
	struct fixture *fixture = *state;
	struct cause cause;

	add_call(&fixture->step, "futex", 380 * MS)->header.flags |= FBT_CALL_BLOCKED;
	see(fixture, 20 * MS, 8, 1)->doing = FBT_DOING_UNKNOWN;
	see(fixture, 70 * MS, 7, 0);
	cause = cause_of(fixture);
	assert_int_equal(cause.holder_count, 1);
	assert_int_equal(cause.holders[0].owner, 8);
}

/* Yields for 300 ms, after 50 ms in which it computes. */
static void spin(struct fixture *fixture)
{
	for (int i = 0; i < 30; i++) {
		struct fbt_call *call = add_call(&fixture->step, "sched_yield", 10 * MS);

		call->header.flags |= FBT_CALL_RUN;
		call->start_ns += i ? 0 : 50 * MS;
		call->args[0] = 10000 | (10 * US) << 32;
		call->args[1] = 9 * MS;
	}
	spins_find(fixture->window, &fixture->step);
	assert_int_equal(fixture->step.spins.waits, 1);
}

static struct fbt_look_thread *see_spin(struct fixture *fixture, uint64_t time_ns, uint32_t owner,
					uint32_t code)
{
	struct fbt_look_thread *thread = see(fixture, time_ns, owner, 0);

	thread->header.flags = FBT_LOOK_SPIN;
	thread->count = 1;
	thread->codes[0] = code;
	return thread;
}

static void a_wait_that_spins_has_the_look_during_it(void **state)
{
	struct fixture *fixture = *state;
	struct cause cause;

	spin(fixture);
	/* Of the time before it. */
	see_spin(fixture, 30 * MS, 7, 1);
	see_spin(fixture, 80 * MS, 7, 4);
	see_spin(fixture, 130 * MS, 7, 2);
	see_spin(fixture, 180 * MS, 7, 5)->count = 0;
	see_spin(fixture, 80 * MS, 8, 3)->header.flags |= FBT_LOOK_GROUP;
	cause = cause_of(fixture);
	assert_int_equal(cause.kind, CAUSE_SLEEP);
	assert_int_equal(cause.spin.waits, 1);
	assert_int_equal(cause.stack.count, 1);
	assert_int_equal(cause.stack.codes[0], 2);
	assert_int_equal(cause.other_count, 1);
	assert_int_equal(cause.others[0].owner, 8);
}

static void a_look_at_a_row_is_none_at_a_call_that_began_then(void **state)
{
	struct fixture *fixture = *state;

	add_call(&fixture->step, "futex", 380 * MS)->header.flags |= FBT_CALL_BLOCKED;
	see_spin(fixture, 20 * MS, 7, 1);
	assert_int_equal(cause_of(fixture).stack.count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(of_several_looks_at_a_wait_the_last_one_counts),
		TEST(a_later_look_that_saw_no_holder_does_not_hide_one),
		TEST(a_wait_that_spins_has_the_look_during_it),
		TEST(a_look_at_a_row_is_none_at_a_call_that_began_then),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
