/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "code/future.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "code/decoder.h"
#include "code/insn.h"

/*
 * Follows the code from the function's entry in a given state. From the byte on, each state has one
 * way through the code, by a jump table or a series of comparisons. On that way only the state, the
 * stack and constants are read.
 */

#define REGISTERS 16
#define SLOTS	  32
/* A large frame is touched page by page, in a loop. */
#define INSNS_MAX      4096
#define INSN_BYTES     16
#define CODE_BYTES_MAX (1u << 20)

enum value_kind {
	VALUE_UNKNOWN,
	VALUE_NUMBER,
	VALUE_STACK,	/* the stack pointer at the entry, plus the number */
	VALUE_ARGUMENT, /* the first argument, plus the number; and so on */
};

struct value {
	enum value_kind kind;
	uint8_t bytes; /* number of low bytes that are known */
	uint8_t argument;
	uint64_t number;
};

/* How a way ends: where it depends on something else, or leaves the function. */
struct way {
	bool found;    /* the state was read, and … */
	bool compared; /* … looked at */
	bool panics;   /* it ends with a call that is given a constant: the place in the source */
	uint64_t end;
	uint32_t base;
	int32_t offset;
};

struct follower {
	csh handle;
	cs_insn *insn;
	const struct exits_source *source;
	uint8_t state;
	struct value registers[REGISTERS];
	struct {
		uint64_t at;
		struct value value;
	} slots[SLOTS];
	size_t slot_count;
	bool flags_known;
	bool zero, carry, sign, overflow;
	struct way way;
};

#define STACK_POINTER 4
#define FIRST_ARG     7
#define SECOND_ARG    6

static unsigned int index_of(x86_reg reg)
{
	static const uint16_t names[REGISTERS][4] = {
		{X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL},
		{X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL},
		{X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL},
		{X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL},
		{X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL},
		{X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL},
		{X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL},
		{X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL},
		{X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B},
		{X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B},
		{X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B},
		{X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B},
		{X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B},
		{X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B},
		{X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B},
		{X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B},
	};

	for (unsigned int i = 0; i < REGISTERS; i++) {
		for (int j = 0; j < 4; j++) {
			if (names[i][j] == reg)
				return i;
		}
	}
	return REGISTERS;
}

static uint64_t mask_of(unsigned int bytes)
{
	return bytes >= 8 ? UINT64_MAX : (UINT64_C(1) << (8 * bytes)) - 1;
}

static struct value number(uint64_t number, unsigned int bytes)
{
	return (struct value){VALUE_NUMBER, (uint8_t)bytes, 0, number & mask_of(bytes)};
}

/* The low bytes of a value; those of an address are of no use. */
static struct value narrow(struct value value, unsigned int bytes)
{
	if (value.bytes < bytes || (value.kind != VALUE_NUMBER && bytes < 8))
		return (struct value){0};
	value.bytes = (uint8_t)bytes;
	value.number &= mask_of(bytes);
	return value;
}

static struct value get_register(const struct follower *follower, x86_reg reg, unsigned int bytes)
{
	unsigned int index = index_of(reg);

	return index < REGISTERS ? narrow(follower->registers[index], bytes) : (struct value){0};
}

/* The low half of a register clears the high one, and a smaller part keeps the rest. */
static void set_register(struct follower *follower, x86_reg reg, struct value value,
			 unsigned int bytes)
{
	unsigned int index = index_of(reg);

	if (index == REGISTERS)
		return;
	value = narrow(value, bytes);
	if (bytes == 4 && value.kind == VALUE_NUMBER)
		value.bytes = 8;
	follower->registers[index] = value;
}

/* A base that is no number, plus a number. */
static struct value add_values(struct value a, struct value b)
{
	if (a.kind == VALUE_NUMBER && b.kind != VALUE_UNKNOWN) {
		b.number += a.number;
		return b;
	}
	if (b.kind != VALUE_NUMBER || a.kind == VALUE_UNKNOWN)
		return (struct value){0};
	a.number += b.number;
	return a;
}

static struct value address_of(const struct follower *follower, const x86_op_mem *memory)
{
	struct value sum = number((uint64_t)memory->disp, 8), index;

