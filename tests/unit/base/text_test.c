/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/text.h"

static void utf8_is_measured_read_and_written(void **state)
{
	static const char *const characters[] = {"a", "\u00e9", "\u20ac", "\U0001f600",
						 "\U0010ffff"};
	static const uint32_t points[] = {'a', 0xe9, 0x20ac, 0x1f600, 0x10ffff};
	char bytes[4];

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		size_t length = strlen(characters[i]);

		assert_int_equal(utf8_length(characters[i], NULL), length);
		assert_int_equal(utf8_point(characters[i], length), points[i]);
		assert_int_equal(utf8_put(bytes, points[i]), length);
		assert_memory_equal(bytes, characters[i], length);
	}
}

static void malformed_utf8_is_told_with_what_one_replacement_stands_for(void **state)
{
	static const struct {
		const char *text;
		size_t bad;
	} cases[] = {
		{"\xff", 1},	     {"\x80", 1},	   {"\xc0\x80", 1},	   {"\xe2\x82", 2},
		{"\xed\xa0\x80", 1}, {"\xf0\x9f\x98x", 3}, {"\xf4\x90\x80\x80", 1}};
	size_t bad;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(utf8_length(cases[i].text, &bad), 0);
		assert_int_equal(bad, cases[i].bad);
	}
}

static void expect_trimmed(const char *text, const char *expected)
{
	size_t size = strlen(text);

	whitespace_trim(&text, &size);
	assert_int_equal(size, strlen(expected));
	assert_memory_equal(text, expected, size);
}

static void whitespace_only_takes_nothing_at_all(void **state)
{
	assert_true(whitespace_only("", 0));
}

static void whitespace_trim_keeps_what_only_looks_like_white_space(void **state)
{
	expect_trimmed("\u200b", "\u200b");
	expect_trimmed("\u180e", "\u180e");
	expect_trimmed("\ufeff", "\ufeff");
	expect_trimmed("\x1c", "\x1c");
	expect_trimmed("\xc2", "\xc2");
	expect_trimmed("\xe2\x80", "\xe2\x80");
}

static void whitespace_trim_does_not_cut_into_a_character(void **state)
{
	expect_trimmed("\u00e0", "\u00e0"); /* ends with the byte a0, as U+00A0 does */
	expect_trimmed("\u1000", "\u1000");
}

static void whitespace_trim_takes_ascii_from_both_ends(void **state)
{
	expect_trimmed(" \t\v\f\r\na b\n ", "a b");
}

static void whitespace_trim_takes_all_of_unicode(void **state)
{
	expect_trimmed(
		"\xc2\x85\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000x\u3000\u00a0", "x");
	assert_true(whitespace_only("\u2003\u3000 ", 7));
}

static void rust_number_takes_what_rust_takes(void **state)
{
	static const struct {
		const char *text;
		uint32_t value;
	} cases[] = {{"0", 0},
		     {"1", 1},
		     {"+32", 32},
		     {"+0", 0},
		     {"007", 7},
		     {"010", 10},
		     {"4294967295", UINT32_MAX},
		     {"+4294967295", UINT32_MAX}};
	uint32_t value;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		value = 99;
		assert_null(rust_parse_u32(cases[i].text, &value));
		assert_true(value == cases[i].value);
	}
}

static void rust_number_refuses_with_rusts_words(void **state)
{
	static const struct {
		const char *text;
		const char *error;
	} cases[] = {
		{"", "cannot parse integer from empty string"},
		{"+", "invalid digit found in string"},
		{"-", "invalid digit found in string"},
		{"-1", "invalid digit found in string"},
		{"-0", "invalid digit found in string"},
		{"++1", "invalid digit found in string"},
		{" 1", "invalid digit found in string"},
		{"1 ", "invalid digit found in string"},
		{"1.0", "invalid digit found in string"},
		{"0x10", "invalid digit found in string"},
		{"1_000", "invalid digit found in string"},
		{"4294967296", "number too large to fit in target type"},
		{"99999999999999999999999999999999", "number too large to fit in target type"},
	};
	uint32_t value = 99;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(rust_parse_u32(cases[i].text, &value), cases[i].error);
	assert_int_equal(value, 99);
}

static void a_quoted_text_is_one_word_of_a_shell(void **state)
{
	char quoted[32];

	(void)state;
	assert_int_equal(text_quote(quoted, sizeof(quoted), "a b"), 5);
	assert_string_equal(quoted, "'a b'");
	assert_int_equal(text_quote(quoted, sizeof(quoted), "<T<'a>>"), 12);
	assert_string_equal(quoted, "'<T<'\\''a>>'");
	assert_int_equal(text_quote(quoted, sizeof(quoted), ""), 2);
	assert_int_equal(text_quote(quoted, 4, "abcdef"), 8);
	assert_string_equal(quoted, "'ab");
}

static void a_list_has_its_whole_words_only(void **state)
{
	static const char *const words[] = {"cpu", "cpuset", "io"};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		assert_true(text_list_has("cpu,cpuset,io", ',', words[i]));
	assert_false(text_list_has("cpu,cpuset,io", ',', "set"));
	assert_false(text_list_has("cpuset,io", ',', "cpu"));
	assert_false(text_list_has("cpu,cpuset", ',', "cpus"));
	assert_false(text_list_has("cpu,cpuset", ' ', "cpu"));
	assert_false(text_list_has("", ',', "cpu"));
	assert_true(text_list_has(" read write ", ' ', "write"));
	assert_true(text_list_has("flags\t\t: fpu user_shstk vme", ' ', "user_shstk"));
	assert_false(
		text_list_has("flags\t\t: fpu user_shstk2 xuser_shstk shstk", ' ', "user_shstk"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_is_measured_read_and_written),
		cmocka_unit_test(malformed_utf8_is_told_with_what_one_replacement_stands_for),
		cmocka_unit_test(whitespace_only_takes_nothing_at_all),
		cmocka_unit_test(whitespace_trim_keeps_what_only_looks_like_white_space),
		cmocka_unit_test(whitespace_trim_does_not_cut_into_a_character),
		cmocka_unit_test(whitespace_trim_takes_ascii_from_both_ends),
		cmocka_unit_test(whitespace_trim_takes_all_of_unicode),
		cmocka_unit_test(rust_number_takes_what_rust_takes),
		cmocka_unit_test(rust_number_refuses_with_rusts_words),
		cmocka_unit_test(a_quoted_text_is_one_word_of_a_shell),
		cmocka_unit_test(a_list_has_its_whole_words_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
