/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "commands/env_hash.h"
#include "base/log.h"
#include "stderr_fixture.h"

static const char entries_hash[] =
	"sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945\n";

static char path[] = "/tmp/env_hash_test.XXXXXX";

static void write_file(const char *text, size_t size)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_int_equal(write(fd, text, size), size);
	close(fd);
}

static void expect_printed(const char *name, const char *expected)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(env_hash_command(name, out), 0);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

/* Expects no output and one line on stderr. */
static void expect_refused(void **state, const char *name, int err, const char *reason)
{
	char *text, line[512];
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(env_hash_command(name, out), err);
	fclose(out);
	assert_string_equal(text, "");
	free(text);
	snprintf(line, sizeof(line), "ferrum-bpftrace: %s: %s\n", name ? name : "stdin", reason);
	assert_string_equal(stderr_text(*state), line);
}

static void env_hash_prints_the_hash_of_a_file(void **state)
{
	write_file("[ ]\n", 4);
	expect_printed(path, entries_hash);
	assert_silent(*state);
}

/* The command reads the test's standard input, which is the file. */
static void env_hash_reads_stdin_without_a_file_and_for_a_dash(void **state)
{
	int fd;

	for (int i = 0; i < 2; i++) {
		write_file("[]", 2);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
		close(fd);
		clearerr(stdin);
		expect_printed(i ? "-" : NULL, entries_hash);
	}
	write_file("", 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
	close(fd);
	clearerr(stdin);
	expect_refused(state, NULL, -EBADMSG, "empty: no environment document");
}

static void env_hash_refuses_a_folder(void **state)
{
	expect_refused(state, "/", -EISDIR, "Is a directory");
}

static void env_hash_refuses_a_file_that_is_not_there(void **state)
{
	expect_refused(state, "/nowhere/env.json", -ENOENT, "No such file or directory");
}

static void env_hash_refuses_a_file_it_may_not_read(void **state)
{
	if (geteuid() == 0) {
		/* Root can open every file, so this is a file whose read fails. */
		expect_refused(state, "/proc/self/mem", -EIO, "Input/output error");
		return;
	}
	chmod(path, 0);
	expect_refused(state, path, -EACCES, "Permission denied");
	chmod(path, 0600);
}

static void env_hash_refuses_an_empty_file(void **state)
{
	write_file("", 0);
	expect_refused(state, path, -EBADMSG, "empty: no environment document");
}

static void env_hash_refuses_nothing_but_space(void **state)
{
	write_file(" \n\t\r\n", 5);
	expect_refused(state, path, -EBADMSG, "empty: no environment document");
}

static void env_hash_refuses_what_is_no_json(void **state)
{
	write_file("hello", 5);
	expect_refused(state, path, -EBADMSG, "expected value at column 1");
}

static void env_hash_refuses_a_nul(void **state)
{
	write_file("[]\0", 3);
	expect_refused(state, path, -EBADMSG, "trailing characters at column 3");
}

static void env_hash_refuses_a_float_where_an_integer_belongs(void **state)
{
	static const char text[] =
		"{\"commit_sha\":\"\",\"hw_id\":\"\",\"rust\":\"\",\"ferrum_features\":[],"
		"\"gpu_power_limit_w\":350.0,\"ferrum_env\":{}}";

	write_file(text, strlen(text));
	expect_refused(state, path, -EBADMSG, "gpu_power_limit_w: expected u32, found 350.0");
}

static void env_hash_refuses_a_key_given_twice(void **state)
{
	static const char text[] = "{\"commit_sha\":\"\",\"commit_sha\":\"\"}";

	write_file(text, strlen(text));
	expect_refused(state, path, -EBADMSG, "duplicate field `commit_sha` at column 31");
}

static void env_hash_shows_no_control_characters_of_the_file(void **state)
{
	static const char text[] = "[{\"\\u001b[2J\\u0007\":1,\"key\":\"\",\"effective_value\":"
				   "\"\",\"source\":\"cli\","
				   "\"affects\":[]}]";

	write_file(text, strlen(text));
	expect_printed(path, "sha256:"
			     "3d8e2a01154c09120aa120df1d8b94e61afb74e2954e4d303af640e557e5570e\n");
	assert_one_line(*state, "does not know: [0].\\x1b[2J\\x07");
	assert_null(strchr(stderr_text(*state), '\x1b'));
}

static void env_hash_takes_no_more_than_its_bound(void **state)
{
	char *text = malloc(ENV_HASH_FILE_MAX + 1);

	memset(text, ' ', ENV_HASH_FILE_MAX + 1);
	memcpy(text, "[]", 2);
	write_file(text, ENV_HASH_FILE_MAX);
	expect_printed(path, entries_hash);
	write_file(text, ENV_HASH_FILE_MAX + 1);
	free(text);
	expect_refused(state, path, -EFBIG, "more than 16 MiB: no environment document");
}

static void env_hash_does_not_read_on_for_ever(void **state)
{
	expect_refused(state, "/dev/zero", -EFBIG, "more than 16 MiB: no environment document");
}

static void env_hash_says_that_it_could_not_print(void **state)
{
	FILE *full = fopen("/dev/full", "we");

	write_file("[]", 2);
	assert_int_equal(env_hash_command(path, full), -ENOSPC);
	fclose(full);
	assert_one_line(*state, "stdout: No space left on device");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(env_hash_prints_the_hash_of_a_file),
		TEST(env_hash_reads_stdin_without_a_file_and_for_a_dash),
		TEST(env_hash_refuses_a_folder),
		TEST(env_hash_refuses_a_file_that_is_not_there),
		TEST(env_hash_refuses_a_file_it_may_not_read),
		TEST(env_hash_refuses_an_empty_file),
		TEST(env_hash_refuses_nothing_but_space),
		TEST(env_hash_refuses_what_is_no_json),
		TEST(env_hash_refuses_a_nul),
		TEST(env_hash_refuses_a_float_where_an_integer_belongs),
		TEST(env_hash_refuses_a_key_given_twice),
		TEST(env_hash_shows_no_control_characters_of_the_file),
		TEST(env_hash_takes_no_more_than_its_bound),
		TEST(env_hash_does_not_read_on_for_ever),
		TEST(env_hash_says_that_it_could_not_print),
	};
	int failed;

	close(mkstemp(path));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
