/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/ifunc.h"

#include <errno.h>
#include <string.h>

#include "base/format.h"
#include "proc/memory.h"
#include "proc/process.h"

/* A resolver is small. */
#define RESOLVER_BYTES 4096
#define CHOICES_MAX    6

struct hunt {
	struct memory *memory;
	struct proc_ref ref;
	const struct elf_symbol *ifunc;
	const struct image *image; /* of the IFUNC */
	const struct mapping *mapping;
	uint64_t bias;	/* of image: address in memory minus that in the file */
	uint64_t found; /* 0: nothing yet */
};

static bool is_import(enum fbt_arch arch, uint64_t type)
{
	if (arch == FBT_ARCH_X86_64)
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT ||
		       type == R_X86_64_64;
	return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_ABS64;
}

static bool is_begin(const struct image *image, uint64_t address)
{
	struct code_range range;

	if (elf_symbols_at(&image->symbols, address))
		return true;
	return !image_extent(image, address, &range) && range.address == address;
}

/* A slot that has not been bound leads into a PLT, where no function begins. */
static void look_at_slot(struct hunt *hunt, uint64_t slot)
{
	struct memory_part part = {.address = slot, .size = sizeof(uint64_t)};
	uint64_t value, address;

	if (memory__read(hunt->memory, hunt->ref, &part, 1) || part.got != sizeof(value))
		return;
	memcpy(&value, part.data, sizeof(value));
	if (value < hunt->mapping->start || value >= hunt->mapping->end)
		return;
	address = value - hunt->bias;
	if (address != hunt->ifunc->address && is_begin(hunt->image, address))
		hunt->found = address;
}

/* Whether a relocation names the IFUNC. */
static bool is_named(const struct hunt *hunt, const Elf64_Rela *rela,
		     const struct elf_section *symbols, const struct elf_section *strings)
{
	uint64_t index = ELF64_R_SYM(rela->r_info);
	size_t length = strlen(hunt->ifunc->name) + 1;
	Elf64_Sym symbol;

	if (index >= symbols->size / sizeof(symbol))
		return false;
	memcpy(&symbol, symbols->data + index * sizeof(symbol), sizeof(symbol));
	return symbol.st_name < strings->size && strings->size - symbol.st_name >= length &&
	       !memcmp(strings->data + symbol.st_name, hunt->ifunc->name, length);
}

/* Looks at the slots of a file that are for the IFUNC; those of its own file may have no name. */
static int look_in_file(struct hunt *hunt, struct elf_file *elf, uint64_t bias, bool own)
{
	static const char *const names[] = {".rela.plt", ".rela.dyn", ".rela.iplt"};
	enum fbt_arch arch = elf_file__arch(elf);
	uint64_t relative = arch == FBT_ARCH_X86_64 ? R_X86_64_IRELATIVE : R_AARCH64_IRELATIVE;
	struct elf_section section, symbols = {.size = 0}, strings = {.size = 0};
	int err = elf_file__section_of_type(elf, SHT_DYNSYM, &symbols);

	if (!err)
		err = elf_file__section_at(elf, symbols.header.sh_link, &strings);
	if (err)
		symbols.size = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && err != -ENOMEM; i++) {
		err = elf_file__section(elf, names[i], &section);
		for (size_t at = 0; !err && at + sizeof(Elf64_Rela) <= section.size && !hunt->found;
		     at += sizeof(Elf64_Rela)) {
			Elf64_Rela rela;
			uint64_t type;

			memcpy(&rela, section.data + at, sizeof(rela));
			type = ELF64_R_TYPE(rela.r_info);
			if ((own && type == relative &&
			     (uint64_t)rela.r_addend == hunt->ifunc->address) ||
			    (is_import(arch, type) && is_named(hunt, &rela, &symbols, &strings)))
				look_at_slot(hunt, rela.r_offset + bias);
		}
	}
	return err == -ENOMEM ? err : 0;
}

static int look_in_others(struct hunt *hunt, uint32_t tgid)
{
	mapping_vec maps = {0};
	struct image image;
	int err = maps_read_quietly(tgid, &maps);

	vec_for_each (mapping, &maps) {
		uint64_t start;

		if (err || hunt->found)
			break;
		if (mapping->start == hunt->mapping->start)
			continue;
		if (!image_open(&image, processes_live_thread(tgid), mapping) &&
		    !elf_file__mapped_address(image.elf, mapping->offset, &start))
			err = look_in_file(hunt, image.elf, mapping->start - start, false);
		image_close(&image);
	}
	maps_free(&maps);
	return err == -ENOMEM ? err : 0;
}

int ifunc_resolve(uint64_t *address, uint32_t tgid, const struct image *image,
		  const struct mapping *mapping, const struct elf_symbol *ifunc)
{
	struct hunt hunt = {.ifunc = ifunc,
			    .image = image,
			    .mapping = mapping,
			    .ref = {.tgid = processes_live_thread(tgid)}};
	uint64_t start;
	int err;

	if (elf_file__mapped_address(image->elf, mapping->offset, &start))
		return -ENOENT;
	hunt.bias = mapping->start - start;
	hunt.memory = memory__new();
	if (!hunt.memory)
		return -ENOMEM;
	err = look_in_file(&hunt, image->elf, hunt.bias, true);
	if (!err && !hunt.found)
		err = look_in_others(&hunt, tgid);
	memory__free(hunt.memory);
	*address = hunt.found;
	return err ? err : hunt.found ? 0 : -ENOENT;
}

const char *ifunc_choices(const struct image *image, const struct elf_symbol *ifunc, char *to,
			  size_t size)
{
	struct line line = {.text = to, .size = size};
	uint64_t available = elf_file__available(image->elf, ifunc->address), seen[CHOICES_MAX];
	size_t bytes = ifunc->size < RESOLVER_BYTES ? (size_t)ifunc->size : RESOLVER_BYTES;
	uint8_t code[RESOLVER_BYTES];
	size_t count = 0;

	*to = '\0';
	if (bytes > available)
		bytes = (size_t)available;
	if (elf_file__arch(image->elf) != FBT_ARCH_X86_64 ||
	    elf_file__read(image->elf, ifunc->address, code, bytes))
		return to;
	/* lea ADDRESS(%rip), %REG */
	for (size_t at = 0; at + 7 <= bytes && count < CHOICES_MAX; at++) {
		const struct elf_symbol *symbol;
		int32_t distance;
		size_t i = 0;

		if ((code[at] & 0xfb) != 0x48 || code[at + 1] != 0x8d ||
		    (code[at + 2] & 0xc7) != 0x05)
			continue;
		memcpy(&distance, code + at + 3, sizeof(distance));
		symbol = elf_symbols_at(&image->symbols,
					ifunc->address + at + 7 + (uint64_t)(int64_t)distance);
		while (symbol && i < count && seen[i] != symbol->address)
			i++;
		if (!symbol || i < count)
			continue;
		line_add(&line, "%s%s", count ? ", " : "", symbol->name);
		seen[count++] = symbol->address;
	}
	return to;
}
