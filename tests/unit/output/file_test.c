/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "output/file.h"
#include "output_fixture.h"

/* --- making a file and putting it in place --------------------------------------------------- */

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

	write_text(fixture->partial, "left over and longer than what comes");
	assert_int_equal(output__create(&output, fixture->path), 0);
	fputs("new", output__file(output));
	assert_int_equal(output__commit(output), 0);
	output__free(output);
	assert_text(fixture->path, "new");
	assert_false(exists(fixture->partial));
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

/* --- the files of a window, as the report lists them ------------------------------------------ */

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

/* --- the room on a disk ---------------------------------------------------------------------- */

/* More than any disk has. */
#define TOO_MUCH (UINT64_MAX - 1)

static void pipes_and_devices_have_no_limit(void **state)
{
	int ends[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const struct disk_room none = disk_room_of(-1, TOO_MUCH);
	struct disk_room room;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	room = disk_room_of(ends[1], TOO_MUCH);
	assert_true(room.free_bytes == UINT64_MAX);
	assert_false(disk_room_is_low(&room));
	room = disk_room_of(null, TOO_MUCH);
	assert_false(disk_room_is_low(&room));
	assert_false(disk_room_is_low(&none));
	close(ends[0]);
	close(ends[1]);
	close(null);
}

/* The room in /tmp, where /tmp has a limit. */
static struct disk_room room_of_tmp(uint64_t keep_bytes, uint64_t *size_bytes)
{
	int fd = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct disk_room room = disk_room_of(fd, keep_bytes);
	struct statvfs system;

	assert_true(fd >= 0);
	assert_int_equal(fstatvfs(fd, &system), 0);
	close(fd);
	*size_bytes = (uint64_t)system.f_blocks * system.f_frsize;
	if (!*size_bytes)
		skip();
	return room;
}

static void what_is_asked_for_is_kept(void **state)
{
	uint64_t size_bytes;
	struct disk_room room = room_of_tmp(TOO_MUCH, &size_bytes);

	(void)state;
	assert_true(room.free_bytes <= size_bytes);
	assert_true(room.keep_bytes == TOO_MUCH);
	assert_true(disk_room_is_low(&room));
	room = room_of_tmp(0, &size_bytes);
	assert_false(disk_room_is_low(&room));
}

static void by_default_a_20th_is_kept_but_no_more_than_a_gib(void **state)
{
	uint64_t size_bytes;
	struct disk_room room = room_of_tmp(DISK_ROOM_DEFAULT, &size_bytes);

	(void)state;
	assert_true(room.keep_bytes <= size_bytes / 20);
	assert_true(room.keep_bytes == size_bytes / 20 || room.keep_bytes == 1ull << 30);
}

static void room_is_low_where_less_is_free_than_kept(void **state)
{
	(void)state;
	assert_true(disk_room_is_low(&(struct disk_room){.free_bytes = 99, .keep_bytes = 100}));
	assert_false(disk_room_is_low(&(struct disk_room){.free_bytes = 100, .keep_bytes = 100}));
	assert_false(disk_room_is_low(&(struct disk_room){.free_bytes = 0, .keep_bytes = 0}));
}

static void it_says_what_is_free_what_is_kept_and_what_to_do(void **state)
{
	const struct disk_room room = {.free_bytes = 300 << 20, .keep_bytes = 1 << 30};

	disk_room_tell(&room, "a/trace.json", ": so there");
	assert_one_message(*state,
			   "a/trace.json: 300 MiB free on its disk, less than the 1.00 GiB to "
			   "keep free: so there; free some space");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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
		TEST(append_ends_a_line_that_was_cut_off),
		TEST(a_character_device_is_written_to_as_it_is),
		TEST(discard_leaves_nothing_that_was_not_there),
		TEST(discard_keeps_a_profile_that_was_there),
		TEST(a_descriptor_path_is_written_to_as_it_is),
		TEST(a_fifo_is_written_to_as_it_is),
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
		cmocka_unit_test(pipes_and_devices_have_no_limit),
		cmocka_unit_test(what_is_asked_for_is_kept),
		cmocka_unit_test(by_default_a_20th_is_kept_but_no_more_than_a_gib),
		cmocka_unit_test(room_is_low_where_less_is_free_than_kept),
		TEST(it_says_what_is_free_what_is_kept_and_what_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
