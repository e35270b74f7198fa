/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "export_fixture.h"

#include <sys/resource.h>

/* Number of files whose names begin so. */
static int count_files(const char *prefix)
{
	char name[256];

	return find_files(".", prefix, name);
}

/* The text of the only file that begins so. *ms gets the number after prefix. */
static const char *text_of_one(struct fixture *fixture, const char *prefix, unsigned long long *ms)
{
	char name[256];

	assert_int_equal(find_files(".", prefix, name), 1);
	if (ms)
		*ms = strtoull(name + strlen(prefix), NULL, 10);

	return text_of(fixture, name);
}

static int count_text(const char *text, const char *part)
{
	int count = 0;

	while ((text = strstr(text, part))) {
		count++;
		text++;
	}
	return count;
}

/* Sends the records that were added to the stream, one at a time. */
static void send(struct fixture *fixture)
{
	struct record_output output = exports__records(fixture->exports);
	size_t at = 0;

	while (at < fixture->stream.size) {
		struct fbt_header *header = (struct fbt_header *)(fixture->stream.bytes + at);

		output.emit(output.ctx, header, header->size);
		at += header->size;
	}
	fixture->stream.size = 0;
}

static void begin(struct fixture *fixture)
{
	assert_int_equal(exports__open_each(&fixture->exports, &fixture->shared), 0);
	add_window(&fixture->stream, FBT_DETAIL_ALL);
	add_kind(&fixture->stream, 1, "decode", NULL);
	send(fixture);
}

static void send_step(struct fixture *fixture, uint32_t tgid, uint64_t start_ns)
{
	add_step(&fixture->stream, tgid, 1, start_ns, start_ns + 100)->tgid = tgid;
	send(fixture);
}

static void send_target(struct fixture *fixture, uint32_t tgid)
{
	add_target(&fixture->stream, tgid, "engine");
	send(fixture);
}

static int end(struct fixture *fixture)
{
	add_end(&fixture->stream, 900000);
	send(fixture);
	return exports__finish(fixture->exports);
}

static void free_accepts_null(void **state)
{
	exports__free(NULL);
	exports__discard(NULL);
}

static void one_export_has_all_processes(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(exports__open_one(&fixture->exports, &fixture->shared, 7), 0);
	assert_int_equal(count_files("ferrum_profile_pid7_"), 1);
	assert_int_equal(strncmp(exports__tag(fixture->exports), "pid7_", 5), 0);
	add_window(&fixture->stream, FBT_DETAIL_ALL);
	send_target(fixture, 7);
	send_target(fixture, 8);
	send_step(fixture, 7, 2000);
	send_step(fixture, 8, 3000);
	assert_int_equal(end(fixture), 0);
	assert_int_equal(count_files("ferrum_"), 2);
	assert_int_equal(
		count_text(text_of_one(fixture, "ferrum_profile_pid7_", NULL), "\"step_prof\""), 2);
}

static void one_export_that_cannot_be_opened_is_an_error(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.windows.dir = "/proc/nowhere";
	assert_true(exports__open_one(&fixture->exports, &fixture->shared, 7) < 0);
	assert_null(fixture->exports);
	assert_one_line(fixture->errors, "/proc/nowhere");
}

static void each_process_has_its_own_records(void **state)
{
	struct fixture *fixture = *state;
	unsigned long long first = 1, second = 2;
	const char *text;

	begin(fixture);
	send_target(fixture, 7);
	send_target(fixture, 8);
	add_thread(&fixture->stream, 8, 8, "eight");
	add_call(&fixture->stream, 7, 2010);
	send_step(fixture, 7, 2000);
	send_step(fixture, 8, 3000);
	send_step(fixture, 8, 4000);
	add_table(&fixture->stream, 8, 1, 5);
	add_exit(&fixture->stream, 8, 5000);
	assert_int_equal(end(fixture), 0);
	assert_int_equal(count_files("ferrum_"), 4);

	text = text_of_one(fixture, "ferrum_profile_pid7_", &first);
	assert_int_equal(count_text(text, "\"event\":\"step_prof\""), 1);
	assert_int_equal(count_text(text, "\"event\":\"window_prof\""), 1);
	text = text_of_one(fixture, "ferrum_profile_pid8_", &second);
	assert_int_equal(count_text(text, "\"event\":\"step_prof\""), 2);
	assert_int_equal(first, second);
	text = text_of_one(fixture, "ferrum_trace_pid7_", NULL);
	assert_int_equal(count_text(text, "\"cat\":\"syscall\""), 1);
	text = text_of_one(fixture, "ferrum_trace_pid8_", NULL);
	assert_int_equal(count_text(text, "\"cat\":\"syscall\""), 0);
	assert_int_equal(count_text(text, "\"decode\""), 2);
	assert_silent(fixture->errors);
}

