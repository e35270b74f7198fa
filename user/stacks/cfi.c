/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stacks/cfi.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"
#include "elf/eh_frame.h"

/*
 * Most FDEs take less than the first read. Those of functions with thousands of saved states are
 * longer than the second; their first instructions have rows all the same.
 */
#define FDE_BYTES     256
#define FDE_BYTES_MAX 65536
#define STATES_MAX    8
/* Copying a state takes longer than any other instruction; an epilogue amid of a function is one.
 */
#define STATE_COPIES_MAX 4096
#define TABLE_ENTRY	 8

enum instruction {
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_NEGATE_RA_STATE = 0x2d, /* arm64: return addresses are, or are no longer, signed */
	CFA_GNU_ARGS_SIZE = 0x2e,
	/* In the two high bits, with an operand in the others: */
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
};

/*
 * Rows that were found lately, by a hash of their address, 430 KiB: slow calls are made from few
 * places again and again, and a row takes some 20 reads of the file.
 */
#define CACHE_ROWS 256

struct cached {
	const struct elf_file *file; /* NULL: none */
	uint64_t address;
	struct cfi_row row;
};

struct cfi_reader {
	struct cached cache[CACHE_ROWS];
	struct cfi_row entry; /* the state at the function's entry */
	struct cfi_row states[STATES_MAX];
	struct eh_cie cie;
	uint8_t data[FDE_BYTES_MAX];
};

/* Runs the instructions of one FDE, or of its CIE. */
struct program {
	struct eh_reader code;
	const struct eh_cie *cie;
	const struct cfi_row *entry; /* NULL while the CIE runs */
	struct cfi_row *row;
	struct cfi_row *states;
	unsigned int state_count;
	unsigned int state_copies; /* so far */
	uint64_t at;		   /* the instruction that the row is for */
	uint64_t wanted;	   /* the row for this one is looked for */
};

struct cfi_reader *cfi_reader__new(void)
{
	return calloc(1, sizeof(struct cfi_reader));
}

void cfi_reader__free(struct cfi_reader *reader)
{
	free(reader);
}

void cfi_reader__forget(struct cfi_reader *reader, const struct elf_file *file)
{
	for (size_t i = 0; i < CACHE_ROWS; i++)
		if (reader->cache[i].file == file)
			reader->cache[i].file = NULL;
}

/* Rules of registers that are not followed, as those of vectors, are dropped. */
static int set_rule(struct program *program, uint64_t number, enum cfi_how how, int64_t offset)
{
	if (offset != (int32_t)offset)
		return -EBADMSG;
	if (number < FBT_REGISTERS)
		program->row->rules[number] = (struct cfi_rule){how, (int32_t)offset};
	return 0;
}

static int restore_rule(struct program *program, uint64_t number)
{
	if (number < FBT_REGISTERS && program->entry)
		program->row->rules[number] = program->entry->rules[number];
	return 0;
}

static int take_expression(struct program *program, int32_t *index)
{
	struct cfi_row *row = program->row;
	struct cfi_expression *expression;
	uint64_t size;

	if (!eh_take_unsigned(&program->code, &size) || size > CFI_EXPRESSION_MAX ||
	    row->expression_count == CFI_EXPRESSIONS)
		return -EBADMSG;
	expression = &row->expressions[row->expression_count];
	expression->size = (uint8_t)size;
	*index = row->expression_count++;
	return eh_take(&program->code, expression->code, size) ? 0 : -EBADMSG;
}

/* Where the operand is written as an unsigned number, or a signed one, in units or not. */
static int take_offset(struct program *program, bool is_signed, bool in_units, int64_t *offset)
{
	uint64_t number = 0;

	if (is_signed ? !eh_take_signed(&program->code, offset)
		      : !eh_take_unsigned(&program->code, &number))
		return -EBADMSG;
	if (!is_signed)
		*offset = (int64_t)number;
	if (in_units && __builtin_mul_overflow(*offset, program->cie->data_alignment, offset))
		return -EBADMSG;
	return 0;
}

static int set_saved(struct program *program, uint64_t number, enum cfi_how how, bool is_signed)
{
	int64_t offset;
	int err = take_offset(program, is_signed, true, &offset);

	return err ? err : set_rule(program, number, how, offset);
}

