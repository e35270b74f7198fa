/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Call frame information: where, at one instruction of a function, the registers of its caller are.
 * Read from the unwind table of a file (.eh_frame), which strip does not remove. The file is
 * untrusted: everything is bounded.
 */
#ifndef FBT_STACKS_CFI_H
#define FBT_STACKS_CFI_H

#include "stacks/registers.h"
#include "elf/elf_file.h"

/* Longer expressions are refused; those of the PLT and of signal frames are of 12 bytes at most. */
#define CFI_EXPRESSION_MAX 64
#define CFI_EXPRESSIONS	   20 /* of one row; a signal frame has one for each register */

enum cfi_how {
	CFI_SAME = 0, /* not saved: it has the value that it had in the caller */
	CFI_UNDEFINED,
	CFI_AT,		   /* in memory at the frame's address plus offset */
	CFI_VALUE,	   /* the frame's address plus offset */
	CFI_REGISTER,	   /* in the register of number offset */
	CFI_AT_EXPRESSION, /* in memory at what expression number offset computes */
	CFI_EXPRESSION,	   /* what it computes */
};

struct cfi_rule {
	uint8_t how; /* enum cfi_how */
	int32_t offset;
};

struct cfi_expression {
	uint8_t size;
	uint8_t code[CFI_EXPRESSION_MAX];
};

/* The row for one instruction. The frame's address (CFA) is the caller's stack pointer. */
struct cfi_row {
	uint64_t frame_register; /* frame_rule.how CFI_REGISTER: its value plus frame_rule.offset */
	struct cfi_rule frame_rule;
	struct cfi_rule rules[FBT_REGISTERS];
	uint64_t return_register;
	bool is_signal; /* the frame was interrupted: its caller's pc is that of no call */
	uint8_t expression_count;
	struct cfi_expression expressions[CFI_EXPRESSIONS];
};

/* Reads rows; has the memory for it. */
struct cfi_reader;
struct cfi_reader *cfi_reader__new(void); /* NULL: -ENOMEM */
void cfi_reader__free(struct cfi_reader *reader);

/*
 * The row for the instruction at an address of the file, which must live as long as the reader, or
 * until cfi_reader__forget(): rows are kept. 0; -ENOENT if the file has none; or -EBADMSG for one
 * that is damaged, too long, or written in a way that is not known.
 */
int cfi_reader__find(struct cfi_reader *reader, const struct elf_file *file, uint64_t address,
		     struct cfi_row *row);

/* The file is about to be freed. */
void cfi_reader__forget(struct cfi_reader *reader, const struct elf_file *file);

/*
 * Computes the caller's registers from those of a frame. *frame is set to the frame's address. 0;
 * -ENODATA where there is no caller; -EFAULT if a word is needed that is not in the copy; -EBADMSG
 * if a register is needed that is not known, or an expression that is not understood.
 */
int cfi_apply(const struct cfi_row *row, const struct registers *registers,
	      const struct stack_copy *copy, struct registers *caller, uint64_t *frame);

/*
 * Computes a DWARF expression, with first on its stack if it is not NULL: at most 256 operations
 * and 32 values. Errors as of cfi_apply.
 */
int cfi_compute(const struct cfi_expression *expression, const struct registers *registers,
		const struct stack_copy *copy, const uint64_t *first, uint64_t *result);

#endif
