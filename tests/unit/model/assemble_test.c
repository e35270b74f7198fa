/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include "assemble_fixture.h"
#include "model/assemble.h"
#include "model/pending.h"

static void assembler_free_takes_null(void **state)
{
	assembler__free(NULL);
}

static void an_error_of_the_receiver_is_passed_up(void **state)
{
	struct fixture *fixture = *state;

	fixture->result = -EIO;
	add_window(&fixture->stream, FBT_DETAIL_STEPS);
	add_step(&fixture->stream, 7, 1, 1000, 2000);
	add_step(&fixture->stream, 7, 1, 2000, 3000);
	assert_int_equal(play(fixture), -EIO);
	assert_int_equal(fixture->count, 2);
}

static void records_before_the_window_are_skipped(void **state)
{
	struct fixture *fixture = *state;

	add_step(&fixture->stream, 7, 1, 1000, 2000);
	assert_int_equal(play(fixture), 0);
	assert_int_equal(fixture->count, 0);
	assert_int_equal(view(fixture)->skipped_records, 1);
}

/* Else helpers that live for a moment would take the room of other processes. */
static void a_process_without_a_whole_interval_has_had_no_step(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_STEPS);
	struct fbt_step *step;

	add_target(&fixture->stream, 7, "helper");
	step = add_step(&fixture->stream, 7, 0, 1000, 2000);
	step->end = FBT_END_TRUNCATED;
	assert_int_equal(play(fixture), 0);
	assert_int_equal(fixture->count, 1);
	assert_false(window__process(view(fixture), 7)->has_steps);
	add_step(&fixture->stream, 7, 0, 2000, 3000);
	assert_int_equal(play(fixture), 0);
	assert_true(window__process(view(fixture), 7)->has_steps);
}

/* More threads than are kept: a name is missing, and no record is damaged. */
static void a_name_without_room_is_counted_apart(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_STEPS);
	struct fbt_thread_name record = {.header = {FBT_EVENT_THREAD, 0, sizeof(record)},
					 .tgid = 7};

	play(fixture);
	for (record.tid = 1; record.tid <= 65537; record.tid++)
		assert_int_equal(assembler__push(fixture->assembler, &record.header), 0);
	assert_int_equal(view(fixture)->skipped_records, 0);
	assert_int_equal(view(fixture)->unkept_records, 1);
}

/* Sockets that clients open and close; a log file that is written all the time keeps its name. */
static void a_file_that_calls_name_outlives_many_others(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_ALL);
	struct {
		struct fbt_file file;
		char path[8];
	} record = {.file = {.header = {FBT_EVENT_FILE, 0, sizeof(record)}, .tgid = 7},
		    .path = "/a"};
	struct fbt_call call = {
		.header = {FBT_EVENT_CALL, 0, sizeof(call)}, .tgid = 7, .tid = 7, .file = 1};

	play(fixture);
	for (record.file.id = 1; record.file.id <= 3 * FILE_TABLE_MAX; record.file.id++) {
		assert_int_equal(assembler__push(fixture->assembler, &record.file.header), 0);
		if (record.file.id % 10000)
			continue;
		call.start_ns += 1000;
		assert_int_equal(assembler__push(fixture->assembler, &call.header), 0);
	}
	assert_non_null(window__file(view(fixture), 1));
	assert_null(window__file(view(fixture), 2));
	assert_non_null(window__file(view(fixture), 3 * FILE_TABLE_MAX));
	assert_int_equal(view(fixture)->skipped_records, 0);
	assert_int_equal(view(fixture)->unkept_records, 0);
}

/* The report names them at the end, when the step is long gone. */
static void files_in_which_a_step_had_page_faults_stay(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_STEPS);
	struct {
		struct fbt_file file;
		char path[8];
	} record = {.file = {.header = {FBT_EVENT_FILE, 0, sizeof(record)}, .tgid = 7},
		    .path = "/a"};
	const struct fbt_fault_sites sites = {
		.header = {FBT_EVENT_FAULT_SITES, 0, sizeof(sites)},
		.tgid = 7,
		.tid = 8,
		.start_ns = 1000,
		.count = 2,
		.sites = {{.file = 3}, {.file = 0}},
	};
	const struct fbt_step step = {.header = {FBT_EVENT_STEP, 0, sizeof(step)},
				      .tgid = 7,
				      .tid = 8,
				      .kind = 1,
				      .start_ns = 1000,
				      .end_ns = 2000};

	play(fixture);
	for (record.file.id = 1; record.file.id <= 2 * FILE_TABLE_MAX; record.file.id++) {
		assert_int_equal(assembler__push(fixture->assembler, &record.file.header), 0);
		if (record.file.id != 10)
			continue;
		assert_int_equal(assembler__push(fixture->assembler, &sites.header), 0);
		assert_int_equal(assembler__push(fixture->assembler, &step.header), 0);
	}
	assert_non_null(window__file(view(fixture), 3));
	assert_null(window__file(view(fixture), 4));
}

