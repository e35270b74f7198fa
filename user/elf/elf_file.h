/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Reads an ELF file of another process. The file is untrusted input, and its owner may be writing
 * to it. Headers are read once, checked against the size of the file, and only these copies are
 * used. Nothing is mapped, so a file that shrinks does no harm. libelf is not used because it reads
 * headers several times and allocates whatever size a sparse file claims.
 */
#ifndef FBT_ELF_ELF_FILE_H
#define FBT_ELF_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "fbt_event.h"

/*
 * Largest section that is loaded, and limit of all loaded sections together. The largest real
 * sections, string tables of 250 MiB, are below.
 */
#define ELF_SECTION_BYTES_MAX (256u << 20)
#define ELF_LOADED_BYTES_MAX  (320u << 20)

struct elf_section {
	Elf64_Shdr header;
	const char *name; /* or NULL */
	size_t index;
	const uint8_t *data; /* NULL if the file has none; lives as long as the elf_sections */
	size_t size;
};

struct elf_sections {
	int fd; /* borrowed */
	uint64_t file_size;
	struct elf_section *items; /* the first is not a section */
	uint8_t **loaded;	   /* data of each section that was loaded */
	size_t count;
	uint64_t room; /* bytes of data that may still be loaded */
	char *names;   /* ends with a NUL */
};

/* 0 or -ENOMEM. If sections cannot be read, or are more than 65,535, there are none. */
int elf_sections_read(struct elf_sections *sections, int fd, uint64_t file_size,
		      const Elf64_Ehdr *header);
void elf_sections_clear(struct elf_sections *sections);

/*
 * A section with its data. 0; -ENOENT; -ENOMEM; or, with only header and name in *section, -EBADMSG
 * if the data is out of bounds and -EFBIG if too much is loaded.
 */
int elf_sections_get(struct elf_sections *sections, size_t index, struct elf_section *section);

/* Longest build-id that is accepted. GNU ld writes 20 bytes, lld up to 32. */
#define ELF_BUILD_ID_MAX 64

struct elf_file;

/*
 * Reads the headers of the file. fd is borrowed and must outlive the object. 0 or -errno, without a
 * message:
 *
 *	-ENOEXEC	not an ELF file, or not a complete one
 *	-EAFNOSUPPORT	32-bit or big-endian
 *	-ENOSYS		for a processor other than x86-64 and arm64
 */
int elf_file__open(struct elf_file **file, int fd);
void elf_file__free(struct elf_file *file);

/* Why elf_file__open() failed, for a message that says "is …": "a 32-bit ELF file", … */
const char *elf_file_strerror(int err);

enum fbt_arch elf_file__arch(const struct elf_file *file);
bool elf_file__is_executable(const struct elf_file *file); /* a program, not a plain library */
bool elf_file__has_interpreter(const struct elf_file *file);
bool elf_file__is_go(struct elf_file *file);

/* The first section with that name or type, or the one at index; returns as elf_sections_get(). */
int elf_file__section(struct elf_file *file, const char *name, struct elf_section *section);
int elf_file__section_of_type(struct elf_file *file, uint32_t type, struct elf_section *section);
int elf_file__section_at(struct elf_file *file, size_t index, struct elf_section *section);

/*
 * elf_file__find_section() is elf_file__section_of_type() without loading the data, and so are
 * elf_file__find_section_named() and elf_file__find_section_at() for the other two.
 * elf_file__read_section() reads size bytes of such a section: 0, -ERANGE or -EIO.
 */
int elf_file__find_section(const struct elf_file *file, uint32_t type, struct elf_section *section);
int elf_file__find_section_named(const struct elf_file *file, const char *name,
				 struct elf_section *section);
int elf_file__find_section_at(const struct elf_file *file, size_t index,
			      struct elf_section *section);
int elf_file__read_section(const struct elf_file *file, const struct elf_section *section,
			   size_t at, void *data, size_t size);

/* The first program header of that type. 0 or -ENOENT. */
int elf_file__segment(const struct elf_file *file, uint32_t type, Elf64_Phdr *header);

/* The program header of the loaded segment at index, of those alone. 0 or -ENOENT. */
int elf_file__loaded(const struct elf_file *file, size_t index, Elf64_Phdr *header);

/* File offset of an address, with code only if it is in an executable segment. 0 or -ERANGE. */
int elf_file__offset(const struct elf_file *file, uint64_t address, bool code, uint64_t *offset);

/* The address of code at a file offset. 0, or -ERANGE if that is in no executable segment. */
int elf_file__code_address(const struct elf_file *file, uint64_t offset, uint64_t *address);

/*
 * The address of the begin of a mapping of code, which has this file offset. It may lie before the
 * segment: a mapping begins at a page, and segments by LLD need not. 0, or -ERANGE if no executable
 * segment is mapped from there.
 */
int elf_file__mapped_address(const struct elf_file *file, uint64_t offset, uint64_t *address);

/* Reads size bytes at an address, all from one segment. 0, -ERANGE or -EIO. */
int elf_file__read(const struct elf_file *file, uint64_t address, void *data, size_t size);

/* The user whose file it is. false if that cannot be read. */
bool elf_file__owner(const struct elf_file *file, uid_t *owner);

/* Number of bytes from address to the end of its segment, which elf_file__read() can read. */
uint64_t elf_file__available(const struct elf_file *file, uint64_t address);

/* One note of a section or segment of notes. name and contents point into the notes. */
struct elf_note {
	uint32_t type;
	const char *name;
	size_t name_size;
	const uint8_t *contents;
	size_t size;
};

/* Takes the first note from *size bytes at *notes. 1; 0 if there is none; -EBADMSG if cut off. */
int elf_note_next(const uint8_t **notes, size_t *size, struct elf_note *note);

/* Gets the GNU build-id. Returns its size, 0 if there is none. */
size_t elf_file__build_id(const struct elf_file *file, uint8_t id[ELF_BUILD_ID_MAX]);

#endif
