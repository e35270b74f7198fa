/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The seccomp filters of a thread: the tool reads them while the thread is stopped. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#if defined(__x86_64__)

#include "filters_fixture.h"

#define PATIENCE_S 60
#define FOREVER_MS 1000000

/*
 * Reports that it is ready, then waits: in poll() if restart_syscall is to restart it, else in
 * pause().
 */
static void be_filtered(const struct filter *filters, size_t count, int ready, bool in_poll)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < count; i++) {
		if (filter_install(&filters[i]))
			_exit(2);
	}
	if (write(ready, "r", 1) != 1)
		_exit(3);
	while (in_poll)
		syscall(SYS_poll, NULL, 0, FOREVER_MS);
	for (;;)
		syscall(SYS_pause);
}

/* Waits until the process is in that call. */
static void await_call(pid_t pid, long nr)
{
	char path[32], line[64];
	long seen = -1;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	while (seen != nr) {
		FILE *file = fopen(path, "re");

		assert_non_null(file);
		seen = -1;
		if (fgets(line, sizeof(line), file) && line[0] != 'r')
			seen = strtol(line, NULL, 10);
		fclose(file);
		usleep(1000);
	}
}

static pid_t start(const struct filter *filters, size_t count, bool in_poll)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		be_filtered(filters, count, ready[1], in_poll);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	await_call(pid, in_poll ? SYS_poll : SYS_pause);
	return pid;
}

static bool stop(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, 0, 0) || ptrace(PTRACE_INTERRUPT, pid, 0, 0))
		return false;
	return waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
}

static struct verdict check(const struct filter *filters, size_t count)
{
	struct verdict verdict = {.call = "", .err = -ENOTSUP};
	pid_t pid = start(filters, count, false);

	if (stop(pid))
		verdict.err = inject_seccomp_check((uint32_t)pid, &verdict.call, &verdict.action);
	end(pid);
	return verdict;
}

/* Whether the kernel lets us read filters. It does for root with all capabilities. */
static bool can_read_filters(void)
{
	struct filter filter;

	filter_but_one(&filter, SYS_reboot, SECCOMP_RET_ERRNO | EPERM);
	return !check(&filter, 1).err;
}

static void a_thread_without_filters_is_fine(void **state)
{
	struct verdict verdict = check(NULL, 0);

	if (verdict.err == -ENOTSUP)
		skip();
	assert_int_equal(verdict.err, 0);
}

static void filters_of_a_thread_are_read(void **state)
{
	struct filter filters[3];

	if (!can_read_filters())
		skip();
	filter_docker(&filters[0]);
	assert_int_equal(check(filters, 1).err, 0);
	filter_but_one(&filters[1], SYS_memfd_create, SECCOMP_RET_KILL_PROCESS);
	filter_but_one(&filters[2], SYS_reboot, SECCOMP_RET_KILL_PROCESS);
	assert_refused(check(filters, 3), "memfd_create", SECCOMP_RET_KILL_PROCESS);
}

/*
 * Of filters with equal actions, the one installed last decides. This shows the order in which they
 * are read.
 */
static void filters_of_a_thread_are_in_their_order(void **state)
{
	struct filter filters[2];

	if (!can_read_filters())
		skip();
	filter_but_one(&filters[0], SYS_munmap, SECCOMP_RET_ERRNO | 1);
	filter_but_one(&filters[1], SYS_munmap, SECCOMP_RET_ERRNO | 2);
	assert_refused(check(filters, 2), "munmap", SECCOMP_RET_ERRNO | 2);
}

static void be_strict(int ready)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(ready, "r", 1) != 1 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		_exit(2);
	for (;;) {
		char byte;

		/* read() is one of the four calls that strict mode allows. */
		syscall(SYS_read, 0, &byte, 1);
	}
}

static void strict_mode_is_refused(void **state)
{
	struct verdict verdict = {.call = ""};
	int ready[2], input[2];
	bool stopped;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(input), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(input[0], 0);
		be_strict(ready[1]);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	await_call(pid, SYS_read);
	stopped = stop(pid);
	if (stopped)
		verdict.err = inject_seccomp_check((uint32_t)pid, &verdict.call, &verdict.action);
	end(pid);
	for (int i = 0; i < 2; i++) {
		close(ready[i]);
		close(input[i]);
	}
	if (!stopped)
		skip();
	assert_int_equal(verdict.err, -EPERM);
	assert_int_equal(verdict.action, SECCOMP_RET_KILL_THREAD);
}

/* Without the tool's care, the stop alone would end the process when the poll is restarted. */
static void a_poll_is_not_restarted_by_a_call_that_kills(void **state)
{
	struct verdict verdict = {.call = ""};
	struct user_regs_struct regs;
	struct filter filter;
	int status = 0;
	pid_t pid;

	if (!can_read_filters())
		skip();
	filter_but_one(&filter, SYS_restart_syscall, SECCOMP_RET_KILL_PROCESS);
	pid = start(&filter, 1, true);
	assert_true(stop(pid));
	assert_int_equal(ptrace(PTRACE_GETREGS, pid, 0, &regs), 0);
	assert_int_equal((int64_t)regs.rax, -516);
	verdict.err = inject_seccomp_check((uint32_t)pid, &verdict.call, &verdict.action);
	assert_refused(verdict, "restart_syscall", SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
	/* A restart by restart_syscall would have killed the process before it is seen here. */
	await_call(pid, SYS_poll);
	assert_int_equal(waitpid(pid, &status, WNOHANG | __WALL), 0);
	end(pid);
}

static void a_poll_that_may_be_restarted_keeps_its_time(void **state)
{
	struct filter filters[2];
	struct verdict verdict = {.call = ""};
	struct user_regs_struct regs;
	pid_t pid;

	if (!can_read_filters())
		skip();
	filter_docker(&filters[0]);
	filter_but_one(&filters[1], SYS_memfd_create, SECCOMP_RET_ERRNO | EPERM);
	pid = start(filters, 2, true);
	assert_true(stop(pid));
	verdict.err = inject_seccomp_check((uint32_t)pid, &verdict.call, &verdict.action);
	assert_refused(verdict, "memfd_create", SECCOMP_RET_ERRNO | EPERM);
	assert_int_equal(ptrace(PTRACE_GETREGS, pid, 0, &regs), 0);
	assert_int_equal((int64_t)regs.rax, -516);
	end(pid);
}

static int setup(void **state)
{
	alarm(PATIENCE_S);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_without_filters_is_fine),
		cmocka_unit_test(filters_of_a_thread_are_read),
		cmocka_unit_test(filters_of_a_thread_are_in_their_order),
		cmocka_unit_test(strict_mode_is_refused),
		cmocka_unit_test(a_poll_is_not_restarted_by_a_call_that_kills),
		cmocka_unit_test(a_poll_that_may_be_restarted_keeps_its_time),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}

#else

static void only_x86_is_injected_into(void **state)
{
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(only_x86_is_injected_into)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
