/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

/* Catches stderr between stderr_to() and stderr_back(). */
struct capture {
	int saved;
	int reader;
	char text[16384];
	size_t length;
};

static void stderr_to(struct capture *capture, int writer, int reader)
{
	memset(capture, 0, sizeof(*capture));
	capture->reader = reader;
	capture->saved = dup(STDERR_FILENO);
	assert_true(capture->saved >= 0);
	assert_true(dup2(writer, STDERR_FILENO) >= 0);
	close(writer);
	fcntl(reader, F_SETFL, O_NONBLOCK);
}

/* Each write becomes one datagram, so that the test can count the writes. */
static void stderr_to_socket(struct capture *capture)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	stderr_to(capture, ends[1], ends[0]);
}

static void stderr_to_terminal(struct capture *capture, unsigned short columns)
{
	struct winsize size = {.ws_row = 24, .ws_col = columns};
	int leader = posix_openpt(O_RDWR | O_NOCTTY);
	int follower;

	assert_true(leader >= 0);
	assert_int_equal(grantpt(leader), 0);
	assert_int_equal(unlockpt(leader), 0);
	follower = open(ptsname(leader), O_RDWR | O_NOCTTY);
	assert_true(follower >= 0);
	assert_int_equal(ioctl(follower, TIOCSWINSZ, &size), 0);
	setenv("TERM", "xterm", 1);
	stderr_to(capture, follower, leader);
}

/* The number of reads that returned data. */
static int stderr_back(struct capture *capture)
{
	int reads = 0;
	ssize_t count;

	while ((count = read(capture->reader, capture->text + capture->length,
			     sizeof(capture->text) - 1 - capture->length)) > 0) {
		capture->length += (size_t)count;
		reads++;
	}
	dup2(capture->saved, STDERR_FILENO);
	close(capture->saved);
	close(capture->reader);
	return reads;
}

static void escape_of_no_room_writes_nothing(void **state)
{
	char to[1] = {'x'};

	(void)state;
	assert_int_equal(log_escape(to, 0, "a"), 0);
	assert_int_equal(to[0], 'x');
	assert_int_equal(log_escape(to, 1, "a"), 0);
	assert_int_equal(to[0], '\0');
}

static void escape_makes_controls_visible(void **state)
{
	char to[64];

	(void)state;
	log_escape(to, sizeof(to), "a\x1b[31m\n\t\r\x7f");
	assert_string_equal(to, "a\\x1b[31m\\n\\t\\x0d\\x7f");
}

static void escape_makes_c1_controls_and_direction_overrides_visible(void **state)
{
	/* Written as bytes, because compilers warn of such characters in a source file. */
	static const char text[] = {'\xc2', '\x9b', ' ',    '\xe2', '\x80', '\xae',
				    ' ',    '\xe2', '\x81', '\xa6', '\0'};
	char to[64];

	(void)state;
	log_escape(to, sizeof(to), text);
	assert_string_equal(to, "\\xc2\\x9b \\xe2\\x80\\xae \\xe2\\x81\\xa6");
}

static void escape_makes_bytes_that_are_not_utf8_visible(void **state)
{
	char to[64];

	(void)state;
	/* a stray continuation byte, an overlong form, a surrogate, a sequence that is cut off */
	log_escape(to, sizeof(to), "\x80 \xc0\xaf \xed\xa0\x80 \xe2\x82");
	assert_string_equal(to, "\\x80 \\xc0\\xaf \\xed\\xa0\\x80 \\xe2\\x82");
}

static void escape_keeps_utf8_and_cuts_at_whole_characters(void **state)
{
	char to[4];

	(void)state;
	assert_int_equal(log_escape(to, sizeof(to), "\xc3\xa9\xc3\xa9"), 2);
	assert_string_equal(to, "\xc3\xa9");
}

static void a_newline_in_a_message_does_not_start_a_line(void **state)
{
	struct capture capture;

	(void)state;
	stderr_to_socket(&capture);
	log_err("%s: no such file", "a\nferrum-bpftrace: all is well");
	stderr_back(&capture);
	assert_string_equal(capture.text,
			    "ferrum-bpftrace: a\\nferrum-bpftrace: all is well: no such file\n");
}