static void a_second_window_is_skipped(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_ALL);

	add_window(&fixture->stream, FBT_DETAIL_STEPS);
	play(fixture);
	assert_int_equal(view(fixture)->skipped_records, 1);
	assert_int_equal(view(fixture)->record.detail, FBT_DETAIL_ALL);
}

static void a_stream_without_a_window_can_be_flushed(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(assembler__flush(fixture->assembler), 0);
	assert_string_equal(view(fixture)->tag, "");
	assert_true(view(fixture)->cut_off);
}

static void a_step_of_an_unknown_kind_and_process_is_taken(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_STEPS);

	add_step(&fixture->stream, 7, 9, 1000, 2000);
	assert_int_equal(play(fixture), 0);
	assert_int_equal(fixture->count, 1);
	assert_non_null(window__process(view(fixture), 7));
}

static void a_table_row_of_an_unknown_process_is_kept(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_STEPS);

	add_table(&fixture->stream, 99, 3, 5);
	play(fixture);
	assert_int_equal(find_row(&window__process(view(fixture), 99)->table, 3)->sum.calls, 5);
}

/*
 * A fixture whose window holds the maximum number of processes, from 1,000 on. Process 7 has no
 * room.
 */
static struct fixture *begin_full(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_STEPS);

	for (uint32_t i = 0; i < WINDOW_PROCESSES_MAX; i++) {
		add_table(&fixture->stream, 1000 + i, 3, 5);
		assert_int_equal(play(fixture), 0);
		fixture->stream.size = 0;
	}
	assert_int_equal(view(fixture)->overflow_processes, 0);
	return fixture;
}

static void steps_of_a_process_that_is_not_kept_are_taken(void **state)
{
	struct fixture *fixture = begin_full(state);

	add_step(&fixture->stream, 7, 1, 1000, 2000);
	assert_int_equal(play(fixture), 0);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(view(fixture)->steps, 1);
}

static void a_process_that_is_not_kept_is_counted_and_no_record_is_skipped(void **state)
{
	struct fixture *fixture = begin_full(state);

	add_target(&fixture->stream, 7, "engine");
	add_step(&fixture->stream, 7, 1, 1000, 2000);
	add_table(&fixture->stream, 7, 3, 5);
	add_exit(&fixture->stream, 7, 3000);
	assert_int_equal(play(fixture), 0);
	assert_int_equal(view(fixture)->overflow_processes, 1);
	assert_int_equal(view(fixture)->skipped_records, 0);
}

static void a_stream_without_an_end_is_cut_off_at_its_latest_time(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_STEPS);

	add_step(&fixture->stream, 7, 1, 1000, 5000);
	add_step(&fixture->stream, 8, 1, 1000, 4000);
	play(fixture);
	assembler__flush(fixture->assembler);
	assert_true(view(fixture)->cut_off);
	assert_int_equal(view(fixture)->end_ns, 5000);
}

/* A poll of the future at 0x100 by thread 8. */
static void add_poll(struct stream *stream, uint64_t start_ns, uint8_t before, uint8_t after)
{
	struct fbt_step *step = add_step(stream, 8, 1, start_ns, start_ns + 100);

	step->header.flags = FBT_STEP_POLL;
	step->future = 0x100;
	step->state_before = before;
	step->state_after = after;
}