static int set_frame(struct program *program, uint64_t number, bool is_signed)
{
	int64_t offset;
	int err = take_offset(program, is_signed, is_signed, &offset);

	if (err || offset != (int32_t)offset)
		return -EBADMSG;
	program->row->frame_register = number;
	program->row->frame_rule = (struct cfi_rule){CFI_REGISTER, (int32_t)offset};
	return 0;
}

static int set_expression(struct program *program, uint64_t number, enum cfi_how how)
{
	int32_t index;
	int err = take_expression(program, &index);

	return err ? err : set_rule(program, number, how, index);
}

static int set_frame_expression(struct program *program)
{
	int err = take_expression(program, &program->row->frame_rule.offset);

	program->row->frame_rule.how = CFI_EXPRESSION;
	return err;
}

static int remember(struct program *program)
{
	if (program->state_count == STATES_MAX || ++program->state_copies > STATE_COPIES_MAX)
		return -EBADMSG;
	program->states[program->state_count++] = *program->row;
	return 0;
}

static int recall(struct program *program)
{
	if (!program->state_count)
		return -EBADMSG;
	*program->row = program->states[--program->state_count];
	return 0;
}

/* True: the row is for the wanted instruction. */
static bool advance(struct program *program, uint64_t units)
{
	program->at += units * program->cie->code_alignment;
	return program->at > program->wanted;
}

static int advance_by(struct program *program, size_t bytes)
{
	uint32_t units = 0;

	if (!eh_take(&program->code, &units, bytes))
		return -EBADMSG;
	return advance(program, units);
}

static int set_location(struct program *program)
{
	if (!eh_take_encoded(&program->code, program->cie->encoding, &program->at))
		return -EBADMSG;
	return program->at > program->wanted;
}

/* Instructions about one register, whose number comes first. */
static int run_for_register(struct program *program, uint8_t instruction)
{
	uint64_t number, other;

	if (!eh_take_unsigned(&program->code, &number))
		return -EBADMSG;
	switch (instruction) {
	case CFA_OFFSET_EXTENDED:
		return set_saved(program, number, CFI_AT, false);
	case CFA_OFFSET_EXTENDED_SF:
		return set_saved(program, number, CFI_AT, true);
	case CFA_VAL_OFFSET:
		return set_saved(program, number, CFI_VALUE, false);
	case CFA_VAL_OFFSET_SF:
		return set_saved(program, number, CFI_VALUE, true);
	case CFA_RESTORE_EXTENDED:
		return restore_rule(program, number);
	case CFA_UNDEFINED:
		return set_rule(program, number, CFI_UNDEFINED, 0);
	case CFA_SAME_VALUE:
		return set_rule(program, number, CFI_SAME, 0);
	case CFA_REGISTER:
		if (!eh_take_unsigned(&program->code, &other) || other >= FBT_REGISTERS)
			return -EBADMSG;
		return set_rule(program, number, CFI_REGISTER, (int64_t)other);
	case CFA_DEF_CFA:
		return set_frame(program, number, false);
	case CFA_DEF_CFA_SF:
		return set_frame(program, number, true);
	case CFA_DEF_CFA_REGISTER:
		program->row->frame_register = number;
		program->row->frame_rule.how = CFI_REGISTER;
		return 0;
	case CFA_EXPRESSION:
		return set_expression(program, number, CFI_AT_EXPRESSION);
	case CFA_VAL_EXPRESSION:
		return set_expression(program, number, CFI_EXPRESSION);
	case CFA_GNU_ARGS_SIZE: /* its operand is a size, which the caller's frame has anyway */
		return 0;
	default:
		return -EBADMSG;
	}
}

/* 0; 1 when the row is for the wanted instruction; or -EBADMSG. */
static int run_one(struct program *program, uint8_t instruction)
{
	uint8_t operand = instruction & 0x3f;

	switch (instruction & 0xc0) {
	case CFA_ADVANCE_LOC:
		return advance(program, operand);
	case CFA_OFFSET:
		return set_saved(program, operand, CFI_AT, false);
	case CFA_RESTORE:
		return restore_rule(program, operand);
	default:
		break;
	}
	switch (instruction) {
	case CFA_NOP:
	case CFA_NEGATE_RA_STATE:
		return 0;
	case CFA_SET_LOC:
		return set_location(program);
	case CFA_ADVANCE_LOC1:
	case CFA_ADVANCE_LOC2:
		return advance_by(program, instruction - CFA_ADVANCE_LOC1 + 1u);
	case CFA_ADVANCE_LOC4:
		return advance_by(program, 4);
	case CFA_REMEMBER_STATE:
		return remember(program);
	case CFA_RESTORE_STATE:
		return recall(program);
	case CFA_DEF_CFA_OFFSET:
		return set_frame(program, program->row->frame_register, false);
	case CFA_DEF_CFA_OFFSET_SF:
		return set_frame(program, program->row->frame_register, true);
	case CFA_DEF_CFA_EXPRESSION:
		return set_frame_expression(program);
	default:
		return run_for_register(program, instruction);
	}
}

