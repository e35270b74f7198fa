/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "code/insn.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "code/decoder.h"

/*
 * x86-64, decoded by capstone. The meaning of an indirect jump follows from the instructions before
 * it. A switch loads an entry of a table, whose address comes from a "lea". A tail call follows an
 * epilogue, which removes the frame.
 */

#define REGISTERS 16
#define NO_REG	  REGISTERS

/* Renamed in capstone 5 (Debian 13). */
#if CS_API_MAJOR < 5
#define X86_INS_UD1 X86_INS_UD2B
#endif

enum loaded { LOADED_NOTHING, LOADED_ENTRY32, LOADED_TARGET32, LOADED_TARGET64 };

struct x86_scan {
	uint64_t lea[REGISTERS];   /* last address that a lea put there, 0 if none */
	uint64_t table[REGISTERS]; /* table of the entry that was loaded */
	uint8_t loaded[REGISTERS]; /* enum loaded */
	bool restored;		   /* the last instruction that moved rsp removed the frame */
};

static unsigned int register_index(x86_reg reg)
{
	static const uint16_t names[REGISTERS][2] = {
		{X86_REG_RAX, X86_REG_EAX},  {X86_REG_RCX, X86_REG_ECX},
		{X86_REG_RDX, X86_REG_EDX},  {X86_REG_RBX, X86_REG_EBX},
		{X86_REG_RSP, X86_REG_ESP},  {X86_REG_RBP, X86_REG_EBP},
		{X86_REG_RSI, X86_REG_ESI},  {X86_REG_RDI, X86_REG_EDI},
		{X86_REG_R8, X86_REG_R8D},   {X86_REG_R9, X86_REG_R9D},
		{X86_REG_R10, X86_REG_R10D}, {X86_REG_R11, X86_REG_R11D},
		{X86_REG_R12, X86_REG_R12D}, {X86_REG_R13, X86_REG_R13D},
		{X86_REG_R14, X86_REG_R14D}, {X86_REG_R15, X86_REG_R15D},
	};
	unsigned int i;

	for (i = 0; i < REGISTERS; i++)
		if (names[i][0] == reg || names[i][1] == reg)
			break;
	return i;
}

static bool is_register(const cs_x86_op *operand, x86_reg reg)
{
	return operand->type == X86_OP_REG && operand->reg == reg;
}

/* Sets restored: pop, leave and the like remove the frame, push and sub build one. */
static void track_stack(struct x86_scan *scan, const cs_insn *insn)
{
	const cs_x86 *x86 = &insn->detail->x86;
	const cs_x86_op *to = &x86->operands[0];

	switch (insn->id) {
	case X86_INS_POP:
	case X86_INS_LEAVE:
		scan->restored = true;
		break;
	case X86_INS_PUSH:
		scan->restored = false;
		break;
	case X86_INS_ADD:
	case X86_INS_SUB:
		if (x86->op_count == 2 && is_register(to, X86_REG_RSP))
			scan->restored = x86->operands[1].type == X86_OP_IMM &&
					 (x86->operands[1].imm > 0) == (insn->id == X86_INS_ADD);
		break;
	case X86_INS_LEA:
	case X86_INS_MOV:
		if (is_register(to, X86_REG_RSP))
			scan->restored = true;
		break;
	}
}

static void forget_written(csh handle, struct x86_scan *scan, const cs_insn *insn)
{
	cs_regs read, written;
	uint8_t read_count, written_count;

	if (cs_regs_access(handle, insn, read, &read_count, written, &written_count))
		return;
	for (uint8_t i = 0; i < written_count; i++) {
		unsigned int reg = register_index(written[i]);

		if (reg != NO_REG)
			scan->loaded[reg] = LOADED_NOTHING;
	}
}

/* The address of the table that a load with an index reads from; 0 if it is not known. */
static uint64_t find_table(const struct x86_scan *scan, const x86_op_mem *memory)
{
	unsigned int base = register_index(memory->base);

	if (memory->base == X86_REG_INVALID)
		return memory->disp > 0 ? (uint64_t)memory->disp : 0;
	return base != NO_REG && scan->lea[base] ? scan->lea[base] + memory->disp : 0;
}