static void a_message_that_is_too_long_ends_in_dots_and_a_newline(void **state)
{
	struct capture capture;
	char text[10000];

	(void)state;
	memset(text, '\x01', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	stderr_to_socket(&capture);
	log_info("%s", text);
	stderr_back(&capture);
	assert_true(capture.length > 2048);
	assert_string_equal(capture.text + capture.length - 4, "...\n");
}

static void messages_below_the_level_are_dropped(void **state)
{
	struct capture capture;

	(void)state;
	stderr_to_socket(&capture);
	log_debug("one");
	log_set_level(LOG_ERR);
	log_warn("two");
	log_info("three");
	log_err("four");
	log_set_level(LOG_INFO);
	stderr_back(&capture);
	assert_string_equal(capture.text, "ferrum-bpftrace: four\n");
	assert_int_equal(log_level(), LOG_INFO);
}

static void a_message_is_one_write(void **state)
{
	struct capture capture;

	(void)state;
	stderr_to_socket(&capture);
	log_info("%d of %s", 1, "two");
	assert_int_equal(stderr_back(&capture), 1);
	assert_string_equal(capture.text, "1 of two\n");
}

static void a_message_keeps_errno(void **state)
{
	struct capture capture;

	(void)state;
	stderr_to_socket(&capture);
	close(STDERR_FILENO);
	errno = ENOSPC;
	log_warn("trace: %m");
	assert_int_equal(errno, ENOSPC);
	dup2(capture.saved, STDERR_FILENO);
	stderr_back(&capture);
}

static void status_writes_nothing_when_stderr_is_no_terminal(void **state)
{
	struct capture capture;

	(void)state;
	setenv("TERM", "xterm", 1);
	stderr_to_socket(&capture);
	log_status("12 s");
	log_status(NULL);
	assert_int_equal(stderr_back(&capture), 0);
}

static void status_is_cut_to_the_terminal(void **state)
{
	struct capture capture;

	(void)state;
	stderr_to_terminal(&capture, 6);
	log_status("\xc3\xa9\xc3\xa9"
		   "3456789");
	log_status(NULL);
	stderr_back(&capture);
	assert_string_equal(capture.text, "\r\033[K\xc3\xa9\xc3\xa9"
					  "345\r\033[K");
}

static void a_message_clears_the_status_line_first(void **state)
{
	struct capture capture;

	(void)state;
	stderr_to_terminal(&capture, 80);
	log_status("12 s");
	log_info("hello");
	log_status(NULL);
	stderr_back(&capture);
	assert_string_equal(capture.text, "\r\033[K12 s\r\033[Khello\r\n");
}

static void a_message_is_wrapped_at_words_on_a_terminal(void **state)
{
	static const char text[] =
		"22:01:00 #12 llama_decode 48.0 ms, 8x usual; waited 31.5 ms for a "
		"CPU: it can be seen with ferrum-bpftrace --list-steps -p 7 too";
	struct capture capture;

	(void)state;
	stderr_to_terminal(&capture, 200);
	log_info("%s", text);
	log_warn("short");
	stderr_back(&capture);
	assert_string_equal(
		capture.text,
		"22:01:00 #12 llama_decode 48.0 ms, 8x usual; waited 31.5 ms for a CPU: "
		"it can be\r\n"
		"  seen with ferrum-bpftrace --list-steps -p 7 too\r\n"
		"ferrum-bpftrace: short\r\n");
	stderr_to_socket(&capture);
	log_info("%s", text);
	assert_int_equal(stderr_back(&capture), 1);
	assert_int_equal(strlen(capture.text), strlen(text) + 1);
}

static void a_terminal_of_which_nothing_is_known_has_80_columns(void **state)
{
	struct capture capture;

	(void)state;
	stderr_to_terminal(&capture, 0);
	unsetenv("TERM");
	log_status("12 s");
	log_info("%s %s %s %s", "123456789 123456789 123456789", "123456789 123456789 123456789",
		 "123456789", "next line");
	stderr_back(&capture);
	setenv("TERM", "xterm", 1);
	assert_string_equal(capture.text,
			    "123456789 123456789 123456789 123456789 123456789 123456789 "
			    "123456789 next line\r\n");
	stderr_to_terminal(&capture, 0);
	setenv("TERM", "dumb", 1);
	log_info("%s %s %s %s", "123456789 123456789 123456789", "123456789 123456789 123456789",
		 "123456789 1", "next line");
	stderr_back(&capture);
	setenv("TERM", "xterm", 1);
	assert_string_equal(capture.text,
			    "123456789 123456789 123456789 123456789 123456789 123456789 "
			    "123456789 1 next\r\n  line\r\n");
}

static void a_word_wider_than_a_terminal_stays_whole_enough(void **state)
{
	struct capture capture;
	char text[2000];
	size_t width = 0;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	text[700] = '\1';
	stderr_to_terminal(&capture, 3);
	log_info("%s", text);
	stderr_back(&capture);
	for (const char *line = capture.text; *line; line += strcspn(line, "\n") + 1)
		width = strcspn(line, "\r") > width ? strcspn(line, "\r") : width;
	assert_in_range(width, 40, 60);
}

static void take(void *ctx, enum log_level level, const char *message)
{
	char *text = ctx;

	text += strlen(text);
	*text++ = (char)('0' + level);
	strcpy(text, message);
}

static void what_is_diverted_is_handed_over_as_it_is_and_not_written(void **state)
{
	struct log_diversion before;
	struct capture capture;
	char text[64] = "";

	(void)state;
	stderr_to_socket(&capture);
	before = log_divert((struct log_diversion){take, text});
	log_err("bad\n");
	log_warn("%d", 5);
	log_debug("dropped");
	log_divert(before);
	log_info("written");
	assert_int_equal(stderr_back(&capture), 1);
	assert_string_equal(text, "0bad\n15");
	assert_string_equal(capture.text, "written\n");
}

static void a_diversion_within_another_gives_way_to_it_again(void **state)
{
	struct log_diversion before, outer;
	char first[64] = "", second[64] = "";
	struct capture capture;

	(void)state;
	stderr_to_socket(&capture);
	before = log_divert((struct log_diversion){take, first});
	outer = log_divert((struct log_diversion){take, second});
	log_err("inner");
	log_divert(outer);
	log_err("outer");
	log_divert(before);
	assert_int_equal(stderr_back(&capture), 0);
	assert_string_equal(first, "0outer");
	assert_string_equal(second, "0inner");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escape_of_no_room_writes_nothing),
		cmocka_unit_test(escape_makes_controls_visible),
		cmocka_unit_test(escape_makes_c1_controls_and_direction_overrides_visible),
		cmocka_unit_test(escape_makes_bytes_that_are_not_utf8_visible),
		cmocka_unit_test(escape_keeps_utf8_and_cuts_at_whole_characters),
		cmocka_unit_test(a_newline_in_a_message_does_not_start_a_line),
		cmocka_unit_test(a_message_that_is_too_long_ends_in_dots_and_a_newline),
		cmocka_unit_test(messages_below_the_level_are_dropped),
		cmocka_unit_test(a_message_is_one_write),
		cmocka_unit_test(a_message_keeps_errno),
		cmocka_unit_test(status_writes_nothing_when_stderr_is_no_terminal),
		cmocka_unit_test(status_is_cut_to_the_terminal),
		cmocka_unit_test(a_terminal_of_which_nothing_is_known_has_80_columns),
		cmocka_unit_test(a_message_is_wrapped_at_words_on_a_terminal),
		cmocka_unit_test(a_word_wider_than_a_terminal_stays_whole_enough),
		cmocka_unit_test(a_message_clears_the_status_line_first),
		cmocka_unit_test(what_is_diverted_is_handed_over_as_it_is_and_not_written),
		cmocka_unit_test(a_diversion_within_another_gives_way_to_it_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
