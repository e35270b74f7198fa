/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/memfd.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

int memfd_make(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	/* Kernels before 6.3 do not know the flag; up to 6.5 vm.memfd_noexec = 2 demands it. */
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC);
	return fd;
}
