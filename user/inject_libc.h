/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The functions of a process's libc that the stub calls: where they are in its memory. */
#ifndef FBT_INJECT_LIBC_H
#define FBT_INJECT_LIBC_H

#include "elf_file.h"
#include "fbt_inject.h"
#include "inject_maps.h"

struct inject_libc {
	const struct inject_mapping *mapping; /* of its code; of the vector that was searched */
	char version[16];		      /* "2.36"; "" if the file does not say */
	const char *missing;		      /* -ENOENT: name of a function; static */
	uint64_t functions[FBT_INJECT_FUNCTION_COUNT];
};

/*
 * Without a message: 0; -ESRCH no libc.so.6 is mapped (mapping is NULL then); -EEXIST it is there
 * twice; -ENOENT it has not all of them, as before 2.34; -EBADMSG, -ENOEXEC, -errno: the file.
 */
int inject_libc_find(struct inject_libc *libc, uint32_t thread, const inject_mapping_vec *maps);

/*
 * Addresses in file of the functions that it exports by these names, of those that have versions
 * the one that is linked with; 0 for what it has not. 0 or -EBADMSG; -ENOENT it exports nothing.
 */
int inject_exports_find(struct elf_file *file, const char *const *names, size_t count,
			uint64_t *addresses);

#endif
