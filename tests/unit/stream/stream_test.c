/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record_keeper.h"
#include "shared_fixture.h"
#include "stream/stream.h"

#define SLOT 3
#define TID  103

/* A double of user/kernel/loader.c: what each drain of the event ring delivers. */
struct loader {
	struct shared *shared;
	struct fbt_header *events[8];
	int turns[8]; /* number of the drain that delivers the event, from 1 */
	int again;    /* number of further times that it is delivered */
	int count;
	int turn;
	bool is_cut_off;   /* more has come in than is read at once */
	int busy_turns;	   /* so many drains stop at an event that is still being written */
	int closing_turns; /* so many drains find a step whose record is not there yet */
	uint64_t missed;   /* system calls */
};

struct shared *loader__shared(struct loader *loader)
{
	return loader->shared;
}

/* There are no looks. */
const struct senders *loader__senders(const struct loader *loader)
{
	return NULL;
}

int loader__map(const struct loader *loader, const char *name)
{
	return -ENOENT;
}

struct task_list *loader__task_list(const struct loader *loader)
{
	return NULL;
}

bool loader__traces_calls(const struct loader *loader)
{
	return true;
}

uint64_t loader__missed_calls(const struct loader *loader)
{
	return loader->missed;
}

bool loader__drain_events(struct loader *loader, uint64_t most_ns,
			  void (*on_event)(void *ctx, const struct fbt_header *event), void *ctx)
{
	loader->turn++;
	for (int i = 0; i < loader->count; i++) {
		for (int time = 0; loader->turns[i] == loader->turn && time <= loader->again;
		     time++)
			on_event(ctx, loader->events[i]);
	}
	loader->shared->slots[SLOT].step_closing = loader->turn < loader->closing_turns;
	return !loader->is_cut_off && loader->turn > loader->busy_turns;
}

uint64_t loader__unread_steps(const struct loader *loader)
{
	return 3;
}

struct fixture {
	struct loader loader;
	struct record_keeper keeper;
	struct record_output output;
	struct traced_set *traced;
	struct stream *stream;
};

static void ignore_process(void *ctx, const struct fbt_target *target)
{
}

static int setup(void **state)
{
	struct fixture *fixture = shared_alloc(1, sizeof(*fixture));
	struct fbt_slot *slot;

	fixture->loader.shared = shared_new(16, 2, 10);
	fixture->output = keeper_output(&fixture->keeper);
	fixture->traced = traced_set__new(fixture->loader.shared, &fixture->output);
	fixture->stream = stream__new(&fixture->loader, fixture->traced, &fixture->output,
				      &(struct stream_options){.detail = FBT_DETAIL_ESCALATED,
							       .on_process = ignore_process});
	assert_non_null(fixture->stream);
	slot = &fixture->loader.shared->slots[SLOT];
	slot->state = FBT_SLOT_LIVE;
	slot->tgid = (__u32)getpid();
	slot->tid = TID;
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	stream__free(fixture->stream);
	traced_set__free(fixture->traced);
	shared_free(fixture->loader.shared);
	for (int i = 0; i < fixture->loader.count; i++)
		free(fixture->loader.events[i]);
	free(fixture);
	return 0;
}

static void *add_event(struct fixture *fixture, int turn, enum fbt_event_type type, size_t size)
{
	struct fbt_header *event = calloc(1, sizeof(struct fbt_ring_file));

	assert_true(size <= sizeof(struct fbt_ring_file));
	assert_non_null(event);
	event->type = type;
	event->size = size;
	fixture->loader.turns[fixture->loader.count] = turn;
	fixture->loader.events[fixture->loader.count++] = event;
	return event;
}

static void add_file(struct fixture *fixture, int turn, uint32_t id)
{
	struct fbt_ring_file *file =
		add_event(fixture, turn, FBT_EVENT_FILE, offsetof(struct fbt_ring_file, names) + 8);

	file->file.id = id;
	memcpy(file->names, "x", 2);
	file->length = 2;
}

