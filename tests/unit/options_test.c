/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

#include "log.h"
#include "options.h"
#include "stderr_fixture.h"

#define ARGS_MAX 16

static int setup(void **state)
{
	unsetenv("FERRUM_TRACE_OUT");
	unsetenv("FERRUM_PROFILE_JSONL");
	unsetenv("FBT_UPROBES");
	unsetenv("FERRUM_BPFTRACE_FLAG");
	log_set_level(LOG_INFO);
	return stderr_setup(state);
}

static int fill_argv(char **argv, va_list args)
{
	int argc = 1;

	argv[0] = (char *)"ferrum-bpftrace";
	while ((argv[argc] = va_arg(args, char *)))
		assert_true(++argc < ARGS_MAX);
	return argc;
}

/*
 * Exit status of a child that parses the arguments: argp ends the program for some. 0 parsed,
 * 2 what main makes of -EINVAL. stdout goes where stderr goes.
 */
static int parse_in_child(char **argv, int argc)
{
	struct options options;
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		status = options_parse(&options, argc, argv);
		options_clear(&options);
		_exit(!status ? 0 : status == -EINVAL ? 2 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* They are refused with one line that holds part. */
static void refuse(void **state, const char *part, ...)
{
	char *argv[ARGS_MAX + 1];
	va_list args;
	int argc;

	va_start(args, part);
	argc = fill_argv(argv, args);
	va_end(args);
	assert_int_equal(parse_in_child(argv, argc), 2);
	assert_one_line(*state, part);
}

/* argp ends the program with that status, and says part. */
static void end(void **state, int status, const char *part, ...)
{
	char *argv[ARGS_MAX + 1];
	va_list args;
	int argc;

	va_start(args, part);
	argc = fill_argv(argv, args);
	va_end(args);
	assert_int_equal(parse_in_child(argv, argc), status);
	assert_non_null(strstr(stderr_text(*state), part));
}

/* They are accepted without a word. argv must outlive options. */
static void accept(void **state, struct options *options, char **argv, ...)
{
	va_list args;
	int argc;

	va_start(args, argv);
	argc = fill_argv(argv, args);
	va_end(args);
	/* A child first: what argp refuses would end the test. */
	assert_int_equal(parse_in_child(argv, argc), 0);
	assert_int_equal(options_parse(options, argc, argv), 0);
	assert_silent(*state);
}

#define REFUSED(name, part, ...)                                                                   \
	static void name(void **state)                                                             \
	{                                                                                          \
		refuse(state, part, ##__VA_ARGS__, NULL);                                          \
	}

REFUSED(nothing_to_trace_is_refused, "nothing to trace")
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
REFUSED(wait_step_refuses_to_wait_for_nothing, "--wait-step", "-p", "1", "--wait-step")
REFUSED(a_flag_refuses_a_command, "start the engine first", "--flag", "f", "--", "sleep")
REFUSED(a_flag_refuses_a_number_of_steps, "--max-steps", "-p1", "--flag", "f", "-n", "5")
REFUSED(a_flag_refuses_record, "--record", "-p1", "--flag", "f", "--record", "r")
REFUSED(a_flag_refuses_a_trace, "--trace none", "-p1", "--flag", "f", "--trace", "t")
REFUSED(max_steps_refuse_no_flag, "-n ends", "-p1", "--max-steps", "5")
REFUSED(a_bad_url_is_refused, "--otlp ftp://x: not http://", "-p1", "--otlp", "ftp://x")
REFUSED(a_password_in_a_url_is_refused, "no user or password", "-p1", "--otlp", "http://a:b@c")
REFUSED(no_dir_is_refused, "--dir", "-p1", "--dir", "")
REFUSED(validate_refuses_no_files, "validate", "validate")
REFUSED(a_word_without_dashes_is_refused_with_advice, "-- sleep", "sleep", "1")
REFUSED(a_word_before_the_dashes_is_refused, "tpyo", "tpyo", "--", "sleep")
REFUSED(a_bad_pid_is_refused, "--pid", "-p", "x")
REFUSED(a_bad_duration_is_refused, "--duration", "-p", "1", "-d", "0")
REFUSED(a_bad_interval_is_refused, "--interval", "-p", "1", "--interval", "0.5")
REFUSED(no_steps_are_refused, "--steps 0", "-p", "1", "-n", "0")
REFUSED(a_bad_detail_is_refused, "--detail x", "-p", "1", "--detail", "x")
REFUSED(a_bad_report_is_refused, "--report xml", "-p", "1", "--report", "xml")
REFUSED(a_bad_trace_format_is_refused, "--trace-format", "-p", "1", "--trace-format", "perfetto")
REFUSED(a_bad_gpu_mode_is_refused, "--gpu on", "-p", "1", "--gpu", "on")
REFUSED(a_timeout_refuses_another_gpu_mode, "--inject-timeout: goes with --gpu inject", "-p", "1",
	"--inject-timeout", "5")
REFUSED(no_timeout_is_refused, "--inject-timeout 0", "-p", "1", "--gpu=inject", "--inject-timeout",
	"0")
REFUSED(a_long_timeout_is_refused, "--inject-timeout 61", "-p", "1", "--gpu=inject",
	"--inject-timeout", "61")
REFUSED(a_dry_run_refuses_another_gpu_mode, "--dry-run: goes with --gpu inject", "-p", "1",
	"--dry-run")
REFUSED(a_dry_run_refuses_no_pid, "--dry-run: needs processes, -p PID", "--gpu=inject", "--dry-run")
REFUSED(a_dry_run_refuses_all, "--dry-run: needs processes, -p PID", "--gpu=inject", "--dry-run",
	"-a")
REFUSED(a_dry_run_refuses_a_command, "--dry-run: needs processes, -p PID", "--gpu=inject",
	"--dry-run", "--", "sleep")
REFUSED(a_dry_run_refuses_another_mode, "--dry-run: needs processes, -p PID", "--gpu=inject",
	"--dry-run", "-p", "1", "--list-steps")
REFUSED(a_bad_rank_is_refused, "--rank -1", "-p", "1", "--rank", "-1")
REFUSED(a_huge_rank_is_refused, "--rank 1000001", "-p", "1", "--rank", "1000001")
REFUSED(a_rank_refuses_another_trace_format, "--rank: goes with --trace-format kineto", "-p", "1",
	"--rank", "3")
REFUSED(strict_refuses_no_gpu_records, "--gpu off takes none", "-p", "1", "--gpu-strict", "--gpu",
	"off")
REFUSED(gpu_env_refuses_files, "x: what is that?", "gpu-env", "x")
REFUSED(doctor_refuses_what_is_no_pid, "x: not a list of process ids", "doctor", "x")
REFUSED(doctor_refuses_all_processes, "doctor: looks at processes", "doctor", "-a")
REFUSED(doctor_refuses_a_command, "doctor: looks at processes", "doctor", "--", "true")
REFUSED(doctor_refuses_a_capture, "doctor: looks at processes", "doctor", "--replay", "x")
REFUSED(a_bad_number_of_ring_records_is_refused, "--ring-records 1", "--ring-records", "1")
REFUSED(a_bad_step_is_refused, "--step", "-p", "1", "--step", "")
REFUSED(a_bad_step_arg_is_refused, "--step-arg", "-p", "1", "--step-arg", "tokens")
REFUSED(a_fifth_step_arg_is_refused, "at most 4", "-p", "1", "--step-arg", "a=arg0", "--step-arg",
	"b=arg1", "--step-arg", "c=arg2", "--step-arg", "d=arg3", "--step-arg", "e=arg4")

static void a_url_and_headers_are_a_collector(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

#ifdef FBT_WITHOUT_CURL
	skip();
#endif
	setenv("OTEL_EXPORTER_OTLP_HEADERS", "key=secret", 1);
	accept(state, &options, argv, "-p1", "--otlp", "http://box:4318", NULL);
	unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
	assert_string_equal(options.collector.url, "http://box:4318/v1/traces");
	assert_int_equal(options.collector.headers.count, 1);
	options_clear(&options);
	assert_null(options.collector.url);
}

static void an_unknown_option_ends_with_status_2(void **state)
{
	end(state, 2, "--frob", "--frob", NULL);
}

static void an_option_without_its_value_ends_with_status_2(void **state)
{
	end(state, 2, "requires an argument", "-p", NULL);
}

static void help_ends_with_status_0(void **state)
{
	end(state, 0, "--list-steps", "--help", NULL);
}

static void version_ends_with_status_0(void **state)
{
	end(state, 0, "ferrum-bpftrace " FBT_VERSION, "--version", NULL);
}

static void defaults_are_those_of_the_manual(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "-p", "12", NULL);
	assert_int_equal(options.mode, MODE_TRACE);
	assert_int_equal(options.detail, FBT_DETAIL_ESCALATED);
	assert_int_equal(options.report, REPORT_TEXT);
	assert_int_equal(options.interval_ns, 100000000);
	assert_int_equal(options.duration_ns, 0);
	assert_int_equal(options.steps, 0);
	assert_null(options.trace);
	assert_null(options.profile);
	assert_null(options.record);
	assert_null(options.command);
	assert_false(options.follow || options.uretprobe || options.bpf_stats);
	options_clear(&options);
}

static void pids_of_several_options_add_up(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "-p", "1,2", "--pid=3", NULL);
	assert_int_equal(options.pids.count, 3);
	assert_int_equal(options.pids.items[2], 3);
	options_clear(&options);
}

static void what_selects_and_limits_is_kept(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "-a", "-f", "-d", "1.5", "-n", "9", "--interval", "20",
	       "--ring-records", "4096", "--bpf-stats", NULL);
	assert_true(options.all);
	assert_true(options.follow);
	assert_true(options.bpf_stats);
	assert_int_equal(options.duration_ns, 1500000000);
	assert_int_equal(options.steps, 9);
	assert_int_equal(options.interval_ns, 20000000);
	assert_int_equal(options.ring_records, 4096);
	options_clear(&options);
}

