/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "sandbox/privilege.h"
#include "stderr_fixture.h"

#define PERFMON (1ull << 38)
#define BPF	(1ull << 39)
#define ADMIN	(1ull << CAP_SYS_ADMIN)

static bool is_host_namespace(void)
{
	struct stat file;

	return !stat("/proc/self/ns/pid", &file) && file.st_ino == 0xeffffffcu;
}

/* Keeps only these capabilities. false if the process lacks one of them. */
static bool keep(uint64_t capabilities)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return false;
	for (int i = 0; i < 2; i++) {
		uint32_t wanted = (uint32_t)(capabilities >> (32 * i));

		if (wanted & ~data[i].permitted)
			return false;
		data[i].effective = data[i].permitted = wanted;
		data[i].inheritable = 0;
	}
	return !syscall(SYS_capset, &header, data);
}

#define CANNOT 99

/*
 * -result of privilege_check() in a child with only these capabilities; CANNOT if it cannot have
 * them.
 */
static int check_with(uint64_t capabilities)
{
	int status;
	pid_t pid;

	/* The check looks for BTF first. */
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return CANNOT;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(keep(capabilities) ? -privilege_check() : CANNOT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void check(void **state, uint64_t capabilities, const char *missing)
{
	int result = check_with(capabilities);

	if (result == CANNOT)
		skip();
	assert_int_equal(result, EPERM);
	assert_one_line(*state, missing);
}

static void a_refusal_is_one_line(void **state)
{
	if (privilege_check())
		assert_one_line(*state, "ferrum-bpftrace: ");
	else
		assert_silent(*state);
}

static void without_capabilities_both_are_named(void **state)
{
	check(state, 0, "no permission: CAP_BPF and CAP_PERFMON missing: run with sudo");
}

static void with_perfmon_alone_bpf_is_named(void **state)
{
	check(state, PERFMON, "no permission: CAP_BPF missing");
}

static void with_bpf_alone_perfmon_is_named(void **state)
{
	check(state, BPF, "no permission: CAP_PERFMON missing");
}

static void in_another_pid_namespace_it_is_named(void **state)
{
	int status;
	pid_t pid;

	if (access("/sys/kernel/btf/vmlinux", R_OK) || geteuid())
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		/* CLONE_NEWPID affects children only. */
		if (unshare(CLONE_NEWPID))
			_exit(CANNOT);
		pid = fork();
		if (!pid)
			_exit(-privilege_check());
		_exit(waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : CANNOT);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WEXITSTATUS(status) == CANNOT)
		skip();
	assert_int_equal(WEXITSTATUS(status), EPERM);
	assert_one_line(*state, "PID namespace: ");
}

static void bpf_and_perfmon_are_enough(void **state)
{
	int result = is_host_namespace() ? check_with(BPF | PERFMON) : CANNOT;

	if (result == CANNOT)
		skip();
	assert_int_equal(result, 0);
	assert_silent(*state);
}

static void sys_admin_is_enough(void **state)
{
	int result = is_host_namespace() ? check_with(ADMIN) : CANNOT;

	if (result == CANNOT)
		skip();
	assert_int_equal(result, 0);
	assert_silent(*state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_refusal_is_one_line),
		TEST(without_capabilities_both_are_named),
		TEST(with_perfmon_alone_bpf_is_named),
		TEST(with_bpf_alone_perfmon_is_named),
		TEST(in_another_pid_namespace_it_is_named),
		TEST(bpf_and_perfmon_are_enough),
		TEST(sys_admin_is_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
