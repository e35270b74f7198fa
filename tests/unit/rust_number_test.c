/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "rust_number.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rust_number_takes_what_rust_takes),
		cmocka_unit_test(rust_number_refuses_with_rusts_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
