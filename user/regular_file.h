/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Opening what another process has put at a path, without a side effect on devices and pipes. */
#ifndef FBT_REGULAR_FILE_H
#define FBT_REGULAR_FILE_H

#include <sys/stat.h>

/* A descriptor for reading, or -errno without a message; -ENOEXEC: not a regular file. */
int regular_file_open(const char *path, struct stat *status);

#endif
