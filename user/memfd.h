/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Shared memory (memfd_create(2)) of another process, which may be hostile. */
#ifndef FBT_MEMFD_H
#define FBT_MEMFD_H

#include <sys/types.h>

/* The kernel's own file system for such memory: 0 or -errno. */
int memfd_device(dev_t *device);

/*
 * Opens, for reading and writing, the file that number stands for in folder, a /proc/PID/fd: only
 * if it is on that device, so that nobody but the kernel answers, whatever the number stands for by
 * now. A descriptor; -ENOENT it is something else; -EBADMSG its owner has to be asked first (a
 * lease); -errno.
 */
int memfd_open(int folder, const char *number, dev_t device);

#endif
