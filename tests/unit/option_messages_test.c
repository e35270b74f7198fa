/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <sys/wait.h>

#include "option_messages.h"
#include "stderr_fixture.h"

static error_t take(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	(void)state;
	return key == 'p' || key == 's' || key == 't' ? 0 : ARGP_ERR_UNKNOWN;
}

/* Exit status of a child: argp ends the program. 9: it has not. */
static int parse(char *argument)
{
	static const struct argp_option options[] = {
		{"pid", 'p', "PID", 0, "", 0},
		{"steps", 's', NULL, 0, "", 0},
		{"step-arg", 't', NULL, 0, "", 0},
		{NULL, 0, NULL, 0, NULL, 0},
	};
	static const struct argp argp = {options, take, NULL, NULL, NULL, NULL, NULL};
	char *argv[] = {(char *)"/bin/ferrum-bpftrace", argument, NULL};
	int status;
	pid_t pid;

	fflush(stdout);
	argp_err_exit_status = 2;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		_exit(option_messages_parse(&argp, 2, argv, ARGP_IN_ORDER, NULL) ? 8 : 9);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void refuse(void **state, const char *argument, const char *line)
{
	char copy[64];

	snprintf(copy, sizeof(copy), "%s", argument);
	assert_int_equal(parse(copy), 2);
	assert_one_line(*state, line);
}

static void what_is_no_option_is_told_in_one_line(void **state)
{
	refuse(state, "--frob", "ferrum-bpftrace: unrecognized option '--frob' (see --help)\n");
}

static void what_is_no_option_is_escaped(void **state)
{
	refuse(state, "--\033[31mred\nnext: line\n",
	       "'--\\x1b[31mred\\nnext: line\\n' (see --help)");
}

static void what_is_no_letter_is_escaped(void **state)
{
	refuse(state, "-\x9b", "invalid option -- '\\x9b' (see --help)");
}

static void what_could_be_two_names_both(void **state)
{
	refuse(state, "--st", "'--st' is ambiguous; possibilities: '--steps' '--step-arg' (see");
}

static void a_value_that_is_not_there_is_missed(void **state)
{
	refuse(state, "-p", "option requires an argument -- 'p' (see --help)");
}

static void a_value_too_many_is_refused(void **state)
{
	refuse(state, "--steps=\033c", "option '--steps' doesn't allow an argument (see --help)");
}

static void an_argument_of_a_megabyte_is_cut(void **state)
{
	const size_t size = 1 << 20;
	char *argument = malloc(size);

	assert_non_null(argument);
	memset(argument, '-', size - 1);
	argument[size - 1] = '\0';
	assert_int_equal(parse(argument), 2);
	free(argument);
	assert_one_line(*state, "unrecognized option '-----");
}

static void what_is_right_is_parsed(void **state)
{
	char option[] = "--steps";

	assert_int_equal(parse(option), 9);
	assert_silent(*state);
}

static void help_is_still_there(void **state)
{
	char option[] = "--help";

	assert_int_equal(parse(option), 0);
	assert_non_null(strstr(stderr_text(*state), "--step-arg"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_no_option_is_told_in_one_line),
		TEST(what_is_no_option_is_escaped),
		TEST(what_is_no_letter_is_escaped),
		TEST(what_could_be_two_names_both),
		TEST(a_value_that_is_not_there_is_missed),
		TEST(a_value_too_many_is_refused),
		TEST(an_argument_of_a_megabyte_is_cut),
		TEST(what_is_right_is_parsed),
		TEST(help_is_still_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
