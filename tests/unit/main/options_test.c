/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/version.h"
#include "options_fixture.h"

REFUSED(nothing_to_trace_is_refused, "nothing to trace")
#if defined(__x86_64__)
#define TWO_MORE(name) "--step=py:m:" name "0", "--step=py:m:" name "1"
#define EIGHT_MORE(name)                                                                           \
	TWO_MORE(name "0"), TWO_MORE(name "1"), TWO_MORE(name "2"), TWO_MORE(name "3")
REFUSED(more_python_functions_than_the_library_takes_are_refused, "at most 16 Python functions",
	"-p1", EIGHT_MORE("a"), EIGHT_MORE("b"), "--step=py:m:c")

static void sixteen_python_functions_are_taken(void **state)
{
	const struct options *options =
		accept(state, "-p1", EIGHT_MORE("a"), EIGHT_MORE("b"), NULL);

	assert_int_equal(options->specs.count, 16);
}
#define OF_PYTHON                                                                                  \
	TEST(more_python_functions_than_the_library_takes_are_refused),                            \
		TEST(sixteen_python_functions_are_taken)
#else
REFUSED(python_functions_are_refused_elsewhere, "on x86-64 only", "-p1", "--step=py:m:f")
REFUSED(the_library_is_refused_elsewhere, "on x86-64 only", "-p1", "--python=inject")
REFUSED(the_library_is_not_required_elsewhere, "on x86-64 only", "-p1", "--python=require")

static void the_other_modes_are_taken_elsewhere(void **state)
{
	assert_int_equal(accept(state, "-p1", "--python=auto", NULL)->python, PYTHON_AUTO);
	assert_int_equal(accept(state, "-p1", "--python=off", NULL)->python, PYTHON_OFF);
}
#define OF_PYTHON                                                                                  \
	TEST(python_functions_are_refused_elsewhere), TEST(the_library_is_refused_elsewhere),      \
		TEST(the_library_is_not_required_elsewhere),                                       \
		TEST(the_other_modes_are_taken_elsewhere)
#endif
REFUSED(pid_and_all_exclude_each_other, "exclude each other", "-p", "1", "-a")
REFUSED(pid_and_command_exclude_each_other, "exclude each other", "-p", "1", "--", "sleep")
REFUSED(all_and_command_exclude_each_other, "exclude each other", "-a", "--", "sleep")
REFUSED(kineto_refuses_a_name_that_torch_does_not_open, "*.json", "--trace-format", "kineto",
	"--trace", "t.js", "-p", "1")
REFUSED(replay_refuses_a_pid, "--replay", "--replay", "f", "-p", "1")
REFUSED(replay_refuses_all, "--replay", "--replay", "f", "-a")
REFUSED(replay_refuses_a_command, "--replay", "--replay", "f", "--", "sleep")
REFUSED(replay_refuses_a_flag, "--replay", "--replay", "f", "--flag", "g")
REFUSED(replay_refuses_record, "--replay", "--replay", "f", "--record", "g")
REFUSED(list_steps_refuses_no_pid, "--list-steps", "--list-steps")
REFUSED(list_steps_refuses_two_pids, "--list-steps", "--list-steps", "-p", "1,2")
REFUSED(list_steps_refuses_all, "--list-steps", "--list-steps", "-a")
REFUSED(list_steps_refuses_all_beside_a_pid, "--list-steps", "--list-steps", "-a", "-p", "1")
REFUSED(list_steps_refuses_a_command, "--list-steps", "--list-steps", "--", "sleep")
REFUSED(list_steps_refuses_replay, "--list-steps", "--list-steps", "--replay", "f")
REFUSED(a_trace_refuses_names_that_watch_takes, "--comm is an option of ferrum-bpftrace watch",
	"-a", "--comm", "x")
REFUSED(a_trace_refuses_units_beside_a_pid, "--unit is an option", "-p1", "--unit", "llm.service")
REFUSED(a_trace_refuses_a_configuration, "--config is an option", "-p1", "--config", "f")
REFUSED(a_trace_refuses_the_threshold_of_diff, "--threshold is an option of ferrum-bpftrace diff",
	"-p1", "--threshold", "50")
REFUSED(a_trace_refuses_what_validate_requires, "--require-events is an option", "-p1",
	"--require-events", "step_prof")
REFUSED(doctor_refuses_the_options_of_watch, "--cooldown is an option", "doctor", "--cooldown", "5")
REFUSED(a_replay_refuses_a_format_of_no_trace, "--trace-format", "--replay", "f", "--trace-format",
	"perfetto")
REFUSED(merge_refuses_another_format, "--trace-format", "merge", "a", "b", "-o", "c.json",
	"--trace-format", "perfetto")
REFUSED(merge_refuses_a_report_as_json, "--report json", "merge", "a", "b", "-o", "c.json",
	"--report", "json")
REFUSED(list_steps_refuses_a_report_as_json, "--report json", "--list-steps", "-p1", "--report",
	"json")
REFUSED(wait_step_refuses_to_wait_for_nothing, "--wait-step", "-p", "1", "--wait-step")
REFUSED(probes_alone_refuse_intervals, "--interval and --detail probes exclude", "-p", "1",
	"--detail", "probes", "--interval", "100")
