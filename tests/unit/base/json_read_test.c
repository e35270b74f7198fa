/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/json_read.h"

static void expect_refused(const char *text, const char *reason)
{
	struct json_object *value = NULL;
	char error[128] = "";

	assert_int_equal(json_read(text, strlen(text), &value, error, sizeof(error)), -EBADMSG);
	assert_null(value);
	if (!strstr(error, reason))
		fail_msg("%s: %s", text, error);
}

/* Reads text and writes it again. */
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
}

static void json_read_keeps_a_nul_in_a_key(void **state)
{
	static const char text[] =
		"{\"event\\u0000x\":1,\"event\":2,\"\\u0000\\u0000\":{\"\\u0000\":\"\\u0000\"}}";
	struct json_reader reader = {.at = text, .end = text + strlen(text), .unique_keys = true};
	struct json_object *value = NULL;
	char error[128] = "";

	expect_rewritten(text, text);
	assert_int_equal(json_reader__whole(&reader, &value, error, sizeof(error)), -EBADMSG);
	assert_non_null(strstr(error, "key with a NUL"));
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

/* As in serde_json: the nearest integer would be a number that is not in the text. */
static void json_read_makes_floats_of_integers_beyond_64_bits_and_of_minus_zero(void **state)
{
	expect_rewritten("-0", "-0.0");
	expect_rewritten("[-0,0,-0.0,-0e1]", "[-0.0,0,-0.0,-0.0]");
	expect_rewritten("18446744073709551616", "1.8446744073709552e19");
	expect_rewritten("[-9223372036854775808,-9223372036854775809]",
			 "[-9223372036854775808,-9.223372036854776e18]");
	expect_rewritten("{\"-0\":[\"-0 \\\" -0\",-0],\"a\":123456789012345678901234567890}",
			 "{\"-0\":[\"-0 \\\" -0\",-0.0],\"a\":1.2345678901234568e29}");
	expect_refused("[-0,1-]", "expected `,`");
	expect_refused("[-0 -0]", "expected `,`");
}

static void json_write_value_keeps_the_last_of_equal_keys(void **state)
{
	expect_rewritten("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}");
}

static int read_unique(const char *text, char *error, size_t size)
{
	struct json_reader reader = {.at = text, .end = text + strlen(text), .unique_keys = true};
	struct json_object *value;
	int err = json_reader__whole(&reader, &value, error, size);

	json_object_put(value);
	return err;
}

static void expect_none(const char *text)
{
	char error[128];

	assert_int_equal(read_unique(text, error, sizeof(error)), 0);
}

static void expect_twice(const char *text, const char *key)
{
	char error[128], wanted[128];

	assert_int_equal(read_unique(text, error, sizeof(error)), -EBADMSG);
	snprintf(wanted, sizeof(wanted), "duplicate field `%s` at", key);
	if (strncmp(error, wanted, strlen(wanted)) != 0)
		fail_msg("%s: %s", text, error);
}

static void json_keys_finds_a_key_given_twice(void **state)
{
	expect_twice("{\"a\":1,\"a\":2}", "a");
	expect_twice("{\"a\":1,\"b\":{},\"c\":[],\"a\":1}", "a");
	expect_twice("{\"\":1,\"\":2}", "");
	expect_twice(" { \"a\" : 1 , \"a\"\n:\t2 } ", "a");
}

static void json_keys_finds_it_at_any_depth(void **state)
{
	expect_twice("[[{\"x\":{\"a\":1,\"a\":2}}]]", "a");
	expect_twice("{\"x\":[{\"a\":1},{\"b\":1,\"b\":2}]}", "b");
	expect_twice("{\"a\":{\"b\":1},\"a\":2}", "a");
	expect_twice("{\"b\":{\"a\":1},\"c\":{\"a\":1},\"b\":2}", "b");
}

static void json_keys_compares_what_escapes_stand_for(void **state)
{
	expect_twice("{\"a\":1,\"\\u0061\":2}", "a");
	expect_twice("{\"\\u00e9\":1,\"\u00e9\":2}", "\u00e9");
	expect_twice("{\"\\u20AC\":1,\"\u20ac\":2}", "\u20ac");
	expect_twice("{\"\\ud83d\\ude00\":1,\"\U0001f600\":2}", "\U0001f600");
	expect_twice("{\"/\":1,\"\\/\":2}", "/");
	expect_twice("{\"\\\\\":1,\"\\u005c\":2}", "\\");
	expect_twice("{\"\\\"\":1,\"\\u0022\":2}", "\"");
	expect_twice("{\"\\b\\f\\n\\r\\t\":1,\"\\u0008\\u000c\\u000A\\u000D\\u0009\":2}",
		     "\b\f\n\r\t");
}

static void json_keys_takes_different_keys(void **state)
{
	expect_none("{\"a\":1,\"A\":2,\"a \":3,\"aa\":4,\"\":5}");
	expect_none("{\"\\u00e9\":1,\"e\\u0301\":2}");
	expect_none("{}");
	expect_none("[{},[],{}]");
}

static void json_keys_takes_equal_keys_of_different_objects(void **state)
{
	expect_none("[{\"a\":1},{\"a\":2}]");
	expect_none("{\"a\":{\"a\":{\"a\":1}}}");
	expect_none("{\"x\":{\"a\":1},\"y\":{\"a\":1},\"a\":1}");
}

static void json_keys_takes_values_for_none(void **state)
{
	expect_none("[\"a\",\"a\"]");
	expect_none("{\"a\":\"b\",\"b\":\"a\",\"c\":\"{\\\"a\\\":1,\\\"a\\\":2}\"}");
	expect_none("\"a\"");
	expect_none("1");
	expect_none("{\"a\":\"\\u0000\"}");
	expect_none("{\"a\":\"x:\",\"b\":\":\\\\\"}");
}

static void json_keys_goes_as_deep_as_a_text_may(void **state)
{
	char text[16 * JSON_READ_DEPTH] = "";
	const int most = JSON_READ_DEPTH - 1;

	for (int i = 0; i < most; i++)
		strcat(text, "{\"a\":");
	strcat(text, "1,\"a\":2");
	for (int i = 0; i < most; i++)
		strcat(text, "}");
	expect_twice(text, "a");
}

/* Comparing each key with each other would take seconds. */
static void json_keys_takes_many_keys(void **state)
{
	const int count = 200000;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (int i = 0; i < count; i++)
		fprintf(out, "%c\"key%d\":1", i ? ',' : '{', (i * 7919) % count);
	fputs(",\"key77\":1}", out);
	fclose(out);
	expect_twice(text, "key77");
	free(text);
}

/*
 * A stream that is read in pieces gives the same as memory, even if a piece ends within a
 * character.
 */
static void json_read_reads_a_stream(void **state)
{
	static const char text[] = " {\"a\u00e9\" : [1.5, \"\\ud83d\\ude00\", true]} ";
	struct json_reader reader = {.in = fmemopen((void *)text, strlen(text), "r")};
	struct json_object *value, *member;
	char error[128];

	setvbuf(reader.in, NULL, _IONBF, 0);
	assert_int_equal(json_reader__whole(&reader, &value, error, sizeof(error)), 0);
	assert_true(json_object_object_get_ex(value, "a\u00e9", &member));
	assert_int_equal(json_object_array_length(member), 3);
	json_object_put(value);
	fclose(reader.in);
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
		cmocka_unit_test(json_read_keeps_a_nul_in_a_key),
		cmocka_unit_test(json_read_refuses_broken_grammar),
		cmocka_unit_test(json_read_goes_as_deep_as_serde_json),
		cmocka_unit_test(json_read_takes_every_kind_of_value),
		cmocka_unit_test(json_write_value_writes_doubles_as_serde_json_does),
		cmocka_unit_test(json_write_value_keeps_the_last_of_equal_keys),
		cmocka_unit_test(json_keys_finds_a_key_given_twice),
		cmocka_unit_test(json_keys_finds_it_at_any_depth),
		cmocka_unit_test(json_keys_compares_what_escapes_stand_for),
		cmocka_unit_test(json_keys_takes_different_keys),
		cmocka_unit_test(json_keys_takes_equal_keys_of_different_objects),
		cmocka_unit_test(json_keys_takes_values_for_none),
		cmocka_unit_test(json_keys_goes_as_deep_as_a_text_may),
		cmocka_unit_test(json_keys_takes_many_keys),
		cmocka_unit_test(json_read_reads_a_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
