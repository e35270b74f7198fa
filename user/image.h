/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A file that a process has mapped, and all that is known of the functions in it. */
#ifndef FBT_IMAGE_H
#define FBT_IMAGE_H

#include "elf_fde.h"
#include "elf_file.h"
#include "elf_symbols.h"
#include "exits.h"
#include "maps.h"

struct image {
	int fd;
	uint64_t device; /* st_dev, st_ino */
	uint64_t inode;
	char *path;
	struct elf_file *elf;
	struct elf_symbols symbols;
	struct elf_fdes fdes;
	struct elf_file *debug; /* where symbols come from if the file itself has no .symtab */
	int debug_fd;
	bool read; /* image_read was done */
};

/*
 * Opens the mapped file. Without a message: 0, -errno of mapping_open or elf_file__open; the caller
 * closes in both cases.
 */
int image_open(struct image *image, uint32_t tgid, const struct mapping *mapping);
void image_close(struct image *image);

/*
 * Reads symbols and unwind table once. symbol_files are tried by build-id if the file has no
 * .symtab, then the places where debug files are kept. 0 or -errno, without a message; damaged
 * tables are as none.
 */
int image_read(struct image *image, uint32_t tgid, const char *const *symbol_files, size_t count);

/*
 * From where to where the function goes that covers address, by symbol, else by the unwind table:
 * 0, -ENOENT if nothing covers it.
 */
int image_extent(const struct image *image, uint64_t address, struct code_range *range);

/* Whether the code that covers address is entered with a frame in place: a piece of a function. */
bool image_has_frame(const struct image *image, uint64_t address);

/* Start of the function at or before address, 0 if none is known. */
uint64_t image_nearest(const struct image *image, uint64_t address);

#endif