REFUSED(a_flag_refuses_a_command, "start the engine first", "--flag", "f", "--", "sleep")
REFUSED(a_flag_refuses_a_number_of_steps, "--max-steps", "-p1", "--flag", "f", "-n", "5")
REFUSED(a_flag_refuses_a_file_of_stacks, "--folded FILE", "-p1", "--flag", "f", "--folded", "s")
REFUSED(a_replay_refuses_to_write_stacks_over_what_it_reads, "names the file that is read",
	"--replay", "f", "--folded", "f")
REFUSED(a_flag_refuses_record, "--record", "-p1", "--flag", "f", "--record", "r")
REFUSED(a_flag_refuses_a_trace, "--trace none", "-p1", "--flag", "f", "--trace", "t")
REFUSED(max_steps_refuse_no_flag, "-n ends", "-p1", "--max-steps", "5")
REFUSED(a_bad_url_is_refused, "--otlp ftp://x: expected http://", "-p1", "--otlp", "ftp://x")
REFUSED(a_password_in_a_url_is_refused, "a user or password is not allowed", "-p1", "--otlp",
	"http://a:b@c")
REFUSED(no_dir_is_refused, "--dir", "-p1", "--dir", "")
REFUSED(validate_refuses_no_files, "validate", "validate")
REFUSED(a_word_without_dashes_is_refused_with_advice, "-- sleep", "sleep", "1")
REFUSED(a_word_before_the_dashes_is_refused, "tpyo", "tpyo", "--", "sleep")
REFUSED(what_is_no_option_is_refused, "unknown option '--frob' (see --help-all)\n", "--frob")
REFUSED(the_secret_of_another_programs_option_is_not_shown,
	"unknown option '--api-key=[redacted]' (see --help-all)\n", "--api-key=x y")
REFUSED(what_is_no_option_is_escaped, "unknown option '--\\x1b[31mred\\nnext: line\\n' (see",
	"--\033[31mred\nnext: line\n")
REFUSED(what_is_no_letter_is_escaped, "unknown option '-\\x9b' (see --help)", "-v\x9b")
REFUSED(what_could_be_two_names_names_both,
	"ambiguous option '--prof': --profile, --profile-commit", "--prof")
REFUSED(an_option_without_its_value_is_refused, "--steps: STEPS is missing (see --help)", "-p", "1",
	"-n")
REFUSED(a_pid_that_was_not_found_is_missed, "did $(pgrep ...) find no process?", "-p")
REFUSED(a_pid_that_was_not_found_before_an_option_too,
	"--pid: '-d' is not a process ID: did $(pgrep", "-p", "-d", "5")
REFUSED(an_empty_pid_was_not_found_either, "did $(pgrep ...) find no process?", "-p", "", "-a")
REFUSED(a_second_pid_is_told_where_it_goes, "separated by commas: -p 12,34", "-p", "1", "34")
REFUSED(a_value_too_many_is_refused, "--follow takes no value (see --help)", "--follow=\033c")
REFUSED(a_typo_of_an_option_names_the_option, "'--durtaion=5': did you mean --duration?",
	"--durtaion=5")
REFUSED(a_typo_of_a_command_names_the_command, "'docter': did you mean doctor?", "docter", "5")
REFUSED(an_option_as_a_command_names_the_option, "'replay': did you mean --replay?", "replay", "f")
REFUSED(what_is_like_nothing_names_nothing, "unknown command 'wibble': use -p PID", "wibble")
REFUSED(top_refuses_a_command, "top cannot share the terminal", "top", "--", "true")
REFUSED(top_refuses_a_flag, "top and --flag exclude each other", "top", "-p1", "--flag", "f")
REFUSED(top_refuses_a_replay, "top shows processes that run", "top", "--replay", "f")
REFUSED(an_output_refuses_a_directory, "--output: invalid value 'dir/'", "-p1", "-o", "dir/")
REFUSED(an_output_refuses_dir, "-o and --dir exclude each other", "-p1", "-o", "b", "--dir", "d")
REFUSED(two_outputs_in_the_same_file_are_refused, "two of them name the same file", "-p1", "-o",
	"b", "--trace", "b.jsonl")
REFUSED(two_spellings_of_the_same_file_are_refused, "two of them name the same file", "-p1",
	"--trace", "f", "--profile", "./f")
REFUSED(a_replay_refuses_to_replace_what_it_reads, "names the file that is read", "--replay", "f",
	"--trace", "f")
REFUSED(a_replay_refuses_to_append_to_what_it_reads, "names the file that is read", "--replay", "f",
	"--profile", "/proc/self/cwd/f")
REFUSED(a_bad_pid_is_refused, "--pid: invalid value 'x'", "-p", "x")
REFUSED(a_bad_duration_is_refused, "--duration", "-p", "1", "-d", "0")
REFUSED(a_budget_of_half_a_microsecond_is_refused, "--budget-us", "-p", "1", "--budget-us", "0.5")
REFUSED(a_budget_of_more_than_an_hour_is_refused, "--budget-us", "-p", "1", "--budget-us", "61m")
REFUSED(a_bad_interval_is_refused, "--interval", "-p", "1", "--interval", "0.5")
REFUSED(no_steps_are_refused, "--steps: invalid value '0'", "-p", "1", "-n", "0")
REFUSED(a_bad_detail_is_refused,
	"--detail: invalid value 'x' (expected steps, escalated, all or probes)", "-p", "1",
	"--detail", "x")
