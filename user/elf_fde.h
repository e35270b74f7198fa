/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The unwind table (.eh_frame_hdr): it names no function, but tells from where to where each goes,
 * and unlike symbols it survives strip.
 */
#ifndef FBT_ELF_FDE_H
#define FBT_ELF_FDE_H

#include "elf_file.h"

struct elf_fdes {
	uint8_t *table; /* sorted pairs of s32: function, FDE; both relative to base */
	size_t count;
	uint64_t base;
};

/*
 * 0 (also if there is no table), -EBADMSG (also if it has more than 8 Mi entries) or -ENOMEM,
 * without a message.
 */
int elf_fdes_read(struct elf_fdes *fdes, const struct elf_file *file);
void elf_fdes_clear(struct elf_fdes *fdes);

struct elf_fde {
	uint64_t start;
	uint64_t size;
	bool has_frame; /* its first instruction finds a frame set up: the rest of a function */
};

/*
 * The entry that covers address: 0, -ENOENT if none does (then *start is that of the last one
 * before it, 0 if there is none), or -EBADMSG.
 */
int elf_fdes_find(const struct elf_fdes *fdes, const struct elf_file *file, uint64_t address,
		  struct elf_fde *fde);

#endif
