/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * By what it is seen that a file was written anew, under the same inode: cp onto a library that no
 * process has mapped, rsync --inplace, some linkers. What was read from it before is then wrong.
 */
#ifndef FBT_BASE_FILE_STAMP_H
#define FBT_BASE_FILE_STAMP_H

#include <stdbool.h>
#include <stdint.h>

struct file_stamp {
	uint64_t bytes;
	uint64_t written_ns; /* Unix time */
};

/* As far as this machine knows: no file server is asked, as it may hang. {0, 0} if it fails. */
struct file_stamp file_stamp_of(int fd);

bool file_stamps_are_equal(struct file_stamp a, struct file_stamp b);

#endif