static void add_step(struct fixture *fixture, int turn, uint64_t end_ns)
{
	struct fbt_step *step = add_event(fixture, turn, FBT_EVENT_STEP, sizeof(*step));

	step->tgid = (__u32)getpid();
	step->tid = TID;
	step->end_ns = end_ns;
}

static void add_wake(struct fixture *fixture, int turn, uint64_t start_ns)
{
	struct fbt_ring_wake *wake = add_event(fixture, turn, FBT_EVENT_WAKE, sizeof(*wake));

	wake->tgid = (__u32)getpid();
	wake->tid = TID;
	wake->start_ns = start_ns;
	wake->waker.wake_ns = start_ns + 10;
	wake->waker.past.tid = (__u32)getpid();
}

static void add_call(struct fixture *fixture, uint64_t end_ns, uint32_t file)
{
	struct shared *shared = fixture->loader.shared;
	uint64_t place = shared->heads[0].head++;

	shared->calls[place] = (struct fbt_ring_call){
		.start_ns = end_ns - 1,
		.duration_ns = 1,
		.slot = SLOT,
		.flags = FBT_CALL_ARGS,
		.file = file,
		.lap = 1,
	};
}

static const struct fbt_call *kept_call(const struct fixture *fixture, size_t index)
{
	return kept(&fixture->keeper, index, FBT_EVENT_CALL);
}

static uint64_t files_lost(struct fixture *fixture)
{
	const struct fbt_lost *lost;

	stream__send_lost(fixture->stream);
	lost = kept(&fixture->keeper, fixture->keeper.count - 1, FBT_EVENT_LOST);
	return lost->count[FBT_LOST_FILES];
}

static void a_file_is_sent_before_its_calls(void **state)
{
	struct fixture *fixture = *state;

	add_file(fixture, 1, 1);
	add_call(fixture, 10, 1);
	add_call(fixture, 11, 1);
	stream__drain(fixture->stream);
	assert_int_equal(fixture->keeper.count, 3);
	kept(&fixture->keeper, 0, FBT_EVENT_FILE);
	assert_int_equal(kept_call(fixture, 1)->file, 1);
	assert_int_equal(kept_call(fixture, 2)->file, 1);
}

static void many_calls_do_not_wait_longer_than_one(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 0; i < 200; i++)
		add_call(fixture, i + 1, 7);
	stream__drain(fixture->stream);
	assert_int_equal(fixture->keeper.count, 200);
	assert_int_equal(fixture->loader.turn, 101);
}

/* One file is announced between the reading of events and of calls, one is still being written. */
static void a_call_waits_for_its_file(void **state)
{
	struct fixture *fixture = *state;

	add_file(fixture, 4, 1);
	add_call(fixture, 10, 0);
	add_call(fixture, 11, 1);
	stream__drain(fixture->stream);
	assert_int_equal(fixture->keeper.count, 3);
	assert_int_equal(kept_call(fixture, 0)->file, 0);
	kept(&fixture->keeper, 1, FBT_EVENT_FILE);
	assert_int_equal(kept_call(fixture, 2)->file, 1);
}

static void a_file_that_never_comes_is_counted(void **state)
{
	struct fixture *fixture = *state;

	add_call(fixture, 10, 7);
	stream__drain(fixture->stream);
	assert_int_equal(kept_call(fixture, 0)->file, 0);
	assert_int_equal(kept_call(fixture, 0)->header.flags, FBT_CALL_ARGS);
	fixture->loader.shared->control->lost[FBT_LOST_FILES] = 3;
	assert_int_equal(files_lost(fixture), 4);
}

static void calls_that_the_kernel_left_out_are_told(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_unseen *unseen;

	fixture->loader.missed = 5;
	stream__discard(fixture->stream);
	fixture->loader.missed = 12;
	stream__send_unseen(fixture->stream);
	unseen = kept(&fixture->keeper, fixture->keeper.count - 1, FBT_EVENT_UNSEEN);
	assert_int_equal(unseen->calls, 7);
}

