/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * From the registers of a thread and a copy of its stack to the calls that it is in. Registers and
 * stack are those of an untrusted process.
 */
#ifndef FBT_STACKS_UNWIND_H
#define FBT_STACKS_UNWIND_H

#include "stacks/cfi.h"
#include "stacks/registers.h"

/* Where an instruction lies. */
struct code_at {
	struct elf_file *file; /* NULL: code of no file, or of one that cannot be read */
	uint32_t module;       /* number of the file, from 1; 0 for code of none */
	uint64_t address;      /* in the file, as nm prints it; without a file in memory */
};

/* Finds the code of a process. */
struct code_finder {
	/* 0, or -ENOENT if there is no code at that address of memory. */
	int (*find)(void *ctx, uint64_t address, struct code_at *code);
	void *ctx;
};

struct frame {
	uint32_t module;
	uint64_t address; /* of the call, or of the instruction that was interrupted */
};

/* How far the stack goes. */
enum unwind_end {
	UNWIND_WHOLE = 0, /* to the step's function, or to the first one of the thread */
	UNWIND_CUT,	  /* the copy ends before */
	UNWIND_LOST,	  /* the caller of the last frame could not be found */
	UNWIND_DEEP,	  /* there are more than FBT_STACK_FRAMES */
};

struct unwound {
	struct frame frames[FBT_STACK_FRAMES]; /* the innermost first; at least one */
	uint32_t count;
	enum unwind_end end;
	bool guessed; /* a caller was found by a frame record, where the table has nothing */
};

/*
 * The frame of the step's function begins at step_sp; 0: it is not known. Where a file has no table
 * for an instruction, as for code that was generated, the record of two words that a frame pointer
 * leads to is taken for the caller, if there is code at its address.
 */
void unwind(struct cfi_reader *reader, const struct code_finder *finder,
	    const struct registers *registers, const struct stack_copy *copy, uint64_t step_sp,
	    struct unwound *result);

#endif