/* As run_one() of the last instruction that was run: 0 if there are no more. */
static int run(struct program *program)
{
	uint8_t instruction;
	int result = 0;

	while (!result && eh_take(&program->code, &instruction, 1))
		result = run_one(program, instruction);
	return result;
}

/* The table of .eh_frame_hdr, in the file. */
struct table {
	uint64_t address; /* of the first entry */
	uint64_t base;	  /* what its values are relative to */
	uint64_t count;
};

static int open_table(const struct elf_file *file, struct table *table)
{
	uint8_t head[4 + 8 + 8];
	struct eh_reader reader;
	Elf64_Phdr segment;
	uint64_t ignored;
	uint8_t form[4];

	if (elf_file__segment(file, PT_GNU_EH_FRAME, &segment))
		return -ENOENT;
	if (eh_open(&reader, file, segment.p_vaddr, head, sizeof(head)) ||
	    !eh_take(&reader, form, sizeof(form)))
		return -EBADMSG;
	if (form[0] != 1 || form[2] == PE_OMIT || form[3] != (PE_DATAREL | PE_SDATA4))
		return -ENOENT;
	if (!eh_take_encoded(&reader, form[1], &ignored) ||
	    !eh_take_encoded(&reader, form[2], &table->count))
		return -EBADMSG;
	table->address = reader.address;
	table->base = segment.p_vaddr;
	if (table->count > elf_file__available(file, table->address) / TABLE_ENTRY)
		return -EBADMSG;
	return 0;
}

/* A damaged file reads as 0, which is before any function. */
static uint64_t table_value(const struct elf_file *file, const struct table *table, uint64_t index,
			    unsigned int field)
{
	int32_t value;

	if (elf_file__read(file, table->address + index * TABLE_ENTRY + field * sizeof(value),
			   &value, sizeof(value)))
		return 0;
	return table->base + (uint64_t)(int64_t)value;
}

static int find_fde(struct cfi_reader *reader, const struct elf_file *file, uint64_t address,
		    struct eh_fde *fde)
{
	struct table table;
	uint64_t after, entry;
	int err = open_table(file, &table);

	if (err)
		return err;
	after = first_index(i, table.count, table_value(file, &table, i, 0) > address);
	if (!after)
		return -ENOENT;
	entry = table_value(file, &table, after - 1, 1);
	err = eh_fde_read(fde, &reader->cie, file, entry, reader->data, FDE_BYTES);
	if (err)
		return err;
	if (address < fde->start || address - fde->start >= fde->size)
		return -ENOENT;
	if (fde->is_cut)
		err = eh_fde_read(fde, &reader->cie, file, entry, reader->data, FDE_BYTES_MAX);
	return err;
}

static int read_row(struct cfi_reader *reader, const struct elf_file *file, uint64_t address,
		    struct cfi_row *row)
{
	struct program program = {
		.cie = &reader->cie, .row = row, .states = reader->states, .wanted = UINT64_MAX};
	struct eh_fde fde;
	int err = find_fde(reader, file, address, &fde);

	if (err)
		return err;
	memset(row, 0, sizeof(*row));
	row->return_register = reader->cie.return_register;
	row->is_signal = reader->cie.is_signal;
	program.code = reader->cie.instructions;
	err = run(&program);
	if (err < 0)
		return err;
	reader->entry = *row;
	program.entry = &reader->entry;
	program.code = fde.instructions;
	program.at = fde.start;
	program.wanted = address;
	program.state_count = 0;
	err = run(&program);
	if (err < 0)
		return err;
	/* The row may be behind what was read. */
	return !err && fde.is_cut ? -EBADMSG : 0;
}