static void polls_are_joined_with_their_calls(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_ESCALATED);

	add_target(&fixture->stream, 7, "engine");
	add_call(&fixture->stream, 8, 1010);
	add_poll(&fixture->stream, 1000, 0, 3);
	add_call(&fixture->stream, 8, 2010)->nr = 1;
	add_call(&fixture->stream, 8, 2030);
	add_poll(&fixture->stream, 2000, 3, 1);
	assert_int_equal(play(fixture), 0);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(fixture->call_counts[0], 3);
	assert_int_equal(fixture->steps[0].number, 1);
	assert_int_equal(fixture->steps[0].record.await_ns, 900);
	assert_true(fixture->steps[0].complete);
}

/* The records of a thread that ends are held back until its calls have come. */
static void a_poll_may_come_after_the_end_of_its_process(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_ESCALATED);

	add_target(&fixture->stream, 7, "engine");
	add_poll(&fixture->stream, 1000, 0, 3);
	add_exit(&fixture->stream, 7, 5000);
	add_poll(&fixture->stream, 2000, 3, 1);
	add_poll(&fixture->stream, 3000, 0, 3);
	add_end(&fixture->stream, 9000);
	assert_int_equal(play(fixture), 0);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(fixture->steps[0].record.end, FBT_END_RETURN);
	assert_int_equal(assembler__flush(fixture->assembler), 0);
	assert_int_equal(fixture->count, 2);
	assert_int_equal(fixture->steps[1].record.end, FBT_END_EXITED);
	assert_int_equal(fixture->steps[1].record.end_ns, 5000);
}

static void futures_do_not_outlive_an_execve(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_ESCALATED);

	add_target(&fixture->stream, 7, "engine");
	add_poll(&fixture->stream, 1000, 0, 3);
	add_target(&fixture->stream, 7, "other")->start_ns = 4000;
	add_poll(&fixture->stream, 4100, 3, 1);
	assert_int_equal(play(fixture), 0);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(fixture->steps[0].record.end, FBT_END_EXITED);
	assert_int_equal(fixture->steps[0].record.end_ns, 4000);
	assert_int_equal(view(fixture)->late_polls[1], 1);
}

static void a_window_is_open_until_the_flush(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_STEPS);

	add_end(&fixture->stream, 9000);
	play(fixture);
	assert_int_equal(view(fixture)->end_ns, 0);
	assembler__flush(fixture->assembler);
	assert_int_equal(view(fixture)->end_ns, 9000);
	assert_false(view(fixture)->cut_off);
}

static void a_window_does_not_end_before_it_begins(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_STEPS);

	add_end(&fixture->stream, 5);
	play(fixture);
	assembler__flush(fixture->assembler);
	assert_int_equal(view(fixture)->end_ns, 1000);
}

static void steps_are_numbered_over_all_and_by_kind(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_STEPS);

	add_step(&fixture->stream, 7, 1, 1000, 2000);
	add_step(&fixture->stream, 7, 2, 2000, 3000);
	add_step(&fixture->stream, 7, 1, 3000, 4000);
	play(fixture);
	assert_int_equal(fixture->steps[2].number, 3);
	assert_int_equal(fixture->steps[2].kind_number, 2);
	assert_int_equal(fixture->steps[1].kind_number, 1);
	assert_int_equal(view(fixture)->steps, 3);
}

static void steps_of_overlapping_threads_take_their_own_calls(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_ESCALATED);

	add_call(&fixture->stream, 7, 1100);
	add_call(&fixture->stream, 8, 1100);
	add_call(&fixture->stream, 8, 1200);
	add_step(&fixture->stream, 7, 1, 1000, 2000)->sums[FBT_READ].calls = 1;
	add_step(&fixture->stream, 8, 1, 1000, 2000)->sums[FBT_READ].calls = 2;
	play(fixture);
	assert_int_equal(fixture->call_counts[0], 1);
	assert_int_equal(fixture->call_counts[1], 2);
	assert_true(fixture->steps[0].complete && fixture->steps[1].complete);
}

static void calls_outside_of_steps_are_passed_on_with_all_detail(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_ALL);

	add_call(&fixture->stream, 7, 1100);
	add_call(&fixture->stream, 9, 1100);
	add_step(&fixture->stream, 7, 1, 2000, 3000);
	play(fixture);
	assert_int_equal(fixture->outside, 1);
	assembler__flush(fixture->assembler);
	assert_int_equal(fixture->outside, 2);
}

static void calls_outside_of_steps_are_dropped_with_less_detail(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_ESCALATED);

	add_call(&fixture->stream, 7, 1100);
	add_step(&fixture->stream, 7, 1, 2000, 3000);
	play(fixture);
	assembler__flush(fixture->assembler);
	assert_int_equal(fixture->outside, 0);
}

