/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * x86-64 by capstone. What a jump through a register means is told from the instructions before it:
 * a compiler's switch loads an entry of a table whose address a "lea" made; a tail call comes
 * behind the instructions that take the frame down.
 */
#include "flow.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <string.h>

#define REGISTERS 16
#define NO_REG	  REGISTERS

/* The same instruction has another name since capstone 5 (Debian 13). */
#if CS_API_MAJOR < 5
#define X86_INS_UD1 X86_INS_UD2B
#endif

enum loaded { LOADED_NOTHING, LOADED_ENTRY32, LOADED_TARGET32, LOADED_TARGET64 };

struct scan {
	uint64_t lea[REGISTERS];   /* last address a lea put there, 0 if none */
	uint64_t table[REGISTERS]; /* of the entry that was loaded */
	uint8_t loaded[REGISTERS]; /* enum loaded */
	bool restored;
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

/* Whether the frame was taken down is told by the last instruction that moved the stack pointer. */
static void track_stack(struct scan *scan, const cs_insn *insn)
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

static void forget_written(csh handle, struct scan *scan, const cs_insn *insn)
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

/* The table that a load with an index reads from; 0 if its address is not known. */
static uint64_t find_table(const struct scan *scan, const x86_op_mem *memory)
{
	unsigned int base = register_index(memory->base);

	if (memory->base == X86_REG_INVALID)
		return memory->disp > 0 ? (uint64_t)memory->disp : 0;
	return base != NO_REG && scan->lea[base] ? scan->lea[base] + memory->disp : 0;
}

static void track_load(csh handle, struct scan *scan, const cs_insn *insn)
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

static void classify_indirect(const struct scan *scan, const cs_insn *insn, struct flow *flow)
{
	const cs_x86_op *to = &insn->detail->x86.operands[0];
	unsigned int reg = to->type == X86_OP_REG ? register_index(to->reg) : NO_REG;

	flow->kind = FLOW_INDIRECT;
	flow->restored = scan->restored;
	if (insn->bytes[0] == 0x3e) { /* notrack: only a switch may skip the endbr64 check */
		flow->kind = FLOW_SWITCH;
	} else if (to->type == X86_OP_MEM && to->mem.base == X86_REG_RIP) {
		flow->kind = FLOW_LEAVE; /* through the GOT */
	} else if (to->type == X86_OP_MEM && to->mem.index != X86_REG_INVALID) {
		flow->kind = FLOW_TABLE64;
		flow->target = to->mem.scale == 8 ? find_table(scan, &to->mem) : 0;
	} else if (reg != NO_REG && scan->loaded[reg] >= LOADED_TARGET32) {
		flow->kind = scan->loaded[reg] == LOADED_TARGET32 ? FLOW_TABLE32 : FLOW_TABLE64;
		flow->target = scan->table[reg];
	}
}

static void classify_jump(const struct scan *scan, const cs_insn *insn, struct flow *flow)
{
	const cs_x86 *x86 = &insn->detail->x86;
	const cs_x86_op *to = &x86->operands[0];

	/* ljmp, which capstone 5 takes for a jmp. */
	if (to->type == X86_OP_MEM && x86->opcode[0] == 0xff && (x86->modrm >> 3 & 7) == 5) {
		flow->kind = FLOW_FAR;
		return;
	}
	if (to->type != X86_OP_IMM) {
		classify_indirect(scan, insn, flow);
		return;
	}
	flow->kind = insn->id == X86_INS_JMP ? FLOW_JUMP : FLOW_BRANCH;
	flow->target = to->imm;
	/* Intel and AMD disagree about what a 16-bit near jump does. */
	if (x86->prefix[2] == 0x66)
		flow->kind = FLOW_FAR;
}

static void classify(const struct scan *scan, csh handle, const cs_insn *insn, struct flow *flow)
{
	switch (insn->id) {
	case X86_INS_RET:
		flow->kind = FLOW_RETURN;
		return;
	case X86_INS_RETF:
	case X86_INS_RETFQ:
	case X86_INS_IRET:
	case X86_INS_IRETD:
	case X86_INS_IRETQ:
	case X86_INS_SYSRET:
	case X86_INS_SYSEXIT:
	case X86_INS_LJMP:
		flow->kind = FLOW_FAR;
		return;
	case X86_INS_UD2:
	case X86_INS_UD1:
	case X86_INS_UD0:
	case X86_INS_INT3:
	case X86_INS_HLT:
		flow->kind = FLOW_STOP;
		return;
	case X86_INS_CALL:
		flow->kind = FLOW_CALL;
		return;
	case X86_INS_NOP:
		flow->kind = FLOW_NOP;
		return;
	case X86_INS_LOOP:
	case X86_INS_LOOPE:
	case X86_INS_LOOPNE:
		flow->kind = FLOW_BRANCH;
		flow->target = insn->detail->x86.operands[0].imm;
		return;
	}
	if (cs_insn_group(handle, insn, CS_GRP_JUMP))
		classify_jump(scan, insn, flow);
	else
		flow->kind = FLOW_NEXT;
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
 * Length of a VEX or EVEX instruction that capstone does not know yet (VNNI, FP16, AMX): their
 * lengths follow from the prefix alone, and none of them jumps. 0 if it is none.
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

static void follow(csh handle, struct scan *scan, const cs_insn *insn, struct flow *flow)
{
	flow->size = insn->size;
	classify(scan, handle, insn, flow);
	if (flow->kind != FLOW_NEXT && flow->kind != FLOW_NOP) {
		scan->restored = false;
		memset(scan->loaded, 0, sizeof(scan->loaded));
		return;
	}
	track_stack(scan, insn);
	track_load(handle, scan, insn);
}

static int decode(csh handle, cs_insn *insn, const uint8_t *code, size_t size, uint64_t address,
		  flow_vec *flows, uint64_t *bad)
{
	struct scan scan = {0};

	while (size) {
		struct flow flow = {.address = address};
		size_t length;

		if (cs_disasm_iter(handle, &code, &size, &address, insn)) {
			follow(handle, &scan, insn, &flow);
		} else {
			length = vector_size(code, size);
			if (!length) {
				*bad = address;
				return -EBADMSG;
			}
			flow.size = length;
			flow.kind = FLOW_NEXT;
			code += length;
			size -= length;
			address += length;
		}
		if (vec_push(flows, flow))
			return -ENOMEM;
	}
	return 0;
}

int flow_decode_x86(const uint8_t *code, size_t size, uint64_t address, flow_vec *flows,
		    uint64_t *bad)
{
	cs_insn *insn = NULL;
	csh handle;
	int err = -ENOMEM;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle))
		return -ENOMEM;
	if (!cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON))
		insn = cs_malloc(handle);
	if (insn)
		err = decode(handle, insn, code, size, address, flows, bad);
	if (insn)
		cs_free(insn, 1);
	cs_close(&handle);
	return err;
}
