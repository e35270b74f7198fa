/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* DWARF expressions, as far as compilers use them in call frame information. */
#include "stacks/cfi.h"

#include <errno.h>

#include "elf/eh_frame.h"

#define OPERATIONS_MAX 256
#define VALUES_MAX     32

enum operation {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S = 0x09,
	OP_CONST2U = 0x0a,
	OP_CONST2S = 0x0b,
	OP_CONST4U = 0x0c,
	OP_CONST4S = 0x0d,
	OP_CONST8U = 0x0e,
	OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_AND = 0x1a,
	OP_MINUS = 0x1c,
	OP_MUL = 0x1e,
	OP_OR = 0x21,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
	OP_BREGX = 0x92,
};

struct machine {
	struct eh_reader code;
	const struct registers *registers;
	const struct stack_copy *copy;
	uint64_t values[VALUES_MAX];
	unsigned int count;
};

static int push(struct machine *machine, uint64_t value)
{
	if (machine->count == VALUES_MAX)
		return -EBADMSG;
	machine->values[machine->count++] = value;
	return 0;
}

static int push_constant(struct machine *machine, uint8_t operation)
{
	unsigned int bytes = 1u << (operation - OP_CONST1U) / 2, shift = 64 - 8 * bytes;
	uint64_t value = 0;

	if (!eh_take(&machine->code, &value, bytes))
		return -EBADMSG;
	if ((operation - OP_CONST1U) % 2)
		value = (uint64_t)((int64_t)(value << shift) >> shift);
	return push(machine, value);
}

static int push_number(struct machine *machine, uint8_t operation)
{
	uint64_t value = 0;
	int64_t negative = 0;

	if (operation == OP_CONSTU)
		return eh_take_unsigned(&machine->code, &value) ? push(machine, value) : -EBADMSG;
	return eh_take_signed(&machine->code, &negative) ? push(machine, (uint64_t)negative)
							 : -EBADMSG;
}

static int push_register(struct machine *machine, uint64_t number)
{
	uint64_t value;
	int64_t offset;

	if (!eh_take_signed(&machine->code, &offset) ||
	    !register_get(machine->registers, number, &value))
		return -EBADMSG;
	return push(machine, value + (uint64_t)offset);
}

/* Operations that replace the last value by another one. */
static int change_last(struct machine *machine, uint8_t operation)
{
	uint64_t *last, value;

	if (!machine->count)
		return -EBADMSG;
	last = &machine->values[machine->count - 1];
	switch (operation) {
	case OP_DEREF:
		return stack_word(machine->copy, *last, last) ? 0 : -EFAULT;
	case OP_DUP:
		return push(machine, *last);
	case OP_DROP:
		machine->count--;
		return 0;
	default: /* OP_PLUS_UCONST */
		if (!eh_take_unsigned(&machine->code, &value))
			return -EBADMSG;
		*last += value;
		return 0;
	}
}

/* Operations on the last two values. */
static int combine(struct machine *machine, uint8_t operation)
{
	uint64_t *left, right;

	if (machine->count < 2)
		return -EBADMSG;
	right = machine->values[--machine->count];
	left = &machine->values[machine->count - 1];
	switch (operation) {
	case OP_AND:
		*left &= right;
		return 0;
	case OP_MINUS:
		*left -= right;
		return 0;
	case OP_MUL:
		*left *= right;
		return 0;
	case OP_OR:
		*left |= right;
		return 0;
	case OP_PLUS:
		*left += right;
		return 0;
	case OP_SHL:
		*left = right < 64 ? *left << right : 0;
		return 0;
	case OP_GE:
		*left = (int64_t)*left >= (int64_t)right;
		return 0;
	default:
		return -EBADMSG;
	}
}

static int compute_one(struct machine *machine, uint8_t operation)
{
	uint64_t number;

	if (operation >= OP_LIT0 && operation < OP_LIT0 + 32)
		return push(machine, operation - OP_LIT0);
	if (operation >= OP_BREG0 && operation < OP_BREG0 + 32)
		return push_register(machine, operation - OP_BREG0);
	if (operation >= OP_CONST1U && operation <= OP_CONST8S)
		return push_constant(machine, operation);
	switch (operation) {
	case OP_BREGX:
		return eh_take_unsigned(&machine->code, &number) ? push_register(machine, number)
								 : -EBADMSG;
	case OP_CONSTU:
	case OP_CONSTS:
		return push_number(machine, operation);
	case OP_DEREF:
	case OP_DUP:
	case OP_DROP:
	case OP_PLUS_UCONST:
		return change_last(machine, operation);
	default:
		return combine(machine, operation);
	}
}

int cfi_compute(const struct cfi_expression *expression, const struct registers *registers,
		const struct stack_copy *copy, const uint64_t *first, uint64_t *result)
{
	struct machine machine = {.code = {.data = expression->code, .left = expression->size},
				  .registers = registers,
				  .copy = copy};
	uint8_t operation;
	int err = first ? push(&machine, *first) : 0;

	for (int i = 0; !err && eh_take(&machine.code, &operation, 1); i++)
		err = i < OPERATIONS_MAX ? compute_one(&machine, operation) : -EBADMSG;
	if (err)
		return err;
	if (!machine.count)
		return -EBADMSG;
	*result = machine.values[machine.count - 1];
	return 0;
}