static void calls_of_an_exited_process_still_meet_a_late_step(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_ALL);

	add_call(&fixture->stream, 7, 1100);
	add_exit(&fixture->stream, 7, 3000);
	add_step(&fixture->stream, 7, 1, 1000, 2000);
	play(fixture);
	assert_int_equal(fixture->call_counts[0], 1);
	assert_int_equal(window__process(view(fixture), 7)->exit_ns, 3000);
}

static void calls_of_an_exited_process_leave_when_its_number_is_used_again(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_ALL);

	add_call(&fixture->stream, 7, 1100);
	add_exit(&fixture->stream, 7, 3000);
	add_target(&fixture->stream, 7, "new")->start_ns = 4000;
	play(fixture);
	assert_int_equal(fixture->outside, 1);
}

/* Plays one step, of whose calls one is received. */
static bool is_complete(struct fixture *fixture, uint32_t detail, uint32_t end, uint64_t calls,
			uint64_t lost_calls)
{
	struct fbt_step *step;

	add_window(&fixture->stream, detail);
	add_call(&fixture->stream, 7, 1100);
	step = add_step(&fixture->stream, 7, 1, 1000, 2000);
	step->end = end;
	step->sums[FBT_READ].calls = calls;
	step->lost_calls = lost_calls;
	assert_int_equal(play(fixture), 0);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(view(fixture)->incomplete_steps, !fixture->steps[0].complete);
	return fixture->steps[0].complete;
}

static void calls_of_an_exited_process_leave_first_when_room_is_needed(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_ALL);
	struct fbt_call call = {.header = {FBT_EVENT_CALL, 0, sizeof(call)}, .tgid = 6, .tid = 6};

	add_call(&fixture->stream, 7, 1100);
	play(fixture);
	for (size_t i = 1; i < PENDING_CALLS_MAX; i++) {
		call.tid = 100 + i % 50;
		assembler__push(fixture->assembler, &call.header);
	}
	fixture->stream.size = 0;
	add_exit(&fixture->stream, 6, 3000);
	add_call(&fixture->stream, 7, 1200);
	add_step(&fixture->stream, 7, 1, 1000, 2000);
	play(fixture);
	assert_int_equal(fixture->outside, PENDING_CALLS_MAX - 1);
	assert_int_equal(fixture->call_counts[0], 2);
}

static void a_truncated_step_is_not_complete(void **state)
{
	assert_false(is_complete(*state, FBT_DETAIL_ESCALATED, FBT_END_TRUNCATED, 1, 0));
}

static void a_step_whose_thread_ended_is_not_complete(void **state)
{
	assert_false(is_complete(*state, FBT_DETAIL_ESCALATED, FBT_END_EXITED, 1, 0));
}

static void a_step_with_lost_calls_is_not_complete(void **state)
{
	assert_false(is_complete(*state, FBT_DETAIL_ESCALATED, FBT_END_RETURN, 1, 1));
}

static void a_step_with_a_counted_call_that_never_came_is_not_complete(void **state)
{
	assert_false(is_complete(*state, FBT_DETAIL_ESCALATED, FBT_END_RETURN, 2, 0));
}

static void a_step_is_complete_without_calls_that_nobody_asked_for(void **state)
{
	assert_true(is_complete(*state, FBT_DETAIL_STEPS, FBT_END_RETURN, 2, 0));
}

static void a_window_without_calls_knows_none_whatever_its_records_say(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_PROBES);
	struct fbt_step *record;

	add_call(&fixture->stream, 7, 1100);
	add_table(&fixture->stream, 7, 3, 5);
	record = add_step(&fixture->stream, 7, 1, 1000, 2000);
	record->sums[FBT_READ] = (struct fbt_sum){.ns = 500, .calls = 2};
	record->gap_syscall_ns = 1;
	record->other_syscall_ns = 2;
	record->lost_calls = 3;
	play(fixture);
	assert_false(window__traces_calls(view(fixture)));
	assert_false(step_calls_known(&fixture->steps[0]));
	assert_true(fixture->steps[0].complete);
	assert_int_equal(fixture->call_counts[0], 0);
	assert_int_equal(step_syscall_ns(&fixture->steps[0]), 0);
	assert_int_equal(step_calls(&fixture->steps[0]), 0);
	record = &fixture->steps[0].record;
	assert_int_equal(record->gap_syscall_ns + record->other_syscall_ns + record->lost_calls, 0);
	assert_true(record->header.flags & FBT_STEP_OTHER_UNKNOWN);
	assert_int_equal(window__process(view(fixture), 7)->table.rows.count, 0);
}

