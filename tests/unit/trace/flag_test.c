/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "trace/flag.h"
#include "base/log.h"
#include "stderr_fixture.h"

#define QUIET_NS 1000000000u
#define ALONE_NS 100000000u
#define WAIT_MS	 5000

struct fixture {
	struct stderr_fixture *errors;
	char dir[32];
	struct flag *flag;
};

/* The test runs in a folder of its own, which contains a folder "sub". */
static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture || stderr_setup((void **)&fixture->errors))
		return -1;
	log_set_level(LOG_INFO);
	strcpy(fixture->dir, "/tmp/fbt_flag_XXXXXX");
	if (!mkdtemp(fixture->dir) || chdir(fixture->dir) || mkdir("sub", 0700))
		return -1;
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	char command[64];

	flag__free(fixture->flag);
	stderr_teardown((void **)&fixture->errors);
	snprintf(command, sizeof(command), "rm -rf '%s'", fixture->dir);
	if (chdir("/") || system(command))
		return -1;
	free(fixture);
	return 0;
}

static void touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void watch(struct fixture *fixture, const char *path)
{
	assert_int_equal(flag__new(&fixture->flag, path), 0);
	assert_non_null(fixture->flag);
}

static void refuse(struct fixture *fixture, const char *path, const char *part)
{
	assert_true(flag__new(&fixture->flag, path) < 0);
	assert_null(fixture->flag);
	assert_one_line(fixture->errors, part);
}

