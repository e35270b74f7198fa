/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The sections of an ELF file that another may be writing to: their headers are read once, and what
 * was checked is what is used. (libelf reads again, and makes room for whatever a sparse file
 * claims.)
 */
#ifndef FBT_ELF_SECTIONS_H
#define FBT_ELF_SECTIONS_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What a larger section holds is not looked at, nor what would make more than that of all that are
 * loaded: the largest real ones, tables of names of 250 MiB, stay below.
 */
#define ELF_SECTION_BYTES_MAX (256u << 20)
#define ELF_LOADED_BYTES_MAX  (320u << 20)

struct elf_section {
	Elf64_Shdr header;
	const char *name; /* NULL: it has none */
	size_t index;
	const uint8_t *data; /* NULL where the file holds none; lives as long as the elf_sections */
	size_t size;
};

struct elf_sections {
	int fd; /* the caller's */
	uint64_t file_size;
	struct elf_section *items; /* the first is none */
	uint8_t **loaded;	   /* data of each, once it was asked for */
	size_t count;
	uint64_t room; /* bytes of data that may still be loaded */
	char *names;   /* ends with a NUL */
};

/* 0, without sections if they cannot be read or are more than 65,535; or -ENOMEM. */
int elf_sections_read(struct elf_sections *sections, int fd, uint64_t file_size,
		      const Elf64_Ehdr *header);
void elf_sections_clear(struct elf_sections *sections);

/* Number of program headers, which may be in the first section. */
uint64_t elf_sections_segment_count(const struct elf_sections *sections, const Elf64_Ehdr *header);

/*
 * Section index with its data: 0; -ENOENT; -EBADMSG if the data is out of bounds, -EFBIG if too
 * much is loaded, with only header and name in *section; -ENOMEM.
 */
int elf_sections_get(struct elf_sections *sections, size_t index, struct elf_section *section);

/* The same, but its data is only looked for: data is NULL, size how much elf_read_at may give. */
int elf_sections_find(const struct elf_sections *sections, size_t index,
		      struct elf_section *section);

/* All of size bytes of a file: 0 or -EIO. */
int elf_read_at(int fd, uint64_t offset, void *data, size_t size);

#endif
