/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "trace/session.h"
#include "record_keeper.h"
#include "shared_fixture.h"

struct fixture {
	struct shared *shared;
	struct record_keeper keeper;
	struct record_output output;
	struct traced_set *set;
	struct traced *traced;
	uint32_t slot;
};

/* A process with one thread that is traced since 0. */
static int setup(void **state)
{
	struct fixture *fixture = shared_alloc(1, sizeof(*fixture));

	fixture->shared = shared_new(8, 1, 4);
	slots_init(fixture->shared);
	fixture->output = keeper_output(&fixture->keeper);
	fixture->set = traced_set__new(fixture->shared, &fixture->output);
	assert_non_null(fixture->set);
	fixture->traced = traced_set__add(fixture->set, 7);
	fixture->slot = (uint32_t)slots_take(fixture->shared, 7, 7, 0);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	traced_set__free(fixture->set);
	shared_free(fixture->shared);
	free(fixture);
	return 0;
}

/* The interval's step that ends at now_ns. */
static const struct fbt_step *step_to(struct fixture *fixture, uint64_t now_ns)
{
	assert_int_equal(
		interval_send(fixture->set, fixture->traced, now_ns, false, &fixture->output), 0);
	return kept(&fixture->keeper, fixture->keeper.count - 1, FBT_EVENT_STEP);
}

static void set_boundary(struct fixture *fixture, uint64_t now_ns)
{
	assert_int_equal(
		interval_send(fixture->set, fixture->traced, now_ns, false, &fixture->output), 0);
	assert_int_equal(fixture->keeper.count, 0);
}

static void a_step_without_calls_has_empty_sums(void **state)
{
	static const struct fbt_sum zero_sum;
	struct fixture *fixture = *state;
	const struct fbt_step *step;

	set_boundary(fixture, 100);
	step = step_to(fixture, 200);
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		assert_memory_equal(&step->sums[i], &zero_sum, sizeof(zero_sum));
	assert_int_equal(step->thread_ns, 100);
}

static void a_process_without_threads_has_a_step_of_no_thread_time(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_step *step;

	set_boundary(fixture, 100);
	slots_end(fixture->shared, 7, 100);
	step = step_to(fixture, 200);
	assert_int_equal(step->thread_ns, 0);
	assert_int_equal(step->threads, 0);
}

static void time_never_runs_backwards_in_a_step(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_step *step;

	play_enter(fixture->shared, fixture->slot, SYS_futex, 50);
	set_boundary(fixture, 200);
	/* The call returned before the boundary, but was read as still open there. */
	play_exit(fixture->shared, fixture->slot, 0, 190);
	step = step_to(fixture, 200);
	assert_int_equal(step->sums[FBT_FUTEX].ns, 0);
	assert_int_equal(step->thread_ns, 0);
}

static void thread_time_is_never_less_than_syscall_time(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_step *step;

	set_boundary(fixture, 100);
	play_enter(fixture->shared, fixture->slot, SYS_futex, 101);
	play_exit(fixture->shared, fixture->slot, 0, 205);
	/* The call returned after the boundary, before its row was read. */
	step = step_to(fixture, 200);
	assert_int_equal(step->sums[FBT_FUTEX].ns, 104);
	assert_int_equal(step->thread_ns, 104);
}

static void a_step_is_of_the_process_and_of_kind_zero(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_step *step;

	set_boundary(fixture, 100);
	step = step_to(fixture, 200);
	assert_int_equal(step->tgid, 7);
	assert_int_equal(step->tid, 7);
	assert_int_equal(step->kind, 0);
	assert_int_equal(step->end, FBT_END_RETURN);
	assert_int_equal(step->start_ns, 100);
	assert_int_equal(step->end_ns, 200);
	assert_int_equal(step->header.flags,
			 FBT_STEP_NO_GAP | FBT_STEP_OTHER_UNKNOWN | FBT_STEP_SCHED_UNKNOWN);
	assert_int_equal(step->threads, 1);
}

static void the_rest_of_the_window_is_truncated(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_step *step;

	set_boundary(fixture, 100);
	assert_int_equal(interval_send(fixture->set, fixture->traced, 130, true, &fixture->output),
			 0);
	step = kept(&fixture->keeper, 0, FBT_EVENT_STEP);
	assert_int_equal(step->end, FBT_END_TRUNCATED);
	assert_int_equal(step->end_ns, 130);
}

