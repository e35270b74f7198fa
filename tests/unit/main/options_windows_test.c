/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "output/file.h"
#include "base/log.h"
#include "option_parse.h"
#include "stderr_fixture.h"

static int setup(void **state)
{
	unsetenv("FERRUM_BPFTRACE");
	unsetenv("FERRUM_BPFTRACE_FLAG");
	unsetenv("FERRUM_BPFTRACE_DIR");
	unsetenv("FERRUM_BPFTRACE_MAX_STEPS");
	unsetenv("FERRUM_BPFTRACE_DEBUG");
	unsetenv("FERRUM_BPFTRACE_WITH_STACK");
	unsetenv("FERRUM_BPFTRACE_RECORD_SHAPES");
	unsetenv("FERRUM_BPFTRACE_SYNC_CUDA");
	unsetenv("FERRUM_BPFTRACE_AUTO_CONVERT");
	log_set_level(LOG_INFO);
	return stderr_setup(state);
}

/*
 * Parses one option with a value, or none if option is NULL. validate is a command that traces
 * nothing.
 */
static struct option_windows parse(bool traces, const char *option, const char *value)
{
	char *argv[] = {(char *)"ferrum-bpftrace",
			(char *)(traces ? "-p1" : "validate"),
			(char *)"file",
			(char *)option,
			(char *)value,
			NULL};
	struct option_windows windows;
	struct options options;
	int argc = option ? 5 : 3;

	if (traces) {
		memmove(&argv[2], &argv[3], 3 * sizeof(*argv));
		argc--;
	}
	assert_int_equal(options_parse(&options, argc, argv), 0);
	windows = options.windows;
	options_clear(&options);
	return windows;
}

static struct option_windows complete(bool traces)
{
	return parse(traces, NULL, NULL);
}

static void refuse(struct stderr_fixture *fixture, const char *option, const char *value,
		   const char *line)
{
	char *argv[] = {(char *)"ferrum-bpftrace", (char *)"-p1", (char *)option, (char *)value,
			NULL};
	struct options options;

	assert_int_equal(options_parse(&options, 4, argv), -EINVAL);
	options_clear(&options);
	assert_one_line(fixture, line);
}

static void without_anything_there_is_one_window_here(void **state)
{
	struct option_windows windows = complete(true);

	assert_null(windows.flag);
	assert_string_equal(windows.dir, ".");
	assert_int_equal(windows.max_steps, 0);
	assert_false(windows.disabled);
	assert_silent(*state);
}

static void room_is_kept_unless_told_otherwise(void **state)
{
	assert_true(complete(true).keep_free == DISK_ROOM_DEFAULT);
	assert_int_equal(parse(true, "--keep-free", "0").keep_free, 0);
	assert_true(parse(true, "--keep-free", "2G").keep_free == 2ull << 30);
	assert_silent(*state);
}

static void no_folder_is_refused(void **state)
{
	refuse(*state, "--dir", "", "--dir: invalid value '' (expected the name of a directory)");
}

static void steps_that_are_no_number_are_refused(void **state)
{
	refuse(*state, "--max-steps", "-1", "--max-steps: invalid value '-1'");
}

static void the_environment_says_what_options_do_not(void **state)
{
	struct option_windows windows;

	setenv("FERRUM_BPFTRACE_FLAG", "/f", 1);
	setenv("FERRUM_BPFTRACE_DIR", "/d", 1);
	setenv("FERRUM_BPFTRACE_MAX_STEPS", " +12\n", 1);
	windows = complete(true);
	assert_string_equal(windows.flag, "/f");
	assert_true(windows.flag_by_environment);
	assert_string_equal(windows.dir, "/d");
	assert_int_equal(windows.max_steps, 12);
	assert_silent(*state);
}

static void options_go_before_the_environment(void **state)
{
	setenv("FERRUM_BPFTRACE_FLAG", "/f", 1);
	setenv("FERRUM_BPFTRACE_DIR", "/d", 1);
	setenv("FERRUM_BPFTRACE_MAX_STEPS", "12", 1);
	assert_string_equal(parse(true, "--flag", "f").flag, "f");
	assert_false(parse(true, "--flag", "f").flag_by_environment);
	assert_string_equal(parse(true, "--dir", "d").dir, "d");
	assert_int_equal(parse(true, "--max-steps", "0").max_steps, 0);
	assert_silent(*state);
}

static void blank_paths_are_none(void **state)
{
	setenv("FERRUM_BPFTRACE_FLAG", "", 1);
	setenv("FERRUM_BPFTRACE_DIR", " \t", 1);
	struct option_windows windows = complete(true);

	assert_null(windows.flag);
	assert_string_equal(windows.dir, ".");
}

/* As in ferrum: a value that Python's int() refuses, or that is not above 0, means the default. */
static void steps_that_are_no_number_are_no_limit(void **state)
{
	static const char *const values[] = {
		"", "x", "5x", "-3", "++5", "1.5", "99999999999999999999999999999999999999999"};

	setenv("FERRUM_BPFTRACE_FLAG", "/f", 1);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		setenv("FERRUM_BPFTRACE_MAX_STEPS", values[i], 1);
		assert_int_equal(complete(true).max_steps, 0);
	}
	assert_silent(*state);
}

static void a_limit_means_nothing_without_a_flag(void **state)
{
	setenv("FERRUM_BPFTRACE_MAX_STEPS", "12", 1);
	assert_int_equal(complete(true).max_steps, 0);
	assert_silent(*state);
}

