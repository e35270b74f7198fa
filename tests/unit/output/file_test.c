/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Files are written under a temporary name, and put in place when they are whole. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gzip.h"
#include "output/file.h"
#include "output_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void free_accepts_null(void **state)
{
	(void)state;
	output__free(NULL);
}

static void create_refuses_a_file_that_another_run_is_writing(void **state)
{
	struct fixture *fixture = *state;
	struct output *first = NULL, *second = NULL;

	assert_int_equal(output__create(&first, fixture->path), 0);
	assert_int_equal(output__create(&second, fixture->path), -EBUSY);
	assert_null(second);
	assert_one_message(fixture, "another ferrum-bpftrace");
	fputs("whole", output__file(first));
	assert_int_equal(output__commit(first), 0);
	output__free(first);
	assert_text(fixture->path, "whole");
}

static void create_replaces_the_temporary_file_of_a_killed_run(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;
	char old[128];

	write_text(fixture->partial, "left over and longer than what comes");
	assert_int_equal(output__create(&output, fixture->path), 0);
	assert_one_message(fixture, "/trace.json: what a run that was killed had written is kept "
				    "as old.trace.json.partial\n");
	fputs("new", output__file(output));
	assert_int_equal(output__commit(output), 0);
	output__free(output);
	assert_text(fixture->path, "new");
	assert_false(exists(fixture->partial));
	snprintf(old, sizeof(old), "%s/old.trace.json.partial", fixture->dir);
	assert_text(old, "left over and longer than what comes");
}

static void commit_reports_a_full_device(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	assert_int_equal(output__create(&output, "/dev/full"), 0);
	fputs("data", output__file(output));
	assert_int_equal(output__commit(output), -ENOSPC);
	output__free(output);
	assert_one_message(fixture, "/dev/full: No space left on device");
}

static void commit_on_a_full_disk_names_the_partial_file(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;
	static const char block[65536];
	struct stat file;

	if (geteuid() || mount("tmpfs", fixture->dir, "tmpfs", 0, "size=128k"))
		skip();
	write_text(fixture->path, "earlier");
	assert_int_equal(output__create(&output, fixture->path), 0);
	for (int i = 0; i < 8; i++)
		fwrite(block, 1, sizeof(block), output__file(output));
	assert_true(output__commit(output) < 0);
	output__free(output);
	assert_one_message(fixture, ".partial");
	assert_text(fixture->path, "earlier");
	assert_int_equal(stat(fixture->partial, &file), 0);
	assert_true(file.st_size > 0);
	umount(fixture->dir);
}

static void without_commit_the_temporary_file_stays_readable(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	write_text(fixture->path, "earlier");
	assert_int_equal(output__create(&output, fixture->path), 0);
	fputs("half", output__file(output));
	output__free(output);
	assert_text(fixture->path, "earlier");
	assert_text(fixture->partial, "half");
}

static void without_commit_an_empty_temporary_file_goes(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	assert_int_equal(output__create(&output, fixture->path), 0);
	assert_true(exists(fixture->partial));
	output__free(output);
	assert_false(exists(fixture->partial));
}

/*
 * A file appears under the name while the document is written. Neither the file nor the document
 * may be lost.
 */
static void assert_kept(struct fixture *fixture, struct output *output)
{
	fputs("document", output__file(output));
	assert_int_equal(output__commit(output), -EEXIST);
	output__free(output);
	assert_one_message(fixture, "has that name");
	assert_text(fixture->partial, "document");
}

static void commit_leaves_a_strangers_file_alone(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	if (geteuid())
		skip();
	assert_int_equal(chmod(fixture->dir, 01777), 0);
	assert_int_equal(output__create(&output, fixture->path), 0);
	write_text(fixture->path, "theirs");
	assert_int_equal(chown(fixture->path, 12345, 12345), 0);
	assert_kept(fixture, output);
	assert_text(fixture->path, "theirs");
}

static void commit_leaves_a_link_alone(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;
	struct stat file;

	assert_int_equal(output__create(&output, fixture->path), 0);
	assert_int_equal(symlink("/nowhere", fixture->path), 0);
	assert_kept(fixture, output);
	assert_int_equal(lstat(fixture->path, &file), 0);
	assert_true(S_ISLNK(file.st_mode));
}

static void commit_leaves_a_file_with_two_names_alone(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;
	char other[128];

	snprintf(other, sizeof(other), "%s/other", fixture->dir);
	write_text(fixture->path, "earlier");
	assert_int_equal(output__create(&output, fixture->path), 0);
	assert_int_equal(link(fixture->path, other), 0);
	assert_kept(fixture, output);
	assert_text(fixture->path, "earlier");
}

static void commit_tells_of_a_temporary_file_that_was_replaced(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	assert_int_equal(output__create(&output, fixture->path), 0);
	assert_int_equal(unlink(fixture->partial), 0);
	assert_int_equal(symlink("/nowhere", fixture->partial), 0);
	fputs("document", output__file(output));
	assert_int_equal(output__commit(output), -ESTALE);
	output__free(output);
	assert_one_message(fixture, "has replaced");
	assert_false(exists(fixture->path));
}

