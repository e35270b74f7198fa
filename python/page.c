/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

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

int python_page_make(struct fbt_python_page **page, struct own_memfd *file)
{
	int err = own_memfd_make(file, FBT_PYTHON_MEMFD);

	if (err)
		return err;
	err = fill(file->fd, page);
	if (err)
		own_memfd_close(file);
	return err;
}
