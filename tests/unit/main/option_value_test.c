/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "base/clock.h"
#include "option_value.h"
#include "stderr_fixture.h"

static void number_refuses_all_but_decimal_digits(void **state)
{
	static const char *const texts[] = {"",	   " ",	  "-1", "+1", " 1",  "\t-1", "1 ",
					    "1.0", "0x1", "a",	"1a", "1e3", "--"};
	uint64_t value;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (option_number(texts[i], UINT64_MAX, &value) != -EINVAL)
			fail_msg("\"%s\" was taken for a number", texts[i]);
	}
	assert_silent(*state);
}

static void number_refuses_what_is_above_the_limit(void **state)
{
	uint64_t value;

	assert_int_equal(option_number("11", 10, &value), -EINVAL);
	assert_int_equal(option_number("18446744073709551616", UINT64_MAX, &value), -EINVAL);
}

static void number_goes_from_zero_to_the_limit(void **state)
{
	uint64_t value;

	assert_int_equal(option_number("0", 10, &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(option_number("10", 10, &value), 0);
	assert_int_equal(value, 10);
	assert_int_equal(option_number("18446744073709551615", UINT64_MAX, &value), 0);
	assert_true(value == UINT64_MAX);
}

static void refuse_pids(struct stderr_fixture *fixture, const char *text)
{
	pid_vec pids = {0};

	assert_int_equal(option_pids("pid", text, &pids), -EINVAL);
	assert_one_line(fixture, "--pid");
	vec_free(&pids);
}

static void pids_refuse_an_empty_text(void **state)
{
	refuse_pids(*state, "");
}

static void pids_refuse_a_comma_at_the_end(void **state)
{
	refuse_pids(*state, "1,");
}

static void pids_refuse_zero(void **state)
{
	refuse_pids(*state, "1,0");
}

static void pids_refuse_a_name(void **state)
{
	refuse_pids(*state, "llama-server");
}

static void pids_refuse_more_than_a_pid_holds(void **state)
{
	refuse_pids(*state, "2147483648");
}

static void pids_that_a_command_did_not_find_are_missed(void **state)
{
	pid_vec pids = {0};

	assert_int_equal(option_pids("pid", "-d", &pids), -EINVAL);
	assert_one_line(*state,
			"--pid: '-d' is not a process ID: did $(pgrep ...) find no process?");
}

static void pids_are_appended_in_their_order(void **state)
{
	pid_vec pids = {0};

	assert_int_equal(option_pids("pid", "12,7", &pids), 0);
	assert_int_equal(option_pids("pid", "2147483647", &pids), 0);
	assert_int_equal(pids.count, 3);
	assert_int_equal(pids.items[0], 12);
	assert_int_equal(pids.items[1], 7);
	assert_int_equal(pids.items[2], INT32_MAX);
	vec_free(&pids);
}

#define MS NS_PER_MS
#define S  NS_PER_S

static void refuse_time(struct stderr_fixture *fixture, const char *text)
{
	uint64_t ns;

	assert_int_equal(option_time("duration", text, S, MS, OPTION_TIME_MAX, &ns), -EINVAL);
	assert_one_line(fixture, "--duration: invalid value '");
}

#define REFUSED_TIME(name, text)                                                                   \
	static void name(void **state)                                                             \
	{                                                                                          \
		refuse_time(*state, text);                                                         \
	}

#define ZEROS "00000000000000000000000000000000000000000000000000"

REFUSED_TIME(time_refuses_an_empty_text, "")
REFUSED_TIME(time_refuses_another_unit, "5d")
REFUSED_TIME(time_refuses_a_unit_alone, "s")
REFUSED_TIME(time_refuses_two_units, "5ms3s")
REFUSED_TIME(time_refuses_a_space_before_the_unit, "5 s")
REFUSED_TIME(time_refuses_zero, "0")
REFUSED_TIME(time_refuses_zero_of_a_unit, "0h")
REFUSED_TIME(time_refuses_a_negative_time, "-1")
REFUSED_TIME(time_refuses_what_is_not_a_number, "nan")
REFUSED_TIME(time_refuses_infinity, "inf")
REFUSED_TIME(time_refuses_an_exponent, "1e3")
REFUSED_TIME(time_refuses_a_hexadecimal_number, "0x10")
REFUSED_TIME(time_refuses_a_sign, "+5")
REFUSED_TIME(time_refuses_a_space_before_the_number, " 5")
REFUSED_TIME(time_refuses_a_point_alone, ".s")
REFUSED_TIME(time_refuses_what_no_double_holds, "1" ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS)
REFUSED_TIME(time_refuses_less_than_a_millisecond, "0.0009")
REFUSED_TIME(time_refuses_less_than_a_millisecond_in_another_unit, "999us")
REFUSED_TIME(time_refuses_more_than_a_billion_seconds, "1000000001")

static void time_is_in_its_options_unit_or_in_its_own(void **state)
{
	static const struct {
		const char *text;
		uint64_t unit_ns, ns;
	} good[] = {
		{"1.5", S, 1500 * MS},	{"10", S, 10 * S},
		{"10s", S, 10 * S},	{"5m", S, 300 * S},
		{"2h", S, 7200 * S},	{"250ms", S, 250 * MS},
		{"1", MS, MS},		{"100", MS, 100 * MS},
		{"0.5s", MS, 500 * MS}, {"1500us", MS, 1500 * NS_PER_US},
		{"1m", MS, 60 * S},
	};
	uint64_t ns;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(option_time("duration", good[i].text, good[i].unit_ns, MS,
					     OPTION_TIME_MAX, &ns),
				 0);
		assert_true(ns == good[i].ns);
	}
	assert_silent(*state);
}

static void time_has_limits_of_its_option(void **state)
{
	uint64_t ns;

	assert_int_equal(option_time("inject-timeout", "1", S, S, 60 * S, &ns), 0);
	assert_int_equal(option_time("inject-timeout", "1m", S, S, 60 * S, &ns), 0);
	assert_int_equal(option_time("inject-timeout", "61", S, S, 60 * S, &ns), -EINVAL);
	assert_one_line(*state,
			"(expected seconds, or a time such as 500ms, 10s or 5m; from 1.00 s "
			"to 60.0 s)");
}

static void percent_takes_a_decimal_number_up_to_its_limit(void **state)
{
	double value;

	assert_int_equal(option_percent("x", "0", 100, &value), 0);
	assert_true(value == 0);
	assert_int_equal(option_percent("x", "99.5", 100, &value), 0);
	assert_true(value == 99.5);
	assert_silent(*state);
	assert_int_equal(option_percent("x", "100.5", 100, &value), -EINVAL);
	assert_one_line(*state, "--x: invalid value '100.5' (expected a percentage from 0 to 100)");
}

static void percent_refuses_what_is_no_decimal_number(void **state)
{
	static const char *const texts[] = {"", "5%", "1e1", "0x5", " 5", "+5", "-5", "nan", "."};
	double value;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (option_percent("x", texts[i], 100, &value) != -EINVAL)
			fail_msg("\"%s\" was taken for a percentage", texts[i]);
	}
}

