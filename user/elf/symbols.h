/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Reads the names in an ELF file: its functions, from .symtab if there is one and else from
 * .dynsym, and its USDT probes, from .note.stapsdt.
 */
#ifndef FBT_ELF_SYMBOLS_H
#define FBT_ELF_SYMBOLS_H

#include "base/vec.h"
#include "elf/elf_file.h"

struct elf_symbol {
	const char *name; /* as in the file; lives as long as the elf_file */
	uint64_t address;
	uint64_t size; /* 0: the file does not say */
};

/* Sorted by address; the names of one address are adjacent. */
struct elf_symbols {
	struct elf_symbol *items;
	size_t count;
	VEC(struct elf_symbol) ifuncs; /* STT_GNU_IFUNC: the addresses are those of resolvers */
	bool complete;		       /* from .symtab, which also has local functions */
};

/*
 * Reads the functions (STT_FUNC) defined in file, and apart from them at most 4,096 IFUNCs.
 * Imports, names that are too long or have no end, and all but 256 names of an address are left
 * out. 0, also if there are none; -EFBIG if there are more than 4 Mi functions or a table is larger
 * than 256 MiB; -EBADMSG or -ENOMEM. Without a message.
 */
int elf_symbols_read(struct elf_symbols *symbols, struct elf_file *file);
void elf_symbols_clear(struct elf_symbols *symbols);

/* The first symbol at exactly that address, or NULL. */
const struct elf_symbol *elf_symbols_at(const struct elf_symbols *symbols, uint64_t address);

/* The symbol whose function contains that address, or NULL. */
const struct elf_symbol *elf_symbols_around(const struct elf_symbols *symbols, uint64_t address);

/* The last symbol at or before that address, or NULL. */
const struct elf_symbol *elf_symbols_before(const struct elf_symbols *symbols, uint64_t address);

/* An address whose function is looked for. */
struct elf_wanted {
	uint64_t address;
	uint64_t start; /* of the function that contains it; 0: none does */
	uint32_t name;	/* offset in the string table */
	/*
	 * No function begins or ends between these two, so what is found for the address holds for
	 * all from low on and before high.
	 */
	uint64_t low;
	uint64_t high;
};

/*
 * Finds the functions of some addresses, sorted by address, in one pass over the symbols, of which
 * it keeps none. Of functions that overlap the one that begins last is taken. *complete: from
 * .symtab. 0, also if the file has no symbols; or -EBADMSG, and no address has a function. Without
 * a message.
 */
int elf_symbols_locate(const struct elf_file *file, struct elf_wanted *wanted, size_t count,
		       bool *complete);

/*
 * The name of a function that was found so, in the file, to be freed. NULL if it cannot be read or
 * is longer than 4,095 bytes, or without memory.
 */
char *elf_symbols_name(const struct elf_file *file, const struct elf_wanted *wanted);

/*
 * A variable (STT_OBJECT) that the file exports, by its name in .dynsym. 0, -ENOENT, or -EBADMSG,
 * -EFBIG or -ENOMEM for a table that cannot be read. Without a message.
 */
int elf_object_find(struct elf_file *file, const char *name, struct elf_symbol *object);

/* Longest text of the arguments of a USDT probe that is kept. */
#define USDT_ARGUMENTS_MAX 128

/* A USDT probe. */
struct usdt_probe {
	VEC(uint64_t) offsets; /* file offsets, one for each place that it was inlined into */
	uint64_t address;      /* of the first place */
	uint64_t semaphore;    /* file offset, 0 if there is none */
	/* As the file has them; "" if its places do not agree, or the text is too long. */
	char arguments[USDT_ARGUMENTS_MAX];
};

/*
 * Finds all places of provider:name. 0, without offsets if there are none; -EBADMSG for a damaged
 * note section; or -ENOMEM. Without a message. Free with usdt_clear(), also on failure.
 */
int usdt_find(struct elf_file *file, const char *provider, const char *name,
	      struct usdt_probe *probe);
void usdt_clear(struct usdt_probe *probe);

#endif
