/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "export_fixture.h"

#include <fcntl.h>

#include "model/window.h"
#include "output/capture.h"

static int count_files(void)
{
	char name[256];

	return find_files(".", "", name);
}

static bool is_there(const char *path)
{
	struct stat file;

	return !lstat(path, &file);
}

static int open_outputs(struct fixture *fixture, const char *tag)
{
	return outputs__open(&fixture->outputs, &fixture->options, &fixture->metadata, tag,
			     &fixture->shared.health, NULL);
}

static void open_well(struct fixture *fixture, const char *tag)
{
	assert_int_equal(open_outputs(fixture, tag), 0);
	assert_non_null(fixture->outputs);
}

/* Sends a window with one step, as one block. */
static void send_window(struct fixture *fixture)
{
	struct record_output output = outputs__records(fixture->outputs);

	add_window(&fixture->stream, FBT_DETAIL_ALL);
	add_target(&fixture->stream, 7, "engine");
	add_kind(&fixture->stream, 1, "decode", NULL);
	add_call(&fixture->stream, 7, 2100);
	add_step(&fixture->stream, 7, 1, 2000, 500000);
	add_end(&fixture->stream, 900000);
	output.emit(output.ctx, fixture->stream.bytes, fixture->stream.size);
}

/* Opens the outputs, sends the window and finishes it. */
static void write_window(struct fixture *fixture, const char *tag)
{
	open_well(fixture, tag);
	send_window(fixture);
	assert_int_equal(outputs__finish(fixture->outputs), 0);
}

/* The engine may shorten the file; here it cannot be read at all. */
static void an_execution_trace_that_cannot_be_copied_gets_no_final_name(void **state)
{
	struct fixture *fixture = *state;
	int whole = memfd_create("whole", MFD_CLOEXEC), unread;
	char path[64];

	assert_int_equal(write(whole, "[1,", 3), 3);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", whole);
	unread = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(unread >= 0);
	fixture->options.report = REPORT_TEXT;
	open_well(fixture, "pid7_1");
	send_window(fixture);
	outputs__take_torch(fixture->outputs, unread, whole);
	assert_int_equal(outputs__finish(fixture->outputs), -EBADF);
	assert_false(is_there("pytorch_et_pid7_1.json"));
	assert_non_null(strstr(stdout_text(fixture), "could not be copied"));
}

static void make_file(const char *path)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
}

static void free_accepts_null(void **state)
{
	outputs__free(NULL);
}

/* Sets the option to a path below a file, which is no folder. */
static void refuse_to_open(struct fixture *fixture, const char **option)
{
	*option = "file/output";
	make_file("file");
	assert_int_equal(open_outputs(fixture, "tag"), -ENOTDIR);
	assert_null(fixture->outputs);
	assert_one_line(fixture->errors, "file/output");
	assert_int_equal(count_files(), 1);
}

static void an_impossible_trace_leaves_nothing(void **state)
{
	refuse_to_open(*state, &((struct fixture *)*state)->options.trace);
}

static void an_impossible_profile_leaves_nothing(void **state)
{
	refuse_to_open(*state, &((struct fixture *)*state)->options.profile);
}

static void an_impossible_record_leaves_nothing(void **state)
{
	refuse_to_open(*state, &((struct fixture *)*state)->options.record);
}

/* Asks for more free space than any disk has. */
static void refuse_without_room(struct fixture *fixture, const char *path)
{
	fixture->options.windows.keep_free = UINT64_MAX - 1;
	if (!open_outputs(fixture, NULL))
		skip(); /* no disk has a limit here */
	assert_null(fixture->outputs);
	assert_one_line(fixture->errors, path);
	assert_int_equal(count_files(), 0);
	fixture->options.windows.keep_free = 0;
	open_well(fixture, NULL);
}

static void a_trace_without_room_leaves_nothing(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.trace = "trace.json";
	fixture->options.record = "capture";
	refuse_without_room(fixture, "trace.json: ");
}

static void a_profile_without_room_leaves_nothing(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.profile = "profile.jsonl";
	refuse_without_room(fixture, "profile.jsonl: ");
}

static void a_record_without_room_leaves_nothing(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.record = "capture";
	refuse_without_room(fixture, "capture: ");
}

static void devices_have_room(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.windows.keep_free = UINT64_MAX - 1;
	fixture->options.trace = fixture->options.profile = "/dev/null";
	open_well(fixture, NULL);
	send_window(fixture);
	outputs__poll(fixture->outputs);
	assert_int_equal(outputs__finish(fixture->outputs), 0);
	assert_silent(fixture->errors);
}

