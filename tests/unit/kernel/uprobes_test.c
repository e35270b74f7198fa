/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "rates.skel.h"
#include "stderr_fixture.h"
#include "kernel/uprobes.h"

/* Programs that are never loaded into the kernel. */
struct fixture {
	struct stderr_fixture *errors;
	struct rates_bpf *skel;
	int fd;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture || stderr_setup((void **)&fixture->errors))
		return -1;
	libbpf_set_print(NULL);
	fixture->skel = rates_bpf__open();
	fixture->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	*state = fixture;
	return fixture->skel && fixture->fd >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	rates_bpf__destroy(fixture->skel);
	close(fixture->fd);
	stderr_teardown((void **)&fixture->errors);
	free(fixture);
	return 0;
}

static int count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static void refuse(struct fixture *fixture, bool multi, bool at_return)
{
	struct uprobe_place places[] = {{.offset = 64, .cookie = 1}, {.offset = 128}};
	struct uprobes *uprobes = uprobes__new(multi);
	int before = count_descriptors();

	assert_non_null(uprobes);
	assert_true(uprobes__attach(uprobes, fixture->skel->progs.handle_rate, fixture->fd,
				    "engine.so", places, 2, 0, at_return) < 0);
	assert_one_line(fixture->errors, "attach: engine.so: ");
	assert_int_equal(count_descriptors(), before);
	uprobes__free(uprobes);
}

static void free_accepts_null(void **state)
{
	uprobes__free(NULL);
}

static void a_multi_link_that_fails_is_told_once(void **state)
{
	refuse(*state, true, false);
}

static void a_multi_return_link_that_fails_is_told_once(void **state)
{
	refuse(*state, true, true);
}

static void a_perf_uprobe_that_fails_is_told_once(void **state)
{
	refuse(*state, false, false);
}

static void asking_for_multi_links_leaves_no_descriptor(void **state)
{
	struct fixture *fixture = *state;
	int before = count_descriptors();

	uprobes_have_multi();
	assert_int_equal(count_descriptors(), before);
	assert_silent(fixture->errors);
}

/* Only new kernels have multi-uprobe links, and only a process that may load programs can tell. */
static void multi_links_need_linux_6_6(void **state)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	assert_int_equal(uname(&name), 0);
	assert_int_equal(sscanf(name.release, "%u.%u", &major, &minor), 2);
	if (uprobes_have_multi())
		assert_true(major > 6 || (major == 6 && minor >= 6));
	assert_int_equal(uprobes_multi_can_filter(), major > 6 || (major == 6 && minor >= 10));
}

#define LINKS 20

/* No test calls this function. */
static int probed(int value)
{
	return value + 1;
}

/* The function's offset in the program's file. */
static int find_offset(struct dl_phdr_info *object, size_t size, void *ctx)
{
	uint64_t address = (uintptr_t)probed - object->dlpi_addr, *offset = ctx;

	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
		    address < segment->p_vaddr + segment->p_filesz)
			*offset = address - segment->p_vaddr + segment->p_offset;
	}
	return 1;
}

static void attach_links(struct fixture *fixture, struct uprobes *uprobes, uint64_t first_cookie)
{
	struct uprobe_place place = {.cookie = first_cookie};

	dl_iterate_phdr(find_offset, &place.offset);
	for (int i = 0; i < LINKS; i++, place.cookie++) {
		assert_int_equal(uprobes__attach(uprobes, fixture->skel->progs.handle_rate,
						 fixture->fd, "ourselves", &place, 1,
						 (uint32_t)getpid(), false),
				 0);
	}
}

/* Needs root, and a kernel with multi-uprobe links. */
static void links_are_removed_together(void **state)
{
	struct fixture *fixture = *state;
	struct uprobes *uprobes, *others;
	int before;

	if (!uprobes_have_multi())
		skip();
	bpf_program__set_expected_attach_type(fixture->skel->progs.handle_rate,
					      UPROBES_MULTI_ATTACH_TYPE);
	assert_int_equal(rates_bpf__load(fixture->skel), 0);
	before = count_descriptors();
	uprobes = uprobes__new(true);
	others = uprobes__new(true);
	attach_links(fixture, uprobes, 0);
	attach_links(fixture, others, 64);
	assert_int_equal(count_descriptors(), before + 2 * LINKS);
	uprobes__merge(uprobes, others);
	uprobes__merge(uprobes, NULL);
	assert_int_equal(count_descriptors(), before + 2 * LINKS);
	uprobes__detach(uprobes, 1, 1);
	assert_int_equal(count_descriptors(), before + LINKS);
	uprobes__detach(uprobes, ~0ull, 64 + 2);
	assert_int_equal(count_descriptors(), before + LINKS - 1);
	uprobes__detach_later(uprobes, ~0ull, 64 + 4);
	uprobes__detach_later(uprobes, ~0ull, 64 + 4);
	/* Each close waits for a grace period, on kernels where that takes long. */
	for (int i = 0; i < 1000 && count_descriptors() != before + LINKS - 2; i++)
		usleep(10000);
	assert_int_equal(count_descriptors(), before + LINKS - 2);
	uprobes__detach_later(uprobes, 0, 0);
	uprobes__free(uprobes);
	assert_int_equal(count_descriptors(), before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(free_accepts_null),
		TEST(a_multi_link_that_fails_is_told_once),
		TEST(a_multi_return_link_that_fails_is_told_once),
		TEST(a_perf_uprobe_that_fails_is_told_once),
		TEST(asking_for_multi_links_leaves_no_descriptor),
		TEST(multi_links_need_linux_6_6),
		TEST(links_are_removed_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
