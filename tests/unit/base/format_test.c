/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/format.h"
#include <stdlib.h>
#include <sys/ioctl.h>
#include "base/json.h"

static char buffer[FORMAT_MAX];

static void a_time_has_three_digits_and_its_unit(void **state)
{
	(void)state;
	assert_string_equal(format_time(buffer, 0), "0 ns");
	assert_string_equal(format_time(buffer, 78), "78 ns");
	assert_string_equal(format_time(buffer, 7900000), "7.90 ms");
	assert_string_equal(format_time(buffer, 12100), "12.1 us");
	assert_string_equal(format_time(buffer, 121e9), "121 s");
	assert_string_equal(format_time(buffer, 3600e9), "3600 s");
}

static void a_time_that_rounds_up_takes_the_next_unit(void **state)
{
	(void)state;
	assert_string_equal(format_time(buffer, 999.4), "999 ns");
	assert_string_equal(format_time(buffer, 999.6), "1.00 us");
	assert_string_equal(format_time(buffer, 999499), "999 us");
	assert_string_equal(format_time(buffer, 999500), "1.00 ms");
	assert_string_equal(format_time(buffer, 9996000), "10.0 ms");
	assert_string_equal(format_time(buffer, 99960000), "100 ms");
}

static void a_count_has_separators_until_it_is_long(void **state)
{
	(void)state;
	assert_string_equal(format_count(buffer, 999), "999");
	assert_string_equal(format_count(buffer, 1004), "1,004");
	assert_string_equal(format_count(buffer, 9999999), "9,999,999");
	assert_string_equal(format_count(buffer, 12345678), "12.3 M");
	assert_string_equal(format_count(buffer, UINT64_MAX), "18.4 E");
}

static void bytes_are_binary(void **state)
{
	(void)state;
	assert_string_equal(format_bytes(buffer, 1023), "1023 B");
	assert_string_equal(format_bytes(buffer, 23 << 20), "23.0 MiB");
}

static void a_small_percentage_is_not_zero(void **state)
{
	(void)state;
	assert_string_equal(format_percent(buffer, 0), "0.0 %");
	assert_string_equal(format_percent(buffer, 0.04), "<0.1 %");
	assert_string_equal(format_percent(buffer, 11.24), "11.2 %");
}

static void a_time_of_day_is_utc_to_the_microsecond(void **state)
{
	char text[FORMAT_UTC_MAX];

	(void)state;
	assert_string_equal(format_utc(text, 0), "1970-01-01T00:00:00.000000Z");
	assert_string_equal(format_utc(text, UINT64_C(1795460221123456999)),
			    "2026-11-23T18:57:01.123456Z");
	assert_string_equal(format_utc(text, UINT64_MAX), "2554-07-21T23:34:33.709551Z");
}

static void a_share_of_nothing_is_zero(void **state)
{
	(void)state;
	assert_true(percent_of(1, 0) == 0);
	assert_true(percent_of(1, 4) == 25);
}

static void a_long_text_loses_its_middle(void **state)
{
	char to[64];

	(void)state;
	assert_string_equal(shorten_text(to, sizeof(to), "0123456789", 10), "0123456789");
	assert_string_equal(shorten_text(to, sizeof(to), "0123456789ab", 9), "01...89ab");
}

