/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* ferrum-bpftrace env-hash [FILE] */
#ifndef FBT_COMMANDS_ENV_HASH_H
#define FBT_COMMANDS_ENV_HASH_H

#include <stdio.h>

/* Larger files are no environment documents. */
#define ENV_HASH_FILE_MAX (16u << 20)

/*
 * Prints the hash of the environment document in the file at path, or of stdin for NULL and "-", as
 * a line to out. 0, or -errno with one line logged.
 */
int env_hash_command(const char *path, FILE *out);

#endif
