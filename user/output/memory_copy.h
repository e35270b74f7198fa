/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Memory files of a traced process. */
#ifndef FBT_OUTPUT_MEMORY_COPY_H
#define FBT_OUTPUT_MEMORY_COPY_H

#include <stdint.h>
#include <stdio.h>

/* The size of an open memory file by now; 0 if it cannot be told. */
uint64_t memory_file_bytes(int fd);

/* Copies its first bytes. 0; -EIO: there are fewer of them; or -errno. */
int memory_file_copy(int from, uint64_t bytes, FILE *to);

#endif