static void each_has_its_report(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.report = REPORT_TEXT;
	begin(fixture);
	send_target(fixture, 7);
	send_target(fixture, 8);
	send_step(fixture, 7, 2000);
	send_step(fixture, 8, 3000);
	assert_int_equal(end(fixture), 0);
	assert_int_equal(count_text(stdout_text(fixture), "./ferrum_trace_pid7_"), 1);
	assert_int_equal(count_text(fixture->text, "./ferrum_trace_pid8_"), 1);
}

/* Each window has only one process. */
static void messages_name_the_process_if_there_are_several(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_manual *manual;

	begin(fixture);
	send_target(fixture, 7);
	manual = stream_add(&fixture->stream, FBT_EVENT_MANUAL, sizeof(*manual), NULL, 0);
	manual->time_ns = 1500;
	send_step(fixture, 7, 2000);
	assert_non_null(strstr(stderr_text(fixture->errors), "#1 decode 100 ns"));
	send_target(fixture, 8);
	manual = stream_add(&fixture->stream, FBT_EVENT_MANUAL, sizeof(*manual), NULL, 0);
	manual->time_ns = 2500;
	send_step(fixture, 7, 3000);
	send_step(fixture, 8, 4000);
	assert_non_null(strstr(stderr_text(fixture->errors), "#2 decode of process 7: 100 ns"));
	assert_non_null(strstr(stderr_text(fixture->errors), "#1 decode of process 8: 100 ns"));
	assert_int_equal(end(fixture), 0);
}

static void each_window_bears_its_own_tag(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.report = REPORT_JSON;
	begin(fixture);
	send_target(fixture, 7);
	send_target(fixture, 8);
	assert_int_equal(end(fixture), 0);
	assert_int_equal(count_text(stdout_text(fixture), "\"pid7_1\""), 0);
	assert_true(count_text(fixture->text, "pid8_") > 0);
}

static void a_process_that_comes_later_hears_what_came_before(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_lost *lost;
	const char *text;

	begin(fixture);
	send_target(fixture, 7);
	lost = stream_add(&fixture->stream, FBT_EVENT_LOST, sizeof(*lost), NULL, 0);
	lost->count[FBT_LOST_CALLS] = 77;
	send_step(fixture, 7, 2000);
	add_kind(&fixture->stream, 2, "prefill", NULL);
	send_target(fixture, 8);
	add_step(&fixture->stream, 8, 2, 3000, 3100)->tgid = 8;
	assert_int_equal(end(fixture), 0);
	text = text_of_one(fixture, "ferrum_profile_pid8_", NULL);
	assert_int_equal(count_text(text, "\"prefill\""), 1);
	assert_int_equal(count_text(text, "\"lost_calls\":77"), 1);
}

static void send_ends(struct fixture *fixture, uint64_t unseen_steps)
{
	struct fbt_ends *ends =
		stream_add(&fixture->stream, FBT_EVENT_ENDS, sizeof(*ends), NULL, 0);

	ends->kind = 1;
	ends->unseen_steps = unseen_steps;
	send(fixture);
}

/* They are of no process. Of those that came before an export was opened the last one counts. */
static void totals_of_a_step_function_are_in_each(void **state)
{
	struct fixture *fixture = *state;

	begin(fixture);
	send_target(fixture, 7);
	send_ends(fixture, 3);
	send_ends(fixture, 5);
	send_step(fixture, 7, 2000);
	send_target(fixture, 8);
	send_step(fixture, 8, 3000);
	assert_int_equal(end(fixture), 0);
	assert_int_equal(count_text(text_of_one(fixture, "ferrum_profile_pid7_", NULL),
				    "\"untraced_steps\":5"),
			 1);
	assert_int_equal(count_text(text_of_one(fixture, "ferrum_profile_pid8_", NULL),
				    "\"untraced_steps\":5"),
			 1);
}

static void what_no_process_is_known_for_goes_nowhere(void **state)
{
	struct fixture *fixture = *state;

	begin(fixture);
	send_step(fixture, 9, 2000);
	assert_int_equal(end(fixture), 0);
	assert_int_equal(count_files("ferrum_"), 0);
}