static void a_character_is_not_cut_in_two(void **state)
{
	char to[64];

	(void)state;
	assert_string_equal(shorten_text(to, sizeof(to),
					 "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
					 "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9",
					 9),
			    "\xc3\xa9\xc3\xa9...\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
}

static void a_short_name_stays(void **state)
{
	char to[64];

	(void)state;
	assert_string_equal(shorten_name(to, sizeof(to), "llama_context::decode", 32),
			    "llama_context::decode");
}

static void a_long_name_becomes_its_last_part_without_closures(void **state)
{
	char to[64];

	(void)state;
	assert_string_equal(shorten_name(to, sizeof(to),
					 "<a::long::Type as a::Trait>::decode::{{closure}}", 20),
			    "decode");
	assert_string_equal(
		shorten_name(to, sizeof(to), "a::long::path::run::{closure#0}::{closure#1}", 20),
		"run");
}

static void a_long_name_without_parts_is_shortened(void **state)
{
	char to[64];

	(void)state;
	assert_int_equal(strlen(shorten_name(to, sizeof(to), "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", 20)),
			 20);
}

/* Text that would clear the screen, ring the bell, reverse the text's direction or end the line. */
#define NASTY                                                                                      \
	"\033[2J\a\x7f\xc2\x9b"                                                                    \
	"31m\xe2\x80\xae\xe2\x81\xa6\xff\n\r\tend"

static char *print(void (*write)(FILE *out))
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	write(out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void write_line(FILE *out)
{
	terminal_line(out, "%d: %s", 7, NASTY);
}

static void a_line_is_one_line_of_printable_text(void **state)
{
	char *text = print(write_line);

	(void)state;
	assert_string_equal(text, "7: \\x1b[2J\\x07\\x7f\\xc2\\x9b31m\\xe2\\x80\\xae\\xe2\\x81\\xa6"
				  "\\xff\\n\\x0d\\tend\n");
	free(text);
}

static void write_shown(FILE *out)
{
	struct json json = {.out = out, .shown = true};

	json_string(&json, NULL, NASTY "\xc3\xa4\xf0\x9f\x92\xa9");
}

static void write_file(FILE *out)
{
	struct json json = {.out = out};

	json_string(&json, NULL, "\x7f\xc2\x9b\xe2\x80\xae");
}

static void json_that_is_shown_escapes_what_steers_a_terminal(void **state)
{
	char *text = print(write_shown);

	(void)state;
	assert_string_equal(text, "\"\\u001b[2J\\u0007\\u007f\\u009b31m\\u202e\\u2066\xef\xbf\xbd"
				  "\\n\\r\\tend\xc3\xa4\xf0\x9f\x92\xa9\"");
	free(text);
	text = print(write_file);
	assert_string_equal(text, "\"\x7f\xc2\x9b\xe2\x80\xae\"");
	free(text);
}

static void write_columns(FILE *out)
{
	fprintf(out, "%zu", terminal_columns(out, 100));
}

static void text_is_as_wide_as_its_terminal(void **state)
{
	static const struct {
		unsigned short columns;
		size_t text;
	} sizes[] = {{0, 100}, {20, 60}, {60, 60}, {80, 80}, {100, 100}, {200, 100}};
	FILE *out = fopen("/dev/ptmx", "r+");
	char *text = print(write_columns);

	(void)state;
	assert_string_equal(text, "100");
	free(text);
	if (!out)
		skip();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct winsize size = {.ws_row = 24, .ws_col = sizes[i].columns};

		assert_int_equal(ioctl(fileno(out), TIOCSWINSZ, &size), 0);
		assert_int_equal(terminal_columns(out, 100), sizes[i].text);
	}
	assert_int_equal(fclose(out), 0);
}

static void a_name_found_by_a_text_loses_the_text(void **state)
{
	char shortened[64];

	(void)state;
	shorten_name(shortened, sizeof(shortened), "decode (by the text 'cannot decode: ')", 20);
	assert_string_equal(shortened, "decode");
	shorten_name(shortened, sizeof(shortened), "decode (by the text 'cannot')", 40);
	assert_string_equal(shortened, "decode (by the text 'cannot')");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_has_three_digits_and_its_unit),
		cmocka_unit_test(a_time_that_rounds_up_takes_the_next_unit),
		cmocka_unit_test(a_count_has_separators_until_it_is_long),
		cmocka_unit_test(bytes_are_binary),
		cmocka_unit_test(a_small_percentage_is_not_zero),
		cmocka_unit_test(a_time_of_day_is_utc_to_the_microsecond),
		cmocka_unit_test(a_share_of_nothing_is_zero),
		cmocka_unit_test(a_long_text_loses_its_middle),
		cmocka_unit_test(a_character_is_not_cut_in_two),
		cmocka_unit_test(a_short_name_stays),
		cmocka_unit_test(a_long_name_becomes_its_last_part_without_closures),
		cmocka_unit_test(a_long_name_without_parts_is_shortened),
		cmocka_unit_test(a_line_is_one_line_of_printable_text),
		cmocka_unit_test(json_that_is_shown_escapes_what_steers_a_terminal),
		cmocka_unit_test(text_is_as_wide_as_its_terminal),
		cmocka_unit_test(a_name_found_by_a_text_loses_the_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
