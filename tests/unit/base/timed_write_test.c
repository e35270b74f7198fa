/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/timed_write.h"

/* A write that never returns must end the test. */
#define LIMIT_S 20
#define WAIT_NS (100 * NS_PER_MS)
#define PIECE	3000

struct terminal {
	int leader;
	int follower;
};

static void open_terminal(struct terminal *terminal)
{
	terminal->leader = posix_openpt(O_RDWR | O_NOCTTY);
	assert_true(terminal->leader >= 0);
	assert_int_equal(grantpt(terminal->leader), 0);
	assert_int_equal(unlockpt(terminal->leader), 0);
	terminal->follower = open(ptsname(terminal->leader), O_RDWR | O_NOCTTY);
	assert_true(terminal->follower >= 0);
	alarm(LIMIT_S);
}

static void close_terminal(const struct terminal *terminal)
{
	alarm(0);
	close(terminal->follower);
	close(terminal->leader);
}

/* Writes pieces until one of them finds no room. Returns how long that one took. */
static uint64_t fill(const struct terminal *terminal, const char *text, uint64_t wait_ns)
{
	uint64_t begin_ns;
	size_t written;
	int err;

	do {
		begin_ns = clock_ns(CLOCK_MONOTONIC);
		err = timed_write(terminal->follower, text, PIECE, wait_ns, &written);
	} while (!err);
	assert_int_equal(err, -ETIMEDOUT);
	assert_true(written < PIECE);
	return clock_ns(CLOCK_MONOTONIC) - begin_ns;
}

static void a_terminal_that_nobody_reads_is_given_up_in_time(void **state)
{
	struct terminal terminal;
	char text[PIECE];
	uint64_t took_ns;

	(void)state;
	memset(text, 'x', sizeof(text));
	open_terminal(&terminal);
	took_ns = fill(&terminal, text, WAIT_NS);
	assert_true(took_ns >= WAIT_NS);
	assert_true(took_ns < 5 * NS_PER_S);
	close_terminal(&terminal);
}

/* There may be room for one byte, but not for a newline, which becomes two. */
static void so_is_one_that_has_no_room_for_a_newline(void **state)
{
	struct terminal terminal;
	char text[PIECE];

	(void)state;
	memset(text, '\n', sizeof(text));
	open_terminal(&terminal);
	assert_true(fill(&terminal, text, WAIT_NS) < 5 * NS_PER_S);
	memset(text, 'x', sizeof(text));
	assert_true(fill(&terminal, text, WAIT_NS) < 5 * NS_PER_S);
	memset(text, '\n', sizeof(text));
	assert_true(fill(&terminal, text, WAIT_NS) < 5 * NS_PER_S);
	close_terminal(&terminal);
}

static void without_a_wait_it_is_given_up_at_once(void **state)
{
	struct terminal terminal;
	char text[PIECE];

	(void)state;
	memset(text, 'x', sizeof(text));
	open_terminal(&terminal);
	fill(&terminal, text, WAIT_NS);
	assert_true(fill(&terminal, text, 0) < 5 * NS_PER_S);
	close_terminal(&terminal);
}

/* The exit status of the reader: 0 if the text is as it was written. */
static int read_slowly(int leader, size_t size)
{
	char bytes[777];
	size_t seen = 0;
	ssize_t count;

	while (seen < size && (count = read(leader, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < count; i++, seen++) {
			if (bytes[i] != (char)('a' + seen % 26))
				return 1;
		}
		clock_sleep(NS_PER_MS);
	}
	return seen != size;
}

static void a_slow_reader_gets_all_of_it_once(void **state)
{
	const size_t size = 200000;
	struct terminal terminal;
	char *text = malloc(size);
	size_t written;
	int status;
	pid_t pid;

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < size; i++)
		text[i] = (char)('a' + i % 26);
	open_terminal(&terminal);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(read_slowly(terminal.leader, size));
	assert_int_equal(timed_write(terminal.follower, text, size, 10 * NS_PER_S, &written), 0);
	assert_int_equal(written, size);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close_terminal(&terminal);
	free(text);
}

static void the_terminal_stays_as_it_was_for_others(void **state)
{
	struct terminal terminal;
	char text[PIECE];
	int flags;

	(void)state;
	memset(text, 'x', sizeof(text));
	open_terminal(&terminal);
	flags = fcntl(terminal.follower, F_GETFL);
	fill(&terminal, text, WAIT_NS);
	assert_int_equal(fcntl(terminal.follower, F_GETFL), flags);
	close_terminal(&terminal);
}

static void a_full_pipe_is_given_up_in_time(void **state)
{
	char text[PIECE] = {0};
	size_t written;
	int ends[2], err;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	alarm(LIMIT_S);
	do {
		err = timed_write(ends[1], text, sizeof(text), WAIT_NS, &written);
	} while (!err);
	alarm(0);
	assert_int_equal(err, -ETIMEDOUT);
	assert_int_equal(written, 0);
	close(ends[0]);
	assert_int_equal(timed_write(ends[1], text, sizeof(text), WAIT_NS, &written), -EPIPE);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_terminal_that_nobody_reads_is_given_up_in_time),
		cmocka_unit_test(so_is_one_that_has_no_room_for_a_newline),
		cmocka_unit_test(without_a_wait_it_is_given_up_at_once),
		cmocka_unit_test(a_slow_reader_gets_all_of_it_once),
		cmocka_unit_test(the_terminal_stays_as_it_was_for_others),
		cmocka_unit_test(a_full_pipe_is_given_up_in_time),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