static void a_process_that_calls_execve_keeps_its_export(void **state)
{
	struct fixture *fixture = *state;

	begin(fixture);
	send_target(fixture, 7);
	send_target(fixture, 7);
	send_step(fixture, 7, 2000);
	assert_int_equal(end(fixture), 0);
	assert_int_equal(count_files("ferrum_trace_pid7_"), 1);
}

static void beyond_the_most_they_share_one(void **state)
{
	struct fixture *fixture = *state;
	const char *text;

	fixture->options.trace = "none";
	begin(fixture);
	for (uint32_t tgid = 1; tgid <= EXPORTS_MAX + 3; tgid++)
		send_target(fixture, tgid);
	for (uint32_t tgid = 1; tgid <= EXPORTS_MAX + 3; tgid++)
		send_step(fixture, tgid, 2000 + tgid);
	assert_one_line(fixture->errors,
			"process 65 and all later ones share one set of files: at most 64 ");
	assert_int_equal(end(fixture), 0);
	assert_int_equal(count_files("ferrum_profile_pid"), EXPORTS_MAX + 1);
	text = text_of_one(fixture, "ferrum_profile_pid0_", NULL);
	assert_int_equal(count_text(text, "\"event\":\"step_prof\""), 3);
	text = text_of_one(fixture, "ferrum_profile_pid64_", NULL);
	assert_int_equal(count_text(text, "\"event\":\"step_prof\""), 1);
}