static void only_tracing_takes_the_environments_flag(void **state)
{
	setenv("FERRUM_BPFTRACE_FLAG", "/f", 1);
	setenv("FERRUM_BPFTRACE_WITH_STACK", "1", 1);
	assert_null(complete(false).flag);
	assert_silent(*state);
}

static bool is_disabled_by(const char *value)
{
	setenv("FERRUM_BPFTRACE", value, 1);
	return complete(true).disabled;
}

static void a_switch_is_on_by_five_words(void **state)
{
	static const char *const on[] = {"1", "true", "yes", "y", "on", " TRUE\n", "On", "Y"};
	static const char *const off[] = {
		"0",  "false",	"no",
		"",   " ",	"2",
		"11", "enable", "onononononononononononononononononononon"};

	setenv("FERRUM_BPFTRACE_FLAG", "/f", 1);
	for (size_t i = 0; i < sizeof(on) / sizeof(on[0]); i++)
		assert_false(is_disabled_by(on[i]));
	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
		assert_true(is_disabled_by(off[i]));
}

static void without_a_flag_nothing_is_disabled(void **state)
{
	assert_false(is_disabled_by("0"));
}

static void debug_of_the_environment_is_verbose(void **state)
{
	setenv("FERRUM_BPFTRACE_DEBUG", "yes", 1);
	complete(true);
	assert_int_equal(log_level(), LOG_DEBUG);
}

static void quiet_goes_before_debug_of_the_environment(void **state)
{
	setenv("FERRUM_BPFTRACE_DEBUG", "1", 1);
	log_set_level(LOG_WARN);
	complete(true);
	assert_int_equal(log_level(), LOG_WARN);
}

static void switches_without_effect_are_warned_of_once(void **state)
{
	setenv("FERRUM_BPFTRACE_SYNC_CUDA", "1", 1);
	setenv("FERRUM_BPFTRACE_WITH_STACK", "0", 1);
	complete(true);
	assert_one_line(*state, "FERRUM_BPFTRACE_SYNC_CUDA: has no effect without --torch-trace");
}

static void each_switch_without_effect_has_its_warning(void **state)
{
	setenv("FERRUM_BPFTRACE_WITH_STACK", "1", 1);
	complete(true);
	assert_one_line(*state, "FERRUM_BPFTRACE_WITH_STACK: ");
	setenv("FERRUM_BPFTRACE_RECORD_SHAPES", "1", 1);
	setenv("FERRUM_BPFTRACE_AUTO_CONVERT", "1", 1);
	complete(true);
	assert_non_null(strstr(stderr_text(*state), "FERRUM_BPFTRACE_RECORD_SHAPES: "));
	assert_non_null(strstr(stderr_text(*state), "FERRUM_BPFTRACE_AUTO_CONVERT: "));
}

static int parse_torch(struct option_torch *torch, const char *second, const char *third)
{
	char *argv[] = {(char *)"ferrum-bpftrace",
			(char *)"-p1",
			(char *)"--torch-trace",
			(char *)second,
			(char *)third,
			NULL};
	struct options options;
	int err = options_parse(&options, third ? 5 : second ? 4 : 3, argv);

	*torch = options.torch;
	options_clear(&options);
	return err;
}

static void torchs_profiler_is_asked_for_with_a_flag_and_injection(void **state)
{
	struct option_torch torch;

	assert_int_equal(parse_torch(&torch, "--flag=/f", "--python=inject"), 0);
	assert_true(torch.is_on && torch.shapes && !torch.stack && !torch.sync);
	assert_silent(*state);
	assert_int_equal(parse_torch(&torch, NULL, NULL), -EINVAL);
	assert_int_equal(parse_torch(&torch, "--python=inject", NULL), -EINVAL);
	assert_int_equal(parse_torch(&torch, "--flag=/f", NULL), -EINVAL);
	assert_int_equal(parse_torch(&torch, "--flag=/f", "--python=require"), -EINVAL);
}

static void switches_choose_what_torchs_profiler_records(void **state)
{
	struct option_torch torch;

	setenv("FERRUM_BPFTRACE_WITH_STACK", "1", 1);
	setenv("FERRUM_BPFTRACE_RECORD_SHAPES", "0", 1);
	setenv("FERRUM_BPFTRACE_SYNC_CUDA", "yes", 1);
	assert_int_equal(parse_torch(&torch, "--flag=/f", "--python=inject"), 0);
	assert_true(!torch.shapes && torch.stack && torch.sync);
	assert_silent(*state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, stderr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_anything_there_is_one_window_here),
		TEST(room_is_kept_unless_told_otherwise),
		TEST(no_folder_is_refused),
		TEST(steps_that_are_no_number_are_refused),
		TEST(the_environment_says_what_options_do_not),
		TEST(options_go_before_the_environment),
		TEST(blank_paths_are_none),
		TEST(steps_that_are_no_number_are_no_limit),
		TEST(a_limit_means_nothing_without_a_flag),
		TEST(only_tracing_takes_the_environments_flag),
		TEST(a_switch_is_on_by_five_words),
		TEST(without_a_flag_nothing_is_disabled),
		TEST(debug_of_the_environment_is_verbose),
		TEST(quiet_goes_before_debug_of_the_environment),
		TEST(switches_without_effect_are_warned_of_once),
		TEST(each_switch_without_effect_has_its_warning),
		TEST(torchs_profiler_is_asked_for_with_a_flag_and_injection),
		TEST(switches_choose_what_torchs_profiler_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
