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
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include "dir_fixture.h"
#include "watch/dumps.h"

#define STEM(second) "ferrum_watch_20261125T22032" #second "123Z_4711_hang"
#define BLOCK	     8192

static void make_file(const char *name)
{
	char block[BLOCK];
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_EXCL, 0600);

	memset(block, 'x', sizeof(block));
	assert_int_equal(write(fd, block, sizeof(block)), BLOCK);
	close(fd);
}

static void a_stem_is_found_in_its_own_names_only(void **state)
{
	static const char *const good[] = {"_calls.fbt.gz", "_sample.html", ".trace.json.gz",
					   ".pftrace.gz",   ".jsonl.gz",    ".html"};
	static const char *const bad[] = {
		"ferrum_watch_",
		"ferrum_watch_x",
		"ferrum_trace_pid7_1.json",
		STEM(1),
		STEM(1) ".html.bak",
		STEM(1) ".html.partial.x",
		STEM(1) ".txt",
		STEM(1) "_other.html",
		"x" STEM(1) ".html",
		"ferrum_watch_20261125T22032_4711_hang.html",
		"ferrum_watch_20261125T220321123Z__hang.html",
		"ferrum_watch_20261125T220321123Z_4711_.html",
		"ferrum_watch_20261125T220321123Z_4711_party.html",
		"ferrum_watch_2026112aT220321123Z_4711_hang.html",
	};
	char name[128];
	bool is_partial;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		snprintf(name, sizeof(name), STEM(1) "%s", good[i]);
		assert_int_equal(dump_stem_of(name, &is_partial), strlen(STEM(1)));
		assert_false(is_partial);
		strcat(name, ".partial");
		assert_int_equal(dump_stem_of(name, &is_partial), strlen(STEM(1)));
		assert_true(is_partial);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (dump_stem_of(bad[i], &is_partial))
			fail_msg("taken for one of ours: %s", bad[i]);
	}
}

static void a_stem_is_made_of_time_process_and_reason(void **state)
{
	char stem[DUMP_STEM_MAX], name[128];
	bool is_partial;

	dump_stem(stem, 1795644207123456789ull, 4294967295u, "escalation");
	assert_string_equal(stem, "ferrum_watch_20261125T220327123Z_4294967295_escalation");
	snprintf(name, sizeof(name), "%s.html", stem);
	assert_int_equal(dump_stem_of(name, &is_partial), strlen(stem));
}

static void the_oldest_are_deleted_whole(void **state)
{
	const struct dump_limits limits = {2, UINT64_MAX};
	struct dump_usage usage;

	make_file(STEM(1) ".html");
	make_file(STEM(1) "_calls.fbt.gz");
	make_file(STEM(2) ".html");
	make_file(STEM(3) ".html");
	assert_int_equal(dumps_make_room(dir, &limits, 0, NULL, &usage), 0);
	assert_int_equal(usage.deleted, 1);
	assert_int_equal(usage.dumps, 2);
	assert_int_equal(usage.bytes, 2 * BLOCK);
	assert_false(is_there(STEM(1) ".html"));
	assert_false(is_there(STEM(1) "_calls.fbt.gz"));
	assert_true(is_there(STEM(2) ".html"));
	/* Room for one more. */
	assert_int_equal(dumps_make_room(dir, &limits, 1, STEM(4), &usage), 0);
	assert_false(is_there(STEM(2) ".html"));
	assert_true(is_there(STEM(3) ".html"));
	/* It has begun: its other files need none. */
	make_file(STEM(4) ".html");
	assert_int_equal(dumps_make_room(dir, &limits, 1, STEM(4), &usage), 0);
	assert_int_equal(usage.deleted, 0);
}