static void track_load(csh handle, struct x86_scan *scan, const cs_insn *insn)
{
	const cs_x86_op *to = &insn->detail->x86.operands[0];
	const cs_x86_op *from = &insn->detail->x86.operands[1];
	unsigned int reg = NO_REG, other = NO_REG;
	bool has_index = false;
	uint8_t loaded = LOADED_NOTHING;
	uint64_t table = 0;

	if (insn->detail->x86.op_count == 2 && to->type == X86_OP_REG)
		reg = register_index(to->reg);
	if (reg != NO_REG && from->type == X86_OP_REG)
		other = register_index(from->reg);
	if (reg != NO_REG && from->type == X86_OP_MEM)
		has_index = from->mem.index != X86_REG_INVALID;
	if (insn->id == X86_INS_MOVSXD && has_index && from->mem.scale == 4) {
		loaded = LOADED_ENTRY32;
		table = find_table(scan, &from->mem);
	} else if (insn->id == X86_INS_MOV && has_index && from->mem.scale == 8) {
		loaded = LOADED_TARGET64;
		table = find_table(scan, &from->mem);
	} else if (insn->id == X86_INS_ADD && other != NO_REG) {
		if (scan->loaded[reg] == LOADED_ENTRY32)
			table = scan->table[reg];
		else if (scan->loaded[other] == LOADED_ENTRY32)
			table = scan->table[other];
		loaded = table ? LOADED_TARGET32 : LOADED_NOTHING;
	}
	forget_written(handle, scan, insn);
	if (reg == NO_REG)
		return;
	scan->loaded[reg] = loaded;
	scan->table[reg] = table;
	if (insn->id == X86_INS_LEA)
		scan->lea[reg] = from->mem.base == X86_REG_RIP
					 ? insn->address + insn->size + from->mem.disp
					 : 0;
}

static void classify_indirect_x86(const struct x86_scan *scan, const cs_insn *insn,
				  struct insn *decoded)
{
	const cs_x86_op *to = &insn->detail->x86.operands[0];
	unsigned int reg = to->type == X86_OP_REG ? register_index(to->reg) : NO_REG;

	decoded->kind = INSN_INDIRECT;
	decoded->restored = scan->restored;
	if (insn->bytes[0] == 0x3e) { /* notrack: compilers use it only for a switch */
		decoded->kind = INSN_SWITCH;
	} else if (to->type == X86_OP_MEM && to->mem.base == X86_REG_RIP) {
		decoded->kind = INSN_LEAVE; /* through the GOT */
		decoded->target = insn->address + insn->size + (uint64_t)to->mem.disp;
	} else if (to->type == X86_OP_MEM && to->mem.index != X86_REG_INVALID) {
		decoded->kind = INSN_TABLE64;
		decoded->target = to->mem.scale == 8 ? find_table(scan, &to->mem) : 0;
	} else if (reg != NO_REG && scan->loaded[reg] >= LOADED_TARGET32) {
		decoded->kind = scan->loaded[reg] == LOADED_TARGET32 ? INSN_TABLE32 : INSN_TABLE64;
		decoded->target = scan->table[reg];
	}
}

static void classify_jump_x86(const struct x86_scan *scan, const cs_insn *insn,
			      struct insn *decoded)
{
	const cs_x86 *x86 = &insn->detail->x86;
	const cs_x86_op *to = &x86->operands[0];

	/* A far jump, which capstone 5 decodes as a jmp. */
	if (to->type == X86_OP_MEM && x86->opcode[0] == 0xff && (x86->modrm >> 3 & 7) == 5) {
		decoded->kind = INSN_FAR;
		return;
	}
	if (to->type != X86_OP_IMM) {
		classify_indirect_x86(scan, insn, decoded);
		return;
	}
	decoded->kind = insn->id == X86_INS_JMP ? INSN_JUMP : INSN_BRANCH;
	decoded->target = to->imm;
	/* A 16-bit near jump, which Intel and AMD execute differently. */
	if (x86->prefix[2] == 0x66)
		decoded->kind = INSN_FAR;
}

