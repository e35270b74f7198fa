/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include "base/json.h"

struct writer {
	struct json json;
	char *text;
	size_t size;
};

static int open_writer(void **state)
{
	struct writer *writer = calloc(1, sizeof(*writer));

	assert_non_null(writer);
	writer->json.out = open_memstream(&writer->text, &writer->size);
	assert_non_null(writer->json.out);
	*state = writer;
	return 0;
}

static int close_writer(void **state)
{
	struct writer *writer = *state;

	fclose(writer->json.out);
	free(writer->text);
	free(writer);
	return 0;
}

static void start_over(struct writer *writer)
{
	fclose(writer->json.out);
	free(writer->text);
	writer->json.out = open_memstream(&writer->text, &writer->size);
	assert_non_null(writer->json.out);
}

static void expect_text(struct writer *writer, const char *expected)
{
	fflush(writer->json.out);
	assert_string_equal(writer->text, expected);
}

static void expect_quoted(struct writer *writer, const char *value, const char *expected)
{
	start_over(writer);
	json_string(&writer->json, NULL, value);
	expect_text(writer, expected);
}

static void expect_double(struct writer *writer, double value, const char *expected)
{
	start_over(writer);
	json_double(&writer->json, NULL, value);
	expect_text(writer, expected);
}

static void expect_float(struct writer *writer, float value, const char *expected)
{
	start_over(writer);
	json_float(&writer->json, NULL, value);
	expect_text(writer, expected);
}

/* The expected texts are serde_json's (1.0.145 and 1.0.150). */
static void json_writes_as_few_digits_as_an_f32_needs(void **state)
{
	expect_float(*state, 0.6f, "0.6");
	expect_float(*state, 0.0f, "0.0");
	expect_float(*state, -0.0f, "-0.0");
	expect_float(*state, 16777216.0f, "16777216.0");
	expect_float(*state, 123456789.0f, "123456790.0");
	expect_float(*state, 1e12f, "1000000000000.0");
	expect_float(*state, 1e-6f, "0.000001");
	expect_float(*state, 1e-7f, "1e-7");
	expect_float(*state, INFINITY, "null");
}

static void json_writes_null_for_a_number_that_is_not_finite(void **state)
{
	expect_double(*state, NAN, "null");
	expect_double(*state, INFINITY, "null");
	expect_double(*state, -INFINITY, "null");
}

