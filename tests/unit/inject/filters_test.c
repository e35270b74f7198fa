/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Under which seccomp filters an injection may go on. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)

#include "filters_fixture.h"

static struct verdict judge_all(const struct filter *filters, size_t count)
{
	struct verdict verdict = {.call = ""};
	struct sock_fprog programs[3] = {0};

	for (size_t i = 0; i < count; i++) {
		programs[i].len = filters[i].count;
		programs[i].filter = (struct sock_filter *)filters[i].code;
	}
	verdict.err = inject_seccomp_judge(programs, count, &verdict.call, &verdict.action);
	return verdict;
}

static struct verdict judge(const struct filter *filter)
{
	return judge_all(filter, 1);
}

static struct verdict judge_but_one(long nr, uint32_t action)
{
	struct filter filter;

	filter_but_one(&filter, nr, action);
	return judge(&filter);
}

static void without_filters_all_is_allowed(void **state)
{
	assert_int_equal(judge_all(NULL, 0).err, 0);
}

static void what_docker_puts_on_is_fine(void **state)
{
	struct filter filter;

	filter_docker(&filter);
	assert_int_equal(judge(&filter).err, 0);
}

static void a_program_that_is_none_is_einval(void **state)
{
	struct filter filter = {.count = 0};

	assert_int_equal(judge(&filter).err, -EINVAL);
	filter_add(&filter, BPF_ALU | BPF_MOD | BPF_K, 3, 0, 0);
	filter_return(&filter, SECCOMP_RET_ALLOW);
	assert_int_equal(judge(&filter).err, -EINVAL);
}

static void every_call_may_kill_and_is_refused_then(void **state)
{
	const struct inject_call *calls;
	size_t count;

	calls = inject_calls(&count);
	for (size_t i = 0; i < count; i++) {
		/* clone is only called if clone3 fails with ENOSYS. */
		if (!strcmp(calls[i].name, "clone"))
			continue;
		assert_refused(judge_but_one(calls[i].nr, SECCOMP_RET_KILL_PROCESS), calls[i].name,
			       SECCOMP_RET_KILL_PROCESS);
	}
}

static void what_is_neither_allowed_nor_logged_is_refused(void **state)
{
	static const uint32_t refused[] = {
		SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP | 7, SECCOMP_RET_ERRNO | EPERM,
		SECCOMP_RET_USER_NOTIF,	 SECCOMP_RET_TRACE,
	};

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		assert_refused(judge_but_one(SYS_mmap, refused[i]), "mmap", refused[i]);
	assert_int_equal(judge_but_one(SYS_mmap, SECCOMP_RET_LOG).err, 0);
	/* The kernel kills for an action that it does not know. */
	assert_refused(judge_but_one(SYS_mmap, 0x12340000), "mmap", SECCOMP_RET_KILL_PROCESS);
}

static void an_error_is_fine_where_nobody_looks_at_it(void **state)
{
	static const long ignored[] = {
		SYS_rseq, SYS_set_robust_list, SYS_prctl, SYS_fallocate, SYS_brk, SYS_ioctl};

	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++) {
		assert_int_equal(judge_but_one(ignored[i], SECCOMP_RET_ERRNO | EPERM).err, 0);
		assert_int_equal(judge_but_one(ignored[i], SECCOMP_RET_TRAP).err, -EPERM);
	}
}

/*
 * An errno of 0 looks like success: the helper would take 0 for its memfd and write to standard
 * input.
 */
static void an_error_of_number_0_is_none(void **state)
{
	assert_refused(judge_but_one(SYS_memfd_create, SECCOMP_RET_ERRNO), "memfd_create",
		       SECCOMP_RET_ERRNO);
	assert_refused(judge_but_one(SYS_rseq, SECCOMP_RET_ERRNO), "rseq", SECCOMP_RET_ERRNO);
	assert_refused(judge_but_one(SYS_clone3, SECCOMP_RET_ERRNO), "clone3", SECCOMP_RET_ERRNO);
}

