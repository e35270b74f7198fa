/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Processes that are really stopped, by signals whose senders the test knows. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernel/senders.h"

static struct senders *senders;
static pid_t child;

static int set_up_all(void **state)
{
	int err = senders__new(&senders);

	if (!err)
		err = senders__attach(senders);

	/* Not root, or a kernel without it. */
	if (err)
		fprintf(stderr, "SKIP who sends signals: %s\n", strerror(-err));
	return 0;
}

static int tear_down_all(void **state)
{
	senders__free(senders);
	senders = NULL;
	return 0;
}

static void wait_for_stop(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

/* A child that does nothing, with a handler for SIGTSTP if it is asked for. */
static pid_t start_idle(void (*handler)(int))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTSTP, handler);
	raise(SIGSTOP);
	for (;;)
		pause();
}

static void go_on(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
}

static int set_up(void **state)
{
	child = 0;
	if (!senders)
		return 0;
	child = start_idle(SIG_DFL);
	wait_for_stop(child);
	return 0;
}

static int tear_down(void **state)
{
	if (!child)
		return 0;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}

/* The sender as it is known now; NULL: none is. */
static const struct fbt_stop_sender *find(pid_t pid)
{
	static struct fbt_stop_sender sender;

	return senders__find(senders, (uint32_t)pid, clock_ns(CLOCK_MONOTONIC), &sender) ? &sender
											 : NULL;
}

/* Another process sends the signal. Returns its pid; it has ended by then. */
static pid_t send_from_other(int number)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_NAME, "the-sender");
		_exit(kill(child, number) ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void is_process(const struct fbt_stop_sender *sender, int number, pid_t pid)
{
	assert_non_null(sender);
	assert_int_equal(sender->tgid, child);
	assert_int_equal(sender->number, number);
	assert_int_equal(sender->origin, FBT_SENT_BY_PROCESS);
	assert_int_equal(sender->sender, pid);
}

static void a_sender_that_has_ended_is_named_with_its_parent(void **state)
{
	const struct fbt_stop_sender *sender;
	char comm[16] = "";
	pid_t pid;

	if (!senders)
		skip();
	is_process(find(child), SIGSTOP, child);
	go_on(child);
	assert_null(find(child));
	pid = send_from_other(SIGSTOP);
	wait_for_stop(child);
	sender = find(child);
	is_process(sender, SIGSTOP, pid);
	assert_string_equal(sender->comm, "the-sender");
	assert_int_equal(sender->parent, getpid());
	prctl(PR_GET_NAME, comm);
	assert_string_equal(sender->parent_comm, comm);
}

static void what_came_before_it_was_seen_counts_only(void **state)
{
	struct fbt_stop_sender sender;
	uint64_t before_ns = clock_ns(CLOCK_MONOTONIC);

	if (!senders)
		skip();
	go_on(child);
	send_from_other(SIGSTOP);
	wait_for_stop(child);
	assert_false(senders__find(senders, (uint32_t)child, before_ns, &sender));
	assert_null(find(getpid()));
}

static void the_one_that_stopped_it_counts_not_a_later_one(void **state)
{
	pid_t first;

	if (!senders)
		skip();
	go_on(child);
	first = send_from_other(SIGTSTP);
	wait_for_stop(child);
	send_from_other(SIGTSTP);
	is_process(find(child), SIGTSTP, first);
	go_on(child);
	first = send_from_other(SIGSTOP);
	wait_for_stop(child);
	send_from_other(SIGTTIN);
	is_process(find(child), SIGSTOP, first);
}

static void do_nothing(int number)
{
}

static void a_signal_that_it_handles_stops_nobody(void **state)
{
	pid_t first;

	if (!senders)
		skip();
	tear_down(NULL);
	child = start_idle(do_nothing);
	wait_for_stop(child);
	go_on(child);
	send_from_other(SIGTSTP);
	assert_null(find(child));
	first = send_from_other(SIGSTOP);
	wait_for_stop(child);
	is_process(find(child), SIGSTOP, first);
}

static void a_tracer_that_attaches_is_told_as_one(void **state)
{
	const struct fbt_stop_sender *sender;
	int status;
	pid_t pid;

	if (!senders)
		skip();
	go_on(child);
	assert_int_equal(ptrace(PTRACE_ATTACH, child, NULL, NULL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	sender = find(child);
	assert_non_null(sender);
	assert_int_equal(sender->origin, FBT_SENT_BY_TRACER);
	assert_int_equal(sender->sender, getpid());
	ptrace(PTRACE_DETACH, child, NULL, NULL);
	/* It goes on without a SIGCONT: who stops it later is told. */
	pid = send_from_other(SIGSTOP);
	wait_for_stop(child);
	is_process(find(child), SIGSTOP, pid);
}

static void the_key_of_a_terminal_is_told_as_one(void **state)
{
	const struct fbt_stop_sender *sender;
	int terminal;
	pid_t pid;
	char ready;

	if (!senders)
		skip();
	pid = forkpty(&terminal, NULL, NULL, NULL);
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!write(STDOUT_FILENO, "!", 1);
		for (;;)
			pause();
	}
	/* The terminal is its own by then. */
	assert_int_equal(read(terminal, &ready, 1), 1);
	assert_int_equal(write(terminal, "\x1a", 1), 1);
	for (int i = 0; i < 1000 && !find(pid); i++)
		usleep(1000);
	sender = find(pid);
	assert_non_null(sender);
	assert_int_equal(sender->number, SIGTSTP);
	assert_int_equal(sender->origin, FBT_SENT_BY_TERMINAL);
	assert_int_equal(sender->sender, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(terminal);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_sender_that_has_ended_is_named_with_its_parent),
		TEST(what_came_before_it_was_seen_counts_only),
		TEST(the_one_that_stopped_it_counts_not_a_later_one),
		TEST(a_signal_that_it_handles_stops_nobody),
		TEST(a_tracer_that_attaches_is_told_as_one),
		TEST(the_key_of_a_terminal_is_told_as_one),
	};

	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