static void the_space_is_limited(void **state)
{
	const struct dump_limits limits = {100, 3 * BLOCK};
	struct dump_usage usage;

	make_file(STEM(1) ".html");
	make_file(STEM(2) ".html");
	make_file(STEM(3) ".html");
	assert_int_equal(dumps_make_room(dir, &limits, 0, NULL, &usage), 0);
	assert_int_equal(usage.deleted, 0);
	assert_int_equal(dumps_make_room(dir, &limits, BLOCK + 1, NULL, &usage), 0);
	assert_int_equal(usage.deleted, 2);
	assert_true(is_there(STEM(3) ".html"));
	/* More than all of it, with what it has already: nothing is deleted for it. */
	make_file(STEM(4) ".html");
	assert_int_equal(dumps_make_room(dir, &limits, 2 * BLOCK + 1, STEM(4), &usage), -ENOSPC);
	assert_int_equal(dumps_make_room(dir, &limits, 3 * BLOCK + 1, NULL, &usage), -ENOSPC);
	assert_int_equal(usage.deleted, 0);
	assert_true(is_there(STEM(3) ".html"));
}

/* Sets when a file was written last, in seconds. */
static void set_time(const char *name, time_t seconds)
{
	const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};

	assert_int_equal(utimensat(AT_FDCWD, path_of(name), times, 0), 0);
}

#define MILD(second) "ferrum_watch_20261125T22032" #second "123Z_4711_escalation"
#define HAND(second) "ferrum_watch_20261125T22032" #second "123Z_4711_manual"

static void escalations_go_before_hangs_and_what_was_asked_for(void **state)
{
	struct dump_limits limits = {3, UINT64_MAX};
	struct dump_usage usage;

	make_file(STEM(1) ".html");
	make_file(HAND(2) ".html");
	make_file(MILD(3) ".html");
	make_file(MILD(4) ".html");
	assert_int_equal(dumps_make_room(dir, &limits, 1, MILD(5), &usage), 0);
	assert_int_equal(usage.deleted, 2);
	assert_true(is_there(STEM(1) ".html"));
	assert_true(is_there(HAND(2) ".html"));
	make_file(MILD(5) ".html");
	limits.dumps = 1;
	assert_int_equal(dumps_make_room(dir, &limits, 0, MILD(5), &usage), 0);
	/* The one that was just written stays, whatever it is. */
	assert_true(is_there(MILD(5) ".html"));
	assert_int_equal(usage.dumps, 1);
}

/* The clock was ahead once: the names of the dumps of then are later. */
static void the_oldest_is_the_one_that_was_written_first(void **state)
{
	const struct dump_limits limits = {2, UINT64_MAX};
	struct dump_usage usage;

	make_file(STEM(8) ".html");
	make_file(STEM(8) "_calls.html");
	make_file(STEM(9) ".html");
	make_file(STEM(1) ".html");
	set_time(STEM(8) ".html", 1000);
	/* Of one dump, the file that came last tells. */
	set_time(STEM(8) "_calls.html", 5000);
	set_time(STEM(9) ".html", 2000);
	set_time(STEM(1) ".html", 3000);
	assert_int_equal(dumps_make_room(dir, &limits, 0, NULL, &usage), 0);
	assert_false(is_there(STEM(9) ".html"));
	assert_true(is_there(STEM(1) ".html"));
	assert_true(is_there(STEM(8) ".html"));
}

static void what_is_from_the_future_goes_first(void **state)
{
	const struct dump_limits limits = {2, UINT64_MAX};
	struct dump_usage usage;

	make_file(STEM(1) ".html");
	make_file(STEM(2) ".html");
	make_file(STEM(9) ".html");
	set_time(STEM(1) ".html", 1000);
	set_time(STEM(9) ".html", time(NULL) + 86400);
	assert_int_equal(dumps_make_room(dir, &limits, 0, NULL, &usage), 0);
	assert_true(is_there(STEM(1) ".html"));
	assert_true(is_there(STEM(2) ".html"));
	assert_false(is_there(STEM(9) ".html"));
}

