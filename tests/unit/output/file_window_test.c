/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The files of a window, as the report lists them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "output/file.h"
#include "output_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static struct window_file open_trace(const struct fixture *fixture)
{
	struct window_file file = {.name = "trace", .path = strdup(fixture->path)};

	assert_non_null(file.path);
	assert_int_equal(output__create(&file.output, file.path), 0);
	return file;
}

/* Expects the line "trace PATH", followed by rest. */
static void assert_line(struct fixture *fixture, struct window_file *file, const char *rest)
{
	char line[512];

	snprintf(line, sizeof(line), "trace    %s%s", fixture->path, rest);
	assert_string_equal(file->line, line);
	window_file_clear(file, output__free);
}

static void a_file_that_is_not_open_has_no_line(void **state)
{
	struct window_file file = {.name = "trace"};

	(void)state;
	assert_int_equal(window_file_settle(&file, NULL, true), 0);
	assert_null(file.line);
	window_file_clear(&file, output__free);
}

static void a_whole_file_has_its_name(void **state)
{
	struct fixture *fixture = *state;
	struct window_file file = open_trace(fixture);

	fputs("document", output__file(file.output));
	assert_int_equal(window_file_settle(&file, NULL, true), 0);
	assert_line(fixture, &file, "");
	assert_text(fixture->path, "document");
}

static void a_file_that_ended_early_and_is_whole_has_its_name(void **state)
{
	struct fixture *fixture = *state;
	struct window_file file = open_trace(fixture);

	fputs("document", output__file(file.output));
	assert_int_equal(window_file_settle(&file, "so it is", true), 0);
	assert_line(fixture, &file, " (ended early: so it is)");
	assert_text(fixture->path, "document");
}

static void a_file_that_is_not_whole_has_its_temporary_name(void **state)
{
	struct fixture *fixture = *state;
	struct window_file file = open_trace(fixture);

	fputs("half", output__file(file.output));
	assert_int_equal(window_file_settle(&file, "so it is", false), -EIO);
	assert_line(fixture, &file, ".partial (ended early: so it is)");
	assert_text(fixture->partial, "half");
	assert_false(exists(fixture->path));
	assert_one_message(fixture, "incomplete;");
}

static void a_file_whose_place_is_taken_has_its_temporary_name(void **state)
{
	struct fixture *fixture = *state;
	struct window_file file = open_trace(fixture);

	fputs("document", output__file(file.output));
	assert_int_equal(mkdir(fixture->path, 0700), 0);
	assert_int_equal(window_file_settle(&file, NULL, true), -EEXIST);
	assert_line(fixture, &file, ".partial (not renamed: something else has that name)");
	assert_text(fixture->partial, "document");
}

static void a_file_that_was_removed_is_not_there(void **state)
{
	struct fixture *fixture = *state;
	struct window_file file = open_trace(fixture);

	fputs("document", output__file(file.output));
	assert_int_equal(unlink(fixture->partial), 0);
	assert_int_equal(window_file_settle(&file, NULL, true), -ENOENT);
	assert_line(fixture, &file, " (not there: it was removed)");
}

static void a_file_that_was_replaced_is_not_there(void **state)
{
	struct fixture *fixture = *state;
	struct window_file file = open_trace(fixture);

	fputs("document", output__file(file.output));
	assert_int_equal(unlink(fixture->partial), 0);
	assert_int_equal(symlink("/nowhere", fixture->partial), 0);
	assert_int_equal(window_file_settle(&file, NULL, true), -ESTALE);
	assert_line(fixture, &file, " (not there: another user has replaced it)");
}

/* The temporary file is removed together with the output, so no message may name it. */
static void a_file_that_nothing_was_written_to_is_not_there(void **state)
{
	const struct rlimit none = {0, RLIM_INFINITY};
	struct fixture *fixture = *state;
	struct window_file file = open_trace(fixture);
	struct rlimit before;
	int err;

	fputs("document", output__file(file.output));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &none);
	(void)fflush(output__file(file.output));
	err = window_file_settle(&file, "File too large", false);
	output__free(file.output);
	setrlimit(RLIMIT_FSIZE, &before);
	file.output = NULL;
	assert_int_equal(err, -EIO);
	assert_line(fixture, &file, " (not there: File too large)");
	assert_false(exists(fixture->partial));
}

static void a_device_has_its_name(void **state)
{
	struct window_file file = {.name = "record", .path = strdup("/dev/full")};

	(void)state;
	assert_int_equal(output__create(&file.output, file.path), 0);
	fputs("document", output__file(file.output));
	assert_int_equal(window_file_settle(&file, "it is full", true), -ENOSPC);
	assert_string_equal(file.line, "record   /dev/full (ended early: it is full)");
	window_file_clear(&file, output__free);
}

static void lines_that_are_appended_have_their_name_while_it_is_there(void **state)
{
	struct fixture *fixture = *state;
	struct window_file file = {.name = "trace", .path = strdup(fixture->path)};

	assert_int_equal(output__append(&file.output, file.path), 0);
	assert_string_equal(output__where(file.output), fixture->path);
	assert_int_equal(unlink(fixture->path), 0);
	assert_null(output__where(file.output));
	assert_int_equal(window_file_settle(&file, NULL, true), -ENOENT);
	assert_line(fixture, &file, " (not there: it was removed)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_is_not_open_has_no_line),
		TEST(a_whole_file_has_its_name),
		TEST(a_file_that_ended_early_and_is_whole_has_its_name),
		TEST(a_file_that_is_not_whole_has_its_temporary_name),
		TEST(a_file_whose_place_is_taken_has_its_temporary_name),
		TEST(a_file_that_was_removed_is_not_there),
		TEST(a_file_that_was_replaced_is_not_there),
		TEST(a_file_that_nothing_was_written_to_is_not_there),
		TEST(a_device_has_its_name),
		TEST(lines_that_are_appended_have_their_name_while_it_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
