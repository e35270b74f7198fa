/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The symbols of a stripped file, kept in another file. */
#ifndef FBT_DEBUG_FILE_H
#define FBT_DEBUG_FILE_H

#include <stdbool.h>
#include "elf_file.h"

/*
 * Looks for the symbols of file, which the process sees as path: symbol_files with its build-id,
 * then /usr/lib/debug/.build-id and the file that .gnu_debuglink names, each as the process sees
 * them and as we do. A file that has another build-id, or another checksum, is passed over. The
 * descriptor behind *debug, both the caller's, or -ENOENT.
 */
int debug_file_find(struct elf_file *file, uint32_t tgid, const char *path,
		    const char *const *symbol_files, size_t count, struct elf_file **debug);

/*
 * Checks what --symbols names: 0, or -errno, logged as one line: cannot be opened, no ELF file, no
 * build-id, no symbols.
 */
int debug_file_check(const char *path);

/* Whether the build-id of the file at path is that of file. */
bool debug_file_fits(const char *path, const struct elf_file *file);

#endif
