/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <argp.h>
#include <errno.h>

#include "disk_room.h"
#include "log.h"
#include "option_table.h"
#include "option_windows.h"
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

static struct option_windows complete(bool traces)
{
	struct option_windows windows = {0};

	option_complete_windows(&windows, traces);
	return windows;
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

static void options_are_kept(void **state)
{
	struct option_windows windows = {0};

	assert_int_equal(option_parse_windows(&windows, KEY_FLAG, "f"), 0);
	assert_int_equal(option_parse_windows(&windows, KEY_DIR, "d"), 0);
	assert_int_equal(option_parse_windows(&windows, KEY_MAX_STEPS, "5"), 0);
	assert_int_equal(option_parse_windows(&windows, KEY_STEP, "x"), ARGP_ERR_UNKNOWN);
	option_complete_windows(&windows, true);
	assert_string_equal(windows.flag, "f");
	assert_string_equal(windows.dir, "d");
	assert_int_equal(windows.max_steps, 5);
	assert_true(windows.max_steps_given);
	assert_false(windows.flag_by_environment);
	assert_silent(*state);
}

static void room_is_kept_unless_told_otherwise(void **state)
{
	struct option_windows windows = complete(true);

	assert_true(windows.keep_free == DISK_ROOM_DEFAULT);
	assert_int_equal(option_parse_windows(&windows, KEY_KEEP_FREE, "0"), 0);
	option_complete_windows(&windows, true);
	assert_int_equal(windows.keep_free, 0);
	assert_int_equal(option_parse_windows(&windows, KEY_KEEP_FREE, "2G"), 0);
	option_complete_windows(&windows, true);
	assert_true(windows.keep_free == 2ull << 30);
	assert_silent(*state);
}

static void no_folder_is_refused(void **state)
{
	struct option_windows windows = {0};

	assert_int_equal(option_parse_windows(&windows, KEY_DIR, ""), EINVAL);
	assert_one_line(*state, "--dir : not the name of a folder");
}

static void steps_that_are_no_number_are_refused(void **state)
{
	struct option_windows windows = {0};

	assert_int_equal(option_parse_windows(&windows, KEY_MAX_STEPS, "-1"), EINVAL);
	assert_one_line(*state, "--max-steps -1");
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
	assert_false(windows.max_steps_given);
	assert_silent(*state);
}

static void options_go_before_the_environment(void **state)
{
	struct option_windows windows = {
		.flag = "f", .dir = "d", .max_steps = 0, .max_steps_given = true};

	setenv("FERRUM_BPFTRACE_FLAG", "/f", 1);
	setenv("FERRUM_BPFTRACE_DIR", "/d", 1);
	setenv("FERRUM_BPFTRACE_MAX_STEPS", "12", 1);
	option_complete_windows(&windows, true);
	assert_string_equal(windows.flag, "f");
	assert_string_equal(windows.dir, "d");
	assert_int_equal(windows.max_steps, 0);
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

/* The seed: what int() does not take, and what is not above 0, is its default. */
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
	assert_one_line(*state, "FERRUM_BPFTRACE_SYNC_CUDA: has no effect");
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, stderr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_anything_there_is_one_window_here),
		TEST(options_are_kept),
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
