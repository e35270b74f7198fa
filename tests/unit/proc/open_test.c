/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "child_fixture.h"
#include "proc/open.h"

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

/* Reading /proc/kmsg would take messages away from the log daemon. */
static void regular_file_refuses_files_of_the_kernel(void **state)
{
	static const char *const paths[] = {"/proc/kmsg", "/proc/self/maps",
					    "/sys/kernel/btf/vmlinux"};
	struct stat status;

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		if (!access(paths[i], F_OK))
			assert_int_equal(regular_file_open(paths[i], &status), -ENOEXEC);
}

/* Runs in the child: takes a lease and never releases it. Reports whether it got the lease. */
static void hold_lease(const char *path, int ready)
{
	int fd = open(path, O_RDONLY);
	char held;

	signal(SIGIO, SIG_IGN);
	held = fd >= 0 && !fcntl(fd, F_SETLEASE, F_WRLCK);
	if (write(ready, &held, 1) == 1)
		pause();
	_exit(0);
}

static void regular_file_does_not_wait_for_a_lease(void **state)
{
	char path[] = "/tmp/fbt-lease-XXXXXX";
	int ready[2], made = mkstemp(path), result = 0;
	struct stat status;
	char held = 0;
	pid_t child;

	assert_true(made >= 0);
	close(made);
	assert_int_equal(pipe(ready), 0);
	child = child_fork();
	if (!child)
		hold_lease(path, ready[1]);
	assert_int_equal(read(ready[0], &held, 1), 1);
	if (held)
		result = regular_file_open(path, &status);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	unlink(path);
	close(ready[0]);
	close(ready[1]);
	if (!held)
		skip();
	assert_int_equal(result, -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regular_file_refuses_a_device),
		cmocka_unit_test(regular_file_refuses_a_folder),
		cmocka_unit_test(regular_file_does_not_wait_for_a_pipe),
		cmocka_unit_test(regular_file_refuses_files_of_the_kernel),
		cmocka_unit_test(regular_file_does_not_wait_for_a_lease),
		cmocka_unit_test(regular_file_names_what_is_missing),
		cmocka_unit_test(regular_file_opens_for_reading_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
