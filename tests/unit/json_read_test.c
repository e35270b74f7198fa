/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "json_read.h"

static void expect_refused(const char *text, const char *reason)
{
	struct json_object *value = NULL;
	char error[128] = "";

	assert_int_equal(json_read(text, strlen(text), &value, error, sizeof(error)), -EBADMSG);
	assert_null(value);
	if (!strstr(error, reason))
		fail_msg("%s: %s", text, error);
}

/* What is read and written again. */
static void expect_rewritten(const char *text, const char *expected)
{
	struct json_object *value = NULL;
	struct json json = {.out = NULL};
	char error[128] = "";
	char *again;
	size_t size;

	if (json_read(text, strlen(text), &value, error, sizeof(error)))
		fail_msg("%s: %s", text, error);
	json.out = open_memstream(&again, &size);
	json_write_value(&json, NULL, value);
	fclose(json.out);
	assert_string_equal(again, expected);
	free(again);
	json_object_put(value);
}

static void json_read_refuses_what_only_json_c_takes_for_a_number(void **state)
{
	static const char *const texts[] = {"-01", "00",  "1.",	  "-.5", "1.e5", "[1.]",
					    "+1",  "[-]", "1e+]", "01",	 ".5"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		expect_refused(texts[i], "");
	expect_refused("[-01]", "invalid number at column 4");
	expect_refused("1.", "EOF while parsing a value");
}

static void json_read_refuses_numbers_that_are_none(void **state)
{
	expect_refused("NaN", "expected value at column 1");
	expect_refused("[Infinity]", "expected value at column 2");
	expect_refused("-Infinity", "invalid number at column 2");
	expect_refused("nan", "");
}

static void json_read_refuses_a_number_out_of_range(void **state)
{
	expect_refused("{\"a\":[1e999]}", "number out of range");
}

static void json_read_refuses_control_characters_in_strings(void **state)
{
	expect_refused("\"a\nb\"", "control character");
	expect_refused("\"\x01\"", "control character");
}

static void json_read_refuses_lone_surrogates(void **state)
{
	expect_refused("\"\\ud800\"", "lone leading surrogate");
	expect_refused("\"\\udc00\"", "lone leading surrogate");
	expect_refused("\"\\ud800x\"", "lone leading surrogate");
	expect_refused("\"\\ud800\\n\"", "lone leading surrogate");
	expect_refused("\"\\ud800\\ud800\"", "lone leading surrogate");
	expect_refused("\"\\ud800\\u0041\"", "lone leading surrogate");
}

static void json_read_refuses_what_is_not_utf8(void **state)
{
	expect_refused("\"\xff\"", "invalid UTF-8");
	expect_refused("\"\xed\xa0\x80\"", "invalid UTF-8");
	expect_refused("\"\xc0\x80\"", "invalid UTF-8");
	expect_refused("\"\xe2\x82\"", "invalid UTF-8");
	expect_refused("\xef\xbb\xbf{}", "expected value");
}

static void json_read_refuses_a_nul_anywhere(void **state)
{
	struct json_object *value = NULL;
	char error[128];

	assert_int_equal(json_read("1\0", 2, &value, error, sizeof(error)), -EBADMSG);
	assert_int_equal(json_read("\"\0\"", 3, &value, error, sizeof(error)), -EBADMSG);
	assert_int_equal(json_read("", 0, &value, error, sizeof(error)), -EBADMSG);
	expect_refused("{\"event\\u0000x\":1}", "key with a NUL");
}

static void json_read_refuses_broken_grammar(void **state)
{
	static const char *const texts[] = {
		"{} x", "[1,]",	   "{\"a\":1,}", "[1 2]", "{a:1}", "'a'",     "/**/1", "True",
		"\"a",	"\"\\x\"", "[1",	 "tru",	  "\v1",   "{\"a\"}", "]",     "\"\\u12\"",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		expect_refused(texts[i], "");
}

static void json_read_goes_as_deep_as_serde_json(void **state)
{
	char text[2 * JSON_READ_DEPTH + 1];
	const size_t most = JSON_READ_DEPTH - 1;

	memset(text, '[', JSON_READ_DEPTH);
	memset(text + JSON_READ_DEPTH, ']', JSON_READ_DEPTH);
	text[2 * JSON_READ_DEPTH] = '\0';
	expect_refused(text, "recursion limit exceeded");
	memset(text, '[', most);
	memset(text + most, ']', most);
	text[2 * most] = '\0';
	expect_rewritten(text, text);
}

static void json_read_takes_every_kind_of_value(void **state)
{
	expect_rewritten(" { \"b\" : [ null , true , false ] , \"a\" : { } } ",
			 "{\"b\":[null,true,false],\"a\":{}}");
	expect_rewritten("\"\\ud83d\\ude00\\/\\u0041\\u0000\\u001f\"", "\"😀/A\\u0000\\u001f\"");
	expect_rewritten("[0,-1,18446744073709551615]", "[0,-1,18446744073709551615]");
	expect_rewritten("null", "null");
}

static void json_write_value_writes_doubles_as_serde_json_does(void **state)
{
	expect_rewritten("[1.50,1E3,0.00001,1e16]", "[1.5,1000.0,0.00001,1e16]");
}

/* As serde_json does: the nearest integer would be a number that nobody wrote. */
static void json_read_makes_floats_of_integers_beyond_64_bits_and_of_minus_zero(void **state)
{
	expect_rewritten("-0", "-0.0");
	expect_rewritten("[-0,0,-0.0,-0e1]", "[-0.0,0,-0.0,-0.0]");
	expect_rewritten("18446744073709551616", "1.8446744073709552e19");
	expect_rewritten("[-9223372036854775808,-9223372036854775809]",
			 "[-9223372036854775808,-9.223372036854776e18]");
	expect_rewritten("{\"-0\":[\"-0 \\\" -0\",-0],\"a\":123456789012345678901234567890}",
			 "{\"-0\":[\"-0 \\\" -0\",-0.0],\"a\":1.2345678901234568e29}");
	expect_refused("[-0,1-]", "invalid number");
	expect_refused("[-0 -0]", "separator");
}

static void json_write_value_keeps_the_last_of_equal_keys(void **state)
{
	expect_rewritten("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			json_read_makes_floats_of_integers_beyond_64_bits_and_of_minus_zero),
		cmocka_unit_test(json_read_refuses_what_only_json_c_takes_for_a_number),
		cmocka_unit_test(json_read_refuses_numbers_that_are_none),
		cmocka_unit_test(json_read_refuses_a_number_out_of_range),
		cmocka_unit_test(json_read_refuses_control_characters_in_strings),
		cmocka_unit_test(json_read_refuses_lone_surrogates),
		cmocka_unit_test(json_read_refuses_what_is_not_utf8),
		cmocka_unit_test(json_read_refuses_a_nul_anywhere),
		cmocka_unit_test(json_read_refuses_broken_grammar),
		cmocka_unit_test(json_read_goes_as_deep_as_serde_json),
		cmocka_unit_test(json_read_takes_every_kind_of_value),
		cmocka_unit_test(json_write_value_writes_doubles_as_serde_json_does),
		cmocka_unit_test(json_write_value_keeps_the_last_of_equal_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