REFUSED(a_bad_report_is_refused, "--report: invalid value 'xml'", "-p", "1", "--report", "xml")
REFUSED(a_bad_trace_format_is_refused, "--trace-format", "-p", "1", "--trace-format", "systrace")
REFUSED(a_pftrace_is_of_no_other_format, "--trace FILE.pftrace", "-p", "1", "--trace", "a.pftrace",
	"--trace-format", "ferrum")
REFUSED(perfetto_is_no_json, "--trace-format perfetto", "-p", "1", "--trace", "a.json",
	"--trace-format", "perfetto")
REFUSED(two_outputs_are_not_one_file, "two of them name the same file", "-p", "1", "--profile",
	"/tmp/x", "--html", "/tmp/./x")
REFUSED(a_flag_refuses_a_page, "--flag excludes --html", "-p", "1", "--flag", "/tmp/flag", "--html",
	"a.html")
REFUSED(a_flag_refuses_a_compressed_profile, "--flag excludes --profile FILE.gz", "-p", "1",
	"--flag", "/tmp/flag", "--profile", "a.jsonl.gz")
REFUSED(a_bad_gpu_mode_is_refused, "--gpu: invalid value 'on'", "-p", "1", "--gpu", "on")
REFUSED(a_bad_rank_is_refused, "--rank: invalid value '-1'", "-p", "1", "--rank", "-1")
REFUSED(a_huge_rank_is_refused, "--rank: invalid value '1000001'", "-p", "1", "--rank", "1000001")
REFUSED(a_rank_refuses_another_trace_format, "--rank requires --trace-format kineto", "-p", "1",
	"--rank", "3")
REFUSED(strict_refuses_no_gpu_records, "--gpu off takes none", "-p", "1", "--gpu-strict", "--gpu",
	"off")
REFUSED(engine_env_refuses_files, "engine-env: unexpected 'x'", "engine-env", "x")
REFUSED(doctor_refuses_what_is_no_pid, "doctor: 'x' is not a process ID", "doctor", "x")
REFUSED(doctor_refuses_all_processes, "doctor checks running processes", "doctor", "-a")
REFUSED(doctor_refuses_a_command, "doctor checks running processes", "doctor", "--", "true")
REFUSED(doctor_refuses_a_capture, "doctor checks running processes", "doctor", "--replay", "x")
REFUSED(a_bad_number_of_ring_records_is_refused, "--ring-records: invalid value '1'",
	"--ring-records", "1")
REFUSED(less_than_512_ring_records_are_refused, "--ring-records: invalid value '511'",
	"--ring-records", "511")
REFUSED(more_than_4194304_ring_records_are_refused, "--ring-records: invalid value '4194305'",
	"--ring-records", "4194305")
REFUSED(a_bad_step_is_refused, "--step", "-p", "1", "--step", "")
REFUSED(a_bad_step_arg_is_refused, "--step-arg", "-p", "1", "--step-arg", "tokens")
REFUSED(a_fifth_step_arg_is_refused, "at most 4", "-p", "1", "--step-arg", "a=arg0", "--step-arg",
	"b=arg1", "--step-arg", "c=arg2", "--step-arg", "d=arg3", "--step-arg", "e=arg4")

static void a_url_and_headers_are_a_collector(void **state)
{
	struct fixture *fixture = *state;
	const struct options *options;

	setenv("OTEL_EXPORTER_OTLP_HEADERS", "key=secret", 1);
	options = accept(state, "-p1", "--otlp", "http://box:4318", NULL);
	unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
	assert_string_equal(options->collector.url, "http://box:4318/v1/traces");
	assert_int_equal(options->collector.headers.count, 1);
	options_clear(&fixture->options);
	assert_null(options->collector.url);
	memset(&fixture->options, 0, sizeof(fixture->options));
}

static void help_ends_with_status_0(void **state)
{
	end(state, 0, "--list-steps", "--help", NULL);
}

static void h_is_help(void **state)
{
	end(state, 0, "--list-steps", "-h", NULL);
	assert_null(strstr(stderr_text(errors_of(state)), "--cv-window"));
}

static void help_shows_twenty_options_and_how_to_see_all(void **state)
{
	int count = 0;

	end(state, 0, "--help-all", "--help", NULL);
	for (const char *at = stderr_text(errors_of(state)); (at = strstr(at, "\n  ")); at++)
		count += at[3] == '-' || !strncmp(at + 3, "    --", 6);
	/* The count includes --help, --help-all and --version. */
	assert_int_equal(count, 24);
}

static void help_all_shows_every_option(void **state)
{
	static const char *const some[] = {"--duration", "--cv-window", "--profile-model",
					   "--inject-timeout", "--require-events"};

	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
		end(state, 0, some[i], "--help-all", NULL);
}

static void version_ends_with_status_0(void **state)
{
	char line[128];

	snprintf(line, sizeof(line), "ferrum-bpftrace %s\n", tool_version());
	end(state, 0, line, "--version", NULL);
	end(state, 0, line, "--help", NULL);
	end(state, 0, line, "--help-all", NULL);
}