static void only_a_window_with_calls_may_lose_them(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_PROBES);

	play(fixture);
	assert_false(window__may_lose(view(fixture), FBT_LOST_CALLS));
	assert_false(window__may_lose(view(fixture), FBT_LOST_FILES));
	assert_true(window__may_lose(view(fixture), FBT_LOST_STEPS));
}

static void an_interval_is_complete_though_its_edges_are_blurred(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_ALL);

	add_step(&fixture->stream, 7, 0, 1000, 2000)->sums[FBT_READ].calls = 2;
	play(fixture);
	assert_true(fixture->steps[0].complete);
}

static void an_unwound_step_is_complete(void **state)
{
	assert_true(is_complete(*state, FBT_DETAIL_ESCALATED, FBT_END_UNWOUND, 1, 0));
}

static void a_step_with_all_its_calls_is_complete(void **state)
{
	assert_true(is_complete(*state, FBT_DETAIL_ALL, FBT_END_RETURN, 1, 0));
}

static void a_later_table_row_replaces_an_earlier_one(void **state)
{
	struct fixture *fixture = begin(state, FBT_DETAIL_STEPS);

	add_table(&fixture->stream, 7, 3, 5);
	add_table(&fixture->stream, 7, 3, 6);
	play(fixture);
	assert_int_equal(find_row(&window__process(view(fixture), 7)->table, 3)->sum.calls, 6);
}

static void the_window_holds_what_the_records_say(void **state)
{
	struct fixture *fixture = *state;
	const struct window *window = view(fixture);
	struct fbt_lost *lost;
	struct fbt_cost *cost;

	add_window(&fixture->stream, FBT_DETAIL_STEPS);
	add_target(&fixture->stream, 7, "engine");
	add_thread(&fixture->stream, 7, 8, "worker");
	add_kind(&fixture->stream, 1, "llama_decode", "n_tokens");
	lost = stream_add(&fixture->stream, FBT_EVENT_LOST, sizeof(*lost), NULL, 0);
	lost->count[FBT_LOST_STEPS] = 3;
	cost = stream_add(&fixture->stream, FBT_EVENT_COST, sizeof(*cost), NULL, 0);
	cost->floor_ns = 80;
	assert_int_equal(play(fixture), 0);

	assert_string_equal(window->tag, "pid7_1");
	assert_string_equal(window->tool_version, "0.1.0");
	assert_string_equal(window->kernel_release, "6.1.0");
	assert_string_equal(window->host, "box");
	assert_string_equal(window__process(window, 7)->comm, "engine");
	assert_string_equal(window__process(window, 7)->exe, "/usr/bin/engine");
	assert_string_equal(window__process(window, 7)->cmdline, "engine --serve");
	assert_string_equal(window__thread_name(window, 8), "worker");
	assert_string_equal(window__kind_name(window, 1), "llama_decode");
	assert_string_equal(window->kinds[1].path, "/usr/lib/libengine.so");
	assert_string_equal(window->kinds[1].arg_names[0], "n_tokens");
	assert_int_equal(window->lost.count[FBT_LOST_STEPS], 3);
	assert_int_equal(window->cost.floor_ns, 80);
}

/* The clock was set in the window: times of day are by the last pair. */
static void times_of_day_follow_the_clock(void **state)
{
	struct fixture *fixture = *state;
	const struct window *window = view(fixture);
	struct fbt_window *record;
	struct fbt_clock *clock;

	record = add_window(&fixture->stream, FBT_DETAIL_STEPS);
	record->start_ns = 5000;
	record->realtime_ns = 1000000;
	assert_int_equal(play(fixture), 0);
	assert_int_equal(window__unix_ns(window, 5000), 1000000);
	assert_int_equal(window__unix_ns(window, 5007), 1000007);
	assert_int_equal(window__unix_ns(window, 4000), 999000);
	assert_int_equal(window__unix_ns(window, UINT64_MAX), UINT64_MAX);

	clock = stream_add(&fixture->stream, FBT_EVENT_CLOCK, sizeof(*clock), NULL, 0);
	clock->time_ns = 8000;
	clock->realtime_ns = 500;
	assert_int_equal(play(fixture), 0);
	assert_int_equal(window__unix_ns(window, 8001), 501);
	assert_int_equal(window__unix_ns(window, 7500), 0);
}