/* Plays a process that has no descriptor left for inotify. */
static void watch_without_inotify(struct fixture *fixture, const char *path)
{
	struct rlimit old, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){0, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(flag__new(&fixture->flag, path), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(flag__fd(fixture->flag), -1);
	assert_int_equal(flag__turn_ns(fixture->flag), ALONE_NS);
}

static bool tells(const struct fixture *fixture, int wait_ms)
{
	struct pollfd news = {.fd = flag__fd(fixture->flag), .events = POLLIN};

	return poll(&news, 1, wait_ms) == 1;
}

static void free_accepts_null(void **state)
{
	flag__free(NULL);
}

static void a_file_that_comes_and_goes_is_seen(void **state)
{
	struct fixture *fixture = *state;

	watch(fixture, "flag");
	assert_int_equal(flag__look(fixture->flag), 0);
	touch("flag");
	assert_int_equal(flag__look(fixture->flag), 1);
	assert_int_equal(flag__look(fixture->flag), 1);
	unlink("flag");
	assert_int_equal(flag__look(fixture->flag), 0);
	assert_int_equal(flag__look(fixture->flag), 0);
	touch("flag");
	assert_int_equal(flag__look(fixture->flag), 2);
	assert_silent(fixture->errors);
}

static void a_file_that_is_there_at_the_start_is_seen(void **state)
{
	struct fixture *fixture = *state;

	touch("flag");
	watch(fixture, "flag");
	assert_int_equal(flag__look(fixture->flag), 1);
	assert_silent(fixture->errors);
}

static void it_tells_when_to_look(void **state)
{
	struct fixture *fixture = *state;
	char path[64];

	snprintf(path, sizeof(path), "%s/sub/flag", fixture->dir);
	watch(fixture, path);
	flag__look(fixture->flag);
	assert_int_equal(flag__turn_ns(fixture->flag), QUIET_NS);
	assert_false(tells(fixture, 0));
	touch("sub/flag");
	assert_true(tells(fixture, WAIT_MS));
	assert_int_equal(flag__look(fixture->flag), 1);
	assert_false(tells(fixture, 0));
	unlink("sub/flag");
	assert_true(tells(fixture, WAIT_MS));
	assert_int_equal(flag__look(fixture->flag), 0);
	assert_silent(fixture->errors);
}

static void other_files_are_nothing_to_it(void **state)
{
	struct fixture *fixture = *state;

	watch(fixture, "flag");
	touch("flag2");
	touch("fla");
	unlink("flag2");
	assert_int_equal(flag__look(fixture->flag), 0);
	assert_false(tells(fixture, 0));
	assert_silent(fixture->errors);
}

static void a_flag_that_is_touched_again_stays(void **state)
{
	struct fixture *fixture = *state;
	const struct timespec times[2] = {{1, 0}, {1, 0}};

	watch(fixture, "flag");
	touch("flag");
	assert_int_equal(flag__look(fixture->flag), 1);
	touch("flag");
	assert_int_equal(utimensat(AT_FDCWD, "flag", times, 0), 0);
	assert_int_equal(chmod("flag", 0644), 0);
	assert_int_equal(flag__look(fixture->flag), 1);
}

static void one_that_went_and_came_between_two_looks_is_another(void **state)
{
	struct fixture *fixture = *state;

	watch(fixture, "flag");
	touch("flag");
	assert_int_equal(flag__look(fixture->flag), 1);
	unlink("flag");
	touch("flag");
	assert_int_equal(flag__look(fixture->flag), 2);
	assert_int_equal(flag__look(fixture->flag), 2);
	assert_silent(fixture->errors);
}

static void one_that_was_moved_away_and_back_is_another(void **state)
{
	struct fixture *fixture = *state;

	watch(fixture, "flag");
	touch("flag");
	assert_int_equal(flag__look(fixture->flag), 1);
	assert_int_equal(rename("flag", "sub/flag"), 0);
	assert_int_equal(rename("sub/flag", "flag"), 0);
	assert_int_equal(flag__look(fixture->flag), 2);
}

static void one_that_was_replaced_is_another(void **state)
{
	struct fixture *fixture = *state;

	watch(fixture, "flag");
	touch("flag");
	assert_int_equal(flag__look(fixture->flag), 1);
	touch("other");
	assert_int_equal(rename("other", "flag"), 0);
	assert_int_equal(flag__look(fixture->flag), 2);
}

static void one_that_came_and_went_between_two_looks_is_told_of(void **state)
{
	struct fixture *fixture = *state;

	watch(fixture, "flag");
	assert_int_equal(flag__look(fixture->flag), 0);
	touch("flag");
	unlink("flag");
	assert_int_equal(flag__look(fixture->flag), 0);
	assert_one_line(fixture->errors, "flag: came and went");
}

static void without_inotify_looking_is_enough(void **state)
{
	struct fixture *fixture = *state;

	watch_without_inotify(fixture, "flag");
	assert_int_equal(flag__look(fixture->flag), 0);
	touch("flag");
	assert_int_equal(flag__look(fixture->flag), 1);
	touch("other");
	assert_int_equal(rename("other", "flag"), 0);
	assert_int_equal(flag__look(fixture->flag), 2);
	unlink("flag");
	assert_int_equal(flag__look(fixture->flag), 0);
	assert_silent(fixture->errors);
}

/* A new file may get the inode number of the old one. Then only its time of birth differs. */
static void without_inotify_a_file_that_went_and_came_is_another(void **state)
{
	struct fixture *fixture = *state;
	struct statx file;

	watch_without_inotify(fixture, "flag");
	touch("flag");
	assert_int_equal(statx(AT_FDCWD, "flag", 0, STATX_BTIME, &file), 0);
	if (!(file.stx_mask & STATX_BTIME))
		skip();
	assert_int_equal(flag__look(fixture->flag), 1);
	unlink("flag");
	usleep(20000); /* longer than a tick of the clock that times of birth use */
	touch("flag");
	assert_int_equal(flag__look(fixture->flag), 2);
}

static void a_folder_that_is_not_there_yet_is_waited_for(void **state)
{
	struct fixture *fixture = *state;

	watch(fixture, "new/flag");
	assert_int_equal(flag__look(fixture->flag), 0);
	assert_int_equal(flag__turn_ns(fixture->flag), ALONE_NS);
	assert_int_equal(mkdir("new", 0700), 0);
	assert_int_equal(flag__look(fixture->flag), 0);
	assert_int_equal(flag__turn_ns(fixture->flag), QUIET_NS);
	touch("new/flag");
	assert_true(tells(fixture, WAIT_MS));
	assert_int_equal(flag__look(fixture->flag), 1);
	assert_silent(fixture->errors);
}

static void a_folder_may_go_and_come(void **state)
{
	struct fixture *fixture = *state;

	watch(fixture, "sub/flag");
	touch("sub/flag");
	assert_int_equal(flag__look(fixture->flag), 1);
	unlink("sub/flag");
	assert_int_equal(rmdir("sub"), 0);
	assert_int_equal(flag__look(fixture->flag), 0);
	assert_int_equal(flag__look(fixture->flag), 0);
	assert_int_equal(flag__turn_ns(fixture->flag), ALONE_NS);
	assert_int_equal(mkdir("sub", 0700), 0);
	assert_int_equal(flag__look(fixture->flag), 0);
	touch("sub/flag");
	assert_true(tells(fixture, WAIT_MS));
	assert_int_equal(flag__look(fixture->flag), 2);
	assert_silent(fixture->errors);
}

static void a_folder_may_be_replaced(void **state)
{
	struct fixture *fixture = *state;

	watch(fixture, "sub/flag");
	touch("sub/flag");
	assert_int_equal(flag__look(fixture->flag), 1);
	assert_int_equal(rename("sub", "old"), 0);
	assert_true(tells(fixture, WAIT_MS));
	assert_int_equal(flag__look(fixture->flag), 0);
	assert_int_equal(mkdir("sub", 0700), 0);
	touch("sub/flag");
	assert_int_equal(flag__look(fixture->flag), 2);
	/* Changes in the old folder must be ignored. */
	unlink("old/flag");
	assert_int_equal(flag__look(fixture->flag), 2);
	assert_int_equal(rename("sub", "older"), 0);
	assert_int_equal(rename("old", "sub"), 0);
	assert_int_equal(flag__look(fixture->flag), 0);
	assert_silent(fixture->errors);
}

static void a_folder_in_its_place_is_refused_at_the_start(void **state)
{
	refuse(*state, "sub", "--flag sub: is a folder");
}

static void a_link_is_refused_at_the_start(void **state)
{
	touch("file");
	assert_int_equal(symlink("file", "link"), 0);
	refuse(*state, "link", "--flag link: is a symbolic link");
}

static void a_dangling_link_is_refused_at_the_start(void **state)
{
	assert_int_equal(symlink("nowhere", "link"), 0);
	refuse(*state, "link", "--flag link: is a symbolic link");
}

static void no_name_is_refused(void **state)
{
	refuse(*state, "sub/", "--flag: invalid value 'sub/' (expected the path of a file)");
}

static void an_empty_path_is_refused(void **state)
{
	refuse(*state, "", "--flag: invalid value ''");
}

static void a_path_through_a_file_is_refused(void **state)
{
	touch("file");
	refuse(*state, "file/flag", "--flag file/flag: Not a directory");
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	char path[300];

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	refuse(*state, path, "File name too long");
}

static void a_folder_in_its_place_is_warned_of_once(void **state)
{
	struct fixture *fixture = *state;

	watch(fixture, "flag");
	assert_int_equal(mkdir("flag", 0700), 0);
	assert_int_equal(flag__look(fixture->flag), 0);
	assert_int_equal(flag__look(fixture->flag), 0);
	assert_one_line(fixture->errors, "flag: is a folder");
	assert_int_equal(rmdir("flag"), 0);
	touch("flag");
	assert_int_equal(flag__look(fixture->flag), 1);
}

static void a_link_in_its_place_is_warned_of_once(void **state)
{
	struct fixture *fixture = *state;

	touch("file");
	watch(fixture, "flag");
	assert_int_equal(symlink("file", "flag"), 0);
	assert_int_equal(flag__look(fixture->flag), 0);
	assert_int_equal(flag__look(fixture->flag), 0);
	assert_non_null(strstr(stderr_text(fixture->errors), "flag: is a symbolic link"));
	assert_null(strstr(strstr(stderr_text(fixture->errors), "symbolic") + 1, "symbolic"));
}

static void a_link_that_takes_its_place_ends_it(void **state)
{
	struct fixture *fixture = *state;

	watch(fixture, "flag");
	touch("flag");
	assert_int_equal(flag__look(fixture->flag), 1);
	assert_int_equal(symlink("nowhere", "other"), 0);
	assert_int_equal(rename("other", "flag"), 0);
	assert_int_equal(flag__look(fixture->flag), 0);
}

static void a_fifo_is_not_opened(void **state)
{
	struct fixture *fixture = *state;

	watch(fixture, "flag");
	assert_int_equal(mkfifo("flag", 0600), 0);
	assert_int_equal(flag__look(fixture->flag), 1);
	assert_silent(fixture->errors);
}

static void it_is_not_opened_or_read(void **state)
{
	struct fixture *fixture = *state;
	const struct timespec times[2] = {{1, 0}, {2, 0}};
	struct stat file;

	touch("flag");
	assert_int_equal(utimensat(AT_FDCWD, "flag", times, 0), 0);
	watch(fixture, "flag");
	assert_int_equal(flag__look(fixture->flag), 1);
	assert_int_equal(stat("flag", &file), 0);
	assert_int_equal(file.st_atim.tv_sec, 1);
	assert_int_equal(file.st_mtim.tv_sec, 2);
}

static void a_storm_in_the_folder_does_not_hide_it(void **state)
{
	struct fixture *fixture = *state;
	char name[16];

	watch(fixture, "flag");
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		touch(name);
		if (i == 1000)
			touch("flag");
	}
	assert_int_equal(flag__look(fixture->flag), 1);
	assert_false(tells(fixture, 0));
	assert_silent(fixture->errors);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(free_accepts_null),
		TEST(a_file_that_comes_and_goes_is_seen),
		TEST(a_file_that_is_there_at_the_start_is_seen),
		TEST(it_tells_when_to_look),
		TEST(other_files_are_nothing_to_it),
		TEST(a_flag_that_is_touched_again_stays),
		TEST(one_that_went_and_came_between_two_looks_is_another),
		TEST(one_that_was_moved_away_and_back_is_another),
		TEST(one_that_was_replaced_is_another),
		TEST(one_that_came_and_went_between_two_looks_is_told_of),
		TEST(without_inotify_looking_is_enough),
		TEST(without_inotify_a_file_that_went_and_came_is_another),
		TEST(a_folder_that_is_not_there_yet_is_waited_for),
		TEST(a_folder_may_go_and_come),
		TEST(a_folder_may_be_replaced),
		TEST(a_folder_in_its_place_is_refused_at_the_start),
		TEST(a_link_is_refused_at_the_start),
		TEST(a_dangling_link_is_refused_at_the_start),
		TEST(no_name_is_refused),
		TEST(an_empty_path_is_refused),
		TEST(a_path_through_a_file_is_refused),
		TEST(a_name_that_is_too_long_is_refused),
		TEST(a_folder_in_its_place_is_warned_of_once),
		TEST(a_link_in_its_place_is_warned_of_once),
		TEST(a_link_that_takes_its_place_ends_it),
		TEST(a_fifo_is_not_opened),
		TEST(it_is_not_opened_or_read),
		TEST(a_storm_in_the_folder_does_not_hide_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