	if (memory->segment != X86_REG_INVALID)
		return (struct value){0};
	if (memory->base == X86_REG_RIP)
		sum.number += follower->insn->address + follower->insn->size;
	else if (memory->base != X86_REG_INVALID)
		sum = add_values(sum, get_register(follower, memory->base, 8));
	if (memory->index == X86_REG_INVALID)
		return sum;
	index = get_register(follower, memory->index, 8);
	if (index.kind != VALUE_NUMBER)
		return (struct value){0};
	index.number *= (uint64_t)memory->scale;
	return add_values(sum, index);
}

static struct value load_slot(const struct follower *follower, uint64_t at, unsigned int bytes)
{
	for (size_t i = 0; i < follower->slot_count; i++) {
		if (follower->slots[i].at == at)
			return narrow(follower->slots[i].value, bytes);
	}
	return (struct value){0};
}

static void store_slot(struct follower *follower, uint64_t at, struct value value)
{
	size_t i = 0;

	while (i < follower->slot_count && follower->slots[i].at != at)
		i++;
	if (i == SLOTS)
		return;
	follower->slots[i].at = at;
	follower->slots[i].value = value;
	if (i == follower->slot_count)
		follower->slot_count++;
}

/* The first byte that is read of an argument is the state, if it is one at all. */
static struct value load_state(struct follower *follower, struct value at)
{
	struct way *way = &follower->way;
	int32_t offset = (int32_t)at.number;

	if (!way->found && (uint64_t)(int64_t)offset == at.number && offset >= 0) {
		way->found = true;
		way->base = at.argument;
		way->offset = offset;
	}
	if (!way->found || way->base != at.argument || way->offset != offset)
		return (struct value){0};
	return number(follower->state, 1);
}

static struct value load(struct follower *follower, const cs_x86_op *from)
{
	struct value at = address_of(follower, &from->mem);
	uint64_t word = 0;

	switch (at.kind) {
	case VALUE_STACK:
		return load_slot(follower, at.number, from->size);
	case VALUE_ARGUMENT:
		return from->size == 1 ? load_state(follower, at) : (struct value){0};
	case VALUE_NUMBER:
		/* A jump table. Other constants are not what a way depends on. */
		if (from->mem.index == X86_REG_INVALID || from->size > sizeof(word) ||
		    follower->source->read(follower->source->ctx, at.number, &word, from->size))
			return (struct value){0};
		return number(word, from->size);
	default:
		return (struct value){0};
	}
}

static struct value read_operand(struct follower *follower, const cs_x86_op *operand)
{
	switch (operand->type) {
	case X86_OP_REG:
		return get_register(follower, operand->reg, operand->size);
	case X86_OP_IMM:
		return number((uint64_t)operand->imm, operand->size);
	case X86_OP_MEM:
		return load(follower, operand);
	default:
		return (struct value){0};
	}
}

static void write_operand(struct follower *follower, const cs_x86_op *operand, struct value value)
{
	struct value at;

	if (operand->type == X86_OP_REG) {
		set_register(follower, operand->reg, value, operand->size);
		return;
	}
	at = address_of(follower, &operand->mem);
	if (at.kind == VALUE_STACK)
		store_slot(follower, at.number, value);
}

static uint64_t sign_of(uint64_t value, unsigned int bytes)
{
	return value >> (8 * bytes - 1) & 1;
}

static void set_flags(struct follower *follower, uint64_t result, unsigned int bytes)
{
	result &= mask_of(bytes);
	follower->flags_known = true;
	follower->zero = !result;
	follower->sign = sign_of(result, bytes);
	follower->carry = follower->overflow = false;
}

/* Of two places on the stack, the numbers are compared. */
static bool are_comparable(struct value a, struct value b)
{
	return a.kind == b.kind && (a.kind == VALUE_NUMBER || a.kind == VALUE_STACK);
}

static void compare(struct follower *follower, struct value a, struct value b, unsigned int bytes)
{
	uint64_t result = a.number - b.number;

	follower->flags_known = are_comparable(a, b);
	if (!follower->flags_known)
		return;
	set_flags(follower, result, bytes);
	follower->carry = (a.number & mask_of(bytes)) < (b.number & mask_of(bytes));
	follower->overflow = sign_of((a.number ^ b.number) & (a.number ^ result), bytes);
}

