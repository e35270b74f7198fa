/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/futures.h"

#define KEPT 8

struct fixture {
	struct futures *futures;
	struct step steps[KEPT]; /* the latest steps; their calls are freed */
	uint64_t count;
	uint64_t late;
	uint64_t cut[FBT_KIND_COUNT];
	size_t calls;  /* of all steps */
	size_t beside; /* what they had beside these */
	int result;    /* what the receiver returns */
};

static int keep_step(void *ctx, struct step *step)
{
	struct fixture *fixture = ctx;

	fixture->steps[fixture->count++ % KEPT] = *step;
	fixture->calls += step->calls.count;
	fixture->beside += step->wakes.count + step->stacks.count + step->peers.count +
			   step->looks.count + step->wokens.count;
	return fixture->result;
}

static int open_fixture(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->futures = futures__new(keep_step, fixture);
	assert_non_null(fixture->futures);
	*state = fixture;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *fixture = *state;

	futures__free(fixture->futures);
	free(fixture);
	return 0;
}

/* A poll by thread tid of process 7, of the future at that address. It takes 10 ns. */
static struct step poll_of(uint64_t address, uint32_t tid, uint64_t start_ns, uint8_t before,
			   uint8_t after)
{
	return (struct step){.record = {.header.flags = FBT_STEP_POLL | FBT_STEP_CPU_KNOWN,
					.tgid = 7,
					.tid = tid,
					.kind = 1,
					.start_ns = start_ns,
					.end_ns = start_ns + 10,
					.thread_ns = 10,
					.cpu_ns = 6,
					.sums[FBT_READ] = {3, 1, 0, 3},
					.future = address,
					.state_before = before,
					.state_after = after}};
}

static int take(struct fixture *fixture, struct step poll)
{
	int err = futures__take(fixture->futures, &poll, &fixture->late, fixture->cut);

	step_clear(&poll);
	return err;
}

static void take_poll(struct fixture *fixture, uint64_t address, uint32_t tid, uint64_t start_ns,
		      uint8_t before, uint8_t after)
{
	assert_int_equal(take(fixture, poll_of(address, tid, start_ns, before, after)), 0);
}

static const struct fbt_step *last(const struct fixture *fixture)
{
	assert_true(fixture->count > 0);
	return &fixture->steps[(fixture->count - 1) % KEPT].record;
}

static void a_future_that_is_ready_at_once_is_a_step(void **state)
{
	struct fixture *fixture = *state;

	take_poll(fixture, 0x100, 8, 1000, FBT_FUTURE_NEW, FBT_FUTURE_READY);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(last(fixture)->thread_ns, 10);
	assert_int_equal(last(fixture)->await_ns, 0);
	assert_int_equal(last(fixture)->polls, 1);
	assert_int_equal(last(fixture)->end, FBT_END_RETURN);
	assert_int_equal(futures__count(fixture->futures), 0);
}

