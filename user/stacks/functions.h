/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Functions of one file whose names were read, kept so that its symbols are seldom gone through. */
#ifndef FBT_STACKS_FUNCTIONS_H
#define FBT_STACKS_FUNCTIONS_H

#include "base/vec.h"
#include "elf/symbols.h"

/* Addresses that are all in one function, or all in none. */
struct function {
	uint64_t low;
	uint64_t high;	/* the first address after them */
	uint64_t start; /* of the function: low, unless another one begins in it */
	char *name;	/* demangled; NULL: no function with a name has them, and start is 0 */
};

/* All zero: empty. */
struct functions {
	VEC(struct function) items; /* by low; they do not overlap */
};

void functions_clear(struct functions *functions);

/* The function that an address is in; NULL: it was not read. */
const struct function *functions_find(const struct functions *functions, uint64_t address);

/*
 * Adds the functions of addresses, which are sorted, from a file; those that have no name or no
 * room are left out. *complete: the file has a .symtab.
 */
void functions_read(struct functions *functions, const struct elf_file *symbols,
		    struct elf_wanted *wanted, size_t count, bool *complete);

/*
 * Remembers of those for which functions_read() found nothing that they have no name, together with
 * the addresses around them for which the same holds.
 */
void functions_keep_nameless(struct functions *functions, const struct elf_wanted *wanted,
			     size_t count);

#endif