/* Half of what is free is to be kept free. */
static void the_disk_is_not_filled(void **state)
{
	struct dump_limits limits = {100, UINT64_MAX, 0};
	struct dump_usage usage;
	struct statvfs disk;
	uint64_t free_bytes;

	assert_int_equal(statvfs(dir, &disk), 0);
	free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
	limits.keep_free = free_bytes / 2;
	make_file(STEM(1) ".html");
	assert_int_equal(dumps_make_room(dir, &limits, free_bytes / 4, NULL, &usage), 0);
	/* What could be deleted is not enough, so it stays. */
	assert_int_equal(dumps_make_room(dir, &limits, free_bytes, NULL, &usage), -EDQUOT);
	assert_int_equal(usage.deleted, 0);
	assert_true(is_there(STEM(1) ".html"));
	limits.keep_free = 0;
	assert_int_equal(dumps_make_room(dir, &limits, free_bytes / 4, NULL, &usage), 0);
	/* Files that are there already are left alone. */
	limits.keep_free = 2 * free_bytes;
	assert_int_equal(dumps_make_room(dir, &limits, 0, NULL, &usage), 0);
	assert_true(is_there(STEM(1) ".html"));
}

static void nothing_else_is_deleted(void **state)
{
	const struct dump_limits limits = {1, UINT64_MAX};
	struct dump_usage usage;
	char outside[80];

	snprintf(outside, sizeof(outside), "%s/outside", dir);
	make_file("outside");
	make_file("ferrum_trace_pid7_1.json");
	make_file(STEM(1) ".txt");
	assert_int_equal(symlink(outside, path_of(STEM(1) ".html")), 0);
	assert_int_equal(mkdir(path_of(STEM(2) ".html"), 0700), 0);
	assert_int_equal(mkfifo(path_of(STEM(3) ".html"), 0600), 0);
	make_file(STEM(4) ".html");
	make_file(STEM(5) ".html");
	assert_int_equal(dumps_make_room(dir, &limits, 0, NULL, &usage), 0);
	assert_int_equal(usage.deleted, 1);
	assert_false(is_there(STEM(4) ".html"));
	assert_true(is_there(STEM(5) ".html"));
	assert_true(is_there("outside"));
	assert_true(is_there("ferrum_trace_pid7_1.json"));
	assert_true(is_there(STEM(1) ".txt"));
	assert_true(is_there(STEM(1) ".html"));
	assert_true(is_there(STEM(2) ".html"));
	assert_true(is_there(STEM(3) ".html"));
}

static void files_of_others_are_left_alone(void **state)
{
	const struct dump_limits limits = {1, UINT64_MAX};
	struct dump_usage usage;

	if (geteuid())
		skip();
	make_file(STEM(1) ".html");
	assert_int_equal(chown(path_of(STEM(1) ".html"), 12345, 12345), 0);
	make_file(STEM(2) ".html");
	make_file(STEM(3) ".html");
	assert_int_equal(dumps_make_room(dir, &limits, 0, NULL, &usage), 0);
	assert_true(is_there(STEM(1) ".html"));
	assert_false(is_there(STEM(2) ".html"));
	assert_true(is_there(STEM(3) ".html"));
}

#define IN_FOLDER(name) DUMPS_FOLDER "/" name

static void make_unfinished(void)
{
	assert_int_equal(mkdir(path_of(DUMPS_FOLDER), 0700), 0);
	make_file(IN_FOLDER(STEM(1) ".html"));
	make_file(IN_FOLDER(STEM(1) ".fbt.gz"));
	make_file(IN_FOLDER(STEM(1) ".trace.json.gz.partial"));
	make_file(IN_FOLDER("other.html"));
}

static void incomplete_files_are_swept(void **state)
{
	make_unfinished();
	make_file(STEM(2) ".html");
	dumps_sweep(dir, NULL);
	assert_true(is_there(STEM(2) ".html"));
	assert_false(is_there(IN_FOLDER(STEM(1) ".html")));
	assert_false(is_there(IN_FOLDER(STEM(1) ".trace.json.gz.partial")));
	assert_true(is_there(IN_FOLDER("other.html")));
}

