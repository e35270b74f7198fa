/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Memory of this process, and a read that does not end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/memory.h"

#define PAGE 4096

/* While this pipe is open for writing, a read does not end. */
static int stuck[2];

/* The double of that in user/proc/open.c. */
int proc_open(struct proc_ref ref, const char *name, int flags)
{
	char byte, path[64];

	if (stuck[1] && read(stuck[0], &byte, 1))
		return -EIO;
	snprintf(path, sizeof(path), "/proc/%u/%s", ref.tgid, name);
	flags = open(path, flags);
	return flags < 0 ? -ESRCH : flags;
}

static struct proc_ref ours(void)
{
	return (struct proc_ref){.tgid = (uint32_t)getpid()};
}

static int set_up(void **state)
{
	*state = memory__new();
	return 0;
}

static int tear_down(void **state)
{
	memory__free(*state);
	return 0;
}

/* Two pages, of which the second is not there. */
static uint8_t *make_page(void)
{
	uint8_t *page =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(page != MAP_FAILED);
	assert_int_equal(munmap(page + PAGE, PAGE), 0);
	for (int i = 0; i < PAGE; i++)
		page[i] = (uint8_t)i;
	return page;
}

/* On a busy machine the helper may have no CPU for longer than a read may take. */
static int read_at_last(struct memory *memory, struct proc_ref ref, struct memory_part *parts,
			uint32_t count)
{
	int err = -ETIMEDOUT;

	for (int i = 0; i < 200 && (err == -ETIMEDOUT || err == -EBUSY); i++)
		err = memory__read(memory, ref, parts, count);
	return err;
}

static void parts_are_read_up_to_the_page_that_is_not_there(void **state)
{
	uint8_t *page = make_page();
	struct memory_part parts[] = {{.address = (uint64_t)page + 16, .size = 8},
				      {.address = (uint64_t)page + PAGE - 100, .size = 65536},
				      {.address = (uint64_t)page + PAGE, .size = 8},
				      {.address = UINT64_MAX - 4, .size = 65536},
				      {.address = (uint64_t)page, .size = PAGE}};

	assert_int_equal(read_at_last(*state, ours(), parts, 5), 0);
	assert_int_equal(parts[0].got, 8);
	assert_memory_equal(parts[0].data, page + 16, 8);
	assert_int_equal(parts[1].got, 100);
	assert_memory_equal(parts[1].data, page + PAGE - 100, 100);
	assert_int_equal(parts[2].got, 0);
	assert_int_equal(parts[3].got, 0);
	assert_int_equal(parts[4].got, PAGE);
	memory__wipe(*state);
	assert_int_equal(parts[4].data[17], 0);
	munmap(page, PAGE);
}

static void what_has_no_room_is_not_read(void **state)
{
	uint8_t *page = make_page();
	struct memory_part parts[] = {{.address = (uint64_t)page, .size = MEMORY_BYTES - 8},
				      {.address = (uint64_t)page, .size = 16},
				      {.address = (uint64_t)page, .size = 8}};

	assert_int_equal(read_at_last(*state, ours(), parts, 3), 0);
	assert_int_equal(parts[0].got, PAGE);
	assert_int_equal(parts[1].got, 0);
	assert_int_equal(parts[2].got, 8);
	munmap(page, PAGE);
}

static void a_process_that_is_gone_is_told(void **state)
{
	struct memory_part part = {.address = PAGE, .size = 8};

	assert_int_equal(read_at_last(*state, (struct proc_ref){.tgid = 1u << 30}, &part, 1),
			 -ESRCH);
	assert_int_equal(part.got, 0);
}

/* A page that its process itself is to provide; -1: the kernel does not allow that. */
static int withhold(uint8_t *page)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.range = {(uint64_t)page, PAGE},
					.mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

static void a_page_that_its_process_withholds_is_not_there(void **state)
{
	uint8_t *page =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct memory_part part = {.address = (uint64_t)page, .size = 8};
	int fd = withhold(page), err;

	if (fd < 0) {
		munmap(page, PAGE);
		skip();
	}
	err = memory__read(*state, ours(), &part, 1);
	assert_true(!err || err == -ETIMEDOUT);
	assert_int_equal(part.got, 0);
	close(fd);
	munmap(page, PAGE);
}

static void a_read_that_does_not_end_stops_nobody(void **state)
{
	uint8_t *page = make_page();
	struct memory_part part = {.address = (uint64_t)page, .size = 8};
	int err;

	assert_int_equal(pipe(stuck), 0);
	assert_int_equal(memory__read(*state, ours(), &part, 1), -ETIMEDOUT);
	assert_int_equal(memory__read(*state, ours(), &part, 1), -EBUSY);
	assert_int_equal(part.got, 0);
	/* Once it has ended, memory is read again. */
	close(stuck[1]);
	stuck[1] = 0;
	do
		err = memory__read(*state, ours(), &part, 1);
	while (err == -EBUSY);
	assert_int_equal(err, 0);
	assert_int_equal(part.got, 8);
	munmap(page, PAGE);
}

/* What is still written to must not be freed. */
static void a_read_that_does_not_end_may_be_left(void **state)
{
	struct memory *memory = memory__new();
	struct memory_part part = {.address = PAGE, .size = 8};

	assert_int_equal(pipe(stuck), 0);
	assert_int_equal(memory__read(memory, ours(), &part, 1), -ETIMEDOUT);
	memory__wipe(memory);
	memory__free(memory);
	close(stuck[1]);
	stuck[1] = 0;
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FACT(parts_are_read_up_to_the_page_that_is_not_there),
		FACT(what_has_no_room_is_not_read),
		FACT(a_process_that_is_gone_is_told),
		FACT(a_page_that_its_process_withholds_is_not_there),
		FACT(a_read_that_does_not_end_stops_nobody),
		FACT(a_read_that_does_not_end_may_be_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