static void defaults_are_those_of_the_manual(void **state)
{
	const struct options *options = accept(state, "-p", "12", NULL);

	assert_int_equal(options->mode, MODE_TRACE);
	assert_int_equal(options->detail, FBT_DETAIL_ESCALATED);
	assert_int_equal(options->report, REPORT_TEXT);
	assert_int_equal(options->interval_ns, 100000000);
	assert_false(options->interval_given);
	assert_int_equal(options->duration_ns, 0);
	assert_int_equal(options->steps, 0);
	assert_null(options->trace);
	assert_null(options->profile);
	assert_null(options->record);
	assert_null(options->command);
	assert_false(options->follow || options->uretprobe);
}

static void pids_of_several_options_add_up(void **state)
{
	const struct options *options = accept(state, "-p", "1,2", "--pid=3", NULL);

	assert_int_equal(options->pids.count, 3);
	assert_int_equal(options->pids.items[2], 3);
}

static void what_selects_and_limits_is_kept(void **state)
{
	const struct options *options = accept(state, "-a", "-f", "-d", "1.5", "-n", "9",
					       "--interval", "20", "--ring-records", "4096", NULL);

	assert_true(options->all);
	assert_true(options->follow);
	assert_int_equal(options->duration_ns, 1500000000);
	assert_int_equal(options->steps, 9);
	assert_int_equal(options->interval_ns, 20000000);
	assert_true(options->interval_given);
	assert_int_equal(options->ring_records, 4096);
}

static void ring_records_go_from_512_to_4194304(void **state)
{
	assert_int_equal(accept(state, "-p1", "--ring-records", "512", NULL)->ring_records, 512);
	assert_int_equal(accept(state, "-p1", "--ring-records", "4194304", NULL)->ring_records,
			 4194304);
}

static void gpu_options_are_kept(void **state)
{
	static const struct {
		const char *word;
		enum gpu_mode mode;
	} modes[] = {{"auto", GPU_AUTO}, {"off", GPU_OFF}, {"require", GPU_REQUIRE}};
	const struct options *options;

	for (int i = 0; i < 3; i++) {
		options = accept(state, "-p1", "--gpu", modes[i].word, NULL);
		assert_int_equal(options->gpu.mode, modes[i].mode);
	}
	options = accept(state, "-p1", "--rank", "7", "--trace-format", "kineto", "--gpu-strict",
			 NULL);
	assert_true(options->gpu.rank_given);
	assert_int_equal(options->gpu.rank, 7);
	assert_true(options->judging.merge.strict);
	options = accept(state, "-p1", NULL);
	assert_int_equal(options->gpu.mode, GPU_AUTO);
	assert_false(options->gpu.rank_given);
	assert_false(options->judging.merge.strict);
	assert_true(options->judging.merge.timeout_ns > 0);
}

static void doctor_takes_processes_and_what_a_trace_of_them_takes(void **state)
{
	const struct options *options;

	options = accept(state, "doctor", NULL);
	assert_int_equal(options->mode, MODE_DOCTOR);
	assert_int_equal(options->pids.count, 0);
	options = accept(state, "doctor", "5", "--step", "f", "6,7", "-p", "8", NULL);
	assert_int_equal(options->mode, MODE_DOCTOR);
	assert_int_equal(options->pids.count, 4);
	assert_int_equal(options->pids.items[3], 8);
	assert_int_equal(options->specs.count, 1);
	/* After "--", doctor is the name of a program. */
	options = accept(state, "--", "doctor", "5", NULL);
	assert_int_equal(options->mode, MODE_TRACE);
	assert_string_equal(options->command[0], "doctor");
}

static void engine_env_is_a_mode_of_its_own(void **state)
{
	const struct options *options = accept(state, "engine-env", NULL);

	assert_int_equal(options->mode, MODE_ENGINE_ENV);
	/* The command's old name. */
	options = accept(state, "gpu-env", NULL);
	assert_int_equal(options->mode, MODE_ENGINE_ENV);
}

static void step_options_are_kept_in_their_order(void **state)
{
	const struct options *options =
		accept(state, "-p1", "--step", "f", "--step", "g", "--step-arg", "n=arg1",
		       "--symbols", "s", "--wait-step", NULL);

	assert_int_equal(options->specs.count, 2);
	assert_int_equal(options->args.count, 1);
	assert_int_equal(options->symbol_files.count, 1);
	assert_string_equal(options->symbol_files.items[0], "s");
	assert_true(options->wait_step);
}

static void uretprobe_is_taken_with_a_warning(void **state)
{
	char *argv[] = {(char *)"ferrum-bpftrace", (char *)"-p1", (char *)"--uretprobe", NULL};
	struct options options;

	assert_int_equal(options_parse(&options, 3, argv), 0);
	assert_true(options.uretprobe);
	assert_one_line(errors_of(state), "--uretprobe: ");
	options_clear(&options);
}

static void output_options_are_kept(void **state)
{
	const struct options *options =
		accept(state, "-p1", "--trace=t", "--trace-format=ferrum", "--profile=none",
		       "--record=r", "--report=json", "--detail=all", NULL);

	assert_string_equal(options->trace, "t");
	assert_string_equal(options->profile, "none");
	assert_string_equal(options->record, "r");
	assert_int_equal(options->report, REPORT_JSON);
	assert_int_equal(options->detail, FBT_DETAIL_ALL);
}

static void calls_need_not_be_traced(void **state)
{
	assert_int_equal(accept(state, "-p1", "--detail=probes", NULL)->detail, FBT_DETAIL_PROBES);
}