static struct value add(struct follower *follower, struct value a, struct value b,
			unsigned int bytes)
{
	struct value sum = add_values(a, b);

	follower->flags_known = false;
	if (sum.kind == VALUE_NUMBER) {
		set_flags(follower, sum.number, bytes);
		follower->carry = (sum.number & mask_of(bytes)) < (a.number & mask_of(bytes));
		follower->overflow =
			sign_of(~(a.number ^ b.number) & (a.number ^ sum.number), bytes);
		sum.number &= mask_of(bytes);
	}
	return sum;
}

static struct value subtract(struct follower *follower, struct value a, struct value b,
			     unsigned int bytes)
{
	compare(follower, a, b, bytes);
	if (b.kind != VALUE_NUMBER)
		return (struct value){0};
	b.number = 0 - b.number;
	a = add_values(a, b);
	if (a.kind == VALUE_NUMBER)
		a.number &= mask_of(bytes);
	return a;
}

static struct value combine(struct follower *follower, unsigned int id, struct value a,
			    struct value b, unsigned int bytes)
{
	uint64_t result;

	follower->flags_known = a.kind == VALUE_NUMBER && b.kind == VALUE_NUMBER;
	if (!follower->flags_known)
		return (struct value){0};
	result = id == X86_INS_XOR  ? a.number ^ b.number
		 : id == X86_INS_OR ? a.number | b.number
				    : a.number & b.number;
	set_flags(follower, result, bytes);
	return number(result, bytes);
}

/* add, sub, and, or, xor, inc, dec, cmp and test. */
static void calculate(struct follower *follower)
{
	const cs_x86 *x86 = &follower->insn->detail->x86;
	const cs_x86_op *to = &x86->operands[0], *from = &x86->operands[1];
	struct value a = read_operand(follower, to), b = number(1, to->size), result;

	if (x86->op_count == 2)
		b = read_operand(follower, from);
	b = narrow(b, to->size);
	switch (follower->insn->id) {
	case X86_INS_CMP:
		compare(follower, a, b, to->size);
		return;
	case X86_INS_TEST:
		(void)combine(follower, X86_INS_AND, a, b, to->size);
		return;
	case X86_INS_ADD:
	case X86_INS_INC:
		result = add(follower, a, b, to->size);
		break;
	case X86_INS_SUB:
	case X86_INS_DEC:
		result = subtract(follower, a, b, to->size);
		break;
	default:
		if (follower->insn->id == X86_INS_XOR && to->type == X86_OP_REG &&
		    from->type == X86_OP_REG && to->reg == from->reg)
			a = b = number(0, to->size);
		result = combine(follower, follower->insn->id, a, b, to->size);
	}
	write_operand(follower, to, result);
}

static struct value extend(struct value value, unsigned int from, unsigned int to, bool is_signed)
{
	if (value.kind != VALUE_NUMBER)
		return (struct value){0};
	if (is_signed && sign_of(value.number, from))
		value.number |= ~mask_of(from);
	return number(value.number, to);
}

static void move(struct follower *follower)
{
	const cs_x86_op *to = &follower->insn->detail->x86.operands[0], *from = to + 1;
	struct value value;

	if (follower->insn->id == X86_INS_LEA) {
		write_operand(follower, to, address_of(follower, &from->mem));
		return;
	}
	value = read_operand(follower, from);
	if (to->size != from->size)
		value = extend(value, from->size, to->size, follower->insn->id != X86_INS_MOVZX);
	write_operand(follower, to, value);
}

static void push(struct follower *follower)
{
	struct value *sp = &follower->registers[STACK_POINTER];
	struct value value = read_operand(follower, &follower->insn->detail->x86.operands[0]);

	if (sp->kind != VALUE_STACK)
		return;
	sp->number -= 8;
	store_slot(follower, sp->number, value);
}

/* Any other instruction: what it writes is not known any more. */
static void forget_written(struct follower *follower)
{
	cs_regs read, written;
	uint8_t read_count, written_count;

	if (cs_regs_access(follower->handle, follower->insn, read, &read_count, written,
			   &written_count)) {
		memset(follower->registers, 0, sizeof(follower->registers));
		follower->flags_known = false;
		return;
	}
	for (uint8_t i = 0; i < written_count; i++) {
		unsigned int index = index_of(written[i]);

		if (written[i] == X86_REG_EFLAGS)
			follower->flags_known = false;
		if (index < REGISTERS)
			follower->registers[index] = (struct value){0};
	}
}

