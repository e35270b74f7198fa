/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/gzip.h"

struct fixture {
	char path[64];
	int fd;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	strcpy(fixture->path, "/tmp/gzip_test.XXXXXX.gz");
	fixture->fd = mkstemps(fixture->path, 3);
	assert_true(fixture->fd >= 0);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	close(fixture->fd);
	unlink(fixture->path);
	free(fixture);
	return 0;
}

static void append(struct fixture *fixture, const char *text)
{
	struct gzip *gzip = gzip__new(fixture->fd);

	assert_non_null(gzip);
	fputs(text, gzip__file(gzip));
	assert_int_equal(gzip__finish(gzip), 0);
	gzip__free(gzip);
}

/* As a run that is killed after a flush: what the member has by then. */
static void append_and_die(struct fixture *fixture, const char *text)
{
	struct gzip *gzip = gzip__new(fixture->fd);
	off_t size;

	assert_non_null(gzip);
	fputs(text, gzip__file(gzip));
	fflush(gzip__file(gzip));
	size = lseek(fixture->fd, 0, SEEK_END);
	gzip__free(gzip);
	assert_int_equal(ftruncate(fixture->fd, size), 0);
	lseek(fixture->fd, 0, SEEK_END);
}

/* gzip(1) is another reader than the one under test. */
static void assert_holds(const struct fixture *fixture, const char *text)
{
	char command[128], got[256] = "";
	FILE *pipe, *in;
	size_t size;

	snprintf(command, sizeof(command), "gzip -dc %s", fixture->path);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	size = fread(got, 1, sizeof(got) - 1, pipe);
	got[size] = 0;
	assert_int_equal(pclose(pipe), 0);
	assert_string_equal(got, text);
	in = gzip_open_input(fixture->path);
	assert_non_null(in);
	memset(got, 0, sizeof(got));
	assert_int_equal(fread(got, 1, sizeof(got) - 1, in), strlen(text));
	assert_string_equal(got, text);
	assert_int_equal(fclose(in), 0);
}

static void members_add_up(void **state)
{
	append(*state, "one\n");
	append(*state, "two\n");
	append(*state, "");
	assert_holds(*state, "one\ntwo\n");
}

static void what_was_flushed_can_be_read(void **state)
{
	struct fixture *fixture = *state;
	struct gzip *gzip = gzip__new(fixture->fd);
	char got[16] = "";
	FILE *in;

	assert_non_null(gzip);
	fputs("one\n", gzip__file(gzip));
	fflush(gzip__file(gzip));
	in = gzip_open_input(fixture->path);
	assert_non_null(in);
	assert_int_equal(fread(got, 1, sizeof(got) - 1, in), 4);
	assert_int_equal(ferror(in), 0);
	assert_string_equal(got, "one\n");
	fclose(in);
	gzip__free(gzip);
}

static void a_killed_writers_member_is_ended(void **state)
{
	struct fixture *fixture = *state;

	append(fixture, "one\n");
	append_and_die(fixture, "two\n");
	assert_int_equal(gzip_mend(fixture->fd), 0);
	append(fixture, "three\n");
	assert_holds(fixture, "one\ntwo\nthree\n");
}

/* A member that ends just where a buffer of the reader is full. */
static void whole_files_are_left_as_they_are(void **state)
{
	struct fixture *fixture = *state;
	struct stat before, after;
	char *text = malloc(3 * 65536 + 1);

	assert_non_null(text);
	assert_int_equal(gzip_mend(fixture->fd), 0);
	for (size_t size = 65536 - 1; size <= 3 * 65536; size += 65536) {
		memset(text, 'x', size);
		text[size] = 0;
		append(fixture, text);
		text[size - 1] = 0;
		append(fixture, text);
	}
	free(text);
	fstat(fixture->fd, &before);
	assert_int_equal(gzip_mend(fixture->fd), 0);
	fstat(fixture->fd, &after);
	assert_int_equal(before.st_size, after.st_size);
}

/* Whatever a kill, or a full disk, has left of the last member. */
static void an_incomplete_write_is_cut_off(void **state)
{
	struct fixture *fixture = *state;
	off_t first, flushed, end;
	struct gzip *gzip;
	char *bytes;

	append(fixture, "one\n");
	first = lseek(fixture->fd, 0, SEEK_END);
	gzip = gzip__new(fixture->fd);
	assert_non_null(gzip);
	fputs("two\n", gzip__file(gzip));
	fflush(gzip__file(gzip));
	flushed = lseek(fixture->fd, 0, SEEK_END);
	fputs("a text of which some of a write is missing\n", gzip__file(gzip));
	fflush(gzip__file(gzip));
	end = lseek(fixture->fd, 0, SEEK_END);
	gzip__free(gzip);
	bytes = malloc((size_t)end);
	assert_non_null(bytes);
	assert_int_equal(pread(fixture->fd, bytes, (size_t)end, 0), end);
	for (off_t cut = first + 1; cut < end; cut++) {
		assert_int_equal(ftruncate(fixture->fd, 0), 0);
		assert_int_equal(pwrite(fixture->fd, bytes, (size_t)cut, 0), cut);
		assert_int_equal(gzip_mend(fixture->fd), 0);
		append(fixture, "three\n");
		assert_holds(fixture, cut < flushed ? "one\nthree\n" : "one\ntwo\nthree\n");
	}
	/* Of a first member too. */
	assert_int_equal(ftruncate(fixture->fd, 5), 0);
	assert_int_equal(gzip_mend(fixture->fd), 0);
	assert_int_equal(lseek(fixture->fd, 0, SEEK_END), 0);
	free(bytes);
}

/* A buffer that is full is flushed within a line. */
static void a_line_that_is_cut_off_is_ended(void **state)
{
	struct fixture *fixture = *state;

	append(fixture, "one\n");
	append_and_die(fixture, "two\nthr");
	assert_int_equal(gzip_mend(fixture->fd), 0);
	append(fixture, "four\n");
	assert_holds(fixture, "one\ntwo\nthr\nfour\n");
}

static void what_is_no_such_file_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct stat file;

	assert_int_equal(write(fixture->fd, "{\"event\":1}\n", 12), 12);
	assert_int_equal(gzip_mend(fixture->fd), -EBADMSG);
	assert_int_equal(fstat(fixture->fd, &file), 0);
	assert_int_equal(file.st_size, 12);
	/* Damaged, not cut off. */
	assert_int_equal(ftruncate(fixture->fd, 0), 0);
	lseek(fixture->fd, 0, SEEK_SET);
	append(fixture, "one\n");
	assert_int_equal(pwrite(fixture->fd, "\xff\xff", 2, 10), 2);
	assert_int_equal(gzip_mend(fixture->fd), -EBADMSG);
}

static void a_full_disk_is_told(void **state)
{
	int full = open("/dev/full", O_WRONLY);
	struct gzip *gzip = gzip__new(full);

	assert_non_null(gzip);
	fputs("one\n", gzip__file(gzip));
	assert_int_equal(gzip__finish(gzip), -ENOSPC);
	assert_int_equal(gzip__finish(gzip), -ENOSPC);
	gzip__free(gzip);
	close(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(members_add_up, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_flushed_can_be_read, setup, teardown),
		cmocka_unit_test_setup_teardown(a_killed_writers_member_is_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(whole_files_are_left_as_they_are, setup, teardown),
		cmocka_unit_test_setup_teardown(an_incomplete_write_is_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(a_line_that_is_cut_off_is_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_such_file_is_refused, setup, teardown),
		cmocka_unit_test(a_full_disk_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
