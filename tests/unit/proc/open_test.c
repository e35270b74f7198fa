/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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

/*
 * Runs in a child: memfd_device where memfd_create fails with these errors (0: does not), with
 * MFD_NOEXEC_SEAL and without it.
 */
static int memfd_device_with(uint32_t with, uint32_t without)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 8, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, with ? SECCOMP_RET_ERRNO | with : SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K,
			 without ? SECCOMP_RET_ERRNO | without : SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	dev_t device;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	return -memfd_device(&device);
}

static void check_memfd_device(uint32_t with, uint32_t without, int wanted)
{
	pid_t child = child_fork();
	int status;

	if (!child)
		_exit(memfd_device_with(with, without));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("SKIP no seccomp here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), wanted);
}

/* Linux 6.3 to 6.5 with vm.memfd_noexec = 2. */
static void memfds_are_known_where_the_flag_is_demanded(void **state)
{
	check_memfd_device(0, EACCES, 0);
}

static void memfds_are_known_where_the_flag_is_not(void **state)
{
	check_memfd_device(EINVAL, 0, 0);
}

static void a_memfd_that_is_forbidden_is_told(void **state)
{
	check_memfd_device(EPERM, 0, EPERM);
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
		cmocka_unit_test(memfds_are_known_where_the_flag_is_demanded),
		cmocka_unit_test(memfds_are_known_where_the_flag_is_not),
		cmocka_unit_test(a_memfd_that_is_forbidden_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