static void what_is_complete_is_published(void **state)
{
	make_unfinished();
	assert_int_equal(dumps_publish(dir, NULL, true), 0);
	assert_true(is_there(STEM(1) ".fbt.gz"));
	assert_false(is_there(STEM(1) ".html"));
	assert_int_equal(dumps_publish(dir, NULL, false), 0);
	assert_true(is_there(STEM(1) ".html"));
	assert_false(is_there(STEM(1) ".trace.json.gz"));
	assert_false(is_there("other.html"));
}

/* Of two that write into one directory, none touches what the other has not completed. */
static void another_watch_is_left_alone(void **state)
{
	int first, second;

	make_unfinished();
	make_file(IN_FOLDER(STEM(2) ".html"));
	assert_int_equal(dumps_publish(dir, STEM(2), false), 0);
	assert_true(is_there(STEM(2) ".html"));
	assert_true(is_there(IN_FOLDER(STEM(1) ".fbt.gz")));
	dumps_sweep(dir, STEM(2));
	assert_true(is_there(IN_FOLDER(STEM(1) ".trace.json.gz.partial")));
	first = dumps_enter(dir);
	assert_in_range(first, 0, 1000);
	assert_true(is_there(STEM(1) ".fbt.gz"));
	assert_false(is_there(IN_FOLDER(STEM(1) ".html")));
	make_file(IN_FOLDER(STEM(1) ".html"));
	second = dumps_enter(dir);
	assert_in_range(second, 0, 1000);
	assert_true(is_there(IN_FOLDER(STEM(1) ".html")));
	close(first);
	close(second);
	close(dumps_enter(dir));
	assert_false(is_there(IN_FOLDER(STEM(1) ".html")));
}

/* One line, not one of safe_file about a file that nobody has named. */
static void a_directory_that_cannot_be_used_is_refused(void **state)
{
	char path[80], expected[256];

	make_file("file");
	snprintf(path, sizeof(path), "%s/file", dir);
	snprintf(expected, sizeof(expected),
		 "dir %s: dumps cannot be written there: Not a directory; choose another --dir\n",
		 path);
	assert_int_equal(dumps_enter(path), -ENOTDIR);
	assert_one_line(*state, expected);
}

static void nothing_is_published_over_another_file(void **state)
{
	char target[8];

	make_unfinished();
	assert_int_equal(symlink("outside", path_of(STEM(1) ".fbt.gz")), 0);
	assert_int_equal(dumps_publish(dir, NULL, true), -EEXIST);
	assert_int_equal(readlink(path_of(STEM(1) ".fbt.gz"), target, sizeof(target)), 7);
	assert_true(is_there(IN_FOLDER(STEM(1) ".fbt.gz")));
}

static void a_directory_that_is_missing_is_made(void **state)
{
	const struct dump_limits limits = {1, UINT64_MAX};
	struct dump_usage usage;
	char path[80];

	snprintf(path, sizeof(path), "%s/a/b", dir);
	assert_int_equal(dumps_make_room(path, &limits, 1, NULL, &usage), 0);
	assert_int_equal(usage.dumps, 0);
	assert_true(is_there("a/b"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)
	const struct CMUnitTest tests[] = {
		TEST(a_stem_is_found_in_its_own_names_only),
		TEST(a_stem_is_made_of_time_process_and_reason),
		TEST(the_oldest_are_deleted_whole),
		TEST(the_space_is_limited),
		TEST(escalations_go_before_hangs_and_what_was_asked_for),
		TEST(the_oldest_is_the_one_that_was_written_first),
		TEST(what_is_from_the_future_goes_first),
		TEST(the_disk_is_not_filled),
		TEST(nothing_else_is_deleted),
		TEST(files_of_others_are_left_alone),
		TEST(incomplete_files_are_swept),
		TEST(what_is_complete_is_published),
		TEST(another_watch_is_left_alone),
		TEST(a_directory_that_cannot_be_used_is_refused),
		TEST(nothing_is_published_over_another_file),
		TEST(a_directory_that_is_missing_is_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