static void gpu_options_are_kept(void **state)
{
	static const struct {
		const char *word;
		enum gpu_mode mode;
	} modes[] = {{"auto", GPU_AUTO}, {"off", GPU_OFF}, {"require", GPU_REQUIRE}};
	char *argv[ARGS_MAX + 1];
	struct options options;

	for (int i = 0; i < 3; i++) {
		accept(state, &options, argv, "-p1", "--gpu", modes[i].word, NULL);
		assert_int_equal(options.gpu.mode, modes[i].mode);
		options_clear(&options);
	}
	accept(state, &options, argv, "-p1", "--rank", "7", "--trace-format", "kineto",
	       "--gpu-strict", NULL);
	assert_true(options.gpu.rank_given);
	assert_int_equal(options.gpu.rank, 7);
	assert_true(options.judging.merge.strict);
	options_clear(&options);
	accept(state, &options, argv, "-p1", NULL);
	assert_int_equal(options.gpu.mode, GPU_AUTO);
	assert_false(options.gpu.rank_given);
	assert_false(options.judging.merge.strict);
	assert_true(options.judging.merge.timeout_ns > 0);
	options_clear(&options);
}

static void inject_options_are_kept(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "-p1", "--gpu=inject", NULL);
	assert_int_equal(options.mode, MODE_TRACE);
	assert_int_equal(options.gpu.mode, GPU_INJECT);
	assert_int_equal(options.gpu.inject_timeout_ns, 5000000000);
	assert_false(options.gpu.dry_run);
	options_clear(&options);
	accept(state, &options, argv, "-p1,2", "--gpu=inject", "--inject-timeout", "60",
	       "--dry-run", NULL);
	assert_int_equal(options.mode, MODE_DRY_RUN);
	assert_int_equal(options.gpu.inject_timeout_ns, 60000000000);
	options_clear(&options);
}