static void without_clone3_it_takes_clone(void **state)
{
	struct filter filters[2];

	assert_int_equal(judge_but_one(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS).err, 0);
	/* glibc falls back to clone for ENOSYS only. */
	assert_refused(judge_but_one(SYS_clone3, SECCOMP_RET_ERRNO | EPERM), "clone3",
		       SECCOMP_RET_ERRNO | EPERM);
	assert_int_equal(judge_but_one(SYS_clone, SECCOMP_RET_KILL_PROCESS).err, 0);
	filter_but_one(&filters[0], SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
	filter_but_one(&filters[1], SYS_clone, SECCOMP_RET_ERRNO | EPERM);
	assert_refused(judge_all(filters, 2), "clone", SECCOMP_RET_ERRNO | EPERM);
	/* A filter on flags that no thread uses, then on a flag that all threads use. */
	filter_but_flag(&filters[1], SYS_clone, 0, NAMESPACES, SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(judge_all(filters, 2).err, 0);
	filter_but_flag(&filters[1], SYS_clone, 0, CLONE_THREAD, SECCOMP_RET_KILL_PROCESS);
	assert_refused(judge_all(filters, 2), "clone", SECCOMP_RET_KILL_PROCESS);
}

static void flags_of_a_memfd_may_be_refused_where_another_way_is_left(void **state)
{
	struct filter filter;

	/*
	 * MFD_EXEC, then MFD_NOEXEC_SEAL. The shim only does without the latter if the kernel does
	 * not know it.
	 */
	filter_but_flag(&filter, SYS_memfd_create, 1, 0x10, SECCOMP_RET_ERRNO | EACCES);
	assert_int_equal(judge(&filter).err, 0);
	filter_but_flag(&filter, SYS_memfd_create, 1, 0x10, SECCOMP_RET_KILL_PROCESS);
	assert_refused(judge(&filter), "memfd_create", SECCOMP_RET_KILL_PROCESS);
	filter_but_flag(&filter, SYS_memfd_create, 1, 0x08, SECCOMP_RET_ERRNO | EINVAL);
	assert_int_equal(judge(&filter).err, 0);
	filter_but_flag(&filter, SYS_memfd_create, 1, 0x08, SECCOMP_RET_ERRNO | EPERM);
	assert_refused(judge(&filter), "memfd_create", SECCOMP_RET_ERRNO | EPERM);
}

static void arguments_are_judged_as_they_will_be(void **state)
{
	struct filter filter;

	/*
	 * No file may be mapped executable. This is stricter than systemd's MemoryDenyWriteExecute.
	 */
	filter_but_flag(&filter, SYS_mmap, 2, PROT_EXEC, SECCOMP_RET_ERRNO | EPERM);
	assert_refused(judge(&filter), "mmap", SECCOMP_RET_ERRNO | EPERM);
	/* mprotect() may refuse PROT_EXEC: an injection does not use it. */
	filter_but_flag(&filter, SYS_mprotect, 2, PROT_EXEC, SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(judge(&filter).err, 0);
	filter_but_flag(&filter, SYS_mmap, 3, MAP_SHARED, SECCOMP_RET_KILL_PROCESS);
	assert_refused(judge(&filter), "mmap", SECCOMP_RET_KILL_PROCESS);
	filter_but_flag(&filter, SYS_openat, 2, 3 /* O_ACCMODE */, SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(judge(&filter).err, 0);
}

static void the_strictest_of_several_is_told(void **state)
{
	struct filter filters[3];

	filter_but_one(&filters[0], SYS_mmap, SECCOMP_RET_KILL_PROCESS);
	filter_but_one(&filters[1], SYS_mmap, SECCOMP_RET_ERRNO | EPERM);
	filter_docker(&filters[2]);
	assert_refused(judge_all(filters, 3), "mmap", SECCOMP_RET_KILL_PROCESS);
	assert_refused(judge_all(filters + 1, 2), "mmap", SECCOMP_RET_ERRNO | EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_filters_all_is_allowed),
		cmocka_unit_test(what_docker_puts_on_is_fine),
		cmocka_unit_test(a_program_that_is_none_is_einval),
		cmocka_unit_test(every_call_may_kill_and_is_refused_then),
		cmocka_unit_test(what_is_neither_allowed_nor_logged_is_refused),
		cmocka_unit_test(an_error_is_fine_where_nobody_looks_at_it),
		cmocka_unit_test(an_error_of_number_0_is_none),
		cmocka_unit_test(without_clone3_it_takes_clone),
		cmocka_unit_test(flags_of_a_memfd_may_be_refused_where_another_way_is_left),
		cmocka_unit_test(arguments_are_judged_as_they_will_be),
		cmocka_unit_test(the_strictest_of_several_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
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
