/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Shims that change their state: what remains of the state before. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu_peer_fixture.h"

static void put(struct fixture *fixture, enum fbt_gpu_status status)
{
	player_put_state(&fixture->player, status, "", "");
}

/* Record number index is the last flush. The tool made it up, because the shim had sent none. */
static void assert_closed(const struct fixture *fixture, size_t index)
{
	const struct fbt_gpu_flush *flush = kept(&fixture->keeper, index, FBT_EVENT_GPU_FLUSH);

	assert_int_equal(flush->last, 1);
	assert_int_equal(flush->records, 0);
	assert_int_equal(flush->time_ns, 0);
}

/* The shim dates its answer by its own clock. A date before the wish is not a time of arming. */
static void a_shim_was_not_armed_before_it_was_asked(void **state)
{
	struct fixture *fixture = *state;

	fixture->now_ns += 100 * S;
	arm(fixture);
	assert_int_equal(last_state(fixture)->arm_ns, 0);
}

static void a_refusal_of_an_armed_shim_ends_its_records(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	put(fixture, FBT_GPU_FAILED);
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_FAILED, "");
	assert_int_equal(fixture->keeper.count, 3);
	assert_closed(fixture, 1);
}

static void a_shim_that_rests_without_a_word_has_stopped(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_FAILED, "its shim stopped");
	assert_closed(fixture, 1);
	assert_false(gpu_peer__is_due(fixture->peer, fixture->now_ns + 1000 * S));
}

static void a_shim_that_ends_without_a_flush_is_asked_again_all_the_same(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	put(fixture, FBT_GPU_ENDED);
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	assert_int_equal(fixture->player.shared->armed, 3);
	assert_int_equal(fixture->keeper.count, 3);
	kept(&fixture->keeper, 1, FBT_EVENT_GPU_STATE);
	assert_closed(fixture, 2);
}

static void a_shim_that_says_why_it_ends_is_asked_again(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	player_put_flush(&fixture->player, 5, 1);
	player_put_state(&fixture->player, FBT_GPU_ENDED, "CUPTI gave kernels no times", "");
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	assert_int_equal(fixture->player.shared->armed, 3);
	assert_one_line(fixture->text, "CUPTI gave kernels no times");
}

static void totals_of_one_arming_are_not_those_of_the_next(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	player_put_flush(&fixture->player, 5, 1);
	put(fixture, FBT_GPU_ENDED);
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	put(fixture, FBT_GPU_ARMED);
	answer(fixture, FBT_GPU_WORKING);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_ARMED, "");
	gpu_peer__end(fixture->peer, fixture->now_ns);
	assert_closed(fixture, 4);
	assert_said(fixture, FBT_GPU_EXITED, "");
}

/* The latest flush that was sent. */
static const struct fbt_gpu_flush *last_flush(const struct fixture *fixture)
{
	for (size_t i = fixture->keeper.count; i-- > 0;) {
		const struct fbt_header *record =
			(const void *)(fixture->keeper.bytes + fixture->keeper.at[i]);

		if (record->type == FBT_EVENT_GPU_FLUSH)
			return (const struct fbt_gpu_flush *)record;
	}
	fail_msg("there was no flush");
	return NULL;
}

static void put_clock(struct fixture *fixture, uint64_t error_ns)
{
	struct fbt_gpu_clock clock = {.method = FBT_GPU_CLOCK_CALLBACK,
				      .mono_ns = fixture->now_ns,
				      .gpu_ns = fixture->now_ns,
				      .error_ns = error_ns};

	player_put(&fixture->player, &clock, sizeof(clock), FBT_EVENT_GPU_CLOCK);
}

