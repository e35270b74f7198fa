/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "model/env_host.h"
#include "stderr_fixture.h"

#define LONG_MS 60000

static const char *const no_environment[] = {NULL};

static int run(const char *script, uint32_t timeout_ms, char *text, size_t size, int *status)
{
	const char *const arguments[] = {"sh", "-c", script, NULL};
	struct program program = {"/bin/sh", arguments, no_environment, timeout_ms};

	return program_output(&program, text, size, status);
}

static void expect_output(const char *script, const char *expected, int expected_status)
{
	char text[4096];
	int status = -1;

	assert_int_equal(run(script, LONG_MS, text, sizeof(text), &status), 0);
	assert_string_equal(text, expected);
	assert_int_equal(status, expected_status);
}

static bool is_running(pid_t pid)
{
	char path[32], state = 'Z';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%*d %*s %c", &state) != 1)
		state = 'Z';
	if (file)
		fclose(file);
	return state != 'Z' && state != 'X';
}

/* A killed process takes a moment to end. */
static void expect_ended(const char *text)
{
	pid_t pid = (pid_t)atoi(text);

	assert_true(pid > 0);
	for (int i = 0; i < 5000 && is_running(pid); i++)
		usleep(1000);
	assert_false(is_running(pid));
}

static void program_output_is_what_it_wrote(void **state)
{
	expect_output("echo one; echo two", "one\ntwo\n", 0);
	expect_output("", "", 0);
	expect_output("printf x; sleep 0.1; printf y", "xy", 0);
}

static void program_output_tells_how_it_ended(void **state)
{
	expect_output("echo half; exit 3", "half\n", 3);
	expect_output("kill -TERM $$", "", 128 + SIGTERM);
}

static void program_output_of_no_program_is_a_status(void **state)
{
	const char *const arguments[] = {"none", NULL};
	struct program program = {"/nowhere/none", arguments, no_environment, LONG_MS};
	char text[16];
	int status;

	assert_int_equal(program_output(&program, text, sizeof(text), &status), 0);
	assert_int_equal(status, 127);
	assert_string_equal(text, "");
}

static void program_output_passes_arguments_without_a_shell(void **state)
{
	const char *const arguments[] = {"printf", "%s|", "$(id)", "a b", "", NULL};
	struct program program = {"/usr/bin/printf", arguments, no_environment, LONG_MS};
	char text[64];
	int status;

	assert_int_equal(program_output(&program, text, sizeof(text), &status), 0);
	assert_string_equal(text, "$(id)|a b||");
}

static void program_output_passes_the_environment_given_and_no_other(void **state)
{
	const char *const arguments[] = {"env", NULL};
	const char *const environment[] = {"A=1", "LC_ALL=C", NULL};
	struct program program = {"/usr/bin/env", arguments, environment, LONG_MS};
	char text[64];
	int status;

	setenv("FERRUM_OF_THE_TOOL", "1", 1);
	assert_int_equal(program_output(&program, text, sizeof(text), &status), 0);
	assert_string_equal(text, "A=1\nLC_ALL=C\n");
}

static void program_output_keeps_it_out_of_our_terminal(void **state)
{
	expect_output("echo secret >&2; cat; readlink /proc/self/fd/0 /proc/self/fd/2",
		      "/dev/null\n/dev/null\n", 0);
	assert_silent(*state);
}

static void program_output_runs_it_in_the_root_folder(void **state)
{
	expect_output("pwd", "/\n", 0);
}

static void program_output_hands_no_descriptor_on(void **state)
{
	int fd = open("/dev/null", O_RDONLY); /* any other child would inherit it */

	assert_true(fd > STDERR_FILENO);
	/* Descriptor 3 is that of the folder that ls reads. */
	expect_output("ls /proc/self/fd", "0\n1\n2\n3\n", 0);
	close(fd);
}