static bool is_taken(const struct follower *follower, bool *taken)
{
	bool less = follower->sign != follower->overflow;

	if (!follower->flags_known)
		return false;
	switch (follower->insn->id) {
	case X86_INS_JE:
	case X86_INS_JNE:
		*taken = follower->zero == (follower->insn->id == X86_INS_JE);
		return true;
	case X86_INS_JB:
	case X86_INS_JAE:
		*taken = follower->carry == (follower->insn->id == X86_INS_JB);
		return true;
	case X86_INS_JBE:
	case X86_INS_JA:
		*taken = (follower->carry || follower->zero) == (follower->insn->id == X86_INS_JBE);
		return true;
	case X86_INS_JS:
	case X86_INS_JNS:
		*taken = follower->sign == (follower->insn->id == X86_INS_JS);
		return true;
	case X86_INS_JL:
	case X86_INS_JGE:
		*taken = less == (follower->insn->id == X86_INS_JL);
		return true;
	case X86_INS_JLE:
	case X86_INS_JG:
		*taken = (less || follower->zero) == (follower->insn->id == X86_INS_JLE);
		return true;
	}
	return false;
}

/* Sets *next. False: where it leads is not known. */
static bool jump(struct follower *follower, uint64_t *next)
{
	const cs_x86_op *to = &follower->insn->detail->x86.operands[0];
	struct value target;
	bool taken = true;

	if (follower->insn->id != X86_INS_JMP && !is_taken(follower, &taken))
		return false;
	if (!taken)
		return true;
	if (follower->way.found)
		follower->way.compared = true;
	target = read_operand(follower, to);
	*next = target.number;
	return target.kind == VALUE_NUMBER;
}

/* False: the way ends here. */
static bool take(struct follower *follower, uint64_t *next)
{
	const struct value *given = &follower->registers[FIRST_ARG];

	switch (follower->insn->id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVZX:
	case X86_INS_MOVSX:
	case X86_INS_MOVSXD:
	case X86_INS_LEA:
		move(follower);
		return true;
	case X86_INS_ADD:
	case X86_INS_SUB:
	case X86_INS_AND:
	case X86_INS_OR:
	case X86_INS_XOR:
	case X86_INS_INC:
	case X86_INS_DEC:
	case X86_INS_CMP:
	case X86_INS_TEST:
		calculate(follower);
		return true;
	case X86_INS_PUSH:
		push(follower);
		return true;
	case X86_INS_CALL:
		follower->way.panics = given->kind == VALUE_NUMBER && given->number > INSNS_MAX;
		return false;
	}
	if (cs_insn_group(follower->handle, follower->insn, CS_GRP_JUMP))
		return jump(follower, next);
	if (cs_insn_group(follower->handle, follower->insn, CS_GRP_RET) ||
	    cs_insn_group(follower->handle, follower->insn, CS_GRP_INT))
		return false;
	forget_written(follower);
	return true;
}

static struct way follow(const struct decoder *decoder, const struct exits_source *source,
			 uint64_t address, uint8_t state)
{
	struct follower follower = {
		.handle = decoder->handle, .insn = decoder->insn, .source = source, .state = state};
	uint8_t code[INSN_BYTES];

	follower.registers[STACK_POINTER] = (struct value){VALUE_STACK, 8, 0, 0};
	follower.registers[FIRST_ARG] = (struct value){VALUE_ARGUMENT, 8, 0, 0};
	follower.registers[SECOND_ARG] = (struct value){VALUE_ARGUMENT, 8, 1, 0};
	for (int i = 0; i < INSNS_MAX; i++) {
		const uint8_t *at = code;
		size_t size = sizeof(code);
		uint64_t next = address;

		follower.way.end = address;
		/* The last instruction of a file may have fewer bytes after it. */
		while (size && source->read(source->ctx, address, code, size))
			size--;
		if (!size || !cs_disasm_iter(follower.handle, &at, &size, &next, follower.insn) ||
		    !take(&follower, &next))
			break;
		address = next;
	}
	return follower.way;
}