int cfi_reader__find(struct cfi_reader *reader, const struct elf_file *file, uint64_t address,
		     struct cfi_row *row)
{
	uint64_t hash = ((uintptr_t)file ^ address) * 0x9e3779b97f4a7c15ull;
	struct cached *cached = &reader->cache[(hash >> 32) % CACHE_ROWS];
	int err;

	if (cached->file == file && cached->address == address) {
		*row = cached->row;
		return 0;
	}
	err = read_row(reader, file, address, row);
	if (!err)
		*cached = (struct cached){file, address, *row};
	return err;
}

static int find_value(const struct cfi_row *row, const struct cfi_rule *rule,
		      const struct registers *registers, const struct stack_copy *copy,
		      uint64_t frame, uint64_t *value)
{
	int err;

	switch ((enum cfi_how)rule->how) {
	case CFI_AT:
		return stack_word(copy, frame + (uint64_t)(int64_t)rule->offset, value) ? 0
											: -EFAULT;
	case CFI_VALUE:
		*value = frame + (uint64_t)(int64_t)rule->offset;
		return 0;
	case CFI_REGISTER:
		return register_get(registers, (uint64_t)rule->offset, value) ? 0 : -EBADMSG;
	case CFI_AT_EXPRESSION:
	case CFI_EXPRESSION:
		err = cfi_compute(&row->expressions[rule->offset], registers, copy, &frame, value);
		if (err || rule->how == CFI_EXPRESSION)
			return err;
		return stack_word(copy, *value, value) ? 0 : -EFAULT;
	case CFI_SAME:
	case CFI_UNDEFINED:
		break;
	}
	return -ENODATA;
}

static int find_frame(const struct cfi_row *row, const struct registers *registers,
		      const struct stack_copy *copy, uint64_t *frame)
{
	const struct cfi_rule *rule = &row->frame_rule;

	if (rule->how == CFI_EXPRESSION)
		return cfi_compute(&row->expressions[rule->offset], registers, copy, NULL, frame);
	if (rule->how != CFI_REGISTER || !register_get(registers, row->frame_register, frame))
		return -EBADMSG;
	*frame += (uint64_t)(int64_t)rule->offset;
	return 0;
}

/* Registers that a function may change, and that have no rule, are not known in its caller. */
static bool is_kept(enum fbt_arch arch, unsigned int number)
{
	if (arch == FBT_ARCH_ARM64)
		return number >= 19 && number <= ARM64_LR;
	return number == 3 || number == X86_BP || (number >= 12 && number <= 15);
}

static void keep_register(const struct cfi_row *row, const struct registers *registers,
			  struct registers *caller, unsigned int number)
{
	if (!row->is_signal && !is_kept(registers->arch, number))
		return;
	if (registers->known >> number & 1)
		register_set(caller, number, registers->value[number]);
}

/* Bits of an address on arm64; above them there may be a signature. */
#define ARM64_ADDRESS ((1ull << 48) - 1)

int cfi_apply(const struct cfi_row *row, const struct registers *registers,
	      const struct stack_copy *copy, struct registers *caller, uint64_t *frame)
{
	uint64_t back = row->return_register, value;
	int err = find_frame(row, registers, copy, frame);

	if (err)
		return err;
	if (back >= FBT_REGISTERS || row->rules[back].how == CFI_UNDEFINED)
		return back >= FBT_REGISTERS ? -EBADMSG : -ENODATA;
	*caller = (struct registers){.arch = registers->arch};
	register_set(caller, sp_of(registers->arch), *frame);
	for (unsigned int i = 0; i < FBT_REGISTERS; i++) {
		const struct cfi_rule *rule = &row->rules[i];

		if (rule->how == CFI_SAME) {
			if (i != sp_of(registers->arch) && i != pc_of(registers->arch))
				keep_register(row, registers, caller, i);
			continue;
		}
		err = find_value(row, rule, registers, copy, *frame, &value);
		if (!err)
			register_set(caller, i, value);
		else if (i == back)
			return err;
	}
	if (!register_get(caller, back, &value))
		return -EBADMSG;
	if (registers->arch == FBT_ARCH_ARM64)
		value &= ARM64_ADDRESS;
	register_set(caller, pc_of(registers->arch), value);
	return value ? 0 : -ENODATA;
}
