/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "whitespace.h"

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
	expect_trimmed("\u00e0", "\u00e0"); /* ends with a0, as U+00A0 does */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whitespace_only_takes_nothing_at_all),
		cmocka_unit_test(whitespace_trim_keeps_what_only_looks_like_white_space),
		cmocka_unit_test(whitespace_trim_does_not_cut_into_a_character),
		cmocka_unit_test(whitespace_trim_takes_ascii_from_both_ends),
		cmocka_unit_test(whitespace_trim_takes_all_of_unicode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
