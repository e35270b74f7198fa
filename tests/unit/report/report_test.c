/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report_fixture.h"

#include <errno.h>

static int setup(void **state)
{
	*state = new_fixture(REPORT_TEXT);
	return 0;
}

static int teardown(void **state)
{
	free_fixture(*state);
	return 0;
}

static void finish_reports_a_full_device(void **state)
{
	struct fixture *fixture = *state;
	struct report_options options = {.format = REPORT_TEXT};
	FILE *full = fopen("/dev/full", "w");
	struct sink *sink;

	assert_non_null(full);
	sink = sink_report__new(full, &options);
	assert_non_null(sink);
	assert_int_equal(sink->finish(sink, fixture->window, fixture->classifier), -ENOSPC);
	sink->free(sink);
	fclose(full);
}

/* files: the line of a trace */
static bool is_hinted(struct fixture *fixture, const char *file)
{
	const char *const files[] = {file, NULL};
	struct report_options options = {.format = REPORT_TEXT, .files = files};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct sink *sink = sink_report__new(out, &options);
	bool has_hint;

	assert_non_null(sink);
	assert_int_equal(sink->finish(sink, fixture->window, fixture->classifier), 0);
	sink->free(sink);
	fclose(out);
	has_hint = strstr(text, "--trace FILE.pftrace is better") != NULL;
	free(text);
	return has_hint;
}

static void a_better_format_is_named_beside_a_trace_as_json(void **state)
{
	assert_true(is_hinted(*state, "trace    t.json"));
	assert_true(is_hinted(*state, "trace    t.json.gz"));
	assert_false(is_hinted(*state, "trace    t.pftrace"));
	assert_false(is_hinted(*state, "trace    t.pftrace.gz"));
	assert_false(is_hinted(*state, "profile  t.json.gz"));
}

static void format_none_writes_nothing(void **state)
{
	struct fixture *fixture = new_fixture(REPORT_NONE);

	(void)state;
	add_steps(fixture, 1, MS);
	assert_string_equal(finish(fixture), "");
	free_fixture(fixture);
}

static void a_window_without_steps_says_so_and_what_to_do(void **state)
{
	const char *text = finish(*state);

	assert_has(text, "No step was seen in 10.0 s\n");
	assert_has(text, "--list-steps -p PID");
	assert_has(text, "3 exits probed; never called");
}

static void a_stream_that_was_cut_off_is_said_to_be(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->cut_off = true;
	assert_has(finish(fixture), "! The records were cut off after 10.0 s");
}

static void lost_records_are_warned_of_by_cause(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->lost.count[FBT_LOST_CALLS] = 1234;
	fixture->window->skipped_records = 2;
	finish(fixture);
	assert_has(fixture->text, "! lost 1,234 calls: ");
	assert_says(fixture->text, "--ring-records ");
	assert_says(fixture->text, "nice -n-10 ");
	assert_has_not(fixture->text, "--detail escalated records");
	assert_has(fixture->text, "! 2 damaged or unknown records");
	assert_has(fixture->text, "lost 1,234 (calls 1,234)\n");
}

static void records_without_room_are_not_told_as_damaged(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->unkept_records = 3;
	finish(fixture);
	assert_has(fixture->text, "! 3 records found no room: ");
	assert_has_not(fixture->text, "damaged");
}

static void processes_that_were_not_kept_have_a_warning_of_their_own(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->overflow_processes = 3;
	finish(fixture);
	assert_says(fixture->text, "! 3 processes beyond the first 1,024: their steps are in the "
				   "outputs, their syscall tables are not; -p names ");
	assert_has_not(fixture->text, "damaged");
}

static void one_process_that_was_not_kept_is_warned_of_too(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->overflow_processes = 1;
	assert_says(finish(fixture), "! 1 process beyond the first 1,024: its steps are in the "
				     "outputs, its syscall table is not; -p names ");
}

static void that_nothing_was_lost_is_said_too(void **state)
{
	struct fixture *fixture = *state;

	finish(fixture);
	assert_has(fixture->text, "lost 0\n");
	assert_has(fixture->text, "incomplete steps: 0\n");
}

static void incomplete_steps_are_counted_and_marked(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, MS);

	step.complete = false;
	step.record.lost_calls = 7;
	fixture->window->incomplete_steps = 1;
	write_step(fixture, &step);
	finish(fixture);
	assert_has(fixture->text, "! 1 of 1 step is incomplete");
	assert_has(fixture->text, "1 step; 7 call records lost");
	assert_has(fixture->text, "\n                     * incomplete\n");
}

