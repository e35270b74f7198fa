/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <seccomp.h>
#include "model/syscalls.h"

#if defined(__x86_64__)
static const char host_header[] = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h";
#else
static const char host_header[] = "/usr/include/aarch64-linux-gnu/asm/unistd_64.h";
#endif

static void syscall_name_of_an_unknown_number_is_null(void **state)
{
	assert_null(syscall_name(FBT_ARCH_X86_64, 400));
	assert_null(syscall_name(FBT_ARCH_X86_64, 470));
	assert_null(syscall_name(FBT_ARCH_X86_64, UINT32_MAX));
	assert_null(syscall_name(FBT_ARCH_ARM64, 244));
	assert_null(syscall_name(FBT_ARCH_ARM64, 470));
}

static void syscall_name_of_an_unknown_architecture_is_null(void **state)
{
	assert_null(syscall_name((enum fbt_arch)0, 0));
	assert_null(syscall_name((enum fbt_arch)3, 0));
}

static void syscall_label_numbers_an_unknown_call(void **state)
{
	char buffer[24];

	assert_string_equal(syscall_label(FBT_ARCH_X86_64, UINT32_MAX, buffer),
			    "syscall_4294967295");
	assert_string_equal(syscall_label(FBT_ARCH_X86_64, 0, buffer), "read");
}

static void syscall_category_of_an_unknown_number_is_other(void **state)
{
	assert_int_equal(syscall_category(FBT_ARCH_X86_64, 400), FBT_OTHER);
	assert_int_equal(syscall_category(FBT_ARCH_ARM64, UINT32_MAX), FBT_OTHER);
}

static void syscall_names_follow_the_architecture(void **state)
{
	assert_string_equal(syscall_name(FBT_ARCH_X86_64, 9), "mmap");
	assert_string_equal(syscall_name(FBT_ARCH_ARM64, 222), "mmap");
	assert_string_equal(syscall_name(FBT_ARCH_X86_64, 262), "newfstatat");
	assert_string_equal(syscall_name(FBT_ARCH_ARM64, 79), "newfstatat");
	assert_string_equal(syscall_name(FBT_ARCH_ARM64, 98), "futex");
}

static void syscall_names_go_up_to_linux_6_18(void **state)
{
	assert_string_equal(syscall_name(FBT_ARCH_X86_64, 335), "uretprobe");
	assert_string_equal(syscall_name(FBT_ARCH_X86_64, 336), "uprobe");
	assert_string_equal(syscall_name(FBT_ARCH_X86_64, 469), "file_setattr");
	assert_string_equal(syscall_name(FBT_ARCH_ARM64, 469), "file_setattr");
	assert_null(syscall_name(FBT_ARCH_ARM64, 335));
}

/* libseccomp 2.5.4 of Debian 12 knows the calls of Linux 5.17, up to number 450. */
static void expect_names_of_libseccomp(enum fbt_arch arch, uint32_t scmp_arch)
{
	for (int nr = 0; nr <= 450; nr++) {
		char *expected = seccomp_syscall_resolve_num_arch(scmp_arch, nr);
		const char *name = syscall_name(arch, (uint32_t)nr);
		bool newer = arch == FBT_ARCH_X86_64 && (nr == 335 || nr == 336);

		if (!newer && strcmp(expected ? expected : "(none)", name ? name : "(none)"))
			fail_msg("%d is %s, not %s", nr, expected, name);
		free(expected);
	}
}

static void syscall_names_are_those_of_libseccomp(void **state)
{
	expect_names_of_libseccomp(FBT_ARCH_X86_64, SCMP_ARCH_X86_64);
	expect_names_of_libseccomp(FBT_ARCH_ARM64, SCMP_ARCH_AARCH64);
}

static void syscall_names_are_those_of_the_host(void **state)
{
	FILE *header = fopen(host_header, "re");
	char line[256], name[128];
	unsigned int nr;

	if (!header)
		skip();
	while (fgets(line, sizeof(line), header)) {
		const char *known;

		if (sscanf(line, "#define __NR_%127[a-z0-9_] %u", name, &nr) != 2)
			continue;
		known = syscall_name(syscalls_arch(), nr);
		if (nr <= 469 && (!known || strcmp(known, name)))
			fail_msg("%u is %s, not %s", nr, name, known ? known : "(none)");
	}
	fclose(header);
}

static void expect_category(const char *name, enum fbt_category category)
{
	unsigned int nr = 0;

	while (nr < FBT_NR_COUNT && (!syscall_name(FBT_ARCH_X86_64, nr) ||
				     strcmp(syscall_name(FBT_ARCH_X86_64, nr), name)))
		nr++;
	assert_true(nr < FBT_NR_COUNT);
	assert_int_equal(syscall_category(FBT_ARCH_X86_64, nr), category);
}