static void an_impossible_record_leaves_an_older_profile_as_it_was(void **state)
{
	struct fixture *fixture = *state;

	make_file("file");
	make_file("profile");
	fixture->options.trace = "none";
	fixture->options.profile = "profile";
	fixture->options.record = "file/capture";
	assert_int_equal(open_outputs(fixture, NULL), -ENOTDIR);
	assert_true(is_there("profile"));
}

/* Writes the window to three outputs, one of them on a full disk. */
static void write_to_full_disk(struct fixture *fixture, const char *trace, const char *profile,
			       const char *record)
{
	fixture->options.trace = trace;
	fixture->options.profile = profile;
	fixture->options.record = record;
	open_well(fixture, "tag");
	send_window(fixture);
	assert_int_equal(outputs__finish(fixture->outputs), -ENOSPC);
	assert_non_null(strstr(stderr_text(fixture->errors), "No space left"));
}

static void a_trace_on_a_full_disk_is_told_and_the_others_are_whole(void **state)
{
	struct fixture *fixture = *state;

	write_to_full_disk(fixture, "/dev/full", "profile", "capture");
	assert_non_null(strstr(stderr_text(fixture->errors), "trace: No space left"));
	assert_non_null(strstr(text_of(fixture, "profile"), "window_prof"));
	assert_true(is_there("capture"));
}

static void a_profile_on_a_full_disk_is_told_and_the_others_are_whole(void **state)
{
	write_to_full_disk(*state, "trace", "/dev/full", "capture");
	assert_non_null(strstr(text_of(*state, "trace"), "decode"));
	assert_true(is_there("capture"));
}

static void a_record_on_a_full_disk_is_told_and_the_others_are_whole(void **state)
{
	write_to_full_disk(*state, "trace", "profile", "/dev/full");
	assert_non_null(strstr(text_of(*state, "trace"), "decode"));
	assert_non_null(strstr(text_of(*state, "profile"), "window_prof"));
}

/* More than stdio buffers, so that the write itself fails. */
static void a_recording_that_fails_ends_and_the_window_goes_on(void **state)
{
	struct fixture *fixture = *state;
	struct record_output output;

	fixture->options.trace = "trace";
	fixture->options.profile = "none";
	fixture->options.record = "/dev/full";
	open_well(fixture, "tag");
	add_window(&fixture->stream, FBT_DETAIL_STEPS);
	for (int i = 0; i < 100; i++)
		add_step(&fixture->stream, 7, 1, 2000 + (uint64_t)i * 100,
			 2050 + (uint64_t)i * 100);
	output = outputs__records(fixture->outputs);
	for (int i = 0; i < 100; i++)
		output.emit(output.ctx, fixture->stream.bytes, fixture->stream.size);
	assert_one_line(fixture->errors,
			"record: No space left on device: the record ends here, other outputs "
			"continue; free some space");
	assert_int_equal(outputs__finish(fixture->outputs), -ENOSPC);
	assert_true(is_there("trace"));
}

static void replay_writes_no_file_that_was_not_named(void **state)
{
	struct fixture *fixture = *state;

	open_well(fixture, NULL);
	assert_int_equal(outputs__finish(fixture->outputs), 0);
	assert_int_equal(count_files(), 0);
}

static void none_is_no_file(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.trace = "none";
	fixture->options.profile = "none";
	write_window(fixture, "tag");
	assert_int_equal(count_files(), 0);
}

static void the_tag_names_the_files(void **state)
{
	struct fixture *fixture = *state;

	write_window(fixture, "pid7_99");
	assert_int_equal(count_files(), 2);
	assert_true(is_there("ferrum_trace_pid7_99.json"));
	assert_true(is_there("ferrum_profile_pid7_99.jsonl"));
	assert_string_equal(stderr_text(fixture->errors), "");
}

static void a_folder_that_is_not_there_is_made_for_the_tag(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.windows.dir = "new/folder";
	write_window(fixture, "pid7_99");
	assert_true(is_there("new/folder/ferrum_trace_pid7_99.json"));
	assert_true(is_there("new/folder/ferrum_profile_pid7_99.jsonl"));
	assert_non_null(strstr(stdout_text(fixture), "new/folder/ferrum_profile_pid7_99.jsonl"));
}

static void an_output_base_is_in_names_before_the_tag(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.output = "new/base";
	fixture->options.windows.dir = "new";
	write_window(fixture, "pid7_99");
	assert_true(is_there("new/base_pid7_99.trace.json"));
	assert_true(is_there("new/base_pid7_99.jsonl"));
}

