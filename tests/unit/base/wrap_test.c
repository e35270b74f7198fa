/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include "base/wrap.h"

/* Asserts the first line of the text, wrapped at so many columns. */
static void expect_line(const char *text, size_t columns, const char *wanted)
{
	size_t bytes = wrap_break(text, columns);

	if (bytes != strlen(wanted) || strncmp(text, wanted, bytes) != 0)
		fail_msg("\"%.*s\" is not \"%s\"", (int)bytes, text, wanted);
}

static void a_line_ends_before_a_space(void **state)
{
	(void)state;
	expect_line("one two three", 8, "one two");
	expect_line("one two three", 7, "one two");
	expect_line("one two three", 6, "one");
	expect_line("one two three", 13, "one two three");
	expect_line("  one two", 6, "  one");
	expect_line("", 6, "");
}

static void columns_are_characters(void **state)
{
	(void)state;
	expect_line("\xc3\xa4\xc3\xa4\xc3\xa4 b", 3, "\xc3\xa4\xc3\xa4\xc3\xa4");
	expect_line("\xc3\xa4 \xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 4, "\xc3\xa4");
}

static void a_number_stays_with_its_unit(void **state)
{
	(void)state;
	expect_line("it took 7.00 ms of it", 13, "it took");
	expect_line("it was (90 % compute)", 18, "it was");
	expect_line("it has 1,204 calls", 15, "it has");
	/* A number at the end of a list item has no unit. */
	expect_line("lost 3, steps 4", 9, "lost 3,");
	/* A digit at the end of a name is no number. */
	expect_line("libcuda1 is there", 9, "libcuda1");
}

static void a_number_stays_with_its_label(void **state)
{
	(void)state;
	expect_line("lost 3, steps 4", 14, "lost 3,");
	expect_line("lost 3, steps 4, files 5", 14, "lost 3,");
	expect_line("(lost 3, steps 4) more", 16, "(lost 3,");
}

static void a_figure_that_does_not_fit_is_broken(void **state)
{
	(void)state;
	expect_line("7.00 milliseconds", 10, "7.00");
}

static void a_long_word_may_be_wider(void **state)
{
	(void)state;
	expect_line("/usr/lib/libengine.so.1 x", 8, "/usr/lib/libengine.so.1");
	expect_line("a /usr/lib/libengine.so.1", 8, "a");
}

static void a_longer_word_is_broken_at_its_parts(void **state)
{
	(void)state;
	expect_line("/usr/lib/x86_64-linux-gnu/libengine.so.1", 8, "/usr/lib/x86_64-linux-gnu/");
	expect_line("one::two::three::four_and_a_half", 8, "one::two::three::");
	expect_line("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 2, "xxxxxxxxxxxxxxxxxxxxxx");
}

static void every_line_has_something(void **state)
{
	(void)state;
	expect_line("          x", 4, "          x");
	expect_line("word", 0, "word");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_ends_before_a_space),
		cmocka_unit_test(columns_are_characters),
		cmocka_unit_test(a_number_stays_with_its_unit),
		cmocka_unit_test(a_number_stays_with_its_label),
		cmocka_unit_test(a_figure_that_does_not_fit_is_broken),
		cmocka_unit_test(a_long_word_may_be_wider),
		cmocka_unit_test(a_longer_word_is_broken_at_its_parts),
		cmocka_unit_test(every_line_has_something),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