static void metadata_options_are_kept(void **state)
{
	const struct options *options = accept(
		state, "-p1", "--profile-commit-sha=c", "--profile-env-hash=e", "--profile-model=m",
		"--profile-concurrency=4", "--profile-runtime-flags-json={}", NULL);

	assert_string_equal(options->metadata.commit_sha, "c");
	assert_string_equal(options->metadata.env_hash, "e");
	assert_string_equal(options->metadata.model, "m");
	assert_string_equal(options->metadata.concurrency, "4");
	assert_string_equal(options->metadata.runtime_flags, "{}");
}

static void name_files_in_environment(void)
{
	setenv("FERRUM_TRACE_OUT", "/t", 1);
	setenv("FERRUM_PROFILE_JSONL", "/p", 1);
}

static void an_output_names_all_files(void **state)
{
	const struct options *options;

	name_files_in_environment();
	options = accept(state, "-p1", "-o", "d/b", NULL);
	assert_string_equal(options->trace, "d/b.trace.json");
	assert_string_equal(options->profile, "d/b.jsonl");
	assert_string_equal(options->record, "d/b.fbt");
	assert_string_equal(options->folded, "d/b.folded");
}

static void an_output_without_calls_has_no_stacks(void **state)
{
	assert_null(accept(state, "-p1", "-o", "d/b", "--detail", "steps", NULL)->folded);
}

static void an_output_leaves_files_that_have_names(void **state)
{
	const struct options *options =
		accept(state, "-p1", "-o", "b", "--trace", "none", "--record=r", NULL);

	assert_string_equal(options->trace, "none");
	assert_string_equal(options->profile, "b.jsonl");
	assert_string_equal(options->record, "r");
}

static void an_output_of_a_replay_is_no_capture(void **state)
{
	const struct options *options = accept(state, "--replay", "f", "-o", "b", NULL);

	assert_string_equal(options->trace, "b.trace.json");
	assert_string_equal(options->folded, "b.folded");
	assert_null(options->record);
}

static void devices_may_be_named_twice(void **state)
{
	accept(state, "-p1", "--trace", "/dev/null", "--profile", "/dev/null", NULL);
}

static void an_output_of_windows_leaves_the_names_to_them(void **state)
{
	const struct options *options = accept(state, "-p1", "--flag", "f", "-o", "d/b", NULL);

	assert_null(options->trace);
	assert_null(options->record);
	assert_string_equal(options->windows.dir, "d");
}

static void times_take_units(void **state)
{
	const struct options *options;

	options = accept(state, "-p1", "-d", "5m", "--interval=1s", "--rate-interval=2m",
			 "--budget-us=20ms", "--gpu=inject", "--inject-timeout=1m", NULL);
	assert_true(options->duration_ns == 300000000000);
	assert_true(options->interval_ns == 1000000000);
	assert_true(options->judging.classify.thresholds.rate_interval_ns == 120000000000);
	assert_int_equal(options->judging.classify.budget_us, 20000);
	assert_true(options->gpu.inject_timeout_ns == 60000000000);
	options = accept(state, "-p1", "-d", "10", "--interval=20", "--rate-interval=3",
			 "--budget-us=500", NULL);
	assert_true(options->duration_ns == 10000000000);
	assert_true(options->interval_ns == 20000000);
	assert_true(options->judging.classify.thresholds.rate_interval_ns == 3000000000);
	assert_int_equal(options->judging.classify.budget_us, 500);
}

static void a_word_of_a_megabyte_is_cut(void **state)
{
	const size_t size = 1 << 20;
	char *argv[] = {(char *)"ferrum-bpftrace", malloc(size), NULL};

	assert_non_null(argv[1]);
	memset(argv[1], '-', size - 1);
	argv[1][size - 1] = '\0';
	assert_int_equal(parse_in_child(argv, 2), 2);
	free(argv[1]);
	assert_one_line(errors_of(state), "unknown option '-----");
}

static void environment_names_the_files_that_options_do_not(void **state)
{
	const struct options *options;

	name_files_in_environment();
	options = accept(state, "-p1", NULL);
	assert_string_equal(options->trace, "/t");
	assert_string_equal(options->profile, "/p");
}

static void options_go_before_the_environment(void **state)
{
	const struct options *options;

	name_files_in_environment();
	options = accept(state, "-p1", "--trace=none", "--profile=q", NULL);
	assert_string_equal(options->trace, "none");
	assert_string_equal(options->profile, "q");
}

static void blank_names_of_the_environment_are_none(void **state)
{
	const struct options *options;

	setenv("FERRUM_TRACE_OUT", "", 1);
	setenv("FERRUM_PROFILE_JSONL", " \t\n", 1);
	options = accept(state, "-p1", NULL);
	assert_null(options->trace);
	assert_null(options->profile);
}

static void only_perf_of_the_environment_means_perf_uprobes(void **state)
{
	const struct options *options;

	setenv("FBT_UPROBES", "multi", 1);
	options = accept(state, "-p1", NULL);
	assert_false(options->perf_uprobes);
	setenv("FBT_UPROBES", "perf", 1);
	options = accept(state, "-p1", NULL);
	assert_true(options->perf_uprobes);
}

