/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Symbols that --symbols names: a file, or a folder that has one for each build-id, as gdb's
 * debug-file-directory (.build-id/ab/cdef….debug) or the cache of debuginfod's clients
 * (abcdef…/debuginfo). What is taken is told by build-ids, never by names.
 */
#ifndef FBT_STEPS_SYMBOL_FILES_H
#define FBT_STEPS_SYMBOL_FILES_H

#include <stdbool.h>
#include "elf/elf_file.h"

/* What --symbols names, in that order. Borrowed. */
struct symbol_files {
	const char *const *paths;
	size_t count;
};

bool symbol_file_is_folder(const char *path);

/*
 * Opens the symbols for a build-id. Returns a descriptor, to be closed after *elf; -ENOENT if the
 * folder has none; -ESTALE if the file there has another build-id, which is logged for one in a
 * folder; or another -errno of regular_file_open() or elf_file__open().
 */
int symbol_file_open(const char *path, const uint8_t *id, size_t id_size, struct elf_file **elf);

#endif
