/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Room on the disks of outputs that is left to others: the server's own logs may lie there. What
 * counts is what plain users can still write (f_bavail of statvfs(3)).
 */
#ifndef FBT_DISK_ROOM_H
#define FBT_DISK_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* For keep_bytes: 5 % of the file system, and 1 GiB at most. */
#define DISK_ROOM_DEFAULT UINT64_MAX

struct disk_room {
	uint64_t free_bytes; /* for plain users; UINT64_MAX: not known, or without a limit */
	uint64_t keep_bytes; /* of these, for others; 0: none */
};

/*
 * Of the file system that fd, a regular file or a folder, lies on; keep_bytes is what was asked
 * for, 0 for none. What is neither (a pipe, a terminal, a device) has no limit.
 */
struct disk_room disk_room_of(int fd, uint64_t keep_bytes);

/* Whether there is less than is to be kept. */
bool disk_room_is_low(const struct disk_room *room);

/* Logs that of name's disk, what that means (so: "", or ", so ..."), and what to do. */
void disk_room_tell(const struct disk_room *room, const char *name, const char *so);

#endif
