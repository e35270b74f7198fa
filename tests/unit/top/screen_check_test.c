/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which terminals there can be a screen on, and what is said of the others. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "stderr_fixture.h"
#include "top/screen.h"

/* The verdict with this file as standard input and output. */
static int check_on(int fd, const char *term)
{
	int input = dup(STDIN_FILENO), output = dup(STDOUT_FILENO), err;

	assert_true(fd >= 0 && input >= 0 && output >= 0);
	setenv("TERM", term, 1);
	dup2(fd, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	err = screen_check();
	dup2(input, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	close(input);
	close(output);
	close(fd);
	return err;
}

/* The same with a terminal of that type. */
static int check_terminal(const char *term)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), err;

	assert_true(master >= 0);
	assert_int_equal(grantpt(master), 0);
	assert_int_equal(unlockpt(master), 0);
	err = check_on(open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC), term);
	close(master);
	return err;
}

static void a_terminal_is_one(void **state)
{
	assert_int_equal(check_terminal("xterm"), 0);
	assert_silent(*state);
}

static void what_is_no_terminal_is_told_and_what_to_do(void **state)
{
	assert_int_equal(check_on(open("/dev/null", O_RDWR | O_CLOEXEC), "xterm"), -EINVAL);
	assert_one_line(*state, "top needs a terminal: run it in one (over ssh with -t), or trace "
				"without top: -p PID prints a report");
}

static void a_type_that_is_not_known_is_named(void **state)
{
	assert_int_equal(check_terminal("nosuch"), -EINVAL);
	assert_one_line(*state, "top: the terminal type TERM=nosuch is not known here: set "
				"TERM=xterm or TERM=vt100 (package ncurses-base or ncurses-term "
				"has the descriptions), or trace without top");
}

static void a_terminal_without_a_cursor_to_place_is_named(void **state)
{
	assert_int_equal(check_terminal("dumb"), -EINVAL);
	assert_one_line(*state, "top: a terminal of type TERM=dumb cannot place the cursor: set "
				"TERM=xterm or TERM=vt100, or trace without top");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_terminal_is_one),
		TEST(what_is_no_terminal_is_told_and_what_to_do),
		TEST(a_type_that_is_not_known_is_named),
		TEST(a_terminal_without_a_cursor_to_place_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