static void a_flag_goes_with_limits_a_folder_and_a_profile(void **state)
{
	const struct options *options =
		accept(state, "-p1", "--flag=f", "--dir=d", "--max-steps=7", "-d", "5",
		       "--trace=none", "--profile=p", "--escalate-now", NULL);

	assert_string_equal(options->windows.flag, "f");
	assert_string_equal(options->windows.dir, "d");
	assert_int_equal(options->windows.max_steps, 7);
	assert_string_equal(options->profile, "p");
	assert_true(options->escalate_now);
}

static void what_does_not_go_with_the_environments_flag_names_it(void **state)
{
	setenv("FERRUM_BPFTRACE_FLAG", "f", 1);
	refuse(state, "--flag is set by FERRUM_BPFTRACE_FLAG", "-p1", "-n", "5", NULL);
}

static void the_environments_files_are_those_of_a_trace(void **state)
{
	const struct options *options;

	name_files_in_environment();
	options = accept(state, "--replay=r", NULL);
	assert_string_equal(options->trace, "/t");
	assert_string_equal(options->profile, "/p");
	options = accept(state, "watch", "-p1", NULL);
	assert_null(options->trace);
	assert_null(options->profile);
	options = accept(state, "diff", "a", "b", NULL);
	assert_null(options->trace);
	assert_null(options->profile);
	options = accept(state, "top", "-p1", NULL);
	assert_string_equal(options->trace, "none");
	assert_string_equal(options->profile, "none");
}

static void the_environments_trace_does_not_go_with_a_flag(void **state)
{
	char *argv[] = {(char *)"ferrum-bpftrace", (char *)"-p1", (char *)"--flag=f", NULL};
	struct options options;

	setenv("FERRUM_TRACE_OUT", "/t", 1);
	assert_int_equal(options_parse(&options, 3, argv), 0);
	assert_null(options.trace);
	assert_one_line(errors_of(state), "FERRUM_TRACE_OUT: has no effect");
	options_clear(&options);
}

static void options_after_the_dashes_are_the_commands(void **state)
{
	const struct options *options =
		accept(state, "-f", "--", "server", "-p", "80", "--help", NULL);

	assert_true(options->follow);
	assert_int_equal(options->pids.count, 0);
	assert_string_equal(options->command[0], "server");
	assert_string_equal(options->command[3], "--help");
	assert_null(options->command[4]);
}

static void dashes_of_the_command_stay_its_own(void **state)
{
	const struct options *options = accept(state, "--", "server", "--", "x", NULL);

	assert_string_equal(options->command[0], "server");
	assert_string_equal(options->command[1], "--");
	assert_string_equal(options->command[2], "x");
}

static void a_command_may_be_called_validate(void **state)
{
	const struct options *options = accept(state, "--", "validate", "x", NULL);

	assert_int_equal(options->mode, MODE_TRACE);
	assert_string_equal(options->command[0], "validate");
}

static void validate_takes_files_and_required_events(void **state)
{
	const struct options *options =
		accept(state, "validate", "--require-events", "a,b", "x", "y", NULL);

	assert_int_equal(options->mode, MODE_VALIDATE);
	assert_string_equal(options->require_events, "a,b");
	assert_int_equal(options->file_count, 2);
	assert_string_equal(options->files[0], "x");
	assert_string_equal(options->files[1], "y");
}

static void validate_takes_options_after_the_files(void **state)
{
	const struct options *options =
		accept(state, "validate", "x", "--require-events", "a", "y", NULL);

	assert_string_equal(options->require_events, "a");
	assert_int_equal(options->file_count, 2);
	assert_string_equal(options->files[1], "y");
}

static void validate_takes_files_after_dashes(void **state)
{
	const struct options *options = accept(state, "validate", "--", "-x", NULL);

	assert_int_equal(options->mode, MODE_VALIDATE);
	assert_null(options->command);
	assert_int_equal(options->file_count, 1);
	assert_string_equal(options->files[0], "-x");
}

static void replay_is_a_mode_of_its_own(void **state)
{
	const struct options *options = accept(state, "--replay", "f", NULL);

	assert_int_equal(options->mode, MODE_REPLAY);
	assert_string_equal(options->replay, "f");
}

/* As watch starts it. */
static void a_tracer_of_watch_is_told_how_much_to_keep(void **state)
{
	const struct options *options = accept(state, "-p1", "--wait-step", "--detail=probes",
					       "--flight-fd=3", "--last=5s", "--memory=64M", NULL);

	assert_int_equal(options->watch.last_ns, UINT64_C(5000000000));
}

static void replay_warns_of_what_a_capture_cannot_change(void **state)
{
	char *argv[] = {(char *)"ferrum-bpftrace",
			(char *)"--replay",
			(char *)"f",
			(char *)"--hang=1",
			(char *)"--keep-free=1G", /* of the files that it writes */
			(char *)"-d5",
			(char *)"--step=f",
			NULL};
	struct options options;

	assert_int_equal(options_parse(&options, 7, argv), 0);
	assert_one_line(errors_of(state),
			"no effect on what has been recorded: -d, --step, --hang\n");
	options_clear(&options);
}

static void list_steps_takes_one_pid(void **state)
{
	const struct options *options = accept(state, "--list-steps", "-p", "5", NULL);

	assert_int_equal(options->mode, MODE_LIST_STEPS);
}

