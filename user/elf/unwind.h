/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Reads the unwind table (.eh_frame_hdr), which has the extent of each function but no names.
 * Unlike symbols it is not removed by strip.
 */
#ifndef FBT_STEPS_UNWIND_H
#define FBT_STEPS_UNWIND_H

#include "elf/elf_file.h"

struct elf_fdes {
	uint8_t *table; /* sorted pairs of s32, function and FDE, both relative to base */
	size_t count;
	uint64_t base;
};

/*
 * 0, also if there is no table; -EBADMSG, also if it has more than 8 Mi entries; or -ENOMEM.
 * Without a message.
 */
int elf_fdes_read(struct elf_fdes *fdes, const struct elf_file *file);
void elf_fdes_clear(struct elf_fdes *fdes);

struct elf_fde {
	uint64_t start;
	uint64_t size;
	bool has_frame; /* entered with a frame in place: a piece of a function */
};

/*
 * The entry that contains address. 0; -ENOENT if there is none, and fde->start is that of the last
 * entry before address, or 0; or -EBADMSG.
 */
int elf_fdes_find(const struct elf_fdes *fdes, const struct elf_file *file, uint64_t address,
		  struct elf_fde *fde);

#endif