static void a_step_that_did_not_return_is_listed_but_not_in_the_percentiles(void **state)
{
	struct fixture *fixture = *state;
	struct step step;

	add_steps(fixture, 3, 8 * MS);
	step = make_step(fixture, 5000 * MS);
	step.record.end = FBT_END_TRUNCATED;
	write_step(fixture, &step);
	finish(fixture);
	assert_has(fixture->text,
		   "4 steps of llama_decode in 10.0 s: p50 8.00 ms, p99 8.00 ms, one still open");
	assert_has(fixture->text, "  ended by      return 3, end of window 1. Only");
	assert_has(fixture->text, "  * still open\n");
	assert_has(fixture->text, "#4 ");
}

static void a_step_that_was_open_at_the_end_is_no_reason_to_warn(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, MS);

	step.complete = false;
	step.record.end = FBT_END_TRUNCATED;
	fixture->window->incomplete_steps = 1;
	write_step(fixture, &step);
	finish(fixture);
	assert_has_not(fixture->text, "\n! ");
	assert_has(fixture->text, "incomplete steps: 1, of which still open at the end: 1\n");
}

static void write_truncated(struct fixture *fixture)
{
	struct step step = make_step(fixture, MS);

	step.complete = false;
	step.record.end = FBT_END_TRUNCATED;
	fixture->window->incomplete_steps++;
	write_step(fixture, &step);
}

static void steps_that_sampling_cut_off_were_not_open_at_the_end(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->sampling[1] =
		(struct fbt_sampling){.kind = 1, .watched_ns = 1, .off_ns = 1, .cut_steps = 2};
	for (int i = 0; i < 3; i++)
		write_truncated(fixture);
	finish(fixture);
	assert_says(fixture->text,
		    "incomplete steps: 3, of which still open at the end: 1, cut off by switching "
		    "probes off: 2\n");
	assert_says(fixture->text,
		    "return 0, end of window 1, switching probes off 2. Only those that");
	assert_has(fixture->text, "* cut off: its probes were switched off\n");
	assert_has_not(fixture->text, "are incomplete: records were lost");
}

/* More than there are records of. */
static void cut_steps_without_a_record_are_not_subtracted(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->sampling[1] =
		(struct fbt_sampling){.kind = 1, .watched_ns = 1, .off_ns = 1, .cut_steps = 7};
	write_truncated(fixture);
	finish(fixture);
	assert_says(fixture->text,
		    "incomplete steps: 1, of which cut off by switching probes off: 1\n");
}

static void steps_of_which_none_returned_have_no_percentiles(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, 9200 * MS);

	step.record.end = FBT_END_TRUNCATED;
	write_step(fixture, &step);
	finish(fixture);
	assert_says(fixture->text,
		    "1 step of llama_decode in 10.0 s: none has returned, longest so far 9.20 s; "
		    "75 % compute, 25 % futex\n");
	assert_has_not(fixture->text, "p95");
}

static void the_headline_names_an_outlier(void **state)
{
	struct fixture *fixture = *state;

	add_steps(fixture, 999, 8 * MS);
	add_steps(fixture, 1, 48 * MS);
	assert_says(finish(fixture),
		    "1,000 steps of llama_decode in 10.0 s: p50 8.00 ms, p99 8.00 ms, "
		    "max 48.0 ms; 75 % compute, 25 % futex\n");
}

static void categories_are_shown_per_step_and_in_total(void **state)
{
	struct fixture *fixture = *state;

	add_steps(fixture, 4, 8 * MS);
	finish(fixture);
	assert_has(fixture->text, "  compute     6.00 ms   75.0 %   24.0 ms         -          -"
				  "         -        -\n");
	assert_has(fixture->text, "  futex       2.00 ms   25.0 %   8.00 ms         8       2.00"
				  "   1.00 ms        4\n");
	/* A category without calls has no row. */
	assert_null(strstr(fixture->text, "  write "));
	assert_has(fixture->text, "  step        8.00 ms  100.0 %   32.0 ms");
}

static void parts_are_sorted_by_time_and_equals_keep_their_order(void **state)
{
	static const char *const rows[] = {"\n  compute ", "\n  write ",     "\n  mmap ",
					   "\n  futex ",   "\n  all calls ", "\n  step "};
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, 8 * MS);
	const char *at;

	step.record.sums[FBT_FUTEX] = (struct fbt_sum){.ns = MS, .calls = 1};
	step.record.sums[FBT_MMAP] = (struct fbt_sum){.ns = MS, .calls = 1};
	step.record.sums[FBT_WRITE] = (struct fbt_sum){.ns = 2 * MS, .calls = 1};
	write_step(fixture, &step);
	at = finish(fixture);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		at = strstr(at, rows[i]);
		if (!at)
			fail_msg("no row %s below the one before", rows[i] + 1);
	}
}

