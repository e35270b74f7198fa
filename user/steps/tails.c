/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/tails.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/demangle.h"
#include "code/insn.h"

#define NAME_BYTES 1024

/* On x86-64 a marker and a jump; on arm64 a marker, at most four instructions, and a jump. */
#define STUB_BYTES 24

static char *name_function(const struct image *image, uint64_t address)
{
	const struct elf_symbol *symbol = elf_symbols_at(&image->symbols, address);
	char *name;

	if (symbol)
		return demangle_symbol(symbol->name);
	return asprintf(&name, "0x%" PRIx64, address) < 0 ? NULL : name;
}

/* The name of a symbol of .dynsym, read alone: the tables may be large. */
static char *name_import(const struct image *image, uint64_t index)
{
	char name[NAME_BYTES];
	Elf64_Phdr segment;
	uint64_t symbols = 0, strings = 0, size;
	Elf64_Sym symbol;
	Elf64_Dyn entry;

	if (elf_file__segment(image->elf, PT_DYNAMIC, &segment))
		return NULL;
	for (uint64_t at = 0; at + sizeof(entry) <= segment.p_filesz && at < 4096;
	     at += sizeof(entry)) {
		if (elf_file__read(image->elf, segment.p_vaddr + at, &entry, sizeof(entry)))
			break;
		if (entry.d_tag == DT_SYMTAB)
			symbols = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRTAB)
			strings = entry.d_un.d_ptr;
	}
	if (!symbols || !strings ||
	    elf_file__read(image->elf, symbols + index * sizeof(symbol), &symbol, sizeof(symbol)))
		return NULL;
	strings += symbol.st_name;
	size = elf_file__available(image->elf, strings);
	if (size > sizeof(name))
		size = sizeof(name);
	if (!symbol.st_name || elf_file__read(image->elf, strings, name, size) ||
	    !memchr(name, 0, size))
		return NULL;
	return demangle_symbol(name);
}

/* The name that a relocation of the slot has, or the function that it has the address of. */
static char *name_slot(const struct image *image, uint64_t slot)
{
	static const char *const names[] = {".rela.plt", ".rela.dyn"};
	uint32_t relative = elf_file__arch(image->elf) == FBT_ARCH_X86_64 ? R_X86_64_RELATIVE
									  : R_AARCH64_RELATIVE;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct elf_section section;
		Elf64_Rela rela;

		if (elf_file__section(image->elf, names[i], &section) || !section.data)
			continue;
		for (size_t at = 0; at + sizeof(rela) <= section.size; at += sizeof(rela)) {
			memcpy(&rela, section.data + at, sizeof(rela));
			if (rela.r_offset != slot)
				continue;
			return ELF64_R_TYPE(rela.r_info) == relative
				       ? name_function(image, (uint64_t)rela.r_addend)
				       : name_import(image, ELF64_R_SYM(rela.r_info));
		}
	}
	return NULL;
}

uint64_t tail_slot(const struct image *image, uint64_t address)
{
	uint64_t available = elf_file__available(image->elf, address), slot = 0, bad;
	uint8_t code[STUB_BYTES];
	insn_vec insns = {0};
	size_t size = available < sizeof(code) ? (size_t)available : sizeof(code);
	size_t most = elf_file__arch(image->elf) == FBT_ARCH_X86_64 ? 2 : STUB_BYTES / 4;

	if (!elf_file__read(image->elf, address, code, size))
		/* The last instruction may be cut off: those before it are there. */
		(void)insn_decode(elf_file__arch(image->elf), code, size, address, &insns, &bad);
	for (size_t i = 0; i < insns.count && i < most && !slot; i++) {
		if (insns.items[i].kind == INSN_LEAVE)
			slot = insns.items[i].target;
		else if (insns.items[i].kind != INSN_NEXT && insns.items[i].kind != INSN_NOP)
			break;
	}
	vec_free(&insns);
	return slot;
}

char *tail_name(const struct image *image, const struct exit_tail *tail)
{
	uint64_t slot;

	if (tail->is_slot)
		return name_slot(image, tail->address);
	if (elf_symbols_at(&image->symbols, tail->address))
		return name_function(image, tail->address);
	slot = tail_slot(image, tail->address);
	return slot ? name_slot(image, slot) : name_function(image, tail->address);
}