static void classify_x86(const struct x86_scan *scan, csh handle, const cs_insn *insn,
			 struct insn *decoded)
{
	switch (insn->id) {
	case X86_INS_RET:
		decoded->kind = INSN_RETURN;
		return;
	case X86_INS_RETF:
	case X86_INS_RETFQ:
	case X86_INS_IRET:
	case X86_INS_IRETD:
	case X86_INS_IRETQ:
	case X86_INS_SYSRET:
	case X86_INS_SYSEXIT:
	case X86_INS_LJMP:
		decoded->kind = INSN_FAR;
		return;
	case X86_INS_UD2:
	case X86_INS_UD1:
	case X86_INS_UD0:
	case X86_INS_INT3:
	case X86_INS_HLT:
		decoded->kind = INSN_STOP;
		return;
	case X86_INS_CALL:
		decoded->kind = INSN_CALL;
		return;
	case X86_INS_NOP:
		decoded->kind = INSN_NOP;
		return;
	case X86_INS_LOOP:
	case X86_INS_LOOPE:
	case X86_INS_LOOPNE:
		decoded->kind = INSN_BRANCH;
		decoded->target = insn->detail->x86.operands[0].imm;
		return;
	}
	if (cs_insn_group(handle, insn, CS_GRP_JUMP))
		classify_jump_x86(scan, insn, decoded);
	else
		decoded->kind = INSN_NEXT;
}

