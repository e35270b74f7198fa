/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/filter.h"
#include "seccomp_fixture.h"

/* More memory than libseccomp needs. */
#define MEMORY_KIB 256

static int apply(const void *reads)
{
	return sandbox_broker_filter_apply(*(const bool *)reads);
}

static int run(bool reads, int (*body)(void))
{
	return run_filtered(apply, &reads, body);
}

static void there_is_a_filter_or_it_is_said_that_there_is_none(void **state)
{
	int status, err;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		err = sandbox_broker_filter_apply(false);
		if (can_filter())
			_exit(err || prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2);
		_exit(err != -ENOSYS);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Makes the function return a number for the line of a fact that is false. */
#define EXPECT(fact)                                                                               \
	do {                                                                                       \
		if (!(fact))                                                                       \
			return __LINE__ % 90 + 1;                                                  \
	} while (0)
#define REFUSED(call) EXPECT((call) < 0 && errno == EPERM)
#define ALLOWED(call) EXPECT((call) >= 0)

static int touch_nobody(void)
{
	struct iovec part = {NULL, 0};
	siginfo_t info = {.si_signo = SIGCONT};

	REFUSED(ptrace(PTRACE_TRACEME, 0, 0, 0));
	REFUSED(process_vm_writev(getpid(), &part, 1, &part, 1, 0));
	REFUSED(kill(getpid(), SIGCONT));
	REFUSED(kill(getppid(), SIGCONT));
	REFUSED(syscall(SYS_rt_sigqueueinfo, getpid(), SIGCONT, &info));
	ALLOWED(kill(getppid(), 0));
	return 0;
}

static void no_process_is_traced_written_to_or_signalled(void **state)
{
	(void)state;
	assert_int_equal(run(false, touch_nobody), 0);
	assert_int_equal(run(true, touch_nobody), 0);
}

/* As root, so that calls can only fail because of the filter. */
static int leave_machine(void)
{
	REFUSED(mount("none", "/proc/self", "tmpfs", MS_BIND, NULL));
	REFUSED(chroot("/"));
	REFUSED(syscall(SYS_unshare, 0));
	REFUSED(socket(AF_UNIX, SOCK_STREAM, 0));
	REFUSED(syscall(SYS_keyctl, 0, 0, 0, 0, 0));
	REFUSED(setuid(getuid()));
	REFUSED(setgid(getgid()));
	REFUSED(syscall(SYS_setns, -1, 0));
	REFUSED(syscall(SYS_finit_module, -1, "", 0));
	REFUSED(syscall(SYS_io_uring_setup, 0, NULL));
	REFUSED(syscall(SYS_execveat, -1, "", NULL, NULL, 0));
	return 0;
}

static void nothing_of_the_machine_is_changed_and_nobody_is_called(void **state)
{
	(void)state;
	assert_int_equal(run(false, leave_machine), 0);
	assert_int_equal(run(true, leave_machine), 0);
}

static char folder[] = "/tmp/broker_filter.XXXXXX";
static char file[sizeof(folder) + 8];

static int change_names(void)
{
	char other[sizeof(file) + 8];

	snprintf(other, sizeof(other), "%s.other", file);
	REFUSED(open(other, O_WRONLY | O_CREAT, 0600));
	REFUSED(open(file, O_WRONLY | O_TRUNC));
	REFUSED(open(file, O_RDONLY | O_CREAT, 0600));
	REFUSED(open(folder, O_RDWR | O_TMPFILE, 0600));
	REFUSED(creat(other, 0600));
	REFUSED(rename(file, other));
	REFUSED(link(file, other));
	REFUSED(symlink(file, other));
	REFUSED(unlink(file));
	REFUSED(rmdir(folder));
	REFUSED(chmod(file, 0644));
	REFUSED(chown(file, getuid(), getgid()));
	REFUSED(truncate(file, 0));
	return 0;
}

static void nothing_gets_or_loses_a_name(void **state)
{
	(void)state;
	assert_int_equal(run(false, change_names), 0);
	assert_int_equal(run(true, change_names), 0);
}

static int write_nothing(void)
{
	struct open_how how = {.flags = O_RDONLY};

	REFUSED(open(file, O_WRONLY));
	REFUSED(open(file, O_RDWR));
	REFUSED(open(file, O_WRONLY | O_APPEND));
	REFUSED(open(file, O_ACCMODE));
	REFUSED(openat(AT_FDCWD, file, O_RDWR | O_CLOEXEC));
	REFUSED(syscall(SYS_openat2, AT_FDCWD, file, &how, sizeof(how)));
	REFUSED(mkdir("/tmp/broker_filter.none", 0700));
	return 0;
}

static void who_reads_writes_nothing(void **state)
{
	(void)state;
	assert_int_equal(run(true, write_nothing), 0);
}

/* Orders, the shim's memory, a file to append to, and a path in a process's root. */
static int work(void)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	ALLOWED(dir);
	ALLOWED(openat(dir, strrchr(file, '/') + 1, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
	ALLOWED(open(file, O_WRONLY | O_CLOEXEC));
	ALLOWED(syscall(SYS_openat2, dir, "file", &how, sizeof(how)));
	ALLOWED(open("/dev/null", O_RDWR));
	return 0;
}

static void the_broker_can_do_what_it_does(void **state)
{
	(void)state;
	assert_int_equal(run(false, work), 0);
}

/* Adds the stricter filter on top of the first, then runs a program. */
static int look(void)
{
	char *const words[] = {"sh", "-c", "exec 3</proc/self/maps && exit 7", NULL};

	EXPECT(!sandbox_broker_filter_apply(true));
	ALLOWED(open(file, O_RDONLY | O_CLOEXEC));
	REFUSED(open(file, O_RDWR));
	execv("/bin/sh", words);
	return 1;
}

static void who_looks_for_candidates_runs_a_program(void **state)
{
	(void)state;
	assert_int_equal(run(false, look), 7);
	assert_int_equal(run(true, look), 7);
}

/* Without memory for a filter, the broker reports that and continues. */
static void without_memory_there_is_none(void **state)
{
	int status, err;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		struct rlimit limit;
		unsigned long size = 0;
		FILE *statm = fopen("/proc/self/statm", "r");

		if (!statm || fscanf(statm, "%lu", &size) != 1)
			_exit(97);
		fclose(statm);
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		limit.rlim_cur = limit.rlim_max =
			size * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY_KIB * 1024ul;
		if (setrlimit(RLIMIT_AS, &limit))
			_exit(96);
		err = sandbox_broker_filter_apply(true);
		_exit(err == -ENOSYS ? CANNOT : err == -ENOMEM ? 0 : 95);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == CANNOT)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int make_file(void **state)
{
	int fd;

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(file, sizeof(file), "%s/file", folder);
	fd = open(file, O_WRONLY | O_CREAT, 0600);
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	unlink(file);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_is_a_filter_or_it_is_said_that_there_is_none),
		cmocka_unit_test(no_process_is_traced_written_to_or_signalled),
		cmocka_unit_test(nothing_of_the_machine_is_changed_and_nobody_is_called),
		cmocka_unit_test(nothing_gets_or_loses_a_name),
		cmocka_unit_test(who_reads_writes_nothing),
		cmocka_unit_test(the_broker_can_do_what_it_does),
		cmocka_unit_test(who_looks_for_candidates_runs_a_program),
		cmocka_unit_test(without_memory_there_is_none),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
