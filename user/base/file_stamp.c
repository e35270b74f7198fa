/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/file_stamp.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"

struct file_stamp file_stamp_of(int fd)
{
	struct statx file = {0};

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MTIME | STATX_SIZE, &file))
		return (struct file_stamp){0};
	return (struct file_stamp){
		.bytes = file.stx_size,
		.written_ns = (uint64_t)file.stx_mtime.tv_sec * NS_PER_S + file.stx_mtime.tv_nsec,
	};
}

bool file_stamps_are_equal(struct file_stamp a, struct file_stamp b)
{
	return a.bytes == b.bytes && a.written_ns == b.written_ns;
}
