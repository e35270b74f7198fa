/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "json.h"
#include "terminal.h"

/* What would clear the screen, ring, turn the direction of text, or end the line. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_one_line_of_printable_text),
		cmocka_unit_test(json_that_is_shown_escapes_what_steers_a_terminal),
		cmocka_unit_test(text_is_as_wide_as_its_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
