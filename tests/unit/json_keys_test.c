/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "json_keys.h"
#include "json_read.h"

static void expect_sound(const char *text)
{
	struct json_object *value = NULL;
	char error[128] = "";

	if (json_read(text, strlen(text), &value, error, sizeof(error)))
		fail_msg("%s: %s", text, error);
	json_object_put(value);
}

static void expect_none(const char *text)
{
	char *key = NULL;

	expect_sound(text);
	assert_int_equal(json_keys_check(text, strlen(text), &key), 0);
	assert_null(key);
}

static void expect_twice(const char *text, const char *expected)
{
	char *key = NULL;

	expect_sound(text);
	assert_int_equal(json_keys_check(text, strlen(text), &key), -EEXIST);
	assert_string_equal(key, expected);
	free(key);
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

/* In far less than the seconds that comparing each with each takes. */
static void json_keys_takes_many_keys(void **state)
{
	const int count = 200000;
	char *text, *key = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (int i = 0; i < count; i++)
		fprintf(out, "%c\"key%d\":1", i ? ',' : '{', (i * 7919) % count);
	fputs(",\"key77\":1}", out);
	fclose(out);
	assert_int_equal(json_keys_check(text, size, &key), -EEXIST);
	assert_string_equal(key, "key77");
	free(key);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_keys_finds_a_key_given_twice),
		cmocka_unit_test(json_keys_finds_it_at_any_depth),
		cmocka_unit_test(json_keys_compares_what_escapes_stand_for),
		cmocka_unit_test(json_keys_takes_different_keys),
		cmocka_unit_test(json_keys_takes_equal_keys_of_different_objects),
		cmocka_unit_test(json_keys_takes_values_for_none),
		cmocka_unit_test(json_keys_goes_as_deep_as_a_text_may),
		cmocka_unit_test(json_keys_takes_many_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
