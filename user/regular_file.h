/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Opening what another process has put at a path, without a side effect on devices and pipes. */
#ifndef FBT_REGULAR_FILE_H
#define FBT_REGULAR_FILE_H

#include <sys/stat.h>

/*
 * A descriptor for reading, or -errno without a message; -ENOEXEC: not a regular file, or one
 * of the kernel's own (/proc, /sys …); -EAGAIN: another process holds a lease on it, and would have
 * us wait.
 */
int regular_file_open(const char *path, struct stat *status);

#endif