/* The step may have ended after the cutoff of the calls. */
static void a_step_that_came_while_calls_were_sent_waits(void **state)
{
	struct fixture *fixture = *state;

	add_step(fixture, 1, 20);
	add_file(fixture, 2, 1);
	add_step(fixture, 2, 30);
	add_step(fixture, 2, 40);
	add_call(fixture, 11, 1);
	stream__drain(fixture->stream);
	assert_int_equal(stream__steps(fixture->stream), 1);
	add_call(fixture, 25, 1);
	stream__drain(fixture->stream);
	assert_int_equal(stream__steps(fixture->stream), 3);
	kept(&fixture->keeper, 0, FBT_EVENT_FILE);
	kept_call(fixture, 1);
	assert_int_equal(
		((const struct fbt_step *)kept(&fixture->keeper, 2, FBT_EVENT_STEP))->end_ns, 20);
	assert_int_equal(kept_call(fixture, 3)->start_ns, 24);
	assert_int_equal(
		((const struct fbt_step *)kept(&fixture->keeper, 4, FBT_EVENT_STEP))->end_ns, 30);
	assert_int_equal(
		((const struct fbt_step *)kept(&fixture->keeper, 5, FBT_EVENT_STEP))->end_ns, 40);
}

static uint64_t kept_step_end(const struct fixture *fixture, size_t index)
{
	const struct fbt_step *step = kept(&fixture->keeper, index, FBT_EVENT_STEP);

	return step->end_ns;
}

/* The rate guard cuts it off while the thread's steps before are in the ring still. */
static void a_step_that_is_cut_off_comes_after_those_before(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_slot *slot = &fixture->loader.shared->slots[SLOT];

	add_step(fixture, 1, 20);
	slot->step_kind = 1;
	slot->step_start_ns = 30;
	assert_int_equal(stream__cut_steps(fixture->stream, UINT64_MAX, 100), 1);
	stream__drain(fixture->stream);
	assert_int_equal(stream__steps(fixture->stream), 2);
	assert_int_equal(kept_step_end(fixture, 0), 20);
	assert_int_equal(kept_step_end(fixture, 1), 100);
}

/* TID is no thread of this process. */
static void a_thread_that_is_gone_is_not_named(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_step *step;

	add_step(fixture, 1, 20);
	add_step(fixture, 1, 30);
	step = (struct fbt_step *)fixture->loader.events[1];
	step->tid = (__u32)getpid();
	stream__drain(fixture->stream);
	stream__drain(fixture->stream);
	kept(&fixture->keeper, 0, FBT_EVENT_STEP);
	kept(&fixture->keeper, 1, FBT_EVENT_THREAD);
	kept(&fixture->keeper, 2, FBT_EVENT_STEP);
	assert_int_equal(fixture->keeper.count, 3);
}

/* Opens a step at 100 with a call that began at 200. */
static void open_step(struct fixture *fixture)
{
	struct fbt_slot *slot = &fixture->loader.shared->slots[SLOT];

	slot->step_start_ns = 100;
	slot->start_ns = 200;
	slot->call_flags = FBT_CALL_ARGS;
	slot->call_args[0] = 5;
	slot->call_args[1] = 6;
	slot->call_file = 1;
	slot->awake_switches = UINT64_MAX;
}

static void an_open_call_of_a_step_has_its_arguments(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_call *call;
	const struct fbt_step *step;

	add_file(fixture, 1, 1);
	open_step(fixture);
	stream__finish(fixture->stream, 1000);
	call = kept_call(fixture, 1);
	assert_int_equal(call->header.flags, FBT_CALL_UNFINISHED | FBT_CALL_ARGS);
	assert_int_equal(call->duration_ns, 800);
	assert_int_equal(call->args[0], 5);
	assert_int_equal(call->args[1], 6);
	assert_int_equal(call->file, 1);
	step = kept(&fixture->keeper, 2, FBT_EVENT_STEP);
	assert_int_equal(step->end, FBT_END_TRUNCATED);
	assert_true(step->header.flags & FBT_STEP_SCHED_UNKNOWN);
}

