/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The files that the kernel side announces: their paths, and which of them were sent on, so that no
 * call names a file before its record.
 */
#ifndef FBT_FILE_NAMES_H
#define FBT_FILE_NAMES_H

#include <stdbool.h>
#include "fbt_shared.h"
#include "record.h"

/* Of the longest path that file_path_write makes, its NUL included. */
#define FILE_PATH_BYTES (FBT_PATH_BYTES + FBT_NAME_BYTES + 64)

/*
 * The path as the process itself sees it, in the words of /proc/PID/fd: "/dev/null",
 * "/tmp/x (deleted)", "socket:[123]", "pipe:[7]", "anon_inode:[eventfd]", "/memfd:NAME"; "" if the
 * file has no name. "…/" comes first if it was longer than the kernel side follows. The bytes are
 * the target's.
 */
void file_path_write(const struct fbt_ring_file *file, char path[FILE_PATH_BYTES]);

struct file_names;

/* NULL: -ENOMEM. */
struct file_names *file_names__new(void);
void file_names__free(struct file_names *names);

/* Sends the FBT_EVENT_FILE record. 0; -EBADMSG not such a file; -ENOMEM: it was not sent. */
int file_names__send(struct file_names *names, const struct fbt_header *event,
		     const struct record_output *output);

/* Whether the record of that file was sent. */
bool file_names__has(const struct file_names *names, uint32_t id);

#endif