static bool has_vex_immediate(unsigned int map, uint8_t opcode)
{
	if (map == 3)
		return true;
	if (map != 1)
		return false;
	return (opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 ||
	       (opcode >= 0xc4 && opcode <= 0xc6);
}

/*
 * Length of a VEX or EVEX instruction, 0 for others. Capstone does not know the latest of these
 * (VNNI, FP16, AMX). Their length follows from prefix and ModRM, and none of them jumps.
 */
static size_t vector_size(const uint8_t *code, size_t left)
{
	unsigned int prefix, map;
	size_t size;
	uint8_t modrm;

	if (!left || (code[0] != 0xc4 && code[0] != 0xc5 && code[0] != 0x62))
		return 0;
	prefix = code[0] == 0xc5 ? 2 : code[0] == 0xc4 ? 3 : 4;
	if (left < prefix + 2)
		return 0;
	map = code[0] == 0xc5 ? 1 : code[0] == 0xc4 ? code[1] & 0x1f : code[1] & 0x07;
	if (!map || map == 4 || map > 6 || (map == 1 && code[prefix] == 0x77))
		return 0;
	modrm = code[prefix + 1];
	size = prefix + 2 + has_vex_immediate(map, code[prefix]);
	if (modrm >> 6 == 3)
		return size <= left ? size : 0;
	if ((modrm & 7) == 4) {
		if (left < prefix + 3)
			return 0;
		size++;
		if (modrm >> 6 == 0 && (code[prefix + 2] & 7) == 5)
			size += 4;
	} else if (modrm >> 6 == 0 && (modrm & 7) == 5) {
		size += 4;
	}
	size += modrm >> 6 == 1 ? 1 : modrm >> 6 == 2 ? 4 : 0;
	return size <= left ? size : 0;
}

static void follow(csh handle, struct x86_scan *scan, const cs_insn *insn, struct insn *decoded)
{
	decoded->size = insn->size;
	classify_x86(scan, handle, insn, decoded);
	if (decoded->kind != INSN_NEXT && decoded->kind != INSN_NOP) {
		scan->restored = false;
		memset(scan->loaded, 0, sizeof(scan->loaded));
		return;
	}
	track_stack(scan, insn);
	track_load(handle, scan, insn);
}

static int decode_all(csh handle, cs_insn *insn, const uint8_t *code, size_t size, uint64_t address,
		      insn_vec *insns, uint64_t *bad)
{
	struct x86_scan scan = {0};

	while (size) {
		struct insn decoded = {.address = address};
		size_t length;

		if (cs_disasm_iter(handle, &code, &size, &address, insn)) {
			follow(handle, &scan, insn, &decoded);
		} else {
			length = vector_size(code, size);
			if (!length) {
				*bad = address;
				return -EBADMSG;
			}
			decoded.size = length;
			decoded.kind = INSN_NEXT;
			code += length;
			size -= length;
			address += length;
		}
		if (vec_push(insns, decoded))
			return -ENOMEM;
	}
	return 0;
}

static int decode_x86(const uint8_t *code, size_t size, uint64_t address, insn_vec *insns,
		      uint64_t *bad)
{
	struct decoder decoder;
	int err = decoder_open(&decoder);

	if (err)
		return err;
	err = decode_all(decoder.handle, decoder.insn, code, size, address, insns, bad);
	decoder_close(&decoder);
	return err;
}

/* arm64: every instruction has 4 bytes, and few of them jump. Encodings are from Arm ARM, C4. */

#define NO_REGISTER 32

struct arm64_scan {
	bool restored;	   /* the last instruction that moved sp removed the frame */
	uint32_t sum;	   /* register with the last sum of base and table entry */
	uint32_t page_in;  /* register with … */
	uint64_t page;	   /* … the last address of a page (adrp) */
	uint32_t entry_in; /* register with what was loaded from … */
	uint64_t slot;	   /* … this address, on that page, as from the GOT */
};

static const struct arm64_scan no_scan = {
	.sum = NO_REGISTER, .page_in = NO_REGISTER, .entry_in = NO_REGISTER};

static int64_t sign_extend(uint32_t value, unsigned int bits)
{
	return (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
}

static bool is_branch(uint32_t word, int64_t *offset)
{
	if ((word & 0xff000000) == 0x54000000 || /* b.cond, bc.cond */
	    (word & 0x7e000000) == 0x34000000) { /* cbz, cbnz */
		*offset = sign_extend(word >> 5 & 0x7ffff, 19) * 4;
		return true;
	}
	if ((word & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		*offset = sign_extend(word >> 5 & 0x3fff, 14) * 4;
		return true;
	}
	return false;
}

static void classify_indirect_arm64(const struct arm64_scan *scan, uint32_t word,
				    struct insn *decoded)
{
	decoded->restored = scan->restored;
	decoded->kind = INSN_INDIRECT;
	if (scan->sum == (word >> 5 & 31)) {
		decoded->kind = INSN_SWITCH;
	} else if (scan->entry_in == (word >> 5 & 31)) {
		decoded->kind = INSN_LEAVE;
		decoded->target = scan->slot;
	}
}

/*
 * add x29, sp, #imm, or its alias mov x29, sp: x29 and x30 were stored at that place (AAPCS64,
 * 6.4.6).
 */
static bool is_frame(uint32_t word)
{
	return (word & 0xff8003ff) == 0x910003fd;
}

/* retaa, braa and the like, which no kernel allows to be probed (arch/arm64, decode-insn.c). */
static bool is_authenticated(uint32_t word)
{
	return (word & 0xfffffbff) == 0xd65f0bff || (word & 0xfefff800) == 0xd61f0800;
}

static void classify_arm64(const struct arm64_scan *scan, uint32_t word, struct insn *decoded)
{
	int64_t offset;

	decoded->kind = INSN_NEXT;
	if (is_authenticated(word) ||
	    (word & 0xfffff000) == 0xd69f0000) { /* eret, eretaa, eretab */
		decoded->kind = INSN_FAR;
	} else if ((word & 0xfffffc1f) == 0xd65f0000) { /* ret */
		decoded->kind = INSN_RETURN;
	} else if ((word & 0xfc000000) == 0x14000000) { /* b */
		decoded->kind = INSN_JUMP;
		decoded->target = decoded->address + sign_extend(word & 0x3ffffff, 26) * 4;
	} else if (is_branch(word, &offset)) {
		decoded->kind = INSN_BRANCH;
		decoded->target = decoded->address + offset;
	} else if ((word & 0xfc000000) == 0x94000000 || /* bl */
		   (word & 0xfefff000) == 0xd63f0000) { /* blr, blraa, … */
		decoded->kind = INSN_CALL;
	} else if ((word & 0xfefff000) == 0xd61f0000) { /* br, braa, … */
		classify_indirect_arm64(scan, word, decoded);
	} else if (word == 0xd503201f) {
		decoded->kind = INSN_NOP;
	} else if (!(word >> 16) || (word & 0xffe0001f) == 0xd4200000) { /* udf, brk */
		decoded->kind = INSN_STOP;
	}
}

/* adrp Xd, page; ldr Xt, [Xd, #imm]: how an entry of the GOT is loaded (AAELF64, PLT). */
static void track_slot(struct arm64_scan *scan, uint32_t word, uint64_t address)
{
	uint32_t result = word & 31;
	uint64_t page = scan->page;
	bool is_entry = (word & 0xffc00000) == 0xf9400000 && scan->page_in == (word >> 5 & 31);

	if (scan->page_in == result)
		scan->page_in = NO_REGISTER;
	if (scan->entry_in == result)
		scan->entry_in = NO_REGISTER;
	if (is_entry) {
		scan->entry_in = result;
		scan->slot = page + (word >> 10 & 0xfff) * sizeof(uint64_t);
	} else if ((word & 0x9f000000) == 0x90000000) {
		scan->page_in = result;
		scan->page =
			(address & ~0xfffull) +
			(uint64_t)(sign_extend((word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3), 21) *
				   4096);
	}
}

static void track(struct arm64_scan *scan, uint32_t word)
{
	/* add Xd, Xn, Wm, sxtb/sxth/sxtw/uxt… or add Xd, Xn, Xm: base plus table entry. */
	if ((word & 0xffe00000) == 0x8b200000 || (word & 0xff200000) == 0x8b000000)
		scan->sum = word & 31;
	else if (scan->sum == (word & 31))
		scan->sum = NO_REGISTER;
	/* ldp/ldr …, [sp], #imm; add sp, sp|x29, #imm; mov sp, x29 */
	if ((word & 0xffc003e0) == 0xa8c003e0 || (word & 0xffe00fe0) == 0xf84007e0 ||
	    (word & 0xff8003ff) == 0x910003ff || (word & 0xff8003ff) == 0x910003bf)
		scan->restored = true;
	/* stp/str …, [sp, #-imm]!; sub sp, sp, #imm */
	else if ((word & 0xffc003e0) == 0xa98003e0 || (word & 0xffe00fe0) == 0xf8000fe0 ||
		 (word & 0xff8003ff) == 0xd10003ff)
		scan->restored = false;
}

static int decode_arm64(const uint8_t *code, size_t size, uint64_t address, insn_vec *insns,
			uint64_t *bad)
{
	struct arm64_scan scan = no_scan;

	for (; size >= 4; size -= 4, code += 4, address += 4) {
		struct insn decoded = {.address = address, .size = 4};
		uint32_t word = code[0] | code[1] << 8 | code[2] << 16 | (uint32_t)code[3] << 24;

		classify_arm64(&scan, word, &decoded);
		decoded.frame = is_frame(word);
		if (decoded.kind == INSN_NEXT || decoded.kind == INSN_NOP) {
			track(&scan, word);
			track_slot(&scan, word, address);
		} else {
			scan = no_scan;
		}
		if (vec_push(insns, decoded))
			return -ENOMEM;
	}
	*bad = address;
	return size ? -EBADMSG : 0;
}

int insn_decode(enum fbt_arch arch, const uint8_t *code, size_t size, uint64_t address,
		insn_vec *insns, uint64_t *bad)
{
	if (arch == FBT_ARCH_X86_64)
		return decode_x86(code, size, address, insns, bad);
	return decode_arm64(code, size, address, insns, bad);
}

size_t insn_marker_size(enum fbt_arch arch, const uint8_t *code, size_t size)
{
	if (size < 4)
		return 0;
	if (arch == FBT_ARCH_X86_64)
		return memcmp(code, "\xf3\x0f\x1e\xfa", 4) ? 0 : 4;
	/* bti, bti c, bti j, bti jc: hint #32 to #38 */
	return (code[0] & 0x3f) == 0x1f && code[1] == 0x24 && code[2] == 0x03 && code[3] == 0xd5
		       ? 4
		       : 0;
}