static void an_open_row_of_calls_is_sent_before_the_open_call(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_slot *slot = &fixture->loader.shared->slots[SLOT];
	const struct fbt_call *row;

	add_file(fixture, 1, 1);
	open_step(fixture);
	slot->spin_start_ns = 110;
	slot->spin_end_ns = 190;
	slot->spin_calls = 7;
	slot->spin_longest_ns = 9;
	slot->spin_ns = 50;
	slot->spin_delay_ns = 3;
	slot->spin_nr = 24;
	slot->spin_file = 1;
	stream__finish(fixture->stream, 1000);
	row = kept_call(fixture, 1);
	assert_int_equal(row->header.flags, FBT_CALL_RUN);
	assert_int_equal(row->run.calls, 7);
	assert_int_equal(row->run.longest_ns, 9);
	assert_int_equal(row->run.calls_ns, 50);
	assert_int_equal(row->start_ns + row->duration_ns, 190);
	assert_int_equal(row->delay_ns, 3);
	assert_int_equal(row->nr, 24);
	assert_int_equal(row->file, 1);
	assert_int_equal(kept_call(fixture, 2)->header.flags, FBT_CALL_UNFINISHED | FBT_CALL_ARGS);
}

static void an_open_call_names_no_file_that_was_not_sent(void **state)
{
	struct fixture *fixture = *state;

	open_step(fixture);
	stream__finish(fixture->stream, 1000);
	assert_int_equal(kept_call(fixture, 0)->file, 0);
}

/* The test's own thread has given up the CPU before. */
static void an_open_call_that_gave_the_cpu_away_says_so(void **state)
{
	struct fixture *fixture = *state;

	open_step(fixture);
	fixture->loader.shared->slots[SLOT].tid = (__u32)gettid();
	fixture->loader.shared->slots[SLOT].awake_switches = 0;
	usleep(1000);
	stream__finish(fixture->stream, 1000);
	assert_true(kept_call(fixture, 0)->header.flags & FBT_CALL_BLOCKED);
}

/* The slot still holds the arguments of an earlier call within a step. */
static void an_open_call_outside_of_steps_has_none(void **state)
{
	struct fixture *fixture = *state;

	stream__free(fixture->stream);
	fixture->stream = stream__new(
		&fixture->loader, fixture->traced, &fixture->output,
		&(struct stream_options){.detail = FBT_DETAIL_ALL, .on_process = ignore_process});
	assert_non_null(fixture->stream);
	open_step(fixture);
	fixture->loader.shared->slots[SLOT].step_start_ns = 0;
	stream__finish(fixture->stream, 1000);
	assert_int_equal(kept_call(fixture, 0)->header.flags, FBT_CALL_UNFINISHED);
	assert_int_equal(kept_call(fixture, 0)->args[0], 0);
	assert_int_equal(kept_call(fixture, 0)->file, 0);
}

static size_t memory_taken(void)
{
	struct mallinfo2 taken = mallinfo2();

	return taken.arena + taken.hblkhd;
}

/*
 * The stall comes twice: after the first large block, glibc would take the next one from the heap
 * and keep it.
 */
static void memory_that_a_stall_took_is_given_back(void **state)
{
	struct fixture *fixture = *state;
	size_t before;

	/* The same settings as in main(). */
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	mallopt(M_TRIM_THRESHOLD, 2 << 20);
	stream__free(fixture->stream);
	fixture->stream =
		stream__new(&fixture->loader, fixture->traced, &fixture->output,
			    &(struct stream_options){.steps_max = 1, .on_process = ignore_process});
	assert_non_null(fixture->stream);
	fixture->loader.again = 20000; /* 6 MiB of steps */
	add_step(fixture, 1, 20);
	add_step(fixture, 2, 30);
	before = memory_taken();
	stream__drain(fixture->stream);
	stream__drain(fixture->stream);
	assert_int_equal(fixture->loader.turn, 2);
	assert_int_equal(stream__steps(fixture->stream), 1);
	assert_true(memory_taken() < before + (4 << 20));
}

