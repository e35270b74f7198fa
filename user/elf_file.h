/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * One ELF file of another process: untrusted input. Everything read from it is checked against the
 * size of the file; nothing is mapped, so a file that shrinks meanwhile does no harm.
 */
#ifndef FBT_ELF_FILE_H
#define FBT_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "elf_sections.h"
#include "fbt_event.h"

/* Longest build-id taken; GNU ld writes 20 bytes, lld up to 32. */
#define ELF_BUILD_ID_MAX 64

struct elf_file;

/*
 * Reads the headers of the file behind fd, which stays the caller's and must outlive the object.
 * Without a message: 0, -ENOEXEC not an ELF file (or not a whole one), -EAFNOSUPPORT 32-bit or
 * big-endian, -ENOSYS for another processor than x86-64 and arm64, -ENOMEM, -errno of a read.
 */
int elf_file__open(struct elf_file **file, int fd);
void elf_file__free(struct elf_file *file);

/* Why elf_file__open failed, for a message: "not an ELF file", "a 32-bit file", … */
const char *elf_file_strerror(int err);

enum fbt_arch elf_file__arch(const struct elf_file *file);
bool elf_file__is_executable(const struct elf_file *file); /* has an entry: no plain library */
bool elf_file__has_interpreter(const struct elf_file *file);
bool elf_file__is_go(struct elf_file *file);

/* First section of that name, or of that type: 0, -ENOENT, or -EBADMSG if its data is out of
 * bounds. */
int elf_file__section(struct elf_file *file, const char *name, struct elf_section *section);
int elf_file__section_of_type(struct elf_file *file, uint32_t type, struct elf_section *section);
int elf_file__section_at(struct elf_file *file, size_t index, struct elf_section *section);

/* As elf_file__section_of_type, without data; then size bytes of it: 0, -ERANGE or -EIO. */
int elf_file__find_section(const struct elf_file *file, uint32_t type, struct elf_section *section);
int elf_file__read_section(const struct elf_file *file, const struct elf_section *section,
			   size_t at, void *data, size_t size);

/* First program header of that type: 0 or -ENOENT. */
int elf_file__segment(const struct elf_file *file, uint32_t type, Elf64_Phdr *header);

/* File offset of an address; code: only in an executable segment. 0 or -ERANGE. */
int elf_file__offset(const struct elf_file *file, uint64_t address, bool code, uint64_t *offset);

/* Bytes at an address of which a segment holds all, from the file. 0, -ERANGE or -EIO. */
int elf_file__read(const struct elf_file *file, uint64_t address, void *data, size_t size);

/* Bytes of file behind address in its segment: how much elf_file__read can give. */
uint64_t elf_file__available(const struct elf_file *file, uint64_t address);

/* GNU build-id; returns its size, 0 if there is none. */
size_t elf_file__build_id(const struct elf_file *file, uint8_t id[ELF_BUILD_ID_MAX]);

#endif
