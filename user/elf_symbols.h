/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The functions that an ELF file names, .symtab if there is one, else .dynsym. */
#ifndef FBT_ELF_SYMBOLS_H
#define FBT_ELF_SYMBOLS_H

#include "elf_file.h"

struct elf_symbol {
	const char *name; /* as in the file; lives as long as the elf_file */
	uint64_t address;
	uint64_t size; /* 0: the file does not say */
};

/* Sorted by address; several names of one address follow each other. */
struct elf_symbols {
	struct elf_symbol *items;
	size_t count;
	bool complete; /* from .symtab: local functions too */
};

/*
 * Functions (STT_FUNC) defined in file. IFUNC resolvers, imports and names without end or too long
 * are left out, and so are all names but the first 256 of an address. Without a message: 0 (also if
 * there are none), -EFBIG more than 4 Mi functions or 256 MiB of a table, -EBADMSG, -ENOMEM.
 */
int elf_symbols_read(struct elf_symbols *symbols, struct elf_file *file);
void elf_symbols_clear(struct elf_symbols *symbols);

/* First symbol at exactly that address, or NULL; then the one that covers it, or NULL. */
const struct elf_symbol *elf_symbols_at(const struct elf_symbols *symbols, uint64_t address);
const struct elf_symbol *elf_symbols_around(const struct elf_symbols *symbols, uint64_t address);

/* The last symbol at or before that address, or NULL. */
const struct elf_symbol *elf_symbols_before(const struct elf_symbols *symbols, uint64_t address);

#endif