static void doctor_takes_processes_and_what_a_trace_of_them_takes(void **state)
{
	struct options options;
	char *argv[ARGS_MAX + 1];

	accept(state, &options, argv, "doctor", NULL);
	assert_int_equal(options.mode, MODE_DOCTOR);
	assert_int_equal(options.pids.count, 0);
	options_clear(&options);
	accept(state, &options, argv, "doctor", "5", "--step", "f", "6,7", "-p", "8", NULL);
	assert_int_equal(options.mode, MODE_DOCTOR);
	assert_int_equal(options.pids.count, 4);
	assert_int_equal(options.pids.items[3], 8);
	assert_int_equal(options.specs.count, 1);
	options_clear(&options);
	/* Behind "--" it is a program of that name. */
	accept(state, &options, argv, "--", "doctor", "5", NULL);
	assert_int_equal(options.mode, MODE_TRACE);
	assert_string_equal(options.command[0], "doctor");
	options_clear(&options);
}

static void gpu_env_is_a_mode_of_its_own(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "gpu-env", NULL);
	assert_int_equal(options.mode, MODE_GPU_ENV);
	options_clear(&options);
}

static void step_options_are_kept_in_their_order(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "-p1", "--step", "f", "--step", "g", "--step-arg", "n=arg1",
	       "--symbols", "s", "--wait-step", NULL);
	assert_int_equal(options.specs.count, 2);
	assert_int_equal(options.args.count, 1);
	assert_int_equal(options.symbol_files.count, 1);
	assert_string_equal(options.symbol_files.items[0], "s");
	assert_true(options.wait_step);
	options_clear(&options);
}

