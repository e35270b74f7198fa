/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "proc/status.h"

static const struct proc_ref nobody = {.tgid = 0x7ffffff0};

static struct proc_ref self(void)
{
	return (struct proc_ref){(uint32_t)getpid(), (uint32_t)getpid()};
}

static void a_status_is_read_by_its_names(void **state)
{
	static const char *const lines[] = {
		"Name:\tTracerPid: 9\n",
		"State:\tt (tracing stop)\n",
		"Tgid:\t12\n",
		"TracerPid:\t13\n",
		"Uid:\t1000\t0\t0\t0\n",
		"VmSize:\t   2048 kB\n",
		"VmData:\t   1024 kB\n",
		"VmExe:\t     16 kB\n",
		"VmLib:\t    512 kB\n",
		"Threads:\t5\n",
		"SigCgt:\t0000000180000000\n",
		"NoNewPrivs:\t1\n",
		"Seccomp:\t2\n",
		"Seccomp_filters:\t3\n",
		"nonvoluntary_ctxt_switches:\t8\n",
		"voluntary_ctxt_switches:\t7\n",
		"x86_Thread_features:\tshstk wrss \n",
	};
	struct thread_status status = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		thread_status_add(&status, lines[i]);
	assert_int_equal(status.state, 't');
	assert_int_equal(status.tgid, 12);
	assert_int_equal(status.tracer, 13);
	assert_int_equal(status.uid, 1000);
	assert_int_equal(status.size_kib, 2048);
	assert_int_equal(status.data_kib, 1024);
	assert_int_equal(status.exe_kib, 16);
	assert_int_equal(status.lib_kib, 512);
	assert_int_equal(status.threads, 5);
	assert_true(status.caught == 0x180000000);
	assert_true(status.no_new_privs);
	assert_int_equal(status.seccomp, 2);
	assert_int_equal(status.seccomp_filters, 3);
	assert_int_equal(status.voluntary_switches, 7);
	assert_true(status.shadow_stack);
}

/*
 * The number of namespaces that the line lists. *tid is the thread's number in the innermost one.
 */
static uint32_t namespaces_of(const char *line, uint32_t *tid)
{
	struct thread_status status = {0};

	thread_status_add(&status, line);
	*tid = status.ns_tid;
	return status.ns_depth;
}

static void numbers_in_namespaces_are_read(void **state)
{
	uint32_t tid;

	(void)state;
	assert_int_equal(namespaces_of("NSpid:\t1234\n", &tid), 1);
	assert_int_equal(tid, 1234);
	assert_int_equal(namespaces_of("NSpid:\t1234\t56\t7\n", &tid), 3);
	assert_int_equal(tid, 7);
	assert_int_equal(namespaces_of("NSpgid:\t1234\t56\n", &tid), 0);
	assert_int_equal(namespaces_of("Name:\tNSpid:\t5\n", &tid), 0);
	assert_int_equal(namespaces_of("NSpid:\n", &tid), 0);
	assert_int_equal(namespaces_of("NSpid:\t0\t5\n", &tid), 0);
	assert_int_equal(namespaces_of("", &tid), 0);
}

static void our_own_stat_and_status_are_read(void **state)
{
	struct thread_status status;
	struct thread_stat stat;

	(void)state;
	assert_int_equal(thread_status_read(&status, self()), 0);
	assert_int_equal(status.tgid, getpid());
	assert_int_equal(status.uid, getuid());
	assert_int_equal(status.state, 'R');
	assert_true(status.threads >= 1 && status.size_kib);
	assert_int_equal(thread_stat_read(&stat, self()), 0);
	assert_int_equal(stat.state, 'R');
	assert_int_equal(stat.parent_tgid, getppid());
	assert_int_equal(stat.policy, sched_getscheduler(0));
	assert_int_equal(stat.nice, getpriority(PRIO_PROCESS, 0));
	assert_false(stat.flags & (THREAD_KERNEL | THREAD_EXITING));
	assert_true(stat.start_ticks && stat.start_stack > stat.start_code);
}

static void a_name_may_have_newlines_and_parentheses(void **state)
{
	struct thread_stat stat;
	char name[16];

	(void)state;
	assert_int_equal(prctl(PR_GET_NAME, name), 0);
	assert_int_equal(prctl(PR_SET_NAME, "a\nb) S 1"), 0);
	assert_int_equal(thread_stat_read(&stat, self()), 0);
	assert_int_equal(prctl(PR_SET_NAME, name), 0);
	assert_int_equal(stat.state, 'R');
	assert_int_equal(stat.parent_tgid, getppid());
}

static void a_process_that_is_not_there_is_esrch(void **state)
{
	struct thread_status status;
	struct thread_stat stat;

	(void)state;
	assert_int_equal(thread_status_read(&status, nobody), -ESRCH);
	assert_int_equal(thread_stat_read(&stat, nobody), -ESRCH);
}

static void a_limit_is_read_by_its_name(void **state)
{
	struct rlimit limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(limit_read(self(), "Max open files") == limit.rlim_cur);
	assert_true(limit_read(self(), "Max nothing") == LIMIT_NONE);
	assert_true(limit_read(nobody, "Max open files") == LIMIT_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_status_is_read_by_its_names),
		cmocka_unit_test(numbers_in_namespaces_are_read),
		cmocka_unit_test(our_own_stat_and_status_are_read),
		cmocka_unit_test(a_name_may_have_newlines_and_parentheses),
		cmocka_unit_test(a_process_that_is_not_there_is_esrch),
		cmocka_unit_test(a_limit_is_read_by_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
