/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "code/straight.h"

#include <errno.h>

#include "code/decoder.h"

/* What an instruction does, as far as it matters here. */
enum effect {
	EFFECT_NONE,
	EFFECT_EMULATED,
	EFFECT_ENDS, /* the code after it is not always executed, or not understood */
};

/*
 * jmp, jcc, call, nop and push of a register. A prefix makes most of them something else, or
 * something that the kernel single-steps.
 */
static bool is_emulated(const cs_insn *insn)
{
	const uint8_t *code = insn->bytes;

	if (code[0] >= 0x50 && code[0] <= 0x57)
		return insn->size == 1;
	if (code[0] == 0x41 && insn->size == 2)
		return code[1] >= 0x50 && code[1] <= 0x57;
	if (code[0] == 0x0f && insn->size == 6)
		return code[1] >= 0x80 && code[1] <= 0x8f;
	return code[0] == 0xe8 || code[0] == 0xe9 || code[0] == 0xeb || code[0] == 0x90 ||
	       (code[0] >= 0x70 && code[0] <= 0x7f);
}

/* Whether it branches or traps: groups alone would miss some of these. */
static bool ends(csh handle, const cs_insn *insn)
{
	switch (insn->id) {
	case X86_INS_SYSCALL:
	case X86_INS_SYSENTER:
	case X86_INS_HLT:
	case X86_INS_INT3:
	case X86_INS_UD0:
	case X86_INS_UD2:
	case X86_INS_LOOP:
	case X86_INS_LOOPE:
	case X86_INS_LOOPNE:
		return true;
	}
	return cs_insn_group(handle, insn, CS_GRP_JUMP) ||
	       cs_insn_group(handle, insn, CS_GRP_CALL) ||
	       cs_insn_group(handle, insn, CS_GRP_RET) || cs_insn_group(handle, insn, CS_GRP_INT) ||
	       cs_insn_group(handle, insn, CS_GRP_IRET);
}

static bool writes(csh handle, const cs_insn *insn, const uint16_t *registers, size_t count)
{
	cs_regs read, written;
	uint8_t read_count, written_count;

	if (cs_regs_access(handle, insn, read, &read_count, written, &written_count))
		return true;
	for (uint8_t i = 0; i < written_count; i++) {
		for (size_t j = 0; j < count; j++) {
			if (written[i] == registers[j])
				return true;
		}
	}
	return false;
}

static bool is_rsp(const cs_x86_op *operand)
{
	return operand->type == X86_OP_REG && operand->reg == X86_REG_RSP;
}

/* Adds to *sp what the instruction adds to the stack pointer. False if that is not known. */
static bool track_sp(csh handle, const cs_insn *insn, int32_t *sp)
{
	static const uint16_t stack_pointers[] = {X86_REG_RSP, X86_REG_ESP, X86_REG_SP,
						  X86_REG_SPL};
	const cs_x86 *x86 = &insn->detail->x86;
	const cs_x86_op *to = &x86->operands[0], *from = &x86->operands[1];

	if (insn->id == X86_INS_POP && !is_rsp(to) && to->size == 8) {
		*sp += 8;
		return true;
	}
	if ((insn->id == X86_INS_ADD || insn->id == X86_INS_SUB) && is_rsp(to) &&
	    from->type == X86_OP_IMM && from->imm == (int32_t)from->imm) {
		*sp += (int32_t)(insn->id == X86_INS_ADD ? from->imm : -from->imm);
		return true;
	}
	if (insn->id == X86_INS_LEA && is_rsp(to) && from->mem.base == X86_REG_RSP &&
	    from->mem.index == X86_REG_INVALID) {
		*sp += (int32_t)from->mem.disp;
		return true;
	}
	return !writes(handle, insn, stack_pointers,
		       sizeof(stack_pointers) / sizeof(stack_pointers[0]));
}

static bool writes_memory(const cs_insn *insn)
{
	const cs_x86 *x86 = &insn->detail->x86;

	for (uint8_t i = 0; i < x86->op_count; i++) {
		if (x86->operands[i].type == X86_OP_MEM && x86->operands[i].access & CS_AC_WRITE)
			return true;
	}
	return false;
}

/* Whether an argument may be lost: its register is written, or memory is. */
static bool harms_arguments(csh handle, const cs_insn *insn)
{
	static const uint16_t registers[] = {
		X86_REG_RDI, X86_REG_RSI, X86_REG_RDX, X86_REG_RCX, X86_REG_R8,	 X86_REG_R9,
		X86_REG_EDI, X86_REG_ESI, X86_REG_EDX, X86_REG_ECX, X86_REG_R8D, X86_REG_R9D,
		X86_REG_DI,  X86_REG_SI,  X86_REG_DX,  X86_REG_CX,  X86_REG_R8W, X86_REG_R9W,
		X86_REG_DIL, X86_REG_SIL, X86_REG_DL,  X86_REG_CL,  X86_REG_R8B, X86_REG_R9B,
		X86_REG_DH,  X86_REG_CH,
	};
	return writes_memory(insn) ||
	       writes(handle, insn, registers, sizeof(registers) / sizeof(registers[0]));
}

static enum effect take(csh handle, const cs_insn *insn, unsigned int flags, int32_t *sp)
{
	if (is_emulated(insn) &&
	    !(flags & STRAIGHT_AVOIDS_CALLS && cs_insn_group(handle, insn, CS_GRP_CALL)))
		return EFFECT_EMULATED;
	if (ends(handle, insn) || !track_sp(handle, insn, sp))
		return EFFECT_ENDS;
	if (flags & STRAIGHT_KEEPS_ARGUMENTS && harms_arguments(handle, insn))
		return EFFECT_ENDS;
	if (flags & STRAIGHT_KEEPS_MEMORY && writes_memory(insn))
		return EFFECT_ENDS;
	return EFFECT_NONE;
}

static int walk(csh handle, cs_insn *insn, const uint8_t *code, size_t size, uint64_t address,
		unsigned int flags, struct straight *straight)
{
	int32_t sp = 0;

	*straight = (struct straight){.address = address};
	if (!size || !cs_disasm_iter(handle, &code, &size, &address, insn))
		return -EBADMSG;
	if (flags & STRAIGHT_AVOIDS_CALLS && cs_insn_group(handle, insn, CS_GRP_CALL))
		return -ENOTSUP;
	do {
		int32_t before = sp;
		enum effect effect = take(handle, insn, flags, &sp);

		if (effect == EFFECT_EMULATED)
			*straight = (struct straight){insn->address, before, true};
		if (effect != EFFECT_NONE)
			break;
	} while (cs_disasm_iter(handle, &code, &size, &address, insn));
	return 0;
}

int straight_find(enum fbt_arch arch, const uint8_t *code, size_t size, uint64_t address,
		  unsigned int flags, struct straight *straight)
{
	struct decoder decoder;
	int err;

	if (arch != FBT_ARCH_X86_64) {
		*straight = (struct straight){.address = address};
		return 0;
	}
	err = decoder_open(&decoder);
	if (err)
		return err;
	err = walk(decoder.handle, decoder.insn, code, size, address, flags, straight);
	decoder_close(&decoder);
	return err;
}
