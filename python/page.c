/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A program may count on the first descriptors that it opens. */
#define LOW_FDS 64

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

#define MAPPED "/memfd:" FBT_PYTHON_MEMFD " (deleted)\n"
/* A match may be split between two reads, so this many bytes are carried over. */
#define KEPT (sizeof(MAPPED) - 2)

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
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

int python_memfd_make(struct python_memfd *file, const char *name)
{
	int fd = open_memfd(name);
	struct stat stat;

	*file = (struct python_memfd){.fd = -1};
	if (fd < 0)
		return fd;
	if (fstat(fd, &stat)) {
		close(fd);
		return -EBADF;
	}
	*file = (struct python_memfd){.fd = fd, .device = stat.st_dev, .inode = stat.st_ino};
	return 0;
}

void python_memfd_close(struct python_memfd *file)
{
	struct stat stat;

	if (file->fd >= 0 && !fstat(file->fd, &stat) && stat.st_dev == file->device &&
	    stat.st_ino == file->inode)
		close(file->fd);
	file->fd = -1;
}

static int fill(int fd, struct fbt_python_page **result)
{
	struct fbt_python_page *page;
	struct rlimit limit;

	/* Beyond this limit the kernel kills the process with SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < FBT_PYTHON_PAGE_BYTES)
		return -EFBIG;
	if (ftruncate(fd, FBT_PYTHON_PAGE_BYTES))
		return -errno;
	/* Seal the file before anyone maps it: truncation would give readers SIGBUS. */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	/* Pages that cannot be allocated later would kill the process. */
	if (fallocate(fd, 0, 0, FBT_PYTHON_PAGE_BYTES) && (errno == ENOSPC || errno == ENOMEM))
		return -errno;
	page = mmap(NULL, FBT_PYTHON_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	/* A forked child must not write into the page of its parent. */
	madvise(page, FBT_PYTHON_PAGE_BYTES, MADV_DONTFORK);
	page->version = FBT_PYTHON_VERSION;
	page->pid = (uint32_t)getpid();
	__atomic_store_n(&page->magic, FBT_PYTHON_MAGIC, __ATOMIC_RELEASE);
	*result = page;
	return 0;
}

int python_page_make(struct fbt_python_page **page, struct python_memfd *file)
{
	int err = python_memfd_make(file, FBT_PYTHON_MEMFD);

	if (err)
		return err;
	err = fill(file->fd, page);
	if (err)
		python_memfd_close(file);
	return err;
}

bool python_page_is_here(void)
{
	char piece[KEPT + 4096 + 1];
	size_t kept = 0;
	ssize_t got;
	bool found = false;
	int fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	while (!found && (got = read(fd, piece + kept, sizeof(piece) - 1 - kept)) > 0) {
		size_t length = kept + (size_t)got;

		piece[length] = '\0';
		found = strstr(piece, MAPPED);
		kept = length < KEPT ? length : KEPT;
		memmove(piece, piece + length - kept, kept);
	}
	close(fd);
	return found;
}
