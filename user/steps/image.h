/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A file that a process has mapped: its functions, by symbols and unwind table; its debug file. */
#ifndef FBT_STEPS_IMAGE_H
#define FBT_STEPS_IMAGE_H

#include <stdbool.h>
#include "proc/maps.h"
#include "elf/elf_file.h"
#include "elf/symbol_files.h"
#include "code/exits.h"
#include "elf/symbols.h"
#include "elf/unwind.h"

struct image {
	int fd;
	uint64_t device; /* st_dev, st_ino */
	uint64_t inode;
	char *path;
	struct elf_file *elf;
	struct elf_symbols symbols;
	struct elf_fdes fdes;
	struct elf_file *debug; /* source of the symbols if the file itself has no .symtab */
	int debug_fd;
	bool debug_is_given; /* it is one of --symbols, which the user trusts */
	bool read;	     /* image_read() was called */
	bool quiet;	     /* image_read() logs no warning */
};

/*
 * Opens the mapped file. 0, or -errno of mapping_open() or elf_file__open(), without a message. The
 * caller closes the image in both cases.
 */
int image_open(struct image *image, uint32_t tgid, const struct mapping *mapping);
void image_close(struct image *image);

/*
 * Reads symbols and unwind table; later calls do nothing. If the file has no .symtab, the symbols
 * of its debug file are used (debug_file_find). 0 or -errno, without a message. Damaged tables
 * count as missing.
 */
int image_read(struct image *image, uint32_t tgid, const char *const *symbol_files, size_t count);

/*
 * Reads the unwind table only, which has the extent of functions but no names: for files with so
 * many symbols that reading them takes long. Returns as image_read(), which does nothing then.
 */
int image_read_extents(struct image *image);

/*
 * The extent of the function that contains address, from a symbol or else from the unwind table.
 * 0, or -ENOENT if no function contains it.
 */
int image_extent(const struct image *image, uint64_t address, struct code_range *range);

/*
 * Whether no function begins at address by the unwind table of the file itself, though its debug
 * file says so. That may be of anybody who has the build ID, and probes amid of instructions crash
 * all processes that map the file. Else *most is the size that the function has at most.
 */
bool image_contradicts(const struct image *image, uint64_t address, uint64_t *most);

/* Whether the code around address is entered with a frame in place: a piece of a function. */
bool image_has_frame(const struct image *image, uint64_t address);

/* Start of the function at or before address; 0 if none is known. */
uint64_t image_nearest(const struct image *image, uint64_t address);

/*
 * Finds the debug file of file, which the process sees as path. Tries symbols, then
 * /usr/lib/debug/.build-id, then the file that .gnu_debuglink names; the last two in the root of
 * the process and then in the tool's. Skips files with another build-id or checksum, and those that
 * are told by a checksum if checksums of more than that many bytes had to be made; and files, but
 * those of symbols, that are neither root's nor of the owner of file. is_given: it is of symbols;
 * may be NULL. Returns the descriptor of *debug, both to be freed by the caller; or -ENOENT.
 */
#define DEBUG_FILE_CHECKSUM_BYTES   (1u << 30)
#define DEBUG_FILE_CHECKSUM_AT_ONCE (32u << 20) /* takes some 30 ms, while records wait */
int debug_file_find(struct elf_file *file, uint32_t tgid, const char *path,
		    const struct symbol_files *symbols, uint64_t checksum_bytes,
		    struct elf_file **debug, bool *is_given);

/*
 * Checks a file of --symbols: it can be opened, is an ELF file, and has a build-id and symbols; or
 * is a folder, see symbol_files.h. 0, or -errno, logged as one line unless quiet.
 */
int debug_file_check(const char *path, bool quiet);

/* Whether the file at path has the build-id of file. */
bool debug_file_fits(const char *path, const struct elf_file *file);

/*
 * By what it is seen that a file was written anew, under the same inode: cp onto a library that no
 * process has mapped, rsync --inplace, some linkers. What was read from it before is then wrong.
 */
struct file_stamp {
	uint64_t bytes;
	uint64_t written_ns; /* Unix time */
};

/* As far as this machine knows: no file server is asked, as it may hang. {0, 0} if it fails. */
struct file_stamp file_stamp_of(int fd);

bool file_stamps_are_equal(struct file_stamp a, struct file_stamp b);

#endif