static void append_keeps_what_is_there(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	write_text(fixture->path, "one\n");
	assert_int_equal(output__append(&output, fixture->path), 0);
	assert_null(output__file(output));
	assert_int_equal(write(output__fd(output), "two\n", 4), 4);
	assert_int_equal(output__commit(output), 0);
	output__free(output);
	assert_text(fixture->path, "one\ntwo\n");
}

/* Its member has no end yet, as that of a run that was killed. */
static void append_refuses_a_compressed_file_that_another_run_is_writing(void **state)
{
	struct fixture *fixture = *state;
	struct output *first = NULL, *second = NULL;
	char path[128], text[32] = "";
	FILE *in;

	snprintf(path, sizeof(path), "%s/profile.jsonl.gz", fixture->dir);
	assert_int_equal(output__append(&first, path), 0);
	fputs("one\n", output__file(first));
	fflush(output__file(first));
	assert_int_equal(output__append(&second, path), -EBUSY);
	assert_null(second);
	assert_one_message(fixture, "another ferrum-bpftrace");
	fputs("two\n", output__file(first));
	assert_int_equal(output__commit(first), 0);
	output__free(first);
	in = gzip_open_input(path);
	assert_non_null(in);
	assert_int_equal(fread(text, 1, sizeof(text) - 1, in), 8);
	fclose(in);
	assert_string_equal(text, "one\ntwo\n");
}

/* What the last second had is flushed also if no further piece comes. */
static void a_writer_flushes_when_it_is_polled(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;
	struct writer writer = {.flushed_ns = clock_ns(CLOCK_MONOTONIC)};

	assert_int_equal(output__create(&output, fixture->path), 0);
	writer.file = output__file(output);
	writer_begin(&writer);
	fputs("piece", writer.file);
	assert_int_equal(writer_end(&writer), 0);
	assert_int_equal(writer_poll(&writer), 0);
	assert_text(fixture->partial, "");
	writer.flushed_ns -= NS_PER_S;
	assert_int_equal(writer_poll(&writer), 0);
	assert_text(fixture->partial, "piece");
	output__discard(output);
}

static void append_ends_a_line_that_was_cut_off(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	write_text(fixture->path, "one\n{\"half");
	assert_int_equal(output__append(&output, fixture->path), 0);
	assert_int_equal(write(output__fd(output), "two\n", 4), 4);
	output__free(output);
	assert_text(fixture->path, "one\n{\"half\ntwo\n");
}

static void a_character_device_is_written_to_as_it_is(void **state)
{
	struct output *output = NULL;

	(void)state;
	assert_int_equal(output__create(&output, "/dev/null"), 0);
	fputs("data", output__file(output));
	assert_int_equal(output__commit(output), 0);
	output__free(output);
	assert_false(exists("/dev/null.partial"));
}

static void discard_leaves_nothing_that_was_not_there(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	assert_int_equal(output__create(&output, fixture->path), 0);
	fputs("[", output__file(output));
	output__discard(output);
	assert_false(exists(fixture->partial));
	assert_false(exists(fixture->path));
	assert_int_equal(output__append(&output, fixture->path), 0);
	output__discard(output);
	assert_false(exists(fixture->path));
}

static void discard_keeps_a_profile_that_was_there(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;

	close(open(fixture->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(output__append(&output, fixture->path), 0);
	output__discard(output);
	assert_true(exists(fixture->path));
}

static void a_descriptor_path_is_written_to_as_it_is(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;
	char path[32];
	int fd = open(fixture->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	assert_int_equal(output__create(&output, path), 0);
	fputs("data", output__file(output));
	assert_int_equal(output__commit(output), 0);
	output__free(output);
	close(fd);
	assert_text(fixture->path, "data");
}

static void a_fifo_is_written_to_as_it_is(void **state)
{
	struct fixture *fixture = *state;
	struct output *output = NULL;
	char text[8] = "";
	int reader;

	assert_int_equal(mkfifo(fixture->path, 0600), 0);
	reader = open(fixture->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0);
	assert_int_equal(output__append(&output, fixture->path), 0);
	assert_int_equal(write(output__fd(output), "line\n", 5), 5);
	output__free(output);
	assert_int_equal(read(reader, text, sizeof(text)), 5);
	close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(free_accepts_null),
		TEST(create_refuses_a_file_that_another_run_is_writing),
		TEST(create_replaces_the_temporary_file_of_a_killed_run),
		TEST(commit_reports_a_full_device),
		TEST(commit_on_a_full_disk_names_the_partial_file),
		TEST(without_commit_the_temporary_file_stays_readable),
		TEST(without_commit_an_empty_temporary_file_goes),
		TEST(commit_leaves_a_strangers_file_alone),
		TEST(commit_leaves_a_link_alone),
		TEST(commit_leaves_a_file_with_two_names_alone),
		TEST(commit_tells_of_a_temporary_file_that_was_replaced),
		TEST(append_keeps_what_is_there),
		TEST(a_writer_flushes_when_it_is_polled),
		TEST(append_ends_a_line_that_was_cut_off),
		TEST(append_refuses_a_compressed_file_that_another_run_is_writing),
		TEST(a_character_device_is_written_to_as_it_is),
		TEST(discard_leaves_nothing_that_was_not_there),
		TEST(discard_keeps_a_profile_that_was_there),
		TEST(a_descriptor_path_is_written_to_as_it_is),
		TEST(a_fifo_is_written_to_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