static void uretprobe_is_taken_with_a_warning(void **state)
{
	char *argv[] = {(char *)"ferrum-bpftrace", (char *)"-p1", (char *)"--uretprobe", NULL};
	struct options options;

	assert_int_equal(options_parse(&options, 3, argv), 0);
	assert_true(options.uretprobe);
	assert_one_line(*state, "--uretprobe: ");
	options_clear(&options);
}

static void output_options_are_kept(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "-p1", "--trace=t", "--trace-format=ferrum", "--profile=none",
	       "--record=r", "--report=json", "--detail=all", NULL);
	assert_string_equal(options.trace, "t");
	assert_string_equal(options.profile, "none");
	assert_string_equal(options.record, "r");
	assert_int_equal(options.report, REPORT_JSON);
	assert_int_equal(options.detail, FBT_DETAIL_ALL);
	options_clear(&options);
}

static void metadata_options_are_kept(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "-p1", "--profile-commit-sha=c", "--profile-env-hash=e",
	       "--profile-model=m", "--profile-concurrency=4", "--profile-runtime-flags-json={}",
	       NULL);
	assert_string_equal(options.metadata.commit_sha, "c");
	assert_string_equal(options.metadata.env_hash, "e");
	assert_string_equal(options.metadata.model, "m");
	assert_string_equal(options.metadata.concurrency, "4");
	assert_string_equal(options.metadata.runtime_flags, "{}");
	options_clear(&options);
}

static void environment_names_the_files_that_options_do_not(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	setenv("FERRUM_TRACE_OUT", "/t", 1);
	setenv("FERRUM_PROFILE_JSONL", "/p", 1);
	accept(state, &options, argv, "-p1", NULL);
	assert_string_equal(options.trace, "/t");
	assert_string_equal(options.profile, "/p");
	options_clear(&options);
}

static void options_go_before_the_environment(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	setenv("FERRUM_TRACE_OUT", "/t", 1);
	setenv("FERRUM_PROFILE_JSONL", "/p", 1);
	accept(state, &options, argv, "-p1", "--trace=none", "--profile=q", NULL);
	assert_string_equal(options.trace, "none");
	assert_string_equal(options.profile, "q");
	options_clear(&options);
}

static void blank_names_of_the_environment_are_none(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	setenv("FERRUM_TRACE_OUT", "", 1);
	setenv("FERRUM_PROFILE_JSONL", " \t\n", 1);
	accept(state, &options, argv, "-p1", NULL);
	assert_null(options.trace);
	assert_null(options.profile);
	options_clear(&options);
}

static void only_perf_of_the_environment_means_perf_uprobes(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	setenv("FBT_UPROBES", "multi", 1);
	accept(state, &options, argv, "-p1", NULL);
	assert_false(options.perf_uprobes);
	options_clear(&options);
	setenv("FBT_UPROBES", "perf", 1);
	accept(state, &options, argv, "-p1", NULL);
	assert_true(options.perf_uprobes);
	options_clear(&options);
}

static void a_flag_goes_with_limits_a_folder_and_a_profile(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "-p1", "--flag=f", "--dir=d", "--max-steps=7", "-d", "5",
	       "--trace=none", "--profile=p", "--escalate-now", NULL);
	assert_string_equal(options.windows.flag, "f");
	assert_string_equal(options.windows.dir, "d");
	assert_int_equal(options.windows.max_steps, 7);
	assert_string_equal(options.profile, "p");
	assert_true(options.escalate_now);
	options_clear(&options);
}