static void what_was_skipped_in_one_arming_was_not_in_the_next(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_gpu_work unsound = {.kind = FBT_GPU_WORK_KIND_COUNT};

	arm(fixture);
	player_put(&fixture->player, &unsound, sizeof(unsound), FBT_EVENT_GPU_WORK);
	player_put_kernel(&fixture->player, 5, fixture->now_ns + 100 * S,
			  fixture->now_ns + 101 * S);
	put_clock(fixture, 700);
	player_put_flush(&fixture->player, 5, 1);
	put(fixture, FBT_GPU_ENDED);
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	assert_int_equal(last_flush(fixture)->unknown, 2);
	assert_int_equal(last_flush(fixture)->clock_error_ns, 700);
	put(fixture, FBT_GPU_ARMED);
	put_clock(fixture, 40);
	player_put_flush(&fixture->player, 9, 0);
	answer(fixture, FBT_GPU_WORKING);
	poll_after(fixture, 100 * MS);
	assert_said(fixture, FBT_GPU_ARMED, "");
	assert_int_equal(last_flush(fixture)->time_ns, 9);
	assert_int_equal(last_flush(fixture)->unknown, 0);
	assert_int_equal(last_flush(fixture)->clock_error_ns, 40);
}

static void a_shim_that_goes_on_is_waited_for_at_the_end(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	poll_after(fixture, 6 * S);
	assert_said(fixture, FBT_GPU_STALLED, "");
	fixture->player.shared->pulse++;
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_ARMED, "");
	gpu_peer__leave(fixture->peer, fixture->now_ns);
	assert_false(gpu_peer__is_settled(fixture->peer));
}

static void a_shim_that_goes_on_was_armed_as_fast_as_before(void **state)
{
	struct fixture *fixture = *state;
	uint64_t arm_ns;

	fixture->now_ns -= S;
	arm(fixture);
	arm_ns = last_state(fixture)->arm_ns;
	poll_after(fixture, 6 * S);
	assert_said(fixture, FBT_GPU_STALLED, "");
	assert_int_equal(last_state(fixture)->arm_ns, 0);
	fixture->player.shared->pulse++;
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_ARMED, "");
	assert_int_equal(last_state(fixture)->arm_ns, arm_ns);
}

static void a_cupti_that_becomes_free_is_taken_and_kept(void **state)
{
	struct fixture *fixture = *state;

	refuse(fixture, FBT_GPU_BUSY, "");
	fixture->now_ns += 10 * S;
	look(fixture);
	put(fixture, FBT_GPU_ARMED);
	answer(fixture, FBT_GPU_WORKING);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_ARMED, "");
	poll_after(fixture, 10 * MS);
	assert_int_equal(fixture->player.shared->armed, 3);
}

/* Taken back, the records of the tool that took it over would be lost. */
static void a_cupti_that_was_taken_over_is_not_taken_back(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	put(fixture, FBT_GPU_BUSY);
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_BUSY, "");
	poll_after(fixture, 10 * MS);
	assert_true(gpu_peer__is_settled(fixture->peer));
	assert_false(gpu_peer__is_due(fixture->peer, fixture->now_ns + 1000 * S));
}

static void what_the_shim_before_execve_said_is_not_held_against_the_next(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	put(fixture, FBT_GPU_ENDED);
	gpu_peer__restart(fixture->peer, fixture->now_ns);
	look(fixture);
	assert_int_equal(fixture->player.shared->armed, 3);
	put(fixture, FBT_GPU_ARMED);
	answer(fixture, FBT_GPU_WORKING);
	poll_after(fixture, 10 * MS);
	assert_said(fixture, FBT_GPU_ARMED, "");
	assert_int_equal(fixture->player.shared->armed, 3);
}