static void program_output_hands_no_signals_on(void **state)
{
	const char *const arguments[] = {"grep", "SigBlk", "/proc/self/status", NULL};
	struct program program = {"/bin/grep", arguments, no_environment, LONG_MS};
	sigset_t set, old;
	char text[64];
	int status;

	signal(SIGPIPE, SIG_IGN);
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, &old);
	/* SIGPIPE is bit 12 of SigIgn. */
	expect_output("echo $((0x$(grep SigIgn /proc/self/status | cut -f 2) & 0x1000))", "0\n", 0);
	/* A shell would unblock the signals itself, so this program reads the mask. */
	assert_int_equal(program_output(&program, text, sizeof(text), &status), 0);
	assert_string_equal(text, "SigBlk:\t0000000000000000\n");
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGPIPE, SIG_DFL);
}

static void program_output_is_bounded(void **state)
{
	char text[8];
	int status;

	assert_int_equal(run("printf 1234567", LONG_MS, text, sizeof(text), &status), 0);
	assert_string_equal(text, "1234567");
	assert_int_equal(run("printf 12345678", LONG_MS, text, sizeof(text), &status), 0);
	assert_string_equal(text, "1234567");
	/* A program that never stops writing is killed. */
	assert_int_equal(run("exec yes", LONG_MS, text, sizeof(text), &status), 0);
	assert_string_equal(text, "y\ny\ny\ny");
	assert_int_equal(status, 128 + SIGPIPE);
}

static void program_output_does_not_wait_for_ever(void **state)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
	char text[64];
	int status;

	assert_int_equal(run("echo $$; exec sleep 1000", 2000, text, sizeof(text), &status),
			 -ETIMEDOUT);
	assert_true(clock_ns(CLOCK_MONOTONIC) - start_ns >= 2000 * 1000000ull);
	assert_int_equal(status, 128 + SIGKILL);
	expect_ended(text);
	/* The time limit also holds for a program that closes its stdout. */
	assert_int_equal(run("exec >&-; exec sleep 1000", 100, text, sizeof(text), &status),
			 -ETIMEDOUT);
	/* The time limit also holds for a program that ignores SIGTERM. */
	assert_int_equal(
		run("trap '' TERM; while :; do sleep 0.01; done", 100, text, sizeof(text), &status),
		-ETIMEDOUT);
}

static void program_output_ends_the_children_too(void **state)
{
	char text[64];
	int status;

	assert_int_equal(run("sleep 1000 & echo $!; wait", 2000, text, sizeof(text), &status),
			 -ETIMEDOUT);
	expect_ended(text);
}

/* A background process of the program still holds the pipe open. */
static void program_output_does_not_wait_for_its_children(void **state)
{
	char text[64];
	int status;

	assert_int_equal(run("sleep 1000 & echo $!", LONG_MS, text, sizeof(text), &status), 0);
	assert_int_equal(status, 0);
	expect_ended(text);
}

static void program_output_leaves_no_descriptor_open(void **state)
{
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC), after;
	char text[64];
	int status;

	close(before);
	for (int i = 0; i < 10; i++) {
		run("echo x", LONG_MS, text, sizeof(text), &status);
		run("exec yes", LONG_MS, text, sizeof(text), &status);
	}
	after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(after, before);
	close(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(program_output_is_what_it_wrote),
		cmocka_unit_test(program_output_tells_how_it_ended),
		cmocka_unit_test(program_output_of_no_program_is_a_status),
		cmocka_unit_test(program_output_passes_arguments_without_a_shell),
		cmocka_unit_test(program_output_passes_the_environment_given_and_no_other),
		cmocka_unit_test_setup_teardown(program_output_keeps_it_out_of_our_terminal,
						stderr_setup, stderr_teardown),
		cmocka_unit_test(program_output_runs_it_in_the_root_folder),
		cmocka_unit_test(program_output_hands_no_descriptor_on),
		cmocka_unit_test(program_output_hands_no_signals_on),
		cmocka_unit_test(program_output_is_bounded),
		cmocka_unit_test(program_output_does_not_wait_for_ever),
		cmocka_unit_test(program_output_ends_the_children_too),
		cmocka_unit_test(program_output_does_not_wait_for_its_children),
		cmocka_unit_test(program_output_leaves_no_descriptor_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