static void a_wake_is_sent_before_its_step_with_the_name_of_the_waker(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_thread_name *name;
	const struct fbt_wake *wake;

	add_wake(fixture, 1, 100);
	add_step(fixture, 1, 200);
	stream__drain(fixture->stream);
	assert_int_equal(fixture->keeper.count, 3);
	name = kept(&fixture->keeper, 0, FBT_EVENT_THREAD);
	assert_int_equal(name->tid, getpid());
	wake = kept(&fixture->keeper, 1, FBT_EVENT_WAKE);
	assert_int_equal(wake->tid, TID);
	assert_int_equal(wake->waker_tid, getpid());
	assert_int_equal(wake->unknown_ns + wake->cpu_ns, 10);
	kept(&fixture->keeper, 2, FBT_EVENT_STEP);
}

/* The beginning of its process may be among the events that were not read. */
static void an_ended_thread_waits_for_all_events(void **state)
{
	struct fixture *fixture = *state;
	struct shared *shared = fixture->loader.shared;
	int index;

	slots_init(shared);
	index = slots_take(shared, 7, TID + 1, 1);
	assert_true(index > 0);
	slots_end(shared, TID + 1, 2);
	fixture->loader.is_cut_off = true;
	for (int i = 0; i < 3; i++)
		stream__drain(fixture->stream);
	assert_int_equal(shared->slots[index].state, FBT_SLOT_DEAD);
	fixture->loader.is_cut_off = false;
	stream__drain(fixture->stream);
	assert_int_equal(shared->slots[index].state, FBT_SLOT_FREE);
}

/* As if the host of the machine had taken more than the gap had. */
static void a_gap_with_less_than_no_time_on_a_cpu_is_sent(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_ring_step *ring = add_event(fixture, 1, FBT_EVENT_STEP, sizeof(*ring));

	ring->step.header.flags = FBT_STEP_CPU_KNOWN;
	ring->step.tgid = (__u32)getpid();
	ring->step.tid = TID;
	ring->step.gap_ns = 5000000;
	ring->gap.cpu_ns = (__u64)-20000;
	stream__drain(fixture->stream);
	assert_int_equal(fixture->keeper.count, 2);
	kept(&fixture->keeper, 0, FBT_EVENT_GAP);
	kept(&fixture->keeper, 1, FBT_EVENT_STEP);
}

/* A later call may name a file, or be of a process, of which an event that is left tells. */
static void where_events_are_left_later_calls_wait(void **state)
{
	struct fixture *fixture = *state;

	add_step(fixture, 1, 200);
	add_call(fixture, 100, 0);
	add_call(fixture, 300, 0);
	fixture->loader.is_cut_off = true;
	stream__drain(fixture->stream);
	assert_int_equal(fixture->keeper.count, 2);
	kept(&fixture->keeper, 0, FBT_EVENT_CALL);
	kept(&fixture->keeper, 1, FBT_EVENT_STEP);
	fixture->loader.is_cut_off = false;
	stream__drain(fixture->stream);
	assert_int_equal(fixture->keeper.count, 3);
}