static void polls_of_a_future_are_one_step(void **state)
{
	struct fixture *fixture = *state;

	take_poll(fixture, 0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	take_poll(fixture, 0x100, 9, 1050, 3, 4);
	assert_int_equal(fixture->count, 0);
	take_poll(fixture, 0x100, 8, 1100, 4, FBT_FUTURE_READY);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(last(fixture)->tid, 8);
	assert_int_equal(last(fixture)->start_ns, 1000);
	assert_int_equal(last(fixture)->end_ns, 1110);
	assert_int_equal(last(fixture)->thread_ns, 110);
	assert_int_equal(last(fixture)->await_ns, 80);
	assert_int_equal(last(fixture)->polls, 3);
	assert_int_equal(last(fixture)->cpu_ns, 18);
	assert_int_equal(last(fixture)->sums[FBT_READ].ns, 9);
	assert_int_equal(last(fixture)->sums[FBT_READ].calls, 3);
	assert_int_equal(last(fixture)->sums[FBT_READ].max_ns, 3);
	assert_int_equal(futures__count(fixture->futures), 0);
}

/* What the host took before a poll may count in it: see step_split. */
static void a_poll_of_less_than_no_time_on_a_cpu_takes_from_the_others(void **state)
{
	struct fixture *fixture = *state;
	struct step second = poll_of(0x100, 8, 1050, 3, 4);

	take_poll(fixture, 0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	second.record.cpu_ns = (uint64_t)-8;
	assert_int_equal(take(fixture, second), 0);
	take_poll(fixture, 0x100, 8, 1100, 4, FBT_FUTURE_READY);
	assert_int_equal(last(fixture)->cpu_ns, 6 - 8 + 6);
}

/* A step has none of a poll's fields, so that later stages do not take it for a poll. */
static void a_step_is_no_poll(void **state)
{
	struct fixture *fixture = *state;

	take_poll(fixture, 0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	take_poll(fixture, 0x100, 8, 1050, 3, FBT_FUTURE_READY);
	assert_int_equal(last(fixture)->header.flags, FBT_STEP_CPU_KNOWN);
	assert_int_equal(last(fixture)->future, 0);
	assert_int_equal(last(fixture)->state_before, 0);
	assert_int_equal(last(fixture)->state_after, 0);
}

static void futures_in_turns_on_one_thread_are_apart(void **state)
{
	struct fixture *fixture = *state;

	take_poll(fixture, 0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	take_poll(fixture, 0x200, 8, 1020, FBT_FUTURE_NEW, 3);
	take_poll(fixture, 0x100, 8, 1040, 3, FBT_FUTURE_READY);
	assert_int_equal(last(fixture)->await_ns, 30);
	take_poll(fixture, 0x200, 8, 1060, 3, FBT_FUTURE_READY);
	assert_int_equal(fixture->count, 2);
	assert_int_equal(last(fixture)->start_ns, 1020);
	assert_int_equal(last(fixture)->await_ns, 30);
}

static void processes_may_have_futures_at_the_same_address(void **state)
{
	struct fixture *fixture = *state;
	struct step other = poll_of(0x100, 18, 1020, FBT_FUTURE_NEW, 3);
	struct step other_end = poll_of(0x100, 18, 1060, 3, FBT_FUTURE_READY);

	other.record.tgid = other_end.record.tgid = 17;
	take_poll(fixture, 0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	assert_int_equal(take(fixture, other), 0);
	assert_int_equal(futures__count(fixture->futures), 2);
	take_poll(fixture, 0x100, 8, 1040, 3, FBT_FUTURE_READY);
	assert_int_equal(last(fixture)->tgid, 7);
	assert_int_equal(take(fixture, other_end), 0);
	assert_int_equal(last(fixture)->tgid, 17);
	assert_int_equal(futures__count(fixture->futures), 0);
}

static void a_future_that_began_before_is_no_step(void **state)
{
	struct fixture *fixture = *state;

	take_poll(fixture, 0x100, 8, 1000, 3, 4);
	take_poll(fixture, 0x100, 8, 1050, 4, FBT_FUTURE_READY);
	assert_int_equal(fixture->count, 0);
	assert_int_equal(fixture->late, 2);
	assert_int_equal(futures__count(fixture->futures), 0);
}

static void a_dropped_future_ends_with_its_last_poll(void **state)
{
	struct fixture *fixture = *state;

	take_poll(fixture, 0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	take_poll(fixture, 0x100, 8, 1050, 3, 3);
	take_poll(fixture, 0x100, 9, 2000, FBT_FUTURE_NEW, 3);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(last(fixture)->end, FBT_END_UNWOUND);
	assert_int_equal(last(fixture)->end_ns, 1060);
	assert_int_equal(last(fixture)->await_ns, 40);
	take_poll(fixture, 0x100, 9, 2050, 3, FBT_FUTURE_READY);
	assert_int_equal(fixture->count, 2);
	assert_int_equal(last(fixture)->start_ns, 2000);
}

static void a_panic_unwinds_a_future(void **state)
{
	struct fixture *fixture = *state;
	struct step poll = poll_of(0x100, 8, 1050, 3, FBT_FUTURE_PANICKED);

	take_poll(fixture, 0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	take_poll(fixture, 0x100, 8, 1020, 3, FBT_FUTURE_PANICKED);
	assert_int_equal(last(fixture)->end, FBT_END_UNWOUND);
	take_poll(fixture, 0x100, 8, 1030, FBT_FUTURE_NEW, 3);
	poll.record.end = FBT_END_UNWOUND;
	assert_int_equal(take(fixture, poll), 0);
	assert_int_equal(fixture->count, 2);
	assert_int_equal(last(fixture)->end, FBT_END_UNWOUND);
	assert_int_equal(last(fixture)->polls, 2);
}

static void a_poll_that_is_cut_off_ends_the_step(void **state)
{
	struct fixture *fixture = *state;
	struct step poll = poll_of(0x100, 8, 1050, 3, FBT_FUTURE_UNKNOWN);

	take_poll(fixture, 0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	poll.record.end = FBT_END_TRUNCATED;
	assert_int_equal(take(fixture, poll), 0);
	assert_int_equal(last(fixture)->end, FBT_END_TRUNCATED);
	assert_int_equal(last(fixture)->polls, 2);
	take_poll(fixture, 0x100, 8, 1100, FBT_FUTURE_NEW, FBT_FUTURE_UNKNOWN);
	assert_int_equal(last(fixture)->end, FBT_END_TRUNCATED);
}

/* The function was wrongly taken for one that polls a future. Its calls are ordinary steps. */
static void a_byte_that_is_no_state_makes_each_call_a_step(void **state)
{
	struct fixture *fixture = *state;

	take_poll(fixture, 0x100, 8, 1000, FBT_FUTURE_NEW, FBT_FUTURE_NEW);
	take_poll(fixture, 0x100, 8, 1020, FBT_FUTURE_READY, FBT_FUTURE_READY);
	take_poll(fixture, 0x100, 8, 1040, FBT_FUTURE_PANICKED, FBT_FUTURE_READY);
	assert_int_equal(fixture->count, 3);
	assert_int_equal(last(fixture)->polls, 1);
}

static void futures_that_await_at_the_end_are_truncated_there(void **state)
{
	struct fixture *fixture = *state;

	take_poll(fixture, 0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	assert_int_equal(futures__flush(fixture->futures, 1500), 0);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(last(fixture)->end, FBT_END_TRUNCATED);
	assert_int_equal(last(fixture)->end_ns, 1500);
	assert_int_equal(last(fixture)->await_ns, 490);
	assert_int_equal(last(fixture)->thread_ns, 500);
}

static void futures_of_a_process_end_with_it(void **state)
{
	struct fixture *fixture = *state;
	struct step other = poll_of(0x100, 18, 1000, FBT_FUTURE_NEW, 3);

	other.record.tgid = 17;
	assert_int_equal(take(fixture, other), 0);
	take_poll(fixture, 0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	take_poll(fixture, 0x200, 8, 1020, FBT_FUTURE_NEW, 3);
	assert_int_equal(futures__end_process(fixture->futures, 7, 1100), 0);
	assert_int_equal(fixture->count, 2);
	assert_int_equal(last(fixture)->end, FBT_END_EXITED);
	assert_int_equal(last(fixture)->await_ns, 70);
	assert_int_equal(futures__count(fixture->futures), 1);
}

/* Polls that happened while the probes were off are unknown. */
static void a_future_that_was_not_watched_for_a_time_is_cut_off(void **state)
{
	struct fixture *fixture = *state;
	struct step first = poll_of(0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	struct step second = poll_of(0x100, 8, 2000, 3, FBT_FUTURE_READY);
	struct step third = poll_of(0x200, 8, 2020, FBT_FUTURE_NEW, 3);

	first.record.header.flags |= FBT_STEP_SAMPLED;
	first.record.turn = 1;
	second.record.header.flags |= FBT_STEP_SAMPLED;
	second.record.turn = 2;
	third.record.header.flags |= FBT_STEP_SAMPLED;
	assert_int_equal(take(fixture, first), 0);
	assert_int_equal(take(fixture, second), 0);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(last(fixture)->end, FBT_END_TRUNCATED);
	assert_int_equal(last(fixture)->end_ns, 1010);
	assert_int_equal(fixture->cut[1], 1);
	assert_int_equal(fixture->late, 1);
	assert_int_equal(take(fixture, third), 0);
	assert_int_equal(futures__flush(fixture->futures, 9000), 0);
	assert_int_equal(last(fixture)->end_ns, 2030);
	assert_int_equal(last(fixture)->await_ns, 0);
	assert_int_equal(fixture->cut[1], 1);
}

/* It may have become ready meanwhile. */
static void a_future_whose_address_is_used_again_unwatched_is_cut_off(void **state)
{
	struct fixture *fixture = *state;
	struct step first = poll_of(0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	struct step second = poll_of(0x100, 8, 2000, FBT_FUTURE_NEW, FBT_FUTURE_READY);

	first.record.header.flags |= FBT_STEP_SAMPLED;
	first.record.turn = 1;
	second.record.header.flags |= FBT_STEP_SAMPLED;
	second.record.turn = 2;
	assert_int_equal(take(fixture, first), 0);
	assert_int_equal(take(fixture, second), 0);
	assert_int_equal(fixture->count, 2);
	assert_int_equal(fixture->steps[0].record.end, FBT_END_TRUNCATED);
	assert_int_equal(last(fixture)->end, FBT_END_RETURN);
	assert_int_equal(fixture->cut[1], 1);
	assert_int_equal(fixture->late, 0);
}

static void a_poll_that_was_lost_shows(void **state)
{
	struct fixture *fixture = *state;

	take_poll(fixture, 0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	take_poll(fixture, 0x100, 8, 1050, 4, FBT_FUTURE_READY);
	assert_true(fixture->steps[0].calls_truncated);
}

static void what_one_poll_does_not_know_the_step_does_not(void **state)
{
	struct fixture *fixture = *state;
	struct step first = poll_of(0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	struct step second = poll_of(0x100, 8, 1050, 3, FBT_FUTURE_READY);

	first.record.header.flags |= FBT_STEP_NO_GAP | FBT_STEP_HANDLERS_TIMED;
	second.record.header.flags |= FBT_STEP_OTHER_UNKNOWN | FBT_STEP_TEAM_KNOWN;
	second.record.starved_ns = 5;
	second.record.starved_tid = 9;
	assert_int_equal(take(fixture, first), 0);
	assert_int_equal(take(fixture, second), 0);
	assert_int_equal(last(fixture)->header.flags, FBT_STEP_NO_GAP | FBT_STEP_CPU_KNOWN |
							      FBT_STEP_OTHER_UNKNOWN |
							      FBT_STEP_TEAM_KNOWN);
	assert_int_equal(last(fixture)->starved_tid, 9);
}

/* Such a step is not judged: PyTorch's profiler may have made it slow. */
static void a_step_of_which_one_poll_was_profiled_was_profiled(void **state)
{
	struct fixture *fixture = *state;
	struct step second = poll_of(0x100, 8, 1050, 3, 4);

	take_poll(fixture, 0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	second.record.header.flags |= FBT_STEP_PROFILED;
	assert_int_equal(take(fixture, second), 0);
	take_poll(fixture, 0x100, 8, 1100, 4, FBT_FUTURE_READY);
	assert_true(last(fixture)->header.flags & FBT_STEP_PROFILED);
}

static void add_test_calls(struct step *poll, size_t count)
{
	const struct fbt_call call = {.start_ns = poll->record.start_ns};

	for (size_t i = 0; i < count; i++)
		assert_int_equal(vec_push(&poll->calls, call), 0);
}

static struct step poll_with_calls(uint64_t start_ns, uint8_t before, uint8_t after, size_t count)
{
	struct step poll = poll_of(0x100, 8, start_ns, before, after);

	add_test_calls(&poll, count);
	return poll;
}

static size_t kept_calls;

static int count_calls(void *ctx, struct step *step)
{
	(void)ctx;
	kept_calls = step->calls.count;
	return step->calls_truncated;
}

static void calls_of_all_polls_are_kept_up_to_a_limit(void **state)
{
	struct futures *futures = futures__new(count_calls, NULL);
	struct step poll = poll_with_calls(1000, FBT_FUTURE_NEW, 3, 5);
	uint64_t late = 0;

	(void)state;
	assert_non_null(futures);
	assert_int_equal(futures__take(futures, &poll, &late, NULL), 0);
	assert_int_equal(poll.calls.count, 0);
	poll = poll_with_calls(1050, 3, FBT_FUTURE_READY, 7);
	assert_int_equal(futures__take(futures, &poll, &late, NULL), 0);
	assert_int_equal(kept_calls, 12);
	vec_free(&poll.calls);
	poll = poll_with_calls(2000, FBT_FUTURE_NEW, 3, STEP_CALLS_MAX - 1);
	assert_int_equal(futures__take(futures, &poll, &late, NULL), 0);
	poll = poll_with_calls(2050, 3, FBT_FUTURE_READY, 2);
	assert_int_equal(futures__take(futures, &poll, &late, NULL), 1);
	assert_int_equal(kept_calls, STEP_CALLS_MAX);
	vec_free(&poll.calls);
	futures__free(futures);
}

/* A poll of 0x100 in which thread tid was stopped, if it is not 0, by a signal of sender. */
static struct step stopped_poll(uint32_t poller, uint64_t start_ns, uint32_t tid,
				uint64_t stopped_ns, uint32_t sender)
{
	struct step poll = poll_of(0x100, poller, start_ns, start_ns == 1000 ? FBT_FUTURE_NEW : 3,
				   start_ns == 3000 ? FBT_FUTURE_READY : 3);

	if (!tid)
		return poll;
	poll.stop = (struct fbt_stop){.header.type = FBT_EVENT_STOP,
				      .tgid = 7,
				      .tid = tid,
				      .time_ns = start_ns + 5,
				      .stopped_ns = stopped_ns};
	poll.stop_sender =
		(struct fbt_stop_sender){.header.type = FBT_EVENT_STOP_SENDER, .sender = sender};
	return poll;
}

static const struct step *joined(struct fixture *fixture, struct step first, struct step second,
				 struct step third)
{
	assert_int_equal(take(fixture, first), 0);
	assert_int_equal(take(fixture, second), 0);
	assert_int_equal(take(fixture, third), 0);
	assert_int_equal(fixture->count, 1);
	return &fixture->steps[0];
}

static void a_stop_of_a_later_poll_on_another_thread_is_the_steps(void **state)
{
	const struct step *step =
		joined(*state, stopped_poll(8, 1000, 0, 0, 0), stopped_poll(9, 2000, 9, 400, 55),
		       stopped_poll(8, 3000, 0, 0, 0));

	assert_int_equal(step->stop.tid, step->record.tid);
	assert_int_equal(step->stop.stopped_ns, 400);
	assert_int_equal(step->stop_sender.sender, 55);
}

static void stops_of_polls_add_up_and_the_longest_names_the_sender(void **state)
{
	const struct step *step =
		joined(*state, stopped_poll(8, 1000, 8, 100, 54), stopped_poll(9, 2000, 9, 400, 55),
		       stopped_poll(10, 3000, 10, 30, 56));

	assert_int_equal(step->stop.tid, 8);
	assert_int_equal(step->stop.stopped_ns, 530);
	assert_int_equal(step->stop_sender.sender, 55);
	assert_int_equal(step->stop.time_ns, 2005);
}

/* It is shorter than what the two before it add up to. */
static void the_longest_of_many_stops_names_the_sender(void **state)
{
	const struct step *step =
		joined(*state, stopped_poll(8, 1000, 8, 300, 54), stopped_poll(8, 2000, 8, 300, 54),
		       stopped_poll(9, 3000, 9, 500, 55));

	assert_int_equal(step->stop.stopped_ns, 1100);
	assert_int_equal(step->stop_sender.sender, 55);
	assert_int_equal(step->stop.time_ns, 3005);
}

static void a_stop_beside_does_not_replace_one_of_the_steps_own(void **state)
{
	const struct step *step =
		joined(*state, stopped_poll(8, 1000, 8, 100, 54), stopped_poll(8, 2000, 11, 400, 0),
		       stopped_poll(8, 3000, 0, 0, 0));

	assert_int_equal(step->stop.tid, 8);
	assert_int_equal(step->stop.stopped_ns, 100);
	assert_int_equal(step->stop_sender.sender, 54);
}

/* The thread of the first poll is another thread while a later poll runs elsewhere. */
static void a_stop_of_the_first_thread_beside_a_later_poll_is_not_the_steps(void **state)
{
	const struct step *step =
		joined(*state, stopped_poll(8, 1000, 0, 0, 0), stopped_poll(9, 2000, 8, 400, 55),
		       stopped_poll(8, 3000, 0, 0, 0));

	assert_int_equal(step->stop.header.type, 0);
}

static void an_own_stop_replaces_a_longer_one_beside(void **state)
{
	const struct step *step =
		joined(*state, stopped_poll(8, 1000, 11, 900, 0), stopped_poll(8, 2000, 12, 400, 0),
		       stopped_poll(9, 3000, 9, 70, 57));

	assert_int_equal(step->stop.tid, 8);
	assert_int_equal(step->stop.stopped_ns, 70);
	assert_int_equal(step->stop_sender.sender, 57);
}

/* A poll with count of what steps have beside their calls, of each kind. */
static struct step poll_with_beside(uint64_t start_ns, uint8_t before, uint8_t after, size_t count)
{
	struct step poll = poll_of(0x100, 8, start_ns, before, after);

	for (size_t i = 0; i < count; i++) {
		assert_int_equal(vec_push(&poll.wakes, ((struct fbt_wake){.tgid = 7})), 0);
		assert_int_equal(vec_push(&poll.stacks, ((struct fbt_stack){.tgid = 7})), 0);
		assert_int_equal(vec_push(&poll.peers, ((struct step_peer){.record.tgid = 7})), 0);
		assert_int_equal(vec_push(&poll.looks, ((struct fbt_look_thread){.tgid = 7})), 0);
		assert_int_equal(vec_push(&poll.wokens, ((struct fbt_woken){.tgid = 7})), 0);
	}
	return poll;
}

static void what_polls_have_beside_calls_is_the_steps(void **state)
{
	struct fixture *fixture = *state;
	const struct step *step = &fixture->steps[0];

	assert_int_equal(take(fixture, poll_with_beside(1000, FBT_FUTURE_NEW, 3, 2)), 0);
	assert_int_equal(take(fixture, poll_with_beside(1050, 3, FBT_FUTURE_READY, 3)), 0);
	assert_int_equal(step->wakes.count, 5);
	assert_int_equal(step->stacks.count, 5);
	assert_int_equal(step->peers.count, 5);
	assert_int_equal(step->looks.count, 5);
	assert_int_equal(step->wokens.count, 5);
	assert_false(step->calls_truncated);
}

static void what_polls_have_beside_calls_is_kept_up_to_a_limit(void **state)
{
	struct fixture *fixture = *state;
	const struct step *step = &fixture->steps[0];

	assert_int_equal(take(fixture, poll_with_beside(1000, FBT_FUTURE_NEW, 3, 1)), 0);
	assert_int_equal(
		take(fixture, poll_with_beside(1050, 3, FBT_FUTURE_READY, FUTURE_BESIDE_MAX)), 0);
	assert_true(step->calls_truncated);
	assert_int_equal(step->wakes.count, FUTURE_BESIDE_MAX);
	assert_int_equal(step->stacks.count, FUTURE_BESIDE_MAX);
	assert_int_equal(step->peers.count, FUTURE_BESIDE_MAX);
	assert_int_equal(step->looks.count, FUTURE_BESIDE_MAX);
	assert_int_equal(step->wokens.count, FUTURE_BESIDE_MAX);
}

#define SATURATED 16

/*
 * As loops of a server, which never end, and each of which would take the room of several; then an
 * ordinary future, of a step.
 */
static const struct step *saturate(struct fixture *fixture, size_t beside, size_t calls)
{
	struct step poll;

	for (uint64_t i = 0; i < SATURATED; i++) {
		for (uint64_t start_ns = 1000; start_ns <= 3000; start_ns += 1000) {
			poll = poll_with_beside(start_ns, start_ns == 1000 ? FBT_FUTURE_NEW : 3, 3,
						beside);
			add_test_calls(&poll, calls);
			poll.record.future = 0x200 + i;
			assert_int_equal(take(fixture, poll), 0);
		}
	}
	assert_int_equal(fixture->count, 0);
	for (uint64_t start_ns = 4000; start_ns <= 6000; start_ns += 1000) {
		poll = poll_with_beside(start_ns, start_ns == 4000 ? FBT_FUTURE_NEW : 3,
					start_ns == 6000 ? FBT_FUTURE_READY : 3, 2);
		add_test_calls(&poll, 9);
		assert_int_equal(take(fixture, poll), 0);
	}
	assert_int_equal(fixture->count, 1);
	return &fixture->steps[0];
}

static void check_whole(struct fixture *fixture, const struct step *step)
{
	assert_false(step->calls_truncated);
	assert_int_equal(step->calls.count, 27);
	assert_int_equal(step->wakes.count, 6);
	assert_int_equal(step->wokens.count, 6);
	fixture->beside = fixture->calls = 0;
	assert_int_equal(futures__end_process(fixture->futures, 7, 7000), 0);
	assert_int_equal(fixture->count, 1 + SATURATED);
	for (int i = 0; i < KEPT; i++)
		assert_true(fixture->steps[i].calls_truncated);
}

static void futures_that_never_end_leave_room_beside_calls(void **state)
{
	struct fixture *fixture = *state;

	check_whole(fixture, saturate(fixture, FUTURE_BESIDE_MAX, 0));
	assert_in_range(fixture->beside, FUTURES_BESIDE_MAX / 2, FUTURES_BESIDE_MAX);
}

static void futures_that_never_end_leave_room_for_calls(void **state)
{
	struct fixture *fixture = *state;

	check_whole(fixture, saturate(fixture, 0, STEP_CALLS_MAX));
	assert_in_range(fixture->calls, FUTURES_CALLS_MAX / 2, FUTURES_CALLS_MAX);
}

static void the_future_that_was_polled_least_recently_makes_room(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 0; i < FUTURES_MAX; i++)
		take_poll(fixture, 0x1000 + i, 8, 1000 + 20 * i, FBT_FUTURE_NEW, 3);
	take_poll(fixture, 0x1000, 8, 1000000, 3, 3);
	assert_int_equal(fixture->count, 0);
	take_poll(fixture, 0x100, 8, 2000000, FBT_FUTURE_NEW, 3);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(last(fixture)->start_ns, 1020);
	assert_int_equal(last(fixture)->end, FBT_END_UNWOUND);
	assert_int_equal(futures__count(fixture->futures), FUTURES_MAX);
}

static void errors_are_passed_up(void **state)
{
	struct fixture *fixture = *state;

	fixture->result = -EPIPE;
	take_poll(fixture, 0x100, 8, 1000, FBT_FUTURE_NEW, 3);
	assert_int_equal(take(fixture, poll_of(0x100, 8, 1050, 3, FBT_FUTURE_READY)), -EPIPE);
	take_poll(fixture, 0x100, 8, 1100, FBT_FUTURE_NEW, 3);
	assert_int_equal(futures__flush(fixture->futures, 1500), -EPIPE);
	assert_int_equal(fixture->count, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_future_that_is_ready_at_once_is_a_step,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(polls_of_a_future_are_one_step, open_fixture,
						close_fixture),
		cmocka_unit_test_setup_teardown(
			a_poll_of_less_than_no_time_on_a_cpu_takes_from_the_others, open_fixture,
			close_fixture),
		cmocka_unit_test_setup_teardown(a_step_is_no_poll, open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(futures_in_turns_on_one_thread_are_apart,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(processes_may_have_futures_at_the_same_address,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(a_future_that_began_before_is_no_step, open_fixture,
						close_fixture),
		cmocka_unit_test_setup_teardown(a_dropped_future_ends_with_its_last_poll,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(a_panic_unwinds_a_future, open_fixture,
						close_fixture),
		cmocka_unit_test_setup_teardown(a_poll_that_is_cut_off_ends_the_step, open_fixture,
						close_fixture),
		cmocka_unit_test_setup_teardown(a_byte_that_is_no_state_makes_each_call_a_step,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(futures_that_await_at_the_end_are_truncated_there,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(futures_of_a_process_end_with_it, open_fixture,
						close_fixture),
		cmocka_unit_test_setup_teardown(a_future_that_was_not_watched_for_a_time_is_cut_off,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(
			a_future_whose_address_is_used_again_unwatched_is_cut_off, open_fixture,
			close_fixture),
		cmocka_unit_test_setup_teardown(a_poll_that_was_lost_shows, open_fixture,
						close_fixture),
		cmocka_unit_test_setup_teardown(what_one_poll_does_not_know_the_step_does_not,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(a_step_of_which_one_poll_was_profiled_was_profiled,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(calls_of_all_polls_are_kept_up_to_a_limit,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(
			a_stop_of_a_later_poll_on_another_thread_is_the_steps, open_fixture,
			close_fixture),
		cmocka_unit_test_setup_teardown(
			stops_of_polls_add_up_and_the_longest_names_the_sender, open_fixture,
			close_fixture),
		cmocka_unit_test_setup_teardown(the_longest_of_many_stops_names_the_sender,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(a_stop_beside_does_not_replace_one_of_the_steps_own,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(
			a_stop_of_the_first_thread_beside_a_later_poll_is_not_the_steps,
			open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(an_own_stop_replaces_a_longer_one_beside,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(what_polls_have_beside_calls_is_the_steps,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(what_polls_have_beside_calls_is_kept_up_to_a_limit,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(futures_that_never_end_leave_room_beside_calls,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(futures_that_never_end_leave_room_for_calls,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(
			the_future_that_was_polled_least_recently_makes_room, open_fixture,
			close_fixture),
		cmocka_unit_test_setup_teardown(errors_are_passed_up, open_fixture, close_fixture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
