/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "option_value.h"
#include "stderr_fixture.h"

static void number_refuses_all_but_decimal_digits(void **state)
{
	static const char *const texts[] = {"",	   " ",	  "-1", "+1", " 1",  "\t-1", "1 ",
					    "1.0", "0x1", "a",	"1a", "1e3", "--"};
	uint64_t value;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (option_parse_number(texts[i], UINT64_MAX, &value) != -EINVAL)
			fail_msg("\"%s\" was taken for a number", texts[i]);
	}
	assert_silent(*state);
}

static void number_refuses_what_is_above_the_limit(void **state)
{
	uint64_t value;

	assert_int_equal(option_parse_number("11", 10, &value), -EINVAL);
	assert_int_equal(option_parse_number("18446744073709551616", UINT64_MAX, &value), -EINVAL);
}

static void number_goes_from_zero_to_the_limit(void **state)
{
	uint64_t value;

	assert_int_equal(option_parse_number("0", 10, &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(option_parse_number("10", 10, &value), 0);
	assert_int_equal(value, 10);
	assert_int_equal(option_parse_number("18446744073709551615", UINT64_MAX, &value), 0);
	assert_true(value == UINT64_MAX);
}

static void refuse_pids(struct stderr_fixture *fixture, const char *text)
{
	pid_vec pids = {0};

	assert_int_equal(option_parse_pids(&pids, text), EINVAL);
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

static void pids_are_appended_in_their_order(void **state)
{
	pid_vec pids = {0};

	assert_int_equal(option_parse_pids(&pids, "12,7"), 0);
	assert_int_equal(option_parse_pids(&pids, "2147483647"), 0);
	assert_int_equal(pids.count, 3);
	assert_int_equal(pids.items[0], 12);
	assert_int_equal(pids.items[1], 7);
	assert_int_equal(pids.items[2], INT32_MAX);
	vec_free(&pids);
}

static void refuse_duration(struct stderr_fixture *fixture, const char *text)
{
	uint64_t ns;

	assert_int_equal(option_parse_duration("--duration", text, 1e9, &ns), EINVAL);
	assert_one_line(fixture, "--duration");
}

static void duration_refuses_an_empty_text(void **state)
{
	refuse_duration(*state, "");
}

static void duration_refuses_a_unit(void **state)
{
	refuse_duration(*state, "5s");
}

static void duration_refuses_zero(void **state)
{
	refuse_duration(*state, "0");
}

static void duration_refuses_a_negative_time(void **state)
{
	refuse_duration(*state, "-1");
}

static void duration_refuses_what_is_not_a_number(void **state)
{
	refuse_duration(*state, "nan");
}

static void duration_refuses_infinity(void **state)
{
	refuse_duration(*state, "inf");
}

static void duration_refuses_less_than_a_millisecond(void **state)
{
	refuse_duration(*state, "0.0009");
}

static void duration_refuses_more_than_a_billion(void **state)
{
	refuse_duration(*state, "1000000001");
}

static void duration_takes_fractions_of_its_unit(void **state)
{
	uint64_t ns;

	assert_int_equal(option_parse_duration("--duration", "1.5", 1e9, &ns), 0);
	assert_int_equal(ns, 1500000000);
	assert_int_equal(option_parse_duration("--interval", "1", 1e6, &ns), 0);
	assert_int_equal(ns, 1000000);
	assert_silent(*state);
}

static void word_refuses_what_is_not_listed_and_names_what_is(void **state)
{
	static const char *const words[] = {"one", "two", NULL};
	int value;

	assert_int_equal(option_parse_word("--x", "on", words, "one or two", &value), EINVAL);
	assert_one_line(*state, "--x on: not one or two");
}

static void word_is_its_index(void **state)
{
	static const char *const words[] = {"one", "two", NULL};
	int value;

	assert_int_equal(option_parse_word("--x", "two", words, "one or two", &value), 0);
	assert_int_equal(value, 1);
}

static void ring_records_refuse_less_than_512(void **state)
{
	uint32_t value;

	assert_int_equal(option_parse_ring_records(&value, "511"), EINVAL);
	assert_one_line(*state, "--ring-records 511");
}

static void ring_records_refuse_more_than_4194304(void **state)
{
	uint32_t value;

	assert_int_equal(option_parse_ring_records(&value, "4194305"), EINVAL);
	assert_one_line(*state, "--ring-records 4194305");
}

static void ring_records_take_both_limits(void **state)
{
	uint32_t value;

	assert_int_equal(option_parse_ring_records(&value, "512"), 0);
	assert_int_equal(value, 512);
	assert_int_equal(option_parse_ring_records(&value, "4194304"), 0);
	assert_int_equal(value, 4194304);
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
		assert_int_equal(option_parse_bytes("--keep-free", good[i].text, &bytes), 0);
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
		assert_int_equal(option_parse_bytes("--keep-free", texts[i], &bytes), EINVAL);
	assert_non_null(strstr(stderr_text(fixture), "--keep-free 1.5G: not a number of bytes, or "
						     "one of K, M, G or T"));
}

static void a_bad_value_shows_no_control_characters(void **state)
{
	assert_int_equal(option_bad_value("--x", "a\n\033b", "that"), EINVAL);
	assert_one_line(*state, "--x a\\n\\x1bb: not that");
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
		TEST(pids_are_appended_in_their_order),
		TEST(duration_refuses_an_empty_text),
		TEST(duration_refuses_a_unit),
		TEST(duration_refuses_zero),
		TEST(duration_refuses_a_negative_time),
		TEST(duration_refuses_what_is_not_a_number),
		TEST(duration_refuses_infinity),
		TEST(duration_refuses_less_than_a_millisecond),
		TEST(duration_refuses_more_than_a_billion),
		TEST(duration_takes_fractions_of_its_unit),
		TEST(word_refuses_what_is_not_listed_and_names_what_is),
		TEST(word_is_its_index),
		TEST(ring_records_refuse_less_than_512),
		TEST(ring_records_refuse_more_than_4194304),
		TEST(ring_records_take_both_limits),
		TEST(bytes_take_a_unit_of_1024),
		TEST(bytes_refuse_all_else),
		TEST(a_bad_value_shows_no_control_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