static void expect_rank(struct fixture *fixture, const char *name, const char *expected)
{
	fixture->options.trace = name;
	fixture->options.profile = "none";
	write_window(fixture, "tag");
	outputs__free(fixture->outputs);
	fixture->outputs = NULL;
	if (!strstr(text_of(fixture, name), expected))
		fail_msg("%s: %s", expected, fixture->text);
}

/* Rank N means that there are at least N + 1 processes. */
static void kineto_trace_has_the_rank_of_the_target_or_the_option(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.trace_format = TRACE_KINETO;
	fixture->metadata.rank = 2;
	fixture->metadata.world_size = 4;
	expect_rank(fixture, "a.json", "{\"rank\": 2, \"world_size\": 4}");
	assert_non_null(strstr(text_of(fixture, "a.json"), "\"traceName\":\"a.json\""));
	fixture->options.gpu.rank_given = true;
	expect_rank(fixture, "b.json", "{\"rank\": 0, \"world_size\": 4}");
	fixture->options.gpu.rank = 7;
	expect_rank(fixture, "c.json", "{\"rank\": 7, \"world_size\": 8}");
}

static void without_an_end_the_trace_stays_partial(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.trace = "trace";
	fixture->options.profile = "none";
	open_well(fixture, "tag");
	send_window(fixture);
	outputs__free(fixture->outputs);
	fixture->outputs = NULL;
	assert_false(is_there("trace"));
	assert_non_null(strstr(text_of(fixture, "trace.partial"), "decode"));
}

static void all_outputs_hold_the_window(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.trace = "trace";
	fixture->options.profile = "profile";
	fixture->options.record = "capture";
	open_well(fixture, "tag");
	send_window(fixture);
	assert_non_null(outputs__window(fixture->outputs));
	assert_int_equal(outputs__finish(fixture->outputs), 0);
	assert_int_equal(count_files(), 3);
	assert_non_null(strstr(text_of(fixture, "trace"), "\"decode\""));
	assert_non_null(strstr(text_of(fixture, "profile"), "step_prof"));
	assert_non_null(strstr(stdout_text(fixture), "decode"));
}

static void the_report_names_the_files_that_were_written(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.trace = "none";
	fixture->options.profile = "profile";
	fixture->options.record = "capture";
	write_window(fixture, "tag");
	assert_non_null(strstr(stdout_text(fixture), "profile  profile"));
	assert_non_null(strstr(stdout_text(fixture), "record   capture"));
	assert_null(strstr(stdout_text(fixture), "trace    "));
}

/* Before the report, a folder takes the name of one file and another file is removed. */
static void the_report_names_the_files_that_are_there(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.trace = "trace";
	fixture->options.profile = "profile";
	fixture->options.record = "capture";
	open_well(fixture, "tag");
	send_window(fixture);
	assert_int_equal(mkdir("trace", 0700), 0);
	assert_int_equal(unlink("profile"), 0);
	assert_int_equal(outputs__finish(fixture->outputs), -EEXIST);
	assert_non_null(strstr(stdout_text(fixture), "trace    trace.partial (not renamed: "));
	assert_non_null(
		strstr(stdout_text(fixture), "profile  profile (not there: it was removed)"));
	assert_non_null(strstr(stdout_text(fixture), "record   capture\n"));
}

static void the_report_tells_of_files_that_ended_early(void **state)
{
	static const char *const names[] = {"trace   ", "profile ", "record  "};
	struct fixture *fixture = *state;
	char line[80];

	fixture->options.trace = fixture->options.profile = fixture->options.record = "/dev/full";
	open_well(fixture, "tag");
	send_window(fixture);
	assert_int_equal(outputs__finish(fixture->outputs), -ENOSPC);
	for (size_t i = 0; i < 3; i++) {
		snprintf(line, sizeof(line), "%s /dev/full (ended early: No space left on device)",
			 names[i]);
		assert_non_null(strstr(stdout_text(fixture), line));
	}
}

static int keep_replayed(void *ctx, const void *data, size_t size)
{
	struct stream *replayed = ctx;

	assert_true(replayed->size + size <= sizeof(replayed->bytes));
	memcpy(replayed->bytes + replayed->size, data, size);
	replayed->size += size;
	return 0;
}