static void what_does_not_go_with_the_environments_flag_names_it(void **state)
{
	setenv("FERRUM_BPFTRACE_FLAG", "f", 1);
	refuse(state, "FERRUM_BPFTRACE_FLAG gives --flag", "-p1", "-n", "5", NULL);
}

static void the_environments_trace_does_not_go_with_a_flag(void **state)
{
	char *argv[] = {(char *)"ferrum-bpftrace", (char *)"-p1", (char *)"--flag=f", NULL};
	struct options options;

	setenv("FERRUM_TRACE_OUT", "/t", 1);
	assert_int_equal(options_parse(&options, 3, argv), 0);
	assert_null(options.trace);
	assert_one_line(*state, "FERRUM_TRACE_OUT: has no effect");
	options_clear(&options);
}

static void options_behind_the_dashes_are_the_commands(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "-f", "--", "server", "-p", "80", "--help", NULL);
	assert_true(options.follow);
	assert_int_equal(options.pids.count, 0);
	assert_string_equal(options.command[0], "server");
	assert_string_equal(options.command[3], "--help");
	assert_null(options.command[4]);
	options_clear(&options);
}

static void dashes_of_the_command_stay_its_own(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "--", "server", "--", "x", NULL);
	assert_string_equal(options.command[0], "server");
	assert_string_equal(options.command[1], "--");
	assert_string_equal(options.command[2], "x");
	options_clear(&options);
}

static void a_command_may_be_called_validate(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "--", "validate", "x", NULL);
	assert_int_equal(options.mode, MODE_TRACE);
	assert_string_equal(options.command[0], "validate");
	options_clear(&options);
}

static void validate_takes_files_and_required_events(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "validate", "--require-events", "a,b", "x", "y", NULL);
	assert_int_equal(options.mode, MODE_VALIDATE);
	assert_string_equal(options.require_events, "a,b");
	assert_int_equal(options.file_count, 2);
	assert_string_equal(options.files[0], "x");
	assert_string_equal(options.files[1], "y");
	options_clear(&options);
}

static void validate_takes_options_behind_the_files(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "validate", "x", "--require-events", "a", "y", NULL);
	assert_string_equal(options.require_events, "a");
	assert_int_equal(options.file_count, 2);
	assert_string_equal(options.files[1], "y");
	options_clear(&options);
}

static void validate_takes_files_behind_dashes(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "validate", "--", "-x", NULL);
	assert_int_equal(options.mode, MODE_VALIDATE);
	assert_null(options.command);
	assert_int_equal(options.file_count, 1);
	assert_string_equal(options.files[0], "-x");
	options_clear(&options);
}

static void replay_is_a_mode_of_its_own(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "--replay", "f", NULL);
	assert_int_equal(options.mode, MODE_REPLAY);
	assert_string_equal(options.replay, "f");
	options_clear(&options);
}

static void list_steps_takes_one_pid(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "--list-steps", "-p", "5", NULL);
	assert_int_equal(options.mode, MODE_LIST_STEPS);
	options_clear(&options);
}