static void gap_and_other_threads_are_shown(void **state)
{
	struct fixture *fixture = *state;

	add_steps(fixture, 2, 8 * MS);
	finish(fixture);
	assert_says(fixture->text,
		    "mean 1.00 ms, p99 1.00 ms, max 1.00 ms; 500 us of it in syscalls (50.0 %)\n");
	assert_has(fixture->text, "  other threads 3.00 ms in syscalls per step");
}

static void one_thread_is_one_thread(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, MS);

	step.record.threads = 1;
	write_step(fixture, &step);
	finish(fixture);
	assert_says(fixture->text, "; at most 1 thread\n");
}

static void what_was_not_measured_is_not_shown_as_zero(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, MS);

	step.record.header.flags = FBT_STEP_NO_GAP | FBT_STEP_OTHER_UNKNOWN;
	write_step(fixture, &step);
	finish(fixture);
	assert_has(fixture->text, "  gap before    unknown");
	assert_has(fixture->text, "  other threads not measured\n");
	assert_has(fixture->text, "  n_tokens      could not be read in any step\n");
	assert_has(fixture->text, "Cost            added to the target: not measured\n");
	assert_has(fixture->text, "Resolution      not measured\n");
}

static void step_arguments_are_summed_up(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, MS);

	step.record.arg_mask = 1;
	step.record.args[0] = -5;
	write_step(fixture, &step);
	step.record.args[0] = 512;
	write_step(fixture, &step);
	step.record.arg_mask = 0;
	write_step(fixture, &step);
	assert_has(finish(fixture),
		   "  n_tokens      min -5, mean 254, max 512; not read in 1 step\n");
}

static void the_slowest_steps_come_slowest_first(void **state)
{
	struct fixture *fixture = *state;
	const char *first, *second, *third;

	add_steps(fixture, 1, 8 * MS);
	add_steps(fixture, 1, 5 * MS);
	add_steps(fixture, 1, 9 * MS);
	add_steps(fixture, 1, 7 * MS);
	finish(fixture);
	first = strstr(fixture->text, "#3 ");
	second = strstr(fixture->text, "#1 ");
	third = strstr(fixture->text, "#4 ");
	assert_true(first && second && third && first < second && second < third);
	assert_has_not(fixture->text, "#2 ");
	assert_has(
		fixture->text,
		"  slowest         at      took     usual   compute  most of the rest    n_tokens\n"
		"  #3         30.0 ms   9.00 ms         -   6.75 ms  futex       2.25 ms        "
		"-\n");
}

static void the_syscall_table_has_twelve_rows_and_says_what_is_left_out(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t nr = 0; nr < 14; nr++)
		add_row(fixture, 42, nr, 10, 1000 + nr);
	finish(fixture);
	assert_has(fixture->text, "Syscalls of process 42 engine: 140 calls");
	assert_has(fixture->text, "  rt_sigaction               10         0   1.01 us    101 ns");
	assert_has_not(fixture->text, "\n  write  ");
	assert_has(fixture->text, "  and 2 more (--report json has all)\n");
}

static void each_process_has_its_own_table(void **state)
{
	struct fixture *fixture = *state;

	add_process(fixture, 77, "worker");
	add_row(fixture, 42, 1, 1, 10);
	add_row(fixture, 77, 1, 1, 20);
	finish(fixture);
	assert_true(strstr(fixture->text, "process 77 worker") <
		    strstr(fixture->text, "process 42 engine"));
}

static void the_cost_is_calls_times_what_a_call_costs(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->cost =
		(struct fbt_cost){.call_ps = 131000, .step_ns = 1000, .floor_ns = 78};
	add_row(fixture, 42, 0, 100000, 5000000);
	add_steps(fixture, 10, 100 * MS);
	finish(fixture);
	assert_says(fixture->text,
		    "added to the target: 0.1 % of the traced time, <0.1 % of the step time\n");
	assert_says(fixture->text,
		    "100,000 calls x 131 ns = 13.1 ms, 10 steps x up to 1.00 us = 10.0 us\n");
	assert_has(fixture->text, "Resolution      shortest measurable call: 78 ns ");
}

static void interval_mode_says_so(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, 800 * MS);

	step.record.kind = 0;
	fixture->window->record.interval_ns = 100 * MS;
	write_step(fixture, &step);
	finish(fixture);
	assert_has(fixture->text, "1 interval of 100 ms in 10.0 s, no step function; 75 % compute");
	assert_has(fixture->text, "figures of an interval add up ");
	assert_has_not(fixture->text, "gap before");
}

