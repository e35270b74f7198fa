/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * From samples of stacks to the functions on them, each by where it begins: no names are needed,
 * because the unwind table has the extent of each function of a stripped program, too.
 */
#ifndef FBT_STACKS_CHAINS_H
#define FBT_STACKS_CHAINS_H

#include "base/vec.h"
#include "fbt_event.h"
#include "proc/maps.h"

/* A function of a file that is mapped in the process. */
struct chain_function {
	uint32_t module; /* number of the file (chains__path) */
	uint64_t start;	 /* in the file, as nm prints it */
	uint64_t size;
};

/* The functions of one sample are functions[first] … [first + count - 1]. */
struct chain {
	uint32_t tid;
	uint32_t first;
	uint32_t count; /* 0: none was found */
};

/* What was sampled. */
struct chain_set {
	VEC(struct chain) items;
	/*
	 * Indices of functions, the outermost of each chain first, each once: where a function has
	 * called itself, its outermost call. Code without an entry in a table is left out.
	 */
	VEC(uint32_t) functions;
	size_t function_count; /* indices are lower than that */
};

struct chains;

/* NULL: -ENOMEM. */
struct chains *chains__new(uint32_t tgid);
void chains__free(struct chains *chains);

/*
 * Unwinds a stack of a thread of the process. registers are those of DWARF (stacks/registers.h), of
 * which known has a bit for each; stack is what lies at the stack pointer. 0 or -ENOMEM.
 */
int chains__add(struct chains *chains, uint32_t tid, enum fbt_arch arch, const uint64_t *registers,
		uint64_t known, const uint8_t *stack, size_t size);

/* All that was added. Valid until the next chains__add(). */
const struct chain_set *chains__set(const struct chains *chains);

struct chain_function chains__function(const struct chains *chains, uint32_t index);

/* The file of a function: its path as the process sees it. */
const char *chains__path(const struct chains *chains, uint32_t module);

/* The name of a function, demangled; NULL if it has none. Lives as long as the object. */
const char *chains__name(struct chains *chains, uint32_t index);

#endif
