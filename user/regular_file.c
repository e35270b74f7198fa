/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int regular_file_open(const char *path, struct stat *status)
{
	int place, fd = -1, err = 0;
	char again[32];

	/* O_PATH does not open what it finds: a device is looked at, not started. */
	place = open(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -errno;
	if (fstat(place, status)) {
		err = -errno;
		goto out;
	}
	if (!S_ISREG(status->st_mode)) {
		err = -ENOEXEC;
		goto out;
	}
	snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
	fd = open(again, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err = -errno;
out:
	close(place);
	return err ? err : fd;
}