static void syscall_categories_are_those_of_the_seed(void **state)
{
	expect_category("mmap", FBT_MMAP);
	expect_category("munmap", FBT_MMAP);
	expect_category("mprotect", FBT_MMAP);
	expect_category("brk", FBT_MMAP);
	expect_category("futex", FBT_FUTEX);
	expect_category("ioctl", FBT_IOCTL);
	expect_category("read", FBT_READ);
	expect_category("pread64", FBT_READ);
	expect_category("readv", FBT_READ);
	expect_category("write", FBT_WRITE);
	expect_category("pwrite64", FBT_WRITE);
	expect_category("writev", FBT_WRITE);
}

static void syscall_categories_go_by_exact_name(void **state)
{
	static const char *const others[] = {
		"madvise",   "mremap",	    "preadv",	  "pwritev",	"preadv2", "pwritev2",
		"readahead", "futex_waitv", "futex_wake", "epoll_wait", "sendmsg",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		expect_category(others[i], FBT_OTHER);
}

static void only_twelve_calls_are_in_a_named_category(void **state)
{
	int count[2] = {0};

	for (uint32_t nr = 0; nr < FBT_NR_COUNT; nr++) {
		count[0] += syscall_category(FBT_ARCH_X86_64, nr) != FBT_OTHER;
		count[1] += syscall_category(FBT_ARCH_ARM64, nr) != FBT_OTHER;
	}
	assert_int_equal(count[0], 12);
	assert_int_equal(count[1], 12);
}

static void category_names_are_those_of_the_seed(void **state)
{
	assert_string_equal(category_name(FBT_MMAP), "mmap");
	assert_string_equal(category_name(FBT_FUTEX), "futex");
	assert_string_equal(category_name(FBT_IOCTL), "ioctl");
	assert_string_equal(category_name(FBT_READ), "read");
	assert_string_equal(category_name(FBT_WRITE), "write");
	assert_string_equal(category_name(FBT_OTHER), "other");
}

static uint32_t number_of(enum fbt_arch arch, const char *name)
{
	uint32_t nr = 0;

	while (nr < FBT_NR_COUNT &&
	       (!syscall_name(arch, nr) || strcmp(syscall_name(arch, nr), name)))
		nr++;
	return nr;
}

/* How a call uses its descriptors is tested apart from which arguments are descriptors. */
#define WAITS_AND_WRITES (FBT_FD_WAITS | FBT_FD_WRITES)

/* Expects the bits on each architecture that has the call. */
static void expect_bits(const char *name, uint32_t mask, uint32_t wanted)
{
	uint32_t x86 = number_of(FBT_ARCH_X86_64, name), arm = number_of(FBT_ARCH_ARM64, name);

	if (x86 == FBT_NR_COUNT)
		fail_msg("%s is no syscall", name);
	if ((syscall_descriptors(FBT_ARCH_X86_64, x86) & mask) != wanted)
		fail_msg("%s: %u", name, syscall_descriptors(FBT_ARCH_X86_64, x86));
	if (arm < FBT_NR_COUNT)
		assert_int_equal(syscall_descriptors(FBT_ARCH_ARM64, arm) & mask, wanted);
}

static void expect_descriptors(const char *name, uint32_t wanted)
{
	expect_bits(name, ~(uint32_t)WAITS_AND_WRITES, wanted);
}

static void syscalls_that_wait_for_an_answer_or_give_one_are_told(void **state)
{
	static const struct {
		const char *name;
		uint32_t bits;
	} calls[] = {
		{"read", FBT_FD_READS},
		{"readv", FBT_FD_READS},
		{"recvfrom", FBT_FD_READS},
		{"recvmsg", FBT_FD_READS},
		{"recvmmsg", FBT_FD_READS},
		{"poll", FBT_FD_POLLS},
		{"ppoll", FBT_FD_POLLS},
		{"epoll_wait", FBT_FD_EPOLLS},
		{"epoll_pwait", FBT_FD_EPOLLS},
		{"epoll_pwait2", FBT_FD_EPOLLS},
		{"write", FBT_FD_WRITES},
		{"writev", FBT_FD_WRITES},
		{"sendto", FBT_FD_WRITES},
		{"sendmsg", FBT_FD_WRITES},
		{"sendmmsg", FBT_FD_WRITES},
		{"pread64", 0},
		{"pwrite64", 0},
		{"preadv", 0},
		{"select", 0},
		{"futex", 0},
		{"ioctl", 0},
		{"epoll_ctl", 0},
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		expect_bits(calls[i].name, WAITS_AND_WRITES, calls[i].bits);
}

static void syscall_descriptors_are_first_arguments_or_results(void **state)
{
	static const char *const first[] = {
		"read",	      "write",	"pread64",   "pwritev2",	"flock",
		"fsync",      "sendto", "recvmmsg",  "epoll_wait",	"epoll_pwait2",
		"getdents64", "fcntl",	"sendfile",  "splice",		"timerfd_settime",
		"fstat",      "lseek",	"fallocate", "sync_file_range",
	};
	static const char *const made[] = {
		"open",		  "openat",	    "openat2",	    "creat",
		"socket",	  "eventfd2",	    "memfd_create", "epoll_create1",
		"timerfd_create", "io_uring_setup", "pidfd_open",
	};

	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		expect_descriptors(first[i], FBT_FD_FIRST);
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		expect_descriptors(made[i], FBT_FD_MADE);
	expect_descriptors("accept4", FBT_FD_FIRST | FBT_FD_MADE);
	expect_descriptors("dup3", FBT_FD_FIRST | FBT_FD_MADE);
	expect_descriptors("ioctl", FBT_FD_FIRST | FBT_FD_DRIVER);
	expect_descriptors("close", FBT_FD_FIRST | FBT_FD_CLOSED);
	expect_descriptors("io_uring_enter", FBT_FD_FIRST | FBT_FD_RING);
}

/*
 * Calls that take a folder and a path use neither's descriptor. Numbers without a call have none.
 */
static void other_syscalls_have_no_descriptor(void **state)
{
	static const char *const none[] = {
		"mmap",	      "munmap",	   "futex",	   "brk",   "poll",	   "ppoll",
		"newfstatat", "statx",	   "unlinkat",	   "pipe2", "close_range", "execveat",
		"getppid",    "nanosleep", "rt_sigreturn", "clone",
	};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		expect_descriptors(none[i], 0);
	assert_int_equal(syscall_descriptors(FBT_ARCH_X86_64, 400), 0);
	assert_int_equal(syscall_descriptors(FBT_ARCH_ARM64, 244), 0);
	assert_int_equal(syscall_descriptors(FBT_ARCH_X86_64, FBT_NR_COUNT - 1), 0);
	assert_int_equal(syscall_descriptors((enum fbt_arch)3, 0), 0);
}

static void traits_have_the_category_and_what_is_special(void **state)
{
	const uint32_t x86[] = {202, 15, 24}, arm[] = {98, 139, 124};
	const uint32_t special[] = {FBT_TRAIT_FUTEX, FBT_TRAIT_SIGRETURN, FBT_TRAIT_YIELD};

	(void)state;
	for (int i = 0; i < 3; i++) {
		uint32_t category = (i ? FBT_OTHER : FBT_FUTEX) << FBT_CATEGORY_SHIFT;

		assert_int_equal(syscall_traits(FBT_ARCH_X86_64, x86[i]), special[i] | category);
		assert_int_equal(syscall_traits(FBT_ARCH_ARM64, arm[i]), special[i] | category);
	}
	for (uint32_t nr = 0; nr < FBT_NR_COUNT; nr++) {
		uint32_t traits = syscall_traits(FBT_ARCH_X86_64, nr);

		assert_int_equal(traits & 0xff, syscall_descriptors(FBT_ARCH_X86_64, nr));
		assert_int_equal(traits >> FBT_CATEGORY_SHIFT,
				 syscall_category(FBT_ARCH_X86_64, nr));
	}
}

static void syscall_descriptors_follow_the_architecture(void **state)
{
	assert_int_equal(syscall_descriptors(FBT_ARCH_X86_64, 16), FBT_FD_FIRST | FBT_FD_DRIVER);
	assert_int_equal(syscall_descriptors(FBT_ARCH_ARM64, 29), FBT_FD_FIRST | FBT_FD_DRIVER);
	assert_int_equal(syscall_descriptors(FBT_ARCH_X86_64, 257), FBT_FD_MADE);
	assert_int_equal(syscall_descriptors(FBT_ARCH_ARM64, 56), FBT_FD_MADE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syscall_name_of_an_unknown_number_is_null),
		cmocka_unit_test(syscall_name_of_an_unknown_architecture_is_null),
		cmocka_unit_test(syscall_label_numbers_an_unknown_call),
		cmocka_unit_test(syscall_category_of_an_unknown_number_is_other),
		cmocka_unit_test(syscall_names_follow_the_architecture),
		cmocka_unit_test(syscall_names_go_up_to_linux_6_18),
		cmocka_unit_test(syscall_names_are_those_of_libseccomp),
		cmocka_unit_test(syscall_names_are_those_of_the_host),
		cmocka_unit_test(syscall_categories_are_those_of_the_seed),
		cmocka_unit_test(syscall_categories_go_by_exact_name),
		cmocka_unit_test(only_twelve_calls_are_in_a_named_category),
		cmocka_unit_test(category_names_are_those_of_the_seed),
		cmocka_unit_test(syscall_descriptors_are_first_arguments_or_results),
		cmocka_unit_test(other_syscalls_have_no_descriptor),
		cmocka_unit_test(syscalls_that_wait_for_an_answer_or_give_one_are_told),
		cmocka_unit_test(syscall_descriptors_follow_the_architecture),
		cmocka_unit_test(traits_have_the_category_and_what_is_special),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
