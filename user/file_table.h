/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The open files that calls of a window worked on, by fbt_call.file. */
#ifndef FBT_FILE_TABLE_H
#define FBT_FILE_TABLE_H

#include <stdint.h>
#include "fbt_event.h"
#include "vec.h"

/* Files that are kept: those of more calls have no name. */
#define FILE_TABLE_MAX 65536

struct file {
	struct fbt_file record;
	char *path; /* "" if it has no name */
};

struct file_table {
	VEC(struct file) files; /* by id */
};

/* A later record of the same id replaces the earlier one. 0, -ENOMEM, or -ENOSPC: it is full. */
int file_table_add(struct file_table *table, const struct fbt_file *record, const char *path);

/* NULL if it is not known. */
const struct file *file_table_find(const struct file_table *table, uint32_t id);
void file_table_clear(struct file_table *table);

#endif
