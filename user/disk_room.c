/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "disk_room.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include "log.h"
#include "report_format.h"

#define DEFAULT_DIVISOR 20
#define DEFAULT_MAX	(1ull << 30)

static uint64_t bytes_of(uint64_t blocks, uint64_t block_bytes)
{
	uint64_t bytes;

	return __builtin_mul_overflow(blocks, block_bytes, &bytes) ? UINT64_MAX : bytes;
}

static uint64_t choose_keep(uint64_t size_bytes, uint64_t keep_bytes)
{
	uint64_t share = size_bytes / DEFAULT_DIVISOR;

	if (keep_bytes != DISK_ROOM_DEFAULT)
		return keep_bytes;
	return share < DEFAULT_MAX ? share : DEFAULT_MAX;
}

struct disk_room disk_room_of(int fd, uint64_t keep_bytes)
{
	struct disk_room room = {.free_bytes = UINT64_MAX};
	struct statvfs system;
	struct stat file;

	if (fstat(fd, &file) || !(S_ISREG(file.st_mode) || S_ISDIR(file.st_mode)))
		return room;
	/* Without blocks: a tmpfs without a limit, or a file system that does not tell. */
	if (fstatvfs(fd, &system) || !system.f_blocks)
		return room;
	room.free_bytes = bytes_of(system.f_bavail, system.f_frsize);
	room.keep_bytes = choose_keep(bytes_of(system.f_blocks, system.f_frsize), keep_bytes);
	return room;
}

bool disk_room_is_low(const struct disk_room *room)
{
	return room->free_bytes < room->keep_bytes;
}

void disk_room_tell(const struct disk_room *room, const char *name, const char *so)
{
	char left[FORMAT_MAX], kept[FORMAT_MAX];

	log_err("%s: its disk has %s free, and %s stay free for others%s: free some space, name a "
		"file elsewhere, or lower --keep-free",
		name, format_bytes(left, room->free_bytes), format_bytes(kept, room->keep_bytes),
		so);
}