static void the_record_is_the_stream_again(void **state)
{
	struct stream replayed = {.size = 0};
	struct fixture *fixture = *state;
	FILE *in;

	fixture->options.record = "capture";
	write_window(fixture, NULL);
	in = fopen("capture", "r");
	assert_non_null(in);
	assert_int_equal(capture_read(in, "capture", keep_replayed, &replayed), 0);
	fclose(in);
	assert_int_equal(replayed.size, fixture->stream.size);
	assert_memory_equal(replayed.bytes, fixture->stream.bytes, fixture->stream.size);
}

static void report_none_says_nothing(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.report = REPORT_NONE;
	write_window(fixture, NULL);
	assert_string_equal(stdout_text(fixture), "");
}

static void report_json_is_an_object(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.report = REPORT_JSON;
	write_window(fixture, NULL);
	assert_int_equal(stdout_text(fixture)[0], '{');
}

/* Sends 12 steps of 1 us, then one of 1 ms, which is spent in a futex call. */
static void send_slow_step(struct fixture *fixture)
{
	struct record_output output = outputs__records(fixture->outputs);
	struct fbt_step *step;

	add_window(&fixture->stream, FBT_DETAIL_STEPS);
	add_target(&fixture->stream, 7, "engine");
	add_kind(&fixture->stream, 1, "decode", NULL);
	for (uint64_t i = 1; i <= 12; i++)
		add_step(&fixture->stream, 7, 1, i * 10000, i * 10000 + 1000);
	step = add_step(&fixture->stream, 7, 1, 1000000, 2000000);
	step->sums[FBT_FUTEX] = (struct fbt_sum){999000, 1, 0, 999000};
	add_end(&fixture->stream, 3000000);
	output.emit(output.ctx, fixture->stream.bytes, fixture->stream.size);
}

static void an_escalation_is_told_as_it_happens(void **state)
{
	struct fixture *fixture = *state;

	open_well(fixture, NULL);
	send_slow_step(fixture);
	assert_one_line(fixture->errors, "#13 decode 1.00 ms, 1000x usual; lock contention: "
					 "futex 999 us (usually none); ");
	assert_int_equal(outputs__finish(fixture->outputs), 0);
	assert_non_null(strstr(stdout_text(fixture), "\nEscalations: 1 of 13 steps\n"));
}

static void an_escalation_is_not_told_if_quiet(void **state)
{
	struct fixture *fixture = *state;

	open_well(fixture, NULL);
	log_set_level(LOG_WARN);
	send_slow_step(fixture);
	log_set_level(LOG_INFO);
	assert_silent(fixture->errors);
}

static void no_status_line_goes_where_no_terminal_is(void **state)
{
	struct fixture *fixture = *state;

	open_well(fixture, NULL);
	send_window(fixture);
	outputs__show_status(fixture->outputs, 600000);
	assert_int_equal(outputs__finish(fixture->outputs), 0);
	assert_string_equal(stderr_text(fixture->errors), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(free_accepts_null),
		TEST(an_impossible_trace_leaves_nothing),
		TEST(an_impossible_profile_leaves_nothing),
		TEST(an_impossible_record_leaves_nothing),
		TEST(a_trace_without_room_leaves_nothing),
		TEST(a_profile_without_room_leaves_nothing),
		TEST(a_record_without_room_leaves_nothing),
		TEST(devices_have_room),
		TEST(an_impossible_record_leaves_an_older_profile_as_it_was),
		TEST(a_trace_on_a_full_disk_is_told_and_the_others_are_whole),
		TEST(a_profile_on_a_full_disk_is_told_and_the_others_are_whole),
		TEST(a_record_on_a_full_disk_is_told_and_the_others_are_whole),
		TEST(a_recording_that_fails_ends_and_the_window_goes_on),
		TEST(replay_writes_no_file_that_was_not_named),
		TEST(none_is_no_file),
		TEST(the_tag_names_the_files),
		TEST(a_folder_that_is_not_there_is_made_for_the_tag),
		TEST(an_output_base_is_in_names_before_the_tag),
		TEST(kineto_trace_has_the_rank_of_the_target_or_the_option),
		TEST(an_execution_trace_that_cannot_be_copied_gets_no_final_name),
		TEST(without_an_end_the_trace_stays_partial),
		TEST(all_outputs_hold_the_window),
		TEST(the_report_names_the_files_that_were_written),
		TEST(the_report_names_the_files_that_are_there),
		TEST(the_report_tells_of_files_that_ended_early),
		TEST(the_record_is_the_stream_again),
		TEST(report_none_says_nothing),
		TEST(report_json_is_an_object),
		TEST(an_escalation_is_told_as_it_happens),
		TEST(an_escalation_is_not_told_if_quiet),
		TEST(no_status_line_goes_where_no_terminal_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