static void names_from_the_target_are_escaped(void **state)
{
	struct fixture *fixture = *state;

	add_process(fixture, 42, "\033[31m\xff");
	add_kind(fixture, 1, "decode\n\033]0;owned\007", "/tmp/\033[2J");
	add_row(fixture, 42, 1, 1, 10);
	add_steps(fixture, 1, MS);
	finish(fixture);
	assert_has_not(fixture->text, "\033");
	assert_has_not(fixture->text, "\007");
	assert_has(fixture->text, "\\x1b[31m\\xff");
	assert_has(fixture->text, "decode\\n\\x1b]0;owned\\x07");
}

static void no_line_is_wider_than_a_hundred_columns(void **state)
{
	struct fixture *fixture = *state;
	char name[600];
	size_t width = 0;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	add_process(fixture, 42, name);
	add_kind(fixture, 1, name, name);
	add_row(fixture, 42, 1, UINT64_MAX, UINT64_MAX);
	add_steps(fixture, 1, UINT64_MAX / 4);
	for (const char *at = finish(fixture); *at; at++) {
		width = *at == '\n' ? 0 : width + 1;
		if (width > 100)
			fail_msg("too wide:\n%s", fixture->text);
	}
}

static void a_long_rust_name_is_short_in_the_headline_and_whole_below(void **state)
{
	struct fixture *fixture = *state;

	add_kind(fixture, 1,
		 "<ferrum_models::executor::llm_executor::LlmExecutor as "
		 "ferrum_interfaces::model_executor::ModelExecutor>::unified_decode::{{closure}}",
		 "/opt/ferrum");
	add_steps(fixture, 1, MS);
	finish(fixture);
	assert_has(fixture->text, "1 step of unified_decode in 10.0 s");
	assert_has(fixture->text,
		   "Step function   <ferrum_models::executor::llm_executor::LlmExecutor as\n");
	assert_has(fixture->text, "                /opt/ferrum+0x8a2f0\n");
}

static void colour_is_used_only_if_asked_for(void **state)
{
	struct fixture *fixture = *state;
	struct report_options options = {.format = REPORT_TEXT, .color = true};
	struct sink *sink = sink_report__new(fixture->out, &options);

	assert_non_null(sink);
	add_steps(fixture, 1, MS);
	assert_has_not(finish(fixture), "\033");
	assert_int_equal(sink->finish(sink, fixture->window, fixture->classifier), 0);
	assert_has(fixture->text, "\033[1m");
	sink->free(sink);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(finish_reports_a_full_device),
		TEST(a_better_format_is_named_beside_a_trace_as_json),
		cmocka_unit_test(format_none_writes_nothing),
		TEST(a_window_without_steps_says_so_and_what_to_do),
		TEST(a_stream_that_was_cut_off_is_said_to_be),
		TEST(lost_records_are_warned_of_by_cause),
		TEST(records_without_room_are_not_told_as_damaged),
		TEST(processes_that_were_not_kept_have_a_warning_of_their_own),
		TEST(one_process_that_was_not_kept_is_warned_of_too),
		TEST(that_nothing_was_lost_is_said_too),
		TEST(incomplete_steps_are_counted_and_marked),
		TEST(a_step_that_did_not_return_is_listed_but_not_in_the_percentiles),
		TEST(a_step_that_was_open_at_the_end_is_no_reason_to_warn),
		TEST(steps_that_sampling_cut_off_were_not_open_at_the_end),
		TEST(cut_steps_without_a_record_are_not_subtracted),
		TEST(steps_of_which_none_returned_have_no_percentiles),
		TEST(the_headline_names_an_outlier),
		TEST(categories_are_shown_per_step_and_in_total),
		TEST(parts_are_sorted_by_time_and_equals_keep_their_order),
		TEST(gap_and_other_threads_are_shown),
		TEST(one_thread_is_one_thread),
		TEST(what_was_not_measured_is_not_shown_as_zero),
		TEST(step_arguments_are_summed_up),
		TEST(the_slowest_steps_come_slowest_first),
		TEST(the_syscall_table_has_twelve_rows_and_says_what_is_left_out),
		TEST(each_process_has_its_own_table),
		TEST(the_cost_is_calls_times_what_a_call_costs),
		TEST(interval_mode_says_so),
		TEST(names_from_the_target_are_escaped),
		TEST(no_line_is_wider_than_a_hundred_columns),
		TEST(a_long_rust_name_is_short_in_the_headline_and_whole_below),
		TEST(colour_is_used_only_if_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
