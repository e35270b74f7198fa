/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "trace/loop.h"

#define MS_NS	1000000ull
#define LONG_NS (60 * 1000 * MS_NS)

static int setup(void **state)
{
	struct loop *loop;

	signal(SIGHUP, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	if (loop__new(&loop))
		return -1;
	*state = loop;
	return 0;
}

static int teardown(void **state)
{
	struct loop *loop = *state;

	/* Signals that a test left pending must not end the program. */
	loop__set_turn(loop, MS_NS);
	loop__wait(loop);
	loop__restore_signals(loop, NULL, NULL);
	loop__free(loop);
	return 0;
}

static void free_accepts_null(void **state)
{
	loop__free(NULL);
}

static void a_turn_comes_and_comes_again(void **state)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);

	assert_int_equal(loop__set_turn(*state, 20 * MS_NS), 0);
	assert_int_equal(loop__wait(*state), 0);
	assert_int_equal(loop__wait(*state), 0);
	assert_true(clock_ns(CLOCK_MONOTONIC) - start_ns >= 40 * MS_NS);
}

static void a_turn_may_become_shorter(void **state)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);

	assert_int_equal(loop__set_turn(*state, LONG_NS), 0);
	assert_int_equal(loop__set_turn(*state, 5 * MS_NS), 0);
	assert_int_equal(loop__wait(*state), 0);
	assert_true(clock_ns(CLOCK_MONOTONIC) - start_ns < LONG_NS);
}

/* If each setting restarted the turn, it would never be due. */
static void the_same_turn_goes_on(void **state)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);

	assert_int_equal(loop__set_turn(*state, 2000 * MS_NS), 0);
	usleep(2100000);
	assert_int_equal(loop__set_turn(*state, 2000 * MS_NS), 0);
	start_ns = clock_ns(CLOCK_MONOTONIC);
	assert_int_equal(loop__wait(*state), 0);
	assert_true(clock_ns(CLOCK_MONOTONIC) - start_ns < 1900 * MS_NS);
}

static void signals_that_end_say_so(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

	loop__set_turn(*state, LONG_NS);
	for (int i = 0; i < 3; i++) {
		raise(signals[i]);
		assert_int_equal(loop__wait(*state), LOOP_END);
	}
}

static void sigusr1_asks_for_an_escalation(void **state)
{
	loop__set_turn(*state, LONG_NS);
	raise(SIGUSR1);
	assert_int_equal(loop__wait(*state), LOOP_MANUAL);
}

static void signals_of_one_turn_come_together(void **state)
{
	loop__set_turn(*state, LONG_NS);
	raise(SIGUSR1);
	raise(SIGTERM);
	assert_int_equal(loop__wait(*state), LOOP_MANUAL | LOOP_END);
	loop__set_turn(*state, MS_NS);
	assert_int_equal(loop__wait(*state), 0);
}

static void a_descriptor_with_news_makes_a_turn(void **state)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	loop__set_turn(*state, LONG_NS);
	assert_int_equal(loop__watch(*state, ends[0]), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(loop__wait(*state), LOOP_INPUT);
	loop__unwatch(*state, ends[0]);
	raise(SIGUSR1);
	assert_int_equal(loop__wait(*state), LOOP_MANUAL);
	close(ends[0]);
	close(ends[1]);
}

static bool is_blocked(int signo)
{
	sigset_t blocked;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	return sigismember(&blocked, signo);
}

static void an_ignored_sighup_stays_ignored(void **state)
{
	struct loop *loop;

	loop__restore_signals(*state, NULL, NULL);
	signal(SIGHUP, SIG_IGN);
	assert_int_equal(loop__new(&loop), 0);
	assert_true(is_blocked(SIGINT));
	assert_false(is_blocked(SIGHUP));
	raise(SIGHUP);
	loop__restore_signals(loop, NULL, NULL);
	loop__free(loop);
	signal(SIGHUP, SIG_DFL);
}

/*
 * A signal that the loop has already reported is not raised again. The next one ends the program.
 */
static void once_restored_a_signal_ends_the_program(void **state)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		struct loop *loop;

		_exit(loop__new(&loop) || loop__set_turn(loop, LONG_NS) || raise(SIGTERM) ||
		      loop__wait(loop) != LOOP_END ||
		      (loop__restore_signals(loop, NULL, NULL), raise(SIGINT)));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGINT);
}

/* A program that was asked to end by SIGTERM gets SIGTERM once more. Returns its wait status. */
static int get_sigterm_again(bool restored)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		struct loop *loop;

		if (loop__new(&loop) || loop__set_turn(loop, LONG_NS) || raise(SIGTERM) ||
		    loop__wait(loop) != LOOP_END)
			_exit(1);
		if (!restored)
			raise(SIGTERM);
		loop__restore_signals(loop, NULL, NULL);
		if (restored)
			raise(SIGTERM);
		_exit(7);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* timeout(1) signals its child, and at once its own group, which includes the child. */
static void a_signal_that_comes_twice_at_once_is_one(void **state)
{
	int status = get_sigterm_again(false);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
}

/* A user who does not want to wait for the files. */
static void the_same_signal_later_ends_the_program(void **state)
{
	int status = get_sigterm_again(true);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

/* The window had ended by itself, but the sender of the signal could not know that. */
static void once_restored_the_first_signal_that_ends_is_passed_over(void **state)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		struct loop *loop;

		_exit(loop__new(&loop) || raise(SIGTERM) ||
		      (loop__restore_signals(loop, NULL, NULL), false) || raise(SIGINT) ||
		      raise(SIGHUP) || raise(SIGINT));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGINT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(free_accepts_null),
		TEST(a_turn_comes_and_comes_again),
		TEST(a_turn_may_become_shorter),
		TEST(the_same_turn_goes_on),
		TEST(signals_that_end_say_so),
		TEST(sigusr1_asks_for_an_escalation),
		TEST(signals_of_one_turn_come_together),
		TEST(a_descriptor_with_news_makes_a_turn),
		TEST(an_ignored_sighup_stays_ignored),
		TEST(once_restored_a_signal_ends_the_program),
		TEST(a_signal_that_comes_twice_at_once_is_one),
		TEST(the_same_signal_later_ends_the_program),
		TEST(once_restored_the_first_signal_that_ends_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