static void quiet_and_verbose_count(void **state)
{
	accept(state, "-p1", "-q", NULL);
	assert_int_equal(log_level(), LOG_WARN);
	log_set_level(LOG_INFO);
	accept(state, "-p1", "-qqq", NULL);
	assert_int_equal(log_level(), LOG_ERR);
	accept(state, "-p1", "-v", NULL);
	assert_int_equal(log_level(), LOG_DEBUG);
	log_set_level(LOG_INFO);
	accept(state, "-p1", "-vvv", NULL);
	assert_int_equal(log_level(), LOG_LIBBPF);
}

/* A descriptor number that no child of a test uses. */
#define FREE_FD 700

static void ready_fd_is_kept_and_not_inherited(void **state)
{
	const struct options *options;

	assert_int_equal(dup2(errors_of(state)->file, FREE_FD), FREE_FD);
	options = accept(state, "-p1", "--ready-fd", "700", NULL);
	assert_int_equal(options->ready_fd, FREE_FD);
	assert_int_equal(fcntl(FREE_FD, F_GETFD), FD_CLOEXEC);
	close(FREE_FD);
	options = accept(state, "-p1", NULL);
	assert_int_equal(options->ready_fd, 0);
}

static void ready_fd_refuses_what_cannot_be_written_to(void **state)
{
	int fd = open("/dev/null", O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(dup2(fd, FREE_FD), FREE_FD);
	refuse(state, "--ready-fd: invalid value '700'", "-p1", "--ready-fd", "700", NULL);
	close(FREE_FD);
	close(fd);
}

static void ready_fd_refuses_what_attaches_nothing(void **state)
{
	assert_int_equal(dup2(errors_of(state)->file, FREE_FD), FREE_FD);
	refuse(state, "--ready-fd requires a trace", "--replay", "f", "--ready-fd", "700", NULL);
	close(FREE_FD);
}

REFUSED(ready_fd_refuses_what_is_not_open, "--ready-fd: invalid value '700'", "-p1", "--ready-fd",
	"700")
REFUSED(ready_fd_refuses_a_word, "--ready-fd: invalid value 'one'", "-p1", "--ready-fd", "one")
REFUSED(ready_fd_refuses_standard_error, "--ready-fd: invalid value '2'", "-p1", "--ready-fd", "2")

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void the_name_of_the_trace_says_its_format(void **state)
{
	assert_int_equal(accept(state, "-p1", "--trace=a.pftrace", NULL)->trace_format,
			 TRACE_PERFETTO);
	assert_int_equal(accept(state, "-p1", "--trace=a.json", NULL)->trace_format, TRACE_FERRUM);
	assert_int_equal(accept(state, "-p1", NULL)->trace_format, TRACE_FERRUM);
	assert_int_equal(
		accept(state, "-p1", "--trace=a", "--trace-format=perfetto", NULL)->trace_format,
		TRACE_PERFETTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_to_trace_is_refused),
		OF_PYTHON,
		TEST(pid_and_all_exclude_each_other),
		TEST(pid_and_command_exclude_each_other),
		TEST(all_and_command_exclude_each_other),
		TEST(a_pftrace_is_of_no_other_format),
		TEST(perfetto_is_no_json),
		TEST(two_outputs_are_not_one_file),
		TEST(a_flag_refuses_a_page),
		TEST(a_flag_refuses_a_compressed_profile),
		TEST(the_name_of_the_trace_says_its_format),
		TEST(kineto_refuses_a_name_that_torch_does_not_open),
		TEST(replay_refuses_a_pid),
		TEST(replay_refuses_all),
		TEST(replay_refuses_a_command),
		TEST(replay_refuses_a_flag),
		TEST(replay_refuses_record),
		TEST(list_steps_refuses_no_pid),
		TEST(list_steps_refuses_two_pids),
		TEST(list_steps_refuses_all),
		TEST(list_steps_refuses_all_beside_a_pid),
		TEST(list_steps_refuses_a_command),
		TEST(list_steps_refuses_replay),
		TEST(a_trace_refuses_names_that_watch_takes),
		TEST(a_trace_refuses_units_beside_a_pid),
		TEST(a_trace_refuses_a_configuration),
		TEST(a_trace_refuses_the_threshold_of_diff),
		TEST(a_trace_refuses_what_validate_requires),
		TEST(doctor_refuses_the_options_of_watch),
		TEST(a_replay_refuses_a_format_of_no_trace),
		TEST(merge_refuses_another_format),
		TEST(merge_refuses_a_report_as_json),
		TEST(list_steps_refuses_a_report_as_json),
		TEST(wait_step_refuses_to_wait_for_nothing),
		TEST(probes_alone_refuse_intervals),
		TEST(a_flag_refuses_a_command),
		TEST(a_flag_refuses_a_number_of_steps),
		TEST(a_flag_refuses_a_file_of_stacks),
		TEST(a_replay_refuses_to_write_stacks_over_what_it_reads),
		TEST(a_flag_refuses_record),
		TEST(a_flag_refuses_a_trace),
		TEST(max_steps_refuse_no_flag),
		TEST(a_bad_url_is_refused),
		TEST(a_password_in_a_url_is_refused),
		TEST(no_dir_is_refused),
		TEST(validate_refuses_no_files),
		TEST(a_word_without_dashes_is_refused_with_advice),
		TEST(a_word_before_the_dashes_is_refused),
		TEST(what_is_no_option_is_refused),
		TEST(the_secret_of_another_programs_option_is_not_shown),
		TEST(what_is_no_option_is_escaped),
		TEST(what_is_no_letter_is_escaped),
		TEST(what_could_be_two_names_names_both),
		TEST(an_option_without_its_value_is_refused),
		TEST(a_pid_that_was_not_found_is_missed),
		TEST(a_pid_that_was_not_found_before_an_option_too),
		TEST(an_empty_pid_was_not_found_either),
		TEST(a_second_pid_is_told_where_it_goes),
		TEST(a_value_too_many_is_refused),
		TEST(a_typo_of_an_option_names_the_option),
		TEST(a_typo_of_a_command_names_the_command),
		TEST(an_option_as_a_command_names_the_option),
		TEST(what_is_like_nothing_names_nothing),
		TEST(top_refuses_a_command),
		TEST(top_refuses_a_flag),
		TEST(top_refuses_a_replay),
		TEST(an_output_refuses_a_directory),
		TEST(an_output_refuses_dir),
		TEST(two_outputs_in_the_same_file_are_refused),
		TEST(two_spellings_of_the_same_file_are_refused),
		TEST(a_replay_refuses_to_replace_what_it_reads),
		TEST(a_replay_refuses_to_append_to_what_it_reads),
		TEST(devices_may_be_named_twice),
		TEST(a_bad_pid_is_refused),
		TEST(a_bad_duration_is_refused),
		TEST(a_budget_of_more_than_an_hour_is_refused),
		TEST(a_budget_of_half_a_microsecond_is_refused),
		TEST(a_bad_interval_is_refused),
		TEST(no_steps_are_refused),
		TEST(a_bad_detail_is_refused),
		TEST(a_bad_report_is_refused),
		TEST(a_bad_trace_format_is_refused),
		TEST(a_bad_gpu_mode_is_refused),
		TEST(a_bad_rank_is_refused),
		TEST(a_huge_rank_is_refused),
		TEST(a_rank_refuses_another_trace_format),
		TEST(strict_refuses_no_gpu_records),
		TEST(engine_env_refuses_files),
		TEST(doctor_refuses_what_is_no_pid),
		TEST(doctor_refuses_all_processes),
		TEST(doctor_refuses_a_command),
		TEST(doctor_refuses_a_capture),
		TEST(a_bad_number_of_ring_records_is_refused),
		TEST(less_than_512_ring_records_are_refused),
		TEST(more_than_4194304_ring_records_are_refused),
		TEST(a_bad_step_is_refused),
		TEST(a_bad_step_arg_is_refused),
		TEST(a_fifth_step_arg_is_refused),
		TEST(a_url_and_headers_are_a_collector),
		TEST(help_ends_with_status_0),
		TEST(h_is_help),
		TEST(help_shows_twenty_options_and_how_to_see_all),
		TEST(help_all_shows_every_option),
		TEST(version_ends_with_status_0),
		TEST(defaults_are_those_of_the_manual),
		TEST(pids_of_several_options_add_up),
		TEST(what_selects_and_limits_is_kept),
		TEST(ring_records_go_from_512_to_4194304),
		TEST(gpu_options_are_kept),
		TEST(doctor_takes_processes_and_what_a_trace_of_them_takes),
		TEST(engine_env_is_a_mode_of_its_own),
		TEST(step_options_are_kept_in_their_order),
		TEST(uretprobe_is_taken_with_a_warning),
		TEST(output_options_are_kept),
		TEST(calls_need_not_be_traced),
		TEST(metadata_options_are_kept),
		TEST(an_output_names_all_files),
		TEST(an_output_without_calls_has_no_stacks),
		TEST(an_output_leaves_files_that_have_names),
		TEST(an_output_of_a_replay_is_no_capture),
		TEST(an_output_of_windows_leaves_the_names_to_them),
		TEST(times_take_units),
		TEST(a_word_of_a_megabyte_is_cut),
		TEST(environment_names_the_files_that_options_do_not),
		TEST(options_go_before_the_environment),
		TEST(blank_names_of_the_environment_are_none),
		TEST(only_perf_of_the_environment_means_perf_uprobes),
		TEST(a_flag_goes_with_limits_a_folder_and_a_profile),
		TEST(what_does_not_go_with_the_environments_flag_names_it),
		TEST(the_environments_files_are_those_of_a_trace),
		TEST(the_environments_trace_does_not_go_with_a_flag),
		TEST(options_after_the_dashes_are_the_commands),
		TEST(dashes_of_the_command_stay_its_own),
		TEST(a_command_may_be_called_validate),
		TEST(validate_takes_files_and_required_events),
		TEST(validate_takes_options_after_the_files),
		TEST(validate_takes_files_after_dashes),
		TEST(replay_is_a_mode_of_its_own),
		TEST(a_tracer_of_watch_is_told_how_much_to_keep),
		TEST(replay_warns_of_what_a_capture_cannot_change),
		TEST(list_steps_takes_one_pid),
		TEST(quiet_and_verbose_count),
		TEST(ready_fd_is_kept_and_not_inherited),
		TEST(ready_fd_refuses_what_cannot_be_written_to),
		TEST(ready_fd_refuses_what_attaches_nothing),
		TEST(ready_fd_refuses_what_is_not_open),
		TEST(ready_fd_refuses_a_word),
		TEST(ready_fd_refuses_standard_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
