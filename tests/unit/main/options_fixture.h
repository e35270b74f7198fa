/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Parses command lines, which must be accepted or refused. Include after cmocka.h. */
#ifndef FBT_OPTIONS_FIXTURE_H
#define FBT_OPTIONS_FIXTURE_H

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/log.h"
#include "option_parse.h"
#include "stderr_fixture.h"

#define ARGS_MAX 32

struct fixture {
	struct stderr_fixture *errors;
	char *argv[ARGS_MAX + 1]; /* which options points into */
	struct options options;	  /* result of the latest accept() */
};

static inline int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	int err = stderr_setup(state);

	if (!fixture)
		return -1;
	fixture->errors = *state;
	*state = fixture;
	unsetenv("FERRUM_TRACE_OUT");
	unsetenv("FERRUM_PROFILE_JSONL");
	unsetenv("FBT_UPROBES");
	unsetenv("FERRUM_BPFTRACE_FLAG");
	log_set_level(LOG_INFO);
	return err;
}

static inline void forget_options(struct fixture *fixture)
{
	options_clear(&fixture->options);
	memset(&fixture->options, 0, sizeof(fixture->options));
}

static inline int teardown(void **state)
{
	struct fixture *fixture = *state;

	forget_options(fixture);
	*state = fixture->errors;
	free(fixture);
	return stderr_teardown(state);
}

static inline struct stderr_fixture *errors_of(void **state)
{
	return ((struct fixture *)*state)->errors;
}

static inline int fill_argv(char **argv, va_list args)
{
	int argc = 1;

	argv[0] = (char *)"ferrum-bpftrace";
	while ((argv[argc] = va_arg(args, char *)))
		assert_true(++argc < ARGS_MAX);
	return argc;
}

/*
 * Parses the arguments in a child, because argp may exit. Returns the child's exit status: 0 if the
 * arguments were parsed, 2 for -EINVAL as in main(). stdout goes to stderr.
 */
static inline int parse_in_child(char **argv, int argc)
{
	struct options options;
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		status = options_parse(&options, argc, argv);
		options_clear(&options);
		_exit(!status ? 0 : status == -EINVAL ? 2 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Expects that the arguments are refused with one line that contains part. */
static inline void refuse(void **state, const char *part, ...)
{
	char *argv[ARGS_MAX + 1];
	va_list args;
	int argc;

	va_start(args, part);
	argc = fill_argv(argv, args);
	va_end(args);
	assert_int_equal(parse_in_child(argv, argc), 2);
	assert_one_line(errors_of(state), part);
}

/* Expects that argp exits with that status and prints part. */
static inline void end(void **state, int status, const char *part, ...)
{
	char *argv[ARGS_MAX + 1];
	va_list args;
	int argc;

	va_start(args, part);
	argc = fill_argv(argv, args);
	va_end(args);
	assert_int_equal(parse_in_child(argv, argc), status);
	assert_non_null(strstr(stderr_text(errors_of(state)), part));
}

/*
 * Expects that the arguments are accepted without a message. The result is valid until the next
 * call.
 */
static inline const struct options *accept(void **state, ...)
{
	struct fixture *fixture = *state;
	va_list args;
	int argc;

	va_start(args, state);
	argc = fill_argv(fixture->argv, args);
	va_end(args);
	/* A child parses them first, because argp would end the test if it refused one. */
	assert_int_equal(parse_in_child(fixture->argv, argc), 0);
	forget_options(fixture);
	assert_int_equal(options_parse(&fixture->options, argc, fixture->argv), 0);
	assert_silent(fixture->errors);
	return &fixture->options;
}

#define REFUSED(name, part, ...)                                                                   \
	static void name(void **state)                                                             \
	{                                                                                          \
		refuse(state, part, ##__VA_ARGS__, NULL);                                          \
	}

#endif
