/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * rows FILE…: each row of the unwind tables of these files, for every function and each place in it
 * where the row changes, held against what libdw reads there. Files of x86-64 and arm64, on any
 * machine.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stacks/cfi.h"

struct counts {
	unsigned long rows;
	unsigned long rules;
	unsigned long expressions; /* that were compared only for being there */
	unsigned long wrong;
};

static struct cfi_reader *reader;

static bool is_register(const Dwarf_Op *op, uint64_t number, uint64_t *offset)
{
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		*offset = op->number;
		return number == (uint64_t)(op->atom - DW_OP_breg0);
	}
	*offset = op->number2;
	return op->atom == DW_OP_bregx && op->number == number;
}

static bool is_same_frame(const struct cfi_row *row, Dwarf_Frame *frame, struct counts *counts)
{
	Dwarf_Op *ops;
	uint64_t offset;
	size_t count;

	if (dwarf_frame_cfa(frame, &ops, &count))
		return false;
	if (row->frame_rule.how != CFI_REGISTER) {
		counts->expressions++;
		return count > 1 && row->frame_rule.how == CFI_EXPRESSION;
	}
	return count == 1 && is_register(ops, row->frame_register, &offset) &&
	       (int64_t)offset == row->frame_rule.offset;
}

/* libdw says that a register which the table does not mention is lost; the tool, that it is kept.
 */
static bool is_same_rule(const struct cfi_rule *rule, Dwarf_Frame *frame, int number,
			 struct counts *counts)
{
	Dwarf_Op memory[3], *ops;
	size_t count;

	if (dwarf_frame_register(frame, number, memory, &ops, &count))
		return false;
	counts->rules++;
	switch (rule->how) {
	case CFI_SAME:
		return !count || ops[count - 1].atom == DW_OP_stack_value;
	case CFI_UNDEFINED:
		return !count;
	case CFI_AT:
		return count && ops[0].atom == DW_OP_call_frame_cfa &&
		       (count == 1 ? !rule->offset
				   : ops[1].atom == DW_OP_plus_uconst &&
					     (int64_t)ops[1].number == rule->offset);
	case CFI_VALUE:
		return count >= 2 && ops[0].atom == DW_OP_call_frame_cfa &&
		       ops[count - 1].atom == DW_OP_stack_value &&
		       (count == 2 ? !rule->offset : (int64_t)ops[1].number == rule->offset);
	case CFI_REGISTER:
		return count == 1;
	default:
		counts->expressions++;
		return count > 1;
	}
}

static bool is_same_row(const struct cfi_row *row, Dwarf_Frame *frame, enum fbt_arch arch,
			struct counts *counts)
{
	int last = arch == FBT_ARCH_ARM64 ? 30 : 16, back;
	bool is_signal;

	back = dwarf_frame_info(frame, NULL, NULL, &is_signal);
	if (back < 0 || (uint64_t)back != row->return_register || is_signal != row->is_signal ||
	    !is_same_frame(row, frame, counts))
		return false;
	for (int i = 0; i <= last; i++)
		if (!is_same_rule(&row->rules[i], frame, i, counts))
			return false;
	return true;
}

static void tell_wrong(const char *path, uint64_t address, const struct cfi_row *row, int err,
		       struct counts *counts)
{
	if (counts->wrong++ < 5)
		printf("# %s+0x%llx: %d, frame %u+%d how %u\n", path, (unsigned long long)address,
		       err, (unsigned int)row->frame_register, row->frame_rule.offset,
		       row->frame_rule.how);
}

/* All rows of one function. */
static void check_function(const char *path, const struct elf_file *file, Dwarf_CFI *cfi,
			   uint64_t start, uint64_t end, struct counts *counts)
{
	enum fbt_arch arch = elf_file__arch(file);

	for (uint64_t at = start; at < end;) {
		struct cfi_row row = {.frame_register = 0};
		Dwarf_Frame *frame = NULL;
		Dwarf_Addr from, to = at + 1;
		int err = cfi_reader__find(reader, file, at, &row);
		bool theirs = !dwarf_cfi_addrframe(cfi, at, &frame);

		if (theirs)
			dwarf_frame_info(frame, &from, &to, NULL);
		counts->rows++;
		if (theirs != !err || (theirs && !is_same_row(&row, frame, arch, counts)))
			tell_wrong(path, at, &row, err, counts);
		free(frame);
		at = to > at ? to : at + 1;
	}
}

/* The functions are those of the table; libdw's entries have their bounds. */
static void check_entries(const char *path, const struct elf_file *file, Elf *elf, Dwarf_CFI *cfi,
			  struct counts *counts)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	elf_getshdrstrndx(elf, &names);
	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR))
			continue;
		for (uint64_t at = header.sh_addr; at < header.sh_addr + header.sh_size;) {
			Dwarf_Frame *frame = NULL;
			Dwarf_Addr from, to;

			if (dwarf_cfi_addrframe(cfi, at, &frame)) {
				at += 4;
				continue;
			}
			dwarf_frame_info(frame, &from, &to, NULL);
			free(frame);
			check_function(path, file, cfi, at, to > at ? to : at + 1, counts);
			at = to > at ? to : at + 1;
		}
	}
}

static bool check_file(const char *path)
{
	struct counts counts = {.rows = 0};
	struct elf_file *file = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
	Dwarf_CFI *cfi = elf ? dwarf_getcfi_elf(elf) : NULL;

	/* The reader keeps rows by the file's address in memory. */
	reader = cfi_reader__new();
	if (cfi && reader && !elf_file__open(&file, fd))
		check_entries(path, file, elf, cfi, &counts);
	else
		counts.wrong = 1;
	printf("%s - %s: %lu rows, %lu rules, %lu expressions, %lu wrong\n",
	       counts.wrong  ? "not ok"
	       : counts.rows ? "ok"
			     : "# no code",
	       path, counts.rows, counts.rules, counts.expressions, counts.wrong);
	cfi_reader__free(reader);
	elf_file__free(file);
	dwarf_cfi_end(cfi);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return !counts.wrong;
}

int main(int argc, char **argv)
{
	bool good = true;

	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++)
		good &= check_file(argv[i]);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
