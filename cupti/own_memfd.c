/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "own_memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOW_FDS 64

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

static int open_memfd(const char *name)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = (int)syscall(SYS_memfd_create, name, flags | MFD_NOEXEC_SEAL);
	int high;

	/* Kernels before 6.3 do not know the flag. */
	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_memfd_create, name, flags);
	if (fd < 0)
		return -errno;
	high = fcntl(fd, F_DUPFD_CLOEXEC, LOW_FDS);
	if (high < 0 && fd > STDERR_FILENO)
		return fd;
	if (high < 0)
		high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (high < 0)
		high = -errno;
	close(fd);
	return high;
}

int own_memfd_make(struct own_memfd *file, const char *name)
{
	int fd = open_memfd(name);
	struct stat stat;

	*file = (struct own_memfd){.fd = -1};
	if (fd < 0)
		return fd;
	if (fstat(fd, &stat)) {
		close(fd);
		return -EBADF;
	}
	*file = (struct own_memfd){.fd = fd, .device = stat.st_dev, .inode = stat.st_ino};
	return 0;
}

bool own_memfd_is_there(const struct own_memfd *file)
{
	struct stat stat;

	return file->fd >= 0 && !fstat(file->fd, &stat) && stat.st_dev == file->device &&
	       stat.st_ino == file->inode;
}

void own_memfd_close(struct own_memfd *file)
{
	if (own_memfd_is_there(file))
		close(file->fd);
	file->fd = -1;
}