static void json_replaces_bytes_that_are_not_utf8(void **state)
{
	expect_quoted(*state,
		      "a\xff"
		      "b",
		      "\"a\xef\xbf\xbd"
		      "b\"");
	expect_quoted(*state, "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	expect_quoted(*state, "\xe0\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void json_replaces_a_sequence_that_is_cut_off_once(void **state)
{
	expect_quoted(*state, "\xe2\x82", "\"\xef\xbf\xbd\"");
	expect_quoted(*state,
		      "\xf0\x9f\x98"
		      "x",
		      "\"\xef\xbf\xbdx\"");
}

static void json_replaces_surrogates_and_numbers_above_unicode(void **state)
{
	expect_quoted(*state, "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	expect_quoted(*state, "\xf4\x90\x80\x80",
		      "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void json_escapes_as_serde_json_does(void **state)
{
	expect_quoted(*state, "\"\\\b\f\n\r\t", "\"\\\"\\\\\\b\\f\\n\\r\\t\"");
	expect_quoted(*state, "\x01\x1f", "\"\\u0001\\u001f\"");
	expect_quoted(*state, "/\x7f", "\"/\x7f\"");
}

static void json_leaves_utf8_as_it_is(void **state)
{
	expect_quoted(*state, "äß€😀\xf4\x8f\xbf\xbf", "\"äß€😀\xf4\x8f\xbf\xbf\"");
}

static void json_writes_null_for_a_null_string(void **state)
{
	expect_quoted(*state, NULL, "null");
}

static void json_puts_commas_between_items_only(void **state)
{
	struct writer *writer = *state;
	struct json *json = &writer->json;

	json_object_begin(json, NULL);
	json_array_begin(json, "a");
	json_uint(json, NULL, 1);
	json_object_begin(json, NULL);
	json_object_end(json);
	json_array_begin(json, NULL);
	json_array_end(json);
	json_array_end(json);
	json_bool(json, "b", true);
	json_null(json, "c");
	json_raw(json, "d", "{\"e\":1}");
	json_object_end(json);
	expect_text(writer, "{\"a\":[1,{},[]],\"b\":true,\"c\":null,\"d\":{\"e\":1}}");
}

static void json_puts_no_comma_before_the_first_item_of_a_second_level(void **state)
{
	struct writer *writer = *state;

	json_array_begin(&writer->json, NULL);
	for (int i = 0; i < 2; i++) {
		json_array_begin(&writer->json, NULL);
		json_int(&writer->json, NULL, i);
		json_array_end(&writer->json);
	}
	json_array_end(&writer->json);
	expect_text(writer, "[[0],[1]]");
}

static void json_puts_no_comma_between_documents(void **state)
{
	struct writer *writer = *state;

	for (int i = 0; i < 2; i++) {
		json_object_begin(&writer->json, NULL);
		json_object_end(&writer->json);
	}
	expect_text(writer, "{}{}");
}

static void json_nests_128_levels(void **state)
{
	struct writer *writer = *state;

	for (int i = 0; i < 128; i++) {
		json_array_begin(&writer->json, NULL);
		json_uint(&writer->json, NULL, 1);
	}
	for (int i = 0; i < 128; i++)
		json_array_end(&writer->json);
	fflush(writer->json.out);
	assert_int_equal(writer->size, 128 * 3 + 127);
}

static void json_writes_the_extremes_of_integers(void **state)
{
	struct writer *writer = *state;

	json_array_begin(&writer->json, NULL);
	json_uint(&writer->json, NULL, 0);
	json_uint(&writer->json, NULL, UINT64_MAX);
	json_int(&writer->json, NULL, INT64_MIN);
	json_int(&writer->json, NULL, INT64_MAX);
	json_array_end(&writer->json);
	expect_text(writer, "[0,18446744073709551615,-9223372036854775808,9223372036854775807]");
}

static void json_writes_doubles_as_serde_json_does(void **state)
{
	expect_double(*state, 12500.0, "12500.0");
	expect_double(*state, 0.1, "0.1");
	expect_double(*state, 66.75, "66.75");
	expect_double(*state, 0.1 + 0.2, "0.30000000000000004");
	expect_double(*state, 0.0, "0.0");
	expect_double(*state, -0.0, "-0.0");
	expect_double(*state, -2.5, "-2.5");
	expect_double(*state, 100.0, "100.0");
}

static void json_uses_an_exponent_where_serde_json_does(void **state)
{
	expect_double(*state, 1e-5, "0.00001");
	expect_double(*state, 1.5e-5, "0.000015");
	expect_double(*state, 9.9e-6, "9.9e-6");
	expect_double(*state, 1e-6, "1e-6");
	expect_double(*state, 1.5e-7, "1.5e-7");
	expect_double(*state, 9999999999999998.0, "9999999999999998.0");
	expect_double(*state, 1e15, "1000000000000000.0");
	expect_double(*state, 1e16, "1e16");
	expect_double(*state, 1.25e300, "1.25e300");
}

static void json_writes_the_extremes_of_doubles(void **state)
{
	expect_double(*state, DBL_MAX, "1.7976931348623157e308");
	expect_double(*state, DBL_MIN, "2.2250738585072014e-308");
	expect_double(*state, 5e-324, "5e-324");
}

static void json_fields_refuse_a_key_twice(void **state)
{
	struct json_fields fields = {0};

	assert_true(json_fields_uint(&fields, "b", 1));
	assert_true(json_fields_uint(&fields, "c", 1));
	assert_false(json_fields_uint(&fields, "b", 2));
	assert_int_equal(fields.count, 2);
}

static void json_fields_refuse_more_than_there_is_room_for(void **state)
{
	struct json_fields fields = {0};
	char keys[JSON_FIELDS_MAX + 1][16];

	for (int i = 0; i <= JSON_FIELDS_MAX; i++) {
		snprintf(keys[i], sizeof(keys[i]), "%d", i);
		assert_int_equal(json_fields_uint(&fields, keys[i], 0), i < JSON_FIELDS_MAX);
	}
}

static void json_fields_come_out_sorted_by_bytes(void **state)
{
	struct writer *writer = *state;
	struct json_fields fields = {0};

	json_fields_uint(&fields, "b", 2);
	json_fields_string(&fields, "ä", NULL);
	json_fields_int(&fields, "a_", -1);
	json_fields_bool(&fields, "B", true);
	json_fields_double(&fields, "a", 1.5);
	json_fields_write(&writer->json, NULL, &fields);
	expect_text(writer, "{\"B\":true,\"a\":1.5,\"a_\":-1,\"b\":2,\"ä\":null}");
}

static void json_writes_microseconds_with_three_decimals(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{0, "0.000"},
		{7, "0.007"},
		{77, "0.077"},
		{999, "0.999"},
		{1000, "1.000"},
		{1234567, "1234.567"},
		{UINT64_MAX, "18446744073709551.615"},
	};
	struct writer *writer = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		start_over(writer);
		json_micros(&writer->json, NULL, cases[i].ns);
		expect_text(writer, cases[i].text);
	}
}

static void json_begins_a_line_before_the_comma(void **state)
{
	struct writer *writer = *state;
	struct json *json = &writer->json;

	json_array_begin(json, NULL);
	json_newline(json);
	json_uint(json, NULL, 1);
	json_newline(json);
	json_micros(json, NULL, 2);
	json_array_end(json);
	expect_text(writer, "[\n1\n,0.002]");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_writer, close_writer)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(json_writes_as_few_digits_as_an_f32_needs),
		TEST(json_writes_null_for_a_number_that_is_not_finite),
		TEST(json_replaces_bytes_that_are_not_utf8),
		TEST(json_replaces_a_sequence_that_is_cut_off_once),
		TEST(json_replaces_surrogates_and_numbers_above_unicode),
		TEST(json_escapes_as_serde_json_does),
		TEST(json_leaves_utf8_as_it_is),
		TEST(json_writes_null_for_a_null_string),
		TEST(json_puts_commas_between_items_only),
		TEST(json_puts_no_comma_before_the_first_item_of_a_second_level),
		TEST(json_puts_no_comma_between_documents),
		TEST(json_nests_128_levels),
		TEST(json_writes_the_extremes_of_integers),
		TEST(json_writes_doubles_as_serde_json_does),
		TEST(json_uses_an_exponent_where_serde_json_does),
		TEST(json_writes_the_extremes_of_doubles),
		TEST(json_writes_microseconds_with_three_decimals),
		TEST(json_begins_a_line_before_the_comma),
		TEST(json_fields_refuse_a_key_twice),
		TEST(json_fields_refuse_more_than_there_is_room_for),
		TEST(json_fields_come_out_sorted_by_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
