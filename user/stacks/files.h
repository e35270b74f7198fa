/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The files that the code of processes is in, each opened once, and the names of its functions. */
#ifndef FBT_STACKS_FILES_H
#define FBT_STACKS_FILES_H

#include "proc/maps.h"
#include "elf/elf_file.h"
#include "elf/symbol_files.h"

struct code_files;

/* What symbols names is borrowed. NULL: -ENOMEM. */
struct code_files *code_files__new(const struct symbol_files *symbols);
void code_files__free(struct code_files *files);

/*
 * forget is called when a number is about to be given to another file: elf, which may be NULL, and
 * what code_files__path() and code_files__name() have returned for the number are freed. Also when
 * a file could be opened at last: addresses in it are others then. Without it, no number is given
 * twice.
 */
struct code_forgetter {
	void (*forget)(void *ctx, uint32_t number, const struct elf_file *elf);
	void *ctx;
};
void code_files__set_forgetter(struct code_files *files, const struct code_forgetter *forgetter);

/*
 * The CPU time that may go into the symbols of one file (default: 20 s), as they may be many, and
 * are gone through again for functions that are new. After that, further functions of it have no
 * names, which is said.
 */
void code_files__set_cpu_limit(struct code_files *files, uint64_t limit_ns);

/*
 * The number of the file of a mapping, from 1: processes that map the same file have the same
 * number. It is opened if it is new, or could not be opened a second ago. 0: more than 256 files,
 * or without memory.
 */
uint32_t code_files__add(struct code_files *files, uint32_t tgid, const struct mapping *mapping,
			 uint64_t now_ns);

/*
 * The same of the code that the kernel maps into each process, which is in no file: it is read from
 * the memory of the process, and is "[vdso]" by name. An address of it is the distance from the
 * begin of the mapping where the memory cannot be read.
 */
uint32_t code_files__add_vdso(struct code_files *files, uint32_t tgid,
			      const struct mapping *mapping, uint64_t now_ns);

/*
 * Makes room where there is none for one more file; at most once a second, as it takes long. After
 * code_files__begin_room() code_files__keep() is called for each mapping that is known of. Then
 * those files that have none, the oldest first, give their numbers to others; if there are none,
 * code_files__end_room() is false, which is said once.
 */
bool code_files__begin_room(struct code_files *files, uint64_t now_ns); /* false: not now */
void code_files__keep(struct code_files *files, uint32_t tgid, const struct mapping *mapping);
bool code_files__end_room(struct code_files *files);

/* NULL if the file cannot be opened or is no ELF file. */
struct elf_file *code_files__elf(const struct code_files *files, uint32_t number);
const char *code_files__path(const struct code_files *files, uint32_t number);
const char *code_files__build_id(const struct code_files *files, uint32_t number); /* or "" */

/* An address of a file, and the function that it is in. */
struct code_name {
	uint64_t address;
	uint64_t start;	  /* of the function; 0: not known */
	const char *name; /* demangled; NULL: not known. Lives as long as the file. */
};

/*
 * Names addresses of one file. The symbols are read once for all that lie in functions that were
 * not met before, or between functions where none was met before.
 */
void code_files__name(struct code_files *files, uint32_t number, struct code_name *names,
		      size_t count);

#endif