static void few_descriptors_mean_few_exports(void **state)
{
	struct fixture *fixture = *state;
	struct rlimit old, few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = (struct rlimit){48, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	begin(fixture);
	for (uint32_t tgid = 1; tgid <= 6; tgid++)
		send_target(fixture, tgid);
	assert_int_equal(end(fixture), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(count_files("ferrum_trace_pid"), 4);
	assert_int_equal(count_files("ferrum_trace_pid0_"), 1);
	assert_one_line(fixture->errors, "at most 3 processes have their own; raise ulimit -n");
}

static void one_that_cannot_be_opened_does_not_keep_the_others(void **state)
{
	struct fixture *fixture = *state;

	begin(fixture);
	send_target(fixture, 7);
	fixture->options.windows.dir = "/proc/nowhere";
	send_target(fixture, 8);
	fixture->options.windows.dir = ".";
	send_target(fixture, 9);
	send_step(fixture, 8, 2000);
	send_step(fixture, 9, 2000);
	assert_one_line(fixture->errors, "/proc/nowhere");
	assert_true(end(fixture) < 0);
	assert_int_equal(count_files("ferrum_trace_pid7_"), 1);
	assert_int_equal(count_files("ferrum_trace_pid8_"), 0);
	assert_int_equal(
		count_text(text_of_one(fixture, "ferrum_profile_pid9_", NULL), "\"step_prof\""), 1);
}

static void a_full_disk_is_told_of_and_all_are_ended(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.profile = "/dev/full";
	begin(fixture);
	send_target(fixture, 7);
	send_target(fixture, 8);
	send_step(fixture, 7, 2000);
	send_step(fixture, 8, 2000);
	assert_int_equal(end(fixture), -ENOSPC);
	assert_int_equal(count_files("ferrum_trace_pid7_"), 1);
	assert_int_equal(count_files("ferrum_trace_pid8_"), 1);
	assert_int_equal(count_text(text_of_one(fixture, "ferrum_trace_pid8_", NULL), ".partial"),
			 0);
}

static void a_named_profile_is_appended_to_by_all(void **state)
{
	struct fixture *fixture = *state;
	const char *text;

	fixture->options.profile = "all";
	fixture->options.trace = "none";
	begin(fixture);
	send_target(fixture, 7);
	send_target(fixture, 8);
	send_step(fixture, 7, 2000);
	send_step(fixture, 8, 2000);
	assert_int_equal(end(fixture), 0);
	text = text_of_one(fixture, "all", NULL);
	assert_int_equal(count_text(text, "\"event\":\"step_prof\""), 2);
	assert_int_equal(count_text(text, "\"event\":\"window_prof\""), 2);
}

static void each_has_the_metadata_that_options_give(void **state)
{
	struct fixture *fixture = *state;

	fixture->options.metadata.model = "tiny";
	begin(fixture);
	send_target(fixture, 7);
	send_step(fixture, 7, 2000);
	assert_int_equal(end(fixture), 0);
	assert_true(count_text(text_of_one(fixture, "ferrum_profile_pid7_", NULL),
			       "\"model\":\"tiny\"") > 0);
}

static void discarded_exports_leave_no_files(void **state)
{
	struct fixture *fixture = *state;

	begin(fixture);
	send_target(fixture, 7);
	exports__discard(fixture->exports);
	fixture->exports = NULL;
	assert_int_equal(count_files("ferrum_"), 0);
}

/* Several tools with the same flag see the flag at the same time. */
static void windows_of_one_process_and_millisecond_have_files_of_their_own(void **state)
{
	struct fixture *fixture = *state;
	struct exports *others[20];

	for (int i = 0; i < 20; i++)
		assert_int_equal(exports__open_one(&others[i], &fixture->shared, 7), 0);
	assert_int_equal(count_files("ferrum_profile_pid7_"), 20);
	for (int i = 0; i < 20; i++) {
		exports__finish(others[i]);
		exports__free(others[i]);
	}
	assert_int_equal(count_files("ferrum_trace_pid7_"), 20);
	for (int i = 0; i < 20; i++)
		assert_int_equal(exports__open_one(&others[i], &fixture->shared, 7), 0);
	for (int i = 0; i < 20; i++)
		exports__discard(others[i]);
	assert_int_equal(count_files("ferrum_profile_pid7_"), 20);
	assert_int_equal(count_files("ferrum_"), 40);
	fixture->options.trace = "none";
	for (int i = 0; i < 20; i++)
		assert_int_equal(exports__open_one(&others[i], &fixture->shared, 7), 0);
	assert_int_equal(count_files("ferrum_profile_pid7_"), 40);
	for (int i = 0; i < 20; i++)
		exports__discard(others[i]);
	assert_string_equal(stderr_text(fixture->errors), "");
}

static void send_sums(struct fixture *fixture)
{
	struct fbt_probes *probes;
	struct fbt_cost *cost;

	cost = stream_add(&fixture->stream, FBT_EVENT_COST, sizeof(*cost), NULL, 0);
	cost->step_ns = 300;
	cost->collections = 90;
	probes = stream_add(&fixture->stream, FBT_EVENT_PROBES, sizeof(*probes), NULL, 0);
	probes->kind = 1;
	probes->cost_ns = 5000;
	send(fixture);
}

/* What all processes together have cost is no figure of one of them. */
static void sums_of_all_processes_go_to_the_only_one(void **state)
{
	struct fixture *fixture = *state;
	const struct window *window;

	begin(fixture);
	send_target(fixture, 7);
	send_step(fixture, 7, 2000);
	send_sums(fixture);
	window = exports__window(fixture->exports);
	assert_int_equal(window->cost.collections, 90);
	assert_int_equal(window->probes[1].cost_ns, 5000);
	assert_int_equal(end(fixture), 0);
}

static void sums_of_all_processes_go_to_none_of_several(void **state)
{
	struct fixture *fixture = *state;
	const struct window *window;

	begin(fixture);
	send_target(fixture, 7);
	send_target(fixture, 8);
	send_step(fixture, 7, 2000);
	send_step(fixture, 8, 3000);
	send_sums(fixture);
	window = exports__window(fixture->exports);
	assert_int_equal(window->cost.step_ns, 300);
	assert_int_equal(window->cost.collections, 0);
	assert_int_equal(window->probes[1].kind, 0);
	assert_int_equal(end(fixture), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(free_accepts_null),
		TEST(one_export_has_all_processes),
		TEST(one_export_that_cannot_be_opened_is_an_error),
		TEST(each_process_has_its_own_records),
		TEST(sums_of_all_processes_go_to_the_only_one),
		TEST(sums_of_all_processes_go_to_none_of_several),
		TEST(each_has_its_report),
		TEST(messages_name_the_process_if_there_are_several),
		TEST(each_window_bears_its_own_tag),
		TEST(a_process_that_comes_later_hears_what_came_before),
		TEST(totals_of_a_step_function_are_in_each),
		TEST(what_no_process_is_known_for_goes_nowhere),
		TEST(a_process_that_calls_execve_keeps_its_export),
		TEST(beyond_the_most_they_share_one),
		TEST(few_descriptors_mean_few_exports),
		TEST(one_that_cannot_be_opened_does_not_keep_the_others),
		TEST(a_full_disk_is_told_of_and_all_are_ended),
		TEST(a_named_profile_is_appended_to_by_all),
		TEST(each_has_the_metadata_that_options_give),
		TEST(discarded_exports_leave_no_files),
		TEST(windows_of_one_process_and_millisecond_have_files_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
