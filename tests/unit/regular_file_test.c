/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "regular_file.h"

static void regular_file_refuses_a_device(void **state)
{
	struct stat status;

	assert_int_equal(regular_file_open("/dev/null", &status), -ENOEXEC);
}

static void regular_file_refuses_a_folder(void **state)
{
	struct stat status;

	assert_int_equal(regular_file_open("/", &status), -ENOEXEC);
}

static void regular_file_does_not_wait_for_a_pipe(void **state)
{
	char path[] = "/tmp/fbt-pipe-XXXXXX/pipe";
	struct stat status;
	int result;

	path[20] = 0;
	assert_non_null(mkdtemp(path));
	path[20] = '/';
	assert_int_equal(mkfifo(path, 0600), 0);
	result = regular_file_open(path, &status);
	unlink(path);
	path[20] = 0;
	rmdir(path);
	assert_int_equal(result, -ENOEXEC);
}

static void regular_file_names_what_is_missing(void **state)
{
	struct stat status;

	assert_int_equal(regular_file_open("/no/such/file", &status), -ENOENT);
}

static void regular_file_opens_for_reading_only(void **state)
{
	struct stat status;
	int fd = regular_file_open("/proc/self/exe", &status);

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regular_file_refuses_a_device),
		cmocka_unit_test(regular_file_refuses_a_folder),
		cmocka_unit_test(regular_file_does_not_wait_for_a_pipe),
		cmocka_unit_test(regular_file_names_what_is_missing),
		cmocka_unit_test(regular_file_opens_for_reading_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
