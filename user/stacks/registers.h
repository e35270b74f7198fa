/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The registers of a frame, in the numbering of DWARF, and memory of the stack that was copied. */
#ifndef FBT_STACKS_REGISTERS_H
#define FBT_STACKS_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "fbt_event.h"
#include "fbt_shared.h"

/* Of x86-64: rax rdx rcx rbx rsi rdi rbp rsp r8 … r15, and the address of the instruction. */
#define X86_BP 6
#define X86_SP 7
#define X86_PC 16
/* Of arm64: x0 … x30, the stack pointer, and the address of the instruction. */
#define ARM64_FP 29
#define ARM64_LR 30
#define ARM64_SP 31
#define ARM64_PC 32

struct registers {
	enum fbt_arch arch;
	uint64_t known; /* a bit for each that has a value */
	uint64_t value[FBT_REGISTERS];
};

struct stack_copy {
	uint64_t address; /* of the first byte */
	const uint8_t *data;
	size_t size;
};

static inline unsigned int sp_of(enum fbt_arch arch)
{
	return arch == FBT_ARCH_ARM64 ? ARM64_SP : X86_SP;
}

static inline unsigned int pc_of(enum fbt_arch arch)
{
	return arch == FBT_ARCH_ARM64 ? ARM64_PC : X86_PC;
}

static inline bool register_get(const struct registers *registers, uint64_t number, uint64_t *value)
{
	if (number >= FBT_REGISTERS || !(registers->known >> number & 1))
		return false;
	*value = registers->value[number];
	return true;
}

static inline void register_set(struct registers *registers, unsigned int number, uint64_t value)
{
	registers->value[number] = value;
	registers->known |= 1ull << number;
}

/* The word of memory at an address; false if it is not in the copy. */
static inline bool stack_word(const struct stack_copy *copy, uint64_t address, uint64_t *word)
{
	if (address < copy->address || copy->size < sizeof(*word) ||
	    address - copy->address > copy->size - sizeof(*word))
		return false;
	memcpy(word, copy->data + (address - copy->address), sizeof(*word));
	return true;
}

#endif