static void a_window_without_a_clock_has_no_time_of_day(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_window *record = add_window(&fixture->stream, FBT_DETAIL_STEPS);

	record->realtime_ns = 0;
	assert_int_equal(play(fixture), 0);
	assert_int_equal(window__unix_ns(view(fixture), 5000), 0);
}

#define ASSEMBLE_TEST(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(assembler_free_takes_null),
		ASSEMBLE_TEST(times_of_day_follow_the_clock),
		ASSEMBLE_TEST(a_window_without_a_clock_has_no_time_of_day),
		ASSEMBLE_TEST(an_error_of_the_receiver_is_passed_up),
		ASSEMBLE_TEST(records_before_the_window_are_skipped),
		ASSEMBLE_TEST(a_process_without_a_whole_interval_has_had_no_step),
		ASSEMBLE_TEST(a_name_without_room_is_counted_apart),
		ASSEMBLE_TEST(a_file_that_calls_name_outlives_many_others),
		ASSEMBLE_TEST(files_in_which_a_step_had_page_faults_stay),
		ASSEMBLE_TEST(a_second_window_is_skipped),
		ASSEMBLE_TEST(a_stream_without_a_window_can_be_flushed),
		ASSEMBLE_TEST(a_step_of_an_unknown_kind_and_process_is_taken),
		ASSEMBLE_TEST(a_table_row_of_an_unknown_process_is_kept),
		ASSEMBLE_TEST(steps_of_a_process_that_is_not_kept_are_taken),
		ASSEMBLE_TEST(a_process_that_is_not_kept_is_counted_and_no_record_is_skipped),
		ASSEMBLE_TEST(a_stream_without_an_end_is_cut_off_at_its_latest_time),
		ASSEMBLE_TEST(polls_are_joined_with_their_calls),
		ASSEMBLE_TEST(a_poll_may_come_after_the_end_of_its_process),
		ASSEMBLE_TEST(futures_do_not_outlive_an_execve),
		ASSEMBLE_TEST(a_window_is_open_until_the_flush),
		ASSEMBLE_TEST(a_window_does_not_end_before_it_begins),
		ASSEMBLE_TEST(steps_are_numbered_over_all_and_by_kind),
		ASSEMBLE_TEST(steps_of_overlapping_threads_take_their_own_calls),
		ASSEMBLE_TEST(calls_outside_of_steps_are_passed_on_with_all_detail),
		ASSEMBLE_TEST(calls_outside_of_steps_are_dropped_with_less_detail),
		ASSEMBLE_TEST(calls_of_an_exited_process_still_meet_a_late_step),
		ASSEMBLE_TEST(calls_of_an_exited_process_leave_when_its_number_is_used_again),
		ASSEMBLE_TEST(calls_of_an_exited_process_leave_first_when_room_is_needed),
		ASSEMBLE_TEST(a_truncated_step_is_not_complete),
		ASSEMBLE_TEST(a_step_whose_thread_ended_is_not_complete),
		ASSEMBLE_TEST(a_step_with_lost_calls_is_not_complete),
		ASSEMBLE_TEST(a_step_with_a_counted_call_that_never_came_is_not_complete),
		ASSEMBLE_TEST(a_step_is_complete_without_calls_that_nobody_asked_for),
		ASSEMBLE_TEST(a_window_without_calls_knows_none_whatever_its_records_say),
		ASSEMBLE_TEST(only_a_window_with_calls_may_lose_them),
		ASSEMBLE_TEST(an_interval_is_complete_though_its_edges_are_blurred),
		ASSEMBLE_TEST(an_unwound_step_is_complete),
		ASSEMBLE_TEST(a_step_with_all_its_calls_is_complete),
		ASSEMBLE_TEST(a_later_table_row_replaces_an_earlier_one),
		ASSEMBLE_TEST(the_window_holds_what_the_records_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