/* The kernel's figures of threads may be a second old. */
static void without_a_tick_what_other_threads_did_is_not_known(void **state)
{
	struct fixture *fixture = *state;
	const struct stream_options options = {
		.detail = FBT_DETAIL_ESCALATED, .on_process = ignore_process, .is_tickless = true};
	const struct fbt_step *sent;
	struct fbt_step *step;

	stream__free(fixture->stream);
	fixture->stream =
		stream__new(&fixture->loader, fixture->traced, &fixture->output, &options);
	assert_non_null(fixture->stream);
	add_step(fixture, 1, 200);
	step = (struct fbt_step *)fixture->loader.events[0];
	step->header.flags = FBT_STEP_TEAM_TIMED | FBT_STEP_TEAM_KNOWN;
	step->team_ns = 100;
	step->team_cpu_ns = 2000;
	step->team_delay_ns = 5;
	step->starved_ns = 4;
	stream__drain(fixture->stream);
	sent = kept(&fixture->keeper, 0, FBT_EVENT_STEP);
	assert_int_equal(sent->header.flags, FBT_STEP_TEAM_KNOWN);
	assert_int_equal(sent->team_ns + sent->team_cpu_ns + sent->team_delay_ns, 0);
	assert_int_equal(sent->starved_ns, 4);
}

static uint64_t steps_lost(struct fixture *fixture)
{
	const struct fbt_lost *lost;

	stream__send_lost(fixture->stream);
	lost = kept(&fixture->keeper, fixture->keeper.count - 1, FBT_EVENT_LOST);
	return lost->count[FBT_LOST_STEPS];
}

/* Its thread has no CPU, so it holds up what comes behind its record. */
static void the_last_step_is_waited_for(void **state)
{
	struct fixture *fixture = *state;

	slots_init(fixture->loader.shared);
	fixture->loader.shared->control->free_head = SLOT;
	fixture->loader.busy_turns = 2;
	add_step(fixture, 3, 200);
	stream__finish(fixture->stream, 1000);
	assert_int_equal(stream__steps(fixture->stream), 1);
	assert_int_equal(fixture->loader.turn, 3);
	kept(&fixture->keeper, fixture->keeper.count - 1, FBT_EVENT_STEP);
}

static void a_step_that_is_about_to_be_recorded_is_waited_for(void **state)
{
	struct fixture *fixture = *state;

	slots_init(fixture->loader.shared);
	fixture->loader.shared->control->free_head = SLOT;
	fixture->loader.shared->slots[SLOT].step_closing = 1;
	fixture->loader.closing_turns = 3;
	add_step(fixture, 4, 200);
	stream__finish(fixture->stream, 1000);
	assert_int_equal(stream__steps(fixture->stream), 1);
	kept(&fixture->keeper, fixture->keeper.count - 1, FBT_EVENT_STEP);
}

static void last_steps_that_do_not_come_are_lost(void **state)
{
	struct fixture *fixture = *state;

	fixture->loader.is_cut_off = true;
	stream__finish(fixture->stream, 1000);
	fixture->loader.shared->control->lost[FBT_LOST_STEPS] = 1;
	assert_int_equal(steps_lost(fixture), 4);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_tick_what_other_threads_did_is_not_known),
		TEST(the_last_step_is_waited_for),
		TEST(a_step_that_is_about_to_be_recorded_is_waited_for),
		TEST(last_steps_that_do_not_come_are_lost),
		TEST(a_file_is_sent_before_its_calls),
		TEST(a_call_waits_for_its_file),
		TEST(a_file_that_never_comes_is_counted),
		TEST(many_calls_do_not_wait_longer_than_one),
		TEST(calls_that_the_kernel_left_out_are_told),
		TEST(a_step_that_came_while_calls_were_sent_waits),
		TEST(a_step_that_is_cut_off_comes_after_those_before),
		TEST(an_open_call_of_a_step_has_its_arguments),
		TEST(a_thread_that_is_gone_is_not_named),
		TEST(an_open_row_of_calls_is_sent_before_the_open_call),
		TEST(an_open_call_names_no_file_that_was_not_sent),
		TEST(an_open_call_that_gave_the_cpu_away_says_so),
		TEST(an_open_call_outside_of_steps_has_none),
		TEST(memory_that_a_stall_took_is_given_back),
		TEST(a_gap_with_less_than_no_time_on_a_cpu_is_sent),
		TEST(a_wake_is_sent_before_its_step_with_the_name_of_the_waker),
		TEST(an_ended_thread_waits_for_all_events),
		TEST(where_events_are_left_later_calls_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
