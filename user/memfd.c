/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int memfd_device(dev_t *device)
{
	int own = memfd_create("ferrum-bpftrace", MFD_CLOEXEC), err = 0;
	struct stat status;

	if (own < 0)
		return -errno;
	if (fstat(own, &status))
		err = -errno;
	else
		*device = status.st_dev;
	close(own);
	return err;
}

int memfd_open(int folder, const char *number, dev_t device)
{
	/* Opened so, nothing is asked but what the kernel knows itself. */
	int looked = openat(folder, number, O_PATH | O_CLOEXEC), fd = -ENOENT;
	struct statx status;
	char path[64];

	if (looked < 0)
		return -errno;
	if (statx(looked, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) ||
	    !S_ISREG(status.stx_mode) ||
	    makedev(status.stx_dev_major, status.stx_dev_minor) != device)
		goto out;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", looked);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		fd = errno == EWOULDBLOCK || errno == ETXTBSY ? -EBADMSG : -errno;
out:
	close(looked);
	return fd;
}