static void calls_go_to_their_categories(void **state)
{
	static const struct {
		uint32_t nr;
		int category;
	} calls[] = {{SYS_munmap, FBT_MMAP}, {SYS_futex, FBT_FUTEX},	{SYS_ioctl, FBT_IOCTL},
		     {SYS_readv, FBT_READ},  {SYS_pwrite64, FBT_WRITE}, {SYS_getppid, FBT_OTHER}};
	struct fixture *fixture = *state;
	const struct fbt_step *step;

	set_boundary(fixture, 100);
	for (uint64_t i = 0; i < 6; i++) {
		play_enter(fixture->shared, fixture->slot, calls[i].nr, 110 + 10 * i);
		play_exit(fixture->shared, fixture->slot, -1, 111 + 11 * i);
	}
	step = step_to(fixture, 200);
	for (uint64_t i = 0; i < 6; i++) {
		const struct fbt_sum *sum = &step->sums[calls[i].category];

		assert_int_equal(sum->ns, 1 + i);
		assert_int_equal(sum->max_ns, 1 + i);
		assert_int_equal(sum->calls, 1);
		assert_int_equal(sum->errors, 1);
	}
}

static void a_call_across_boundaries_is_shared_out_and_counts_once(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_step *step;

	set_boundary(fixture, 100);
	play_enter(fixture->shared, fixture->slot, SYS_futex, 160);
	step = step_to(fixture, 200);
	assert_int_equal(step->sums[FBT_FUTEX].ns, 40);
	assert_int_equal(step->sums[FBT_FUTEX].calls, 0);
	step = step_to(fixture, 300);
	assert_int_equal(step->sums[FBT_FUTEX].ns, 100);
	assert_int_equal(step->sums[FBT_FUTEX].calls, 0);
	play_exit(fixture->shared, fixture->slot, 0, 330);
	step = step_to(fixture, 400);
	assert_int_equal(step->sums[FBT_FUTEX].ns, 30);
	assert_int_equal(step->sums[FBT_FUTEX].calls, 1);
	assert_int_equal(step->sums[FBT_FUTEX].max_ns, 170);
}

static void calls_before_the_first_boundary_are_in_no_step(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_step *step;

	play_enter(fixture->shared, fixture->slot, SYS_futex, 10);
	play_exit(fixture->shared, fixture->slot, 0, 60);
	set_boundary(fixture, 100);
	step = step_to(fixture, 200);
	assert_int_equal(step->sums[FBT_FUTEX].ns, 0);
	assert_int_equal(step->sums[FBT_FUTEX].calls, 0);
	assert_int_equal(step->sums[FBT_FUTEX].max_ns, 0);
}

static void the_first_interval_has_all_calls_since_it_began(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_step *step;

	interval_begin(fixture->traced, 5, false);
	play_enter(fixture->shared, fixture->slot, SYS_futex, 10);
	play_exit(fixture->shared, fixture->slot, 0, 60);
	step = step_to(fixture, 100);
	assert_int_equal(step->start_ns, 5);
	assert_int_equal(step->end, FBT_END_RETURN);
	assert_int_equal(step->sums[FBT_FUTEX].ns, 50);
	assert_int_equal(step->sums[FBT_FUTEX].calls, 1);
	/* It has begun. */
	interval_begin(fixture->traced, 120, true);
	step = step_to(fixture, 200);
	assert_int_equal(step->start_ns, 100);
	assert_int_equal(step->end, FBT_END_RETURN);
}

static void an_interval_that_began_late_is_cut_off(void **state)
{
	struct fixture *fixture = *state;

	interval_begin(fixture->traced, 95, true);
	assert_int_equal(step_to(fixture, 100)->end, FBT_END_TRUNCATED);
	assert_int_equal(step_to(fixture, 200)->end, FBT_END_RETURN);
}

static void threads_that_come_and_end_give_their_part(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_step *step;
	uint32_t slot;

	set_boundary(fixture, 100);
	slot = (uint32_t)slots_take(fixture->shared, 7, 8, 150);
	play_enter(fixture->shared, slot, SYS_read, 160);
	play_exit(fixture->shared, slot, 0, 165);
	slots_end(fixture->shared, 8, 170);
	traced_set__mark_ended(fixture->set);
	traced_set__collect(fixture->set, NULL, NULL);
	step = step_to(fixture, 200);
	assert_int_equal(step->thread_ns, 120);
	assert_int_equal(step->sums[FBT_READ].ns, 5);
	assert_int_equal(step->threads, 1);
	assert_int_equal(step_to(fixture, 300)->thread_ns, 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_step_without_calls_has_empty_sums),
		TEST(a_process_without_threads_has_a_step_of_no_thread_time),
		TEST(time_never_runs_backwards_in_a_step),
		TEST(thread_time_is_never_less_than_syscall_time),
		TEST(a_step_is_of_the_process_and_of_kind_zero),
		TEST(the_rest_of_the_window_is_truncated),
		TEST(calls_go_to_their_categories),
		TEST(a_call_across_boundaries_is_shared_out_and_counts_once),
		TEST(calls_before_the_first_boundary_are_in_no_step),
		TEST(the_first_interval_has_all_calls_since_it_began),
		TEST(an_interval_that_began_late_is_cut_off),
		TEST(threads_that_come_and_end_give_their_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