static void quiet_and_verbose_count(void **state)
{
	char *argv[ARGS_MAX + 1];
	struct options options;

	accept(state, &options, argv, "-p1", "-q", NULL);
	assert_int_equal(log_level(), LOG_WARN);
	options_clear(&options);
	log_set_level(LOG_INFO);
	accept(state, &options, argv, "-p1", "-qqq", NULL);
	assert_int_equal(log_level(), LOG_ERR);
	options_clear(&options);
	accept(state, &options, argv, "-p1", "-v", NULL);
	assert_int_equal(log_level(), LOG_DEBUG);
	options_clear(&options);
	log_set_level(LOG_INFO);
	accept(state, &options, argv, "-p1", "-vvv", NULL);
	assert_int_equal(log_level(), LOG_LIBBPF);
	options_clear(&options);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, stderr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_to_trace_is_refused),
		TEST(pid_and_all_exclude_each_other),
		TEST(pid_and_command_exclude_each_other),
		TEST(all_and_command_exclude_each_other),
		TEST(kineto_refuses_a_name_that_torch_does_not_open),
		TEST(replay_refuses_a_pid),
		TEST(replay_refuses_all),
		TEST(replay_refuses_a_command),
		TEST(replay_refuses_record),
		TEST(replay_refuses_a_flag),
		TEST(a_flag_refuses_a_command),
		TEST(a_flag_refuses_a_number_of_steps),
		TEST(a_flag_refuses_record),
		TEST(a_flag_refuses_a_trace),
		TEST(max_steps_refuse_no_flag),
		TEST(a_bad_url_is_refused),
		TEST(a_password_in_a_url_is_refused),
		TEST(a_url_and_headers_are_a_collector),
		TEST(no_dir_is_refused),
		TEST(list_steps_refuses_no_pid),
		TEST(list_steps_refuses_two_pids),
		TEST(list_steps_refuses_all),
		TEST(list_steps_refuses_all_beside_a_pid),
		TEST(list_steps_refuses_a_command),
		TEST(list_steps_refuses_replay),
		TEST(wait_step_refuses_to_wait_for_nothing),
		TEST(validate_refuses_no_files),
		TEST(a_word_without_dashes_is_refused_with_advice),
		TEST(a_word_before_the_dashes_is_refused),
		TEST(a_bad_pid_is_refused),
		TEST(a_bad_duration_is_refused),
		TEST(a_bad_interval_is_refused),
		TEST(no_steps_are_refused),
		TEST(a_bad_detail_is_refused),
		TEST(a_bad_report_is_refused),
		TEST(a_bad_trace_format_is_refused),
		TEST(a_bad_gpu_mode_is_refused),
		TEST(a_timeout_refuses_another_gpu_mode),
		TEST(no_timeout_is_refused),
		TEST(a_long_timeout_is_refused),
		TEST(a_dry_run_refuses_another_gpu_mode),
		TEST(a_dry_run_refuses_no_pid),
		TEST(a_dry_run_refuses_all),
		TEST(a_dry_run_refuses_a_command),
		TEST(a_dry_run_refuses_another_mode),
		TEST(inject_options_are_kept),
		TEST(a_bad_rank_is_refused),
		TEST(a_huge_rank_is_refused),
		TEST(a_rank_refuses_another_trace_format),
		TEST(strict_refuses_no_gpu_records),
		TEST(gpu_env_refuses_files),
		TEST(doctor_refuses_what_is_no_pid),
		TEST(doctor_refuses_all_processes),
		TEST(doctor_refuses_a_command),
		TEST(doctor_refuses_a_capture),
		TEST(a_bad_number_of_ring_records_is_refused),
		TEST(a_bad_step_is_refused),
		TEST(a_bad_step_arg_is_refused),
		TEST(a_fifth_step_arg_is_refused),
		TEST(an_unknown_option_ends_with_status_2),
		TEST(an_option_without_its_value_ends_with_status_2),
		TEST(help_ends_with_status_0),
		TEST(version_ends_with_status_0),
		TEST(defaults_are_those_of_the_manual),
		TEST(pids_of_several_options_add_up),
		TEST(what_selects_and_limits_is_kept),
		TEST(gpu_options_are_kept),
		TEST(gpu_env_is_a_mode_of_its_own),
		TEST(doctor_takes_processes_and_what_a_trace_of_them_takes),
		TEST(step_options_are_kept_in_their_order),
		TEST(uretprobe_is_taken_with_a_warning),
		TEST(output_options_are_kept),
		TEST(metadata_options_are_kept),
		TEST(environment_names_the_files_that_options_do_not),
		TEST(options_go_before_the_environment),
		TEST(blank_names_of_the_environment_are_none),
		TEST(only_perf_of_the_environment_means_perf_uprobes),
		TEST(a_flag_goes_with_limits_a_folder_and_a_profile),
		TEST(what_does_not_go_with_the_environments_flag_names_it),
		TEST(the_environments_trace_does_not_go_with_a_flag),
		TEST(options_behind_the_dashes_are_the_commands),
		TEST(dashes_of_the_command_stay_its_own),
		TEST(a_command_may_be_called_validate),
		TEST(validate_takes_files_and_required_events),
		TEST(validate_takes_options_behind_the_files),
		TEST(validate_takes_files_behind_dashes),
		TEST(replay_is_a_mode_of_its_own),
		TEST(list_steps_takes_one_pid),
		TEST(quiet_and_verbose_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