/* Whether the instruction stores 1, or a register, into the byte at that offset of something. */
static bool stores(const uint8_t *code, size_t size, int32_t offset)
{
	bool rex = size && (code[0] & 0xf0) == 0x40;
	size_t at = rex ? 1 : 0, disp_size;
	uint8_t opcode, modrm;
	int32_t disp = 0;

	if (size < at + 3)
		return false;
	opcode = code[at];
	modrm = code[at + 1];
	at += 2 + ((modrm & 7) == 4);
	disp_size = modrm >> 6 == 1 ? 1 : modrm >> 6 == 2 ? 4 : 0;
	if ((opcode != 0xc6 && opcode != 0x88) || modrm >> 6 == 3 ||
	    size < at + disp_size + (opcode == 0xc6))
		return false;
	memcpy(&disp, code + at, disp_size);
	if (disp_size == 1)
		disp = (disp & 0xff) - ((disp & 0x80) << 1);
	return disp == offset && (opcode == 0x88 || code[at + disp_size] == FBT_FUTURE_READY);
}

/* Whether the function marks the future as ready somewhere. */
static int find_mark(const struct exits_source *source, const struct code_range *body,
		     int32_t offset, bool *found)
{
	size_t size = body->size < CODE_BYTES_MAX ? body->size : CODE_BYTES_MAX;
	uint8_t *code = malloc(size);
	insn_vec insns = {0};
	uint64_t bad;
	int err = code ? 0 : -ENOMEM;

	*found = false;
	if (!err && !source->read(source->ctx, body->address, code, size))
		err = insn_decode(source->arch, code, size, body->address, &insns, &bad);
	/* What was cut off, or is not understood, ends the search. */
	if (err == -EBADMSG)
		err = 0;
	vec_for_each (insn, &insns) {
		if (stores(code + (insn->address - body->address), insn->size, offset))
			*found = true;
	}
	vec_free(&insns);
	free(code);
	return err;
}

/*
 * A function polls a future if its way in the state "returned" leads to a panic at once, and its
 * way in the state "not begun" does not.
 */
static int examine(struct future *future, const struct decoder *decoder,
		   const struct exits_source *source, const struct code_range *body)
{
	struct way ready = follow(decoder, source, body->address, FBT_FUTURE_READY);
	struct way begun;
	bool is_marked;
	int err;

	if (!ready.found || !ready.compared || !ready.panics)
		return 0;
	begun = follow(decoder, source, body->address, FBT_FUTURE_NEW);
	if (!begun.found || begun.base != ready.base || begun.offset != ready.offset ||
	    begun.end == ready.end)
		return 0;
	err = find_mark(source, body, ready.offset, &is_marked);
	if (err)
		return err;
	future->kind = is_marked ? FUTURE_KNOWN : FUTURE_UNTOLD;
	future->base = ready.base;
	future->offset = ready.offset;
	return 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), end_size = strlen(end);

	return size >= end_size && !strcmp(text + size - end_size, end);
}

/* "{{closure}}" or, of the newer mangling, "{closure#0}" */
static bool is_closure(const char *name)
{
	const char *last = strrchr(name, '{');

	return ends_with(name, "{{closure}}") || (last && !strncmp(last, "{closure", 8));
}

int future_find(struct future *future, const struct exits_source *source,
		const struct code_range *body, const char *name)
{
	struct decoder decoder;
	int err;

	*future = (struct future){FUTURE_NONE};
	if (name && ends_with(name, " as core::future::future::Future>::poll"))
		future->kind = FUTURE_UNTOLD;
	if (name && !is_closure(name))
		return 0;
	if (source->arch != FBT_ARCH_X86_64) {
		future->kind = name ? FUTURE_UNTOLD : FUTURE_NONE;
		return 0;
	}
	err = decoder_open(&decoder);
	if (err)
		return err;
	err = examine(future, &decoder, source, body);
	decoder_close(&decoder);
	/* Any function may panic for one value of a byte. */
	if (!name && future->kind == FUTURE_UNTOLD)
		future->kind = FUTURE_NONE;
	return err;
}
