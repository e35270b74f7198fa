/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/memory_copy.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t memory_file_bytes(int fd)
{
	struct stat status;

	return fstat(fd, &status) || status.st_size < 0 ? 0 : (uint64_t)status.st_size;
}

/* Reads, and does not map: the process may shorten its file at any time. */
int memory_file_copy(int from, uint64_t bytes, FILE *to)
{
	char block[65536];
	uint64_t at = 0;

	while (at < bytes) {
		uint64_t rest = bytes - at;
		ssize_t got =
			pread(from, block, rest < sizeof(block) ? rest : sizeof(block), (off_t)at);

		if (got <= 0)
			return got ? -errno : -EIO;
		if (fwrite(block, 1, (size_t)got, to) != (size_t)got)
			return errno ? -errno : -EIO;
		at += (uint64_t)got;
	}
	return 0;
}
