/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The room on the disk of a file. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "output/file.h"
#include "output_fixture.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* More than any disk has. */
#define TOO_MUCH (UINT64_MAX - 1)

static void pipes_and_devices_have_no_limit(void **state)
{
	int ends[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const struct disk_room none = disk_room_of(-1, TOO_MUCH);
	struct disk_room room;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	room = disk_room_of(ends[1], TOO_MUCH);
	assert_true(room.free_bytes == UINT64_MAX);
	assert_false(disk_room_is_low(&room));
	room = disk_room_of(null, TOO_MUCH);
	assert_false(disk_room_is_low(&room));
	assert_false(disk_room_is_low(&none));
	close(ends[0]);
	close(ends[1]);
	close(null);
}

/* The room in /tmp, where /tmp has a limit. */
static struct disk_room room_of_tmp(uint64_t keep_bytes, uint64_t *size_bytes)
{
	int fd = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct disk_room room = disk_room_of(fd, keep_bytes);
	struct statvfs system;

	assert_true(fd >= 0);
	assert_int_equal(fstatvfs(fd, &system), 0);
	close(fd);
	*size_bytes = (uint64_t)system.f_blocks * system.f_frsize;
	if (!*size_bytes)
		skip();
	return room;
}

static void what_is_asked_for_is_kept(void **state)
{
	uint64_t size_bytes;
	struct disk_room room = room_of_tmp(TOO_MUCH, &size_bytes);

	(void)state;
	assert_true(room.free_bytes <= size_bytes);
	assert_true(room.keep_bytes == TOO_MUCH);
	assert_true(disk_room_is_low(&room));
	room = room_of_tmp(0, &size_bytes);
	assert_false(disk_room_is_low(&room));
}

static void by_default_a_20th_is_kept_but_no_more_than_a_gib(void **state)
{
	uint64_t size_bytes;
	struct disk_room room = room_of_tmp(DISK_ROOM_DEFAULT, &size_bytes);

	(void)state;
	assert_true(room.keep_bytes <= size_bytes / 20);
	assert_true(room.keep_bytes == size_bytes / 20 || room.keep_bytes == 1ull << 30);
}

static void room_is_low_where_less_is_free_than_kept(void **state)
{
	(void)state;
	assert_true(disk_room_is_low(&(struct disk_room){.free_bytes = 99, .keep_bytes = 100}));
	assert_false(disk_room_is_low(&(struct disk_room){.free_bytes = 100, .keep_bytes = 100}));
	assert_false(disk_room_is_low(&(struct disk_room){.free_bytes = 0, .keep_bytes = 0}));
}

static void it_says_what_is_free_what_is_kept_and_what_to_do(void **state)
{
	const struct disk_room room = {.free_bytes = 300 << 20, .keep_bytes = 1 << 30};

	disk_room_tell(&room, "a/trace.json", ": so there");
	assert_one_message(*state,
			   "a/trace.json: 300 MiB free on its disk, less than the 1.00 GiB to "
			   "keep free: so there; free some space");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipes_and_devices_have_no_limit),
		cmocka_unit_test(what_is_asked_for_is_kept),
		cmocka_unit_test(by_default_a_20th_is_kept_but_no_more_than_a_gib),
		cmocka_unit_test(room_is_low_where_less_is_free_than_kept),
		TEST(it_says_what_is_free_what_is_kept_and_what_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