static const char *const words[] = {"one", "two", "three", NULL};

static void word_refuses_what_is_not_listed_and_names_what_is(void **state)
{
	uint32_t value;

	assert_int_equal(option_word("x", "on", words, &value), -EINVAL);
	assert_one_line(*state, "--x: invalid value 'on' (expected one, two or three)");
}

static void word_is_its_index(void **state)
{
	uint32_t value;

	assert_int_equal(option_word("x", "two", words, &value), 0);
	assert_int_equal(value, 1);
	assert_silent(*state);
}

static void bytes_take_a_unit_of_1024(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{"0", 0},
		{"1023", 1023},
		{"3k", 3ull << 10},
		{"500M", 500ull << 20},
		{"2G", 2ull << 30},
		{"1T", 1ull << 40},
		{"18446744073709551615", UINT64_MAX},
		{"16777215T", 16777215ull << 40},
	};
	uint64_t bytes;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(option_bytes("keep-free", good[i].text, &bytes), 0);
		assert_true(bytes == good[i].bytes);
	}
	assert_silent(*state);
}

static void bytes_refuse_all_else(void **state)
{
	static const char *const texts[] = {"",
					    "M",
					    "-1",
					    " 1",
					    "1.5G",
					    "1B",
					    "1KiB",
					    "1MM",
					    "1 M",
					    "5%",
					    "0x1",
					    "16777216T",
					    "18446744073709551616"};
	struct stderr_fixture *fixture = *state;
	uint64_t bytes;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(option_bytes("keep-free", texts[i], &bytes), -EINVAL);
	assert_non_null(strstr(
		stderr_text(fixture),
		"--keep-free: invalid value '1.5G' (expected bytes, or a size such as 500M or 2G"));
}

static void a_bad_value_shows_no_control_characters(void **state)
{
	assert_int_equal(option_refuse("x", "a\n\033b", "that"), -EINVAL);
	assert_one_line(*state, "--x: invalid value 'a\\n\\x1bb' (expected that)");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(number_refuses_all_but_decimal_digits),
		TEST(number_refuses_what_is_above_the_limit),
		TEST(number_goes_from_zero_to_the_limit),
		TEST(pids_refuse_an_empty_text),
		TEST(pids_refuse_a_comma_at_the_end),
		TEST(pids_refuse_zero),
		TEST(pids_refuse_a_name),
		TEST(pids_refuse_more_than_a_pid_holds),
		TEST(pids_that_a_command_did_not_find_are_missed),
		TEST(pids_are_appended_in_their_order),
		TEST(time_is_in_its_options_unit_or_in_its_own),
		TEST(time_has_limits_of_its_option),
		TEST(word_refuses_what_is_not_listed_and_names_what_is),
		TEST(word_is_its_index),
		TEST(bytes_take_a_unit_of_1024),
		TEST(bytes_refuse_all_else),
		TEST(a_bad_value_shows_no_control_characters),
		TEST(time_refuses_an_empty_text),
		TEST(time_refuses_another_unit),
		TEST(time_refuses_a_unit_alone),
		TEST(time_refuses_two_units),
		TEST(time_refuses_a_space_before_the_unit),
		TEST(time_refuses_zero),
		TEST(time_refuses_zero_of_a_unit),
		TEST(time_refuses_a_negative_time),
		TEST(time_refuses_what_is_not_a_number),
		TEST(time_refuses_infinity),
		TEST(time_refuses_an_exponent),
		TEST(time_refuses_a_hexadecimal_number),
		TEST(time_refuses_a_sign),
		TEST(time_refuses_a_space_before_the_number),
		TEST(time_refuses_a_point_alone),
		TEST(time_refuses_what_no_double_holds),
		TEST(percent_takes_a_decimal_number_up_to_its_limit),
		TEST(percent_refuses_what_is_no_decimal_number),
		TEST(time_refuses_less_than_a_millisecond),
		TEST(time_refuses_less_than_a_millisecond_in_another_unit),
		TEST(time_refuses_more_than_a_billion_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