/* The next program may be in another time namespace and use another CUPTI. */
static void the_clock_is_found_anew_after_execve(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_gpu_clock clock = {.method = FBT_GPU_CLOCK_REALTIME,
				      .mono_ns = fixture->now_ns,
				      .gpu_ns = fixture->now_ns - 700};
	const struct fbt_gpu_work *work;

	arm(fixture);
	player_put(&fixture->player, &clock, sizeof(clock), FBT_EVENT_GPU_CLOCK);
	player_put_kernel(&fixture->player, 5, 1000, 2000);
	poll_after(fixture, 10 * MS);
	work = kept(&fixture->keeper, 1, FBT_EVENT_GPU_WORK);
	assert_int_equal(work->start_ns, 1700);
	gpu_peer__restart(fixture->peer, fixture->now_ns);
	look(fixture);
	put(fixture, FBT_GPU_ARMED);
	player_put_kernel(&fixture->player, 6, 1000, 2000);
	poll_after(fixture, 10 * MS);
	work = kept(&fixture->keeper, fixture->keeper.count - 1, FBT_EVENT_GPU_WORK);
	assert_int_equal(work->start_ns, 1000);
}

static void what_a_shim_said_at_last_stays_when_its_process_ends(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	player_put_flush(&fixture->player, 5, 1);
	put(fixture, FBT_GPU_ENDED);
	gpu_peer__end(fixture->peer, fixture->now_ns);
	assert_said(fixture, FBT_GPU_ENDED, "");
}

static void a_refusal_stays_when_its_process_ends(void **state)
{
	struct fixture *fixture = *state;

	ask(fixture);
	put(fixture, FBT_GPU_NO_CUPTI);
	gpu_peer__end(fixture->peer, fixture->now_ns);
	assert_said(fixture, FBT_GPU_NO_CUPTI, "");
}

static void a_shim_that_is_left_and_sends_no_flush_has_ended(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	gpu_peer__leave(fixture->peer, fixture->now_ns);
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	assert_true(gpu_peer__is_settled(fixture->peer));
	assert_closed(fixture, 1);
	assert_said(fixture, FBT_GPU_ENDED, "");
}

static void a_shim_that_is_left_cannot_arm_itself(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	gpu_peer__leave(fixture->peer, fixture->now_ns);
	put(fixture, FBT_GPU_ARMED);
	put(fixture, FBT_GPU_ENDED);
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	assert_true(gpu_peer__is_settled(fixture->peer));
	assert_int_equal(fixture->player.shared->armed, 2);
}

static void a_cupti_that_is_busy_at_the_end_is_not_asked_for_again(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	gpu_peer__leave(fixture->peer, fixture->now_ns);
	put(fixture, FBT_GPU_BUSY);
	answer(fixture, FBT_GPU_DORMANT);
	poll_after(fixture, 10 * MS);
	assert_true(gpu_peer__is_settled(fixture->peer));
	assert_false(gpu_peer__is_due(fixture->peer, fixture->now_ns + 1000 * S));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_shim_was_not_armed_before_it_was_asked),
		TEST(a_refusal_of_an_armed_shim_ends_its_records),
		TEST(a_shim_that_rests_without_a_word_has_stopped),
		TEST(a_shim_that_ends_without_a_flush_is_asked_again_all_the_same),
		TEST(a_shim_that_says_why_it_ends_is_asked_again),
		TEST(totals_of_one_arming_are_not_those_of_the_next),
		TEST(what_was_skipped_in_one_arming_was_not_in_the_next),
		TEST(a_shim_that_goes_on_is_waited_for_at_the_end),
		TEST(a_shim_that_goes_on_was_armed_as_fast_as_before),
		TEST(a_cupti_that_becomes_free_is_taken_and_kept),
		TEST(a_cupti_that_was_taken_over_is_not_taken_back),
		TEST(what_the_shim_before_execve_said_is_not_held_against_the_next),
		TEST(the_clock_is_found_anew_after_execve),
		TEST(what_a_shim_said_at_last_stays_when_its_process_ends),
		TEST(a_refusal_stays_when_its_process_ends),
		TEST(a_shim_that_is_left_and_sends_no_flush_has_ended),
		TEST(a_shim_that_is_left_cannot_arm_itself),
		TEST(a_cupti_that_is_busy_at_the_end_is_not_asked_for_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
