/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Pages on a terminal that somebody reads, or nobody. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "top/grid.h"
#include "top/screen.h"

/* A page that is never painted must end the test. */
#define LIMIT_S 30
#define ROWS	200
#define COLUMNS 200
/* How often the page is painted, until all of it has been sent. */
#define TURNS 100

struct terminal {
	int leader;
	int input; /* what was standard input and output before */
	int output;
	struct termios modes;
};

static int setup(void **state)
{
	struct winsize size = {.ws_row = ROWS, .ws_col = COLUMNS};
	struct terminal *terminal = calloc(1, sizeof(*terminal));
	int follower;

	if (!terminal)
		return -1;
	terminal->leader = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (terminal->leader < 0 || grantpt(terminal->leader) || unlockpt(terminal->leader))
		return -1;
	follower = open(ptsname(terminal->leader), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (follower < 0 || ioctl(follower, TIOCSWINSZ, &size) ||
	    tcgetattr(follower, &terminal->modes))
		return -1;
	setenv("TERM", "xterm", 1);
	terminal->input = dup(STDIN_FILENO);
	terminal->output = dup(STDOUT_FILENO);
	dup2(follower, STDIN_FILENO);
	dup2(follower, STDOUT_FILENO);
	close(follower);
	alarm(LIMIT_S);
	*state = terminal;
	return 0;
}

static int teardown(void **state)
{
	struct terminal *terminal = *state;

	alarm(0);
	dup2(terminal->input, STDIN_FILENO);
	dup2(terminal->output, STDOUT_FILENO);
	close(terminal->input);
	close(terminal->output);
	close(terminal->leader);
	free(terminal);
	return 0;
}

static void paint(struct screen *screen, char first)
{
	const char cells[] = {first, (char)(first + 1), '\0'};
	struct grid grid;

	assert_int_equal(screen__page(screen, &grid), 0);
	for (int row = 0; row < grid.rows; row++) {
		for (int column = 0; column < grid.columns; column++)
			grid_text(&grid, row, column, 1, TOP_PLAIN, cells + (row + column) % 2);
	}
	screen__paint(screen, &grid);
	grid_clear(&grid);
}

static void a_terminal_that_nobody_reads_does_not_stop_it(void **state)
{
	const struct terminal *terminal = *state;
	struct screen *screen;
	struct termios modes;

	assert_int_equal(screen__new(&screen), 0);
	for (char first = 'a'; first < 'g'; first++)
		paint(screen, first);
	screen__free(screen);
	assert_int_equal(tcgetattr(STDOUT_FILENO, &modes), 0);
	assert_int_equal(modes.c_lflag, terminal->modes.c_lflag);
	assert_int_equal(modes.c_iflag, terminal->modes.c_iflag);
	assert_int_equal(modes.c_oflag, terminal->modes.c_oflag);
}

/* Reads until the terminal is closed; the status is whether '#' was in half of a page's cells. */
static _Noreturn void read_page(int leader)
{
	size_t seen = 0;
	char bytes[333];
	ssize_t count;

	/* The screen's descriptors would keep the terminal open. */
	dup2(leader, STDIN_FILENO);
	close(STDOUT_FILENO);
	closefrom(STDERR_FILENO + 1);
	while ((count = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < count; i++)
			seen += bytes[i] == '#';
		usleep(1000);
	}
	_exit(seen != (size_t)ROWS * COLUMNS / 2);
}

static void what_a_slow_reader_gets_late_is_whole(void **state)
{
	const struct terminal *terminal = *state;
	struct screen *screen;
	int status;
	pid_t pid;

	assert_int_equal(screen__new(&screen), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		read_page(terminal->leader);
	for (int i = 0; i < TURNS; i++) {
		paint(screen, '#');
		usleep(10000);
	}
	screen__free(screen);
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_terminal_that_nobody_reads_does_not_stop_it),
		TEST(what_a_slow_reader_gets_late_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
