/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_filter.h"

#include <stddef.h>
#include <string.h>

#define SHIFT_MASK 31u

struct machine {
	uint32_t a;
	uint32_t x;
	uint32_t memory[BPF_MEMWORDS];
};

static bool is_valid_load(const struct sock_filter *insn)
{
	switch (insn->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		return insn->k < sizeof(struct seccomp_data) && !(insn->k & 3);
	case BPF_LD | BPF_MEM:
	case BPF_LDX | BPF_MEM:
	case BPF_ST:
	case BPF_STX:
		return insn->k < BPF_MEMWORDS;
	case BPF_LD | BPF_W | BPF_LEN:
	case BPF_LDX | BPF_W | BPF_LEN:
	case BPF_LD | BPF_IMM:
	case BPF_LDX | BPF_IMM:
	case BPF_MISC | BPF_TAX:
	case BPF_MISC | BPF_TXA:
		return true;
	default:
		return false;
	}
}

/* There is no BPF_MOD in filters of system calls. */
static bool is_valid_sum(const struct sock_filter *insn)
{
	switch (insn->code) {
	case BPF_ALU | BPF_DIV | BPF_K:
		return insn->k != 0;
	case BPF_ALU | BPF_LSH | BPF_K:
	case BPF_ALU | BPF_RSH | BPF_K:
		return insn->k < 32;
	case BPF_ALU | BPF_ADD | BPF_K: /* NOLINT: two of them are 0 */
	case BPF_ALU | BPF_ADD | BPF_X:
	case BPF_ALU | BPF_SUB | BPF_K:
	case BPF_ALU | BPF_SUB | BPF_X:
	case BPF_ALU | BPF_MUL | BPF_K:
	case BPF_ALU | BPF_MUL | BPF_X:
	case BPF_ALU | BPF_DIV | BPF_X:
	case BPF_ALU | BPF_AND | BPF_K:
	case BPF_ALU | BPF_AND | BPF_X:
	case BPF_ALU | BPF_OR | BPF_K:
	case BPF_ALU | BPF_OR | BPF_X:
	case BPF_ALU | BPF_XOR | BPF_K:
	case BPF_ALU | BPF_XOR | BPF_X:
	case BPF_ALU | BPF_LSH | BPF_X:
	case BPF_ALU | BPF_RSH | BPF_X:
	case BPF_ALU | BPF_NEG:
		return true;
	default:
		return false;
	}
}

/* left: how many instructions follow it. */
static bool is_valid_end(const struct sock_filter *insn, uint32_t left)
{
	switch (insn->code) {
	case BPF_RET | BPF_K:
	case BPF_RET | BPF_A:
		return true;
	case BPF_JMP | BPF_JA:
		return insn->k < left;
	case BPF_JMP | BPF_JEQ | BPF_K:
	case BPF_JMP | BPF_JEQ | BPF_X:
	case BPF_JMP | BPF_JGE | BPF_K:
	case BPF_JMP | BPF_JGE | BPF_X:
	case BPF_JMP | BPF_JGT | BPF_K:
	case BPF_JMP | BPF_JGT | BPF_X:
	case BPF_JMP | BPF_JSET | BPF_K:
	case BPF_JMP | BPF_JSET | BPF_X:
		return insn->jt < left && insn->jf < left;
	default:
		return false;
	}
}

/* A word of the memory is written on every way to where it is read. */
static bool is_memory_written(const struct sock_filter *code, uint32_t count)
{
	uint16_t written[BPF_MAXINSNS], now = 0;

	memset(written, 0xff, sizeof(written));
	for (uint32_t i = 0; i < count; i++) {
		const struct sock_filter *insn = &code[i];

		now &= written[i];
		switch (BPF_CLASS(insn->code)) {
		case BPF_ST:
		case BPF_STX:
			now |= (uint16_t)(1u << insn->k);
			break;
		case BPF_LD:
		case BPF_LDX:
			if (BPF_MODE(insn->code) == BPF_MEM && !(now >> insn->k & 1))
				return false;
			break;
		case BPF_JMP:
			if (BPF_OP(insn->code) == BPF_JA) {
				written[i + 1 + insn->k] &= now;
			} else {
				written[i + 1 + insn->jt] &= now;
				written[i + 1 + insn->jf] &= now;
			}
			now = 0xffff;
			break;
		default:
			break;
		}
	}
	return true;
}

bool inject_filter_is_valid(const struct sock_filter *code, uint32_t count)
{
	if (!count || count > BPF_MAXINSNS || BPF_CLASS(code[count - 1].code) != BPF_RET)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (!is_valid_load(&code[i]) && !is_valid_sum(&code[i]) &&
		    !is_valid_end(&code[i], count - i - 1))
			return false;
	}
	return is_memory_written(code, count);
}

static uint32_t load(const struct sock_filter *insn, const struct machine *machine,
		     const struct seccomp_data *data)
{
	uint32_t word = 0;

	switch (BPF_MODE(insn->code)) {
	case BPF_ABS:
		memcpy(&word, (const char *)data + insn->k, sizeof(word));
		return word;
	case BPF_MEM:
		return machine->memory[insn->k];
	case BPF_LEN:
		return sizeof(*data);
	default:
		return insn->k;
	}
}

/* Without the division by zero, which ends a program. */
static uint32_t sum(uint16_t code, uint32_t a, uint32_t b)
{
	switch (BPF_OP(code)) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return a / b;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return a << (b & SHIFT_MASK);
	case BPF_RSH:
		return a >> (b & SHIFT_MASK);
	default:
		return -a;
	}
}

static uint32_t jump(const struct sock_filter *insn, uint32_t a, uint32_t b)
{
	bool met = false;

	switch (BPF_OP(insn->code)) {
	case BPF_JA:
		return insn->k;
	case BPF_JEQ:
		met = a == b;
		break;
	case BPF_JGE:
		met = a >= b;
		break;
	case BPF_JGT:
		met = a > b;
		break;
	default:
		met = a & b;
		break;
	}
	return met ? insn->jt : insn->jf;
}

uint32_t inject_filter_run(const struct sock_filter *code, const struct seccomp_data *data)
{
	struct machine machine = {0};

	for (const struct sock_filter *insn = code;; insn++) {
		uint32_t operand = BPF_SRC(insn->code) == BPF_X ? machine.x : insn->k;

		switch (BPF_CLASS(insn->code)) {
		case BPF_LD:
			machine.a = load(insn, &machine, data);
			break;
		case BPF_LDX:
			machine.x = load(insn, &machine, data);
			break;
		case BPF_ST:
			machine.memory[insn->k] = machine.a;
			break;
		case BPF_STX:
			machine.memory[insn->k] = machine.x;
			break;
		case BPF_ALU:
			if (BPF_OP(insn->code) == BPF_DIV && !operand)
				return 0;
			machine.a = sum(insn->code, machine.a, operand);
			break;
		case BPF_JMP:
			insn += jump(insn, machine.a, operand);
			break;
		case BPF_RET:
			return BPF_RVAL(insn->code) == BPF_A ? machine.a : insn->k;
		default:
			if (BPF_MISCOP(insn->code) == BPF_TAX)
				machine.x = machine.a;
			else
				machine.a = machine.x;
			break;
		}
	}
}
