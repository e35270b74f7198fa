/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "elf_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"

/*
 * Bounds for files that are made to be slow: names may lie on top of each other, and any number of
 * symbols at one address. Real ones have some names per address, and each once.
 */
#define FUNCTIONS_MAX	 (4u << 20)
#define ADDRESS_MAX	 256 /* names of one address */
#define NAMES_FACTOR_MAX 8   /* bytes of all names, in those of the table they are in */

static bool is_function(const Elf64_Sym *symbol)
{
	return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_shndx != SHN_ABS && symbol->st_value;
}

/* The name at an offset of a string table, NULL if it does not end in time. */
static const char *find_name(const struct elf_section *strings, uint32_t offset)
{
	size_t left;

	if (offset >= strings->size)
		return NULL;
	left = strings->size - offset;
	if (left > DEMANGLE_NAME_MAX)
		left = DEMANGLE_NAME_MAX;
	if (!strings->data[offset] || !memchr(strings->data + offset, 0, left))
		return NULL;
	return (const char *)strings->data + offset;
}

static int compare_symbols(const void *left, const void *right)
{
	const struct elf_symbol *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* 0 or -EBADMSG. */
static int fill_symbols(struct elf_symbols *symbols, const struct elf_section *table,
			const struct elf_section *strings)
{
	uint64_t room = (uint64_t)strings->size * NAMES_FACTOR_MAX + DEMANGLE_NAME_MAX;
	Elf64_Sym raw;

	for (size_t at = 0; table->size - at >= sizeof(raw); at += sizeof(raw)) {
		const char *name;
		size_t size;

		memcpy(&raw, table->data + at, sizeof(raw));
		if (!is_function(&raw))
			continue;
		name = find_name(strings, raw.st_name);
		if (!name)
			continue;
		size = strlen(name);
		if (size > room)
			return -EBADMSG;
		room -= size;
		symbols->items[symbols->count++] = (struct elf_symbol){
			.name = name,
			.address = raw.st_value,
			.size = raw.st_size,
		};
	}
	return 0;
}

static void drop_crowd(struct elf_symbols *symbols)
{
	size_t kept = 0, alike = 0;

	for (size_t i = 0; i < symbols->count; i++) {
		const struct elf_symbol *symbol = &symbols->items[i];

		alike = kept && symbols->items[kept - 1].address == symbol->address ? alike + 1 : 0;
		if (alike < ADDRESS_MAX)
			symbols->items[kept++] = *symbol;
	}
	symbols->count = kept;
}

static size_t count_functions(const struct elf_section *table)
{
	size_t count = 0;
	Elf64_Sym raw;

	for (size_t at = 0; table->size - at >= sizeof(raw); at += sizeof(raw)) {
		memcpy(&raw, table->data + at, sizeof(raw));
		count += is_function(&raw);
	}
	return count;
}

static int find_table(struct elf_symbols *symbols, struct elf_file *file, struct elf_section *table)
{
	int err = elf_file__section_of_type(file, SHT_SYMTAB, table);

	symbols->complete = !err && table->size;
	if (err == -ENOENT || (!err && !table->size))
		err = elf_file__section_of_type(file, SHT_DYNSYM, table);
	return err;
}

static int fail_section(const struct elf_section *section, int err)
{
	return err == -EBADMSG && section->header.sh_size > ELF_SECTION_BYTES_MAX ? -EFBIG : err;
}

int elf_symbols_read(struct elf_symbols *symbols, struct elf_file *file)
{
	struct elf_section table, strings;
	size_t count;
	int err;

	memset(symbols, 0, sizeof(*symbols));
	err = find_table(symbols, file, &table);
	if (err)
		return err == -ENOENT ? 0 : fail_section(&table, err);
	err = elf_file__section_at(file, table.header.sh_link, &strings);
	if (err)
		return err == -ENOENT ? -EBADMSG : fail_section(&strings, -EBADMSG);
	count = count_functions(&table);
	if (!count || !strings.size)
		return 0;
	if (count > FUNCTIONS_MAX)
		return -EFBIG;
	symbols->items = calloc(count, sizeof(*symbols->items));
	if (!symbols->items)
		return -ENOMEM;
	err = fill_symbols(symbols, &table, &strings);
	if (err) {
		elf_symbols_clear(symbols);
		return err;
	}
	qsort(symbols->items, symbols->count, sizeof(*symbols->items), compare_symbols);
	drop_crowd(symbols);
	return 0;
}

void elf_symbols_clear(struct elf_symbols *symbols)
{
	free(symbols->items);
	memset(symbols, 0, sizeof(*symbols));
}

/* Index of the first symbol behind address. */
static size_t find_behind(const struct elf_symbols *symbols, uint64_t address)
{
	size_t low = 0, high = symbols->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->items[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct elf_symbol *elf_symbols_before(const struct elf_symbols *symbols, uint64_t address)
{
	size_t behind = find_behind(symbols, address);

	return behind ? &symbols->items[behind - 1] : NULL;
}

const struct elf_symbol *elf_symbols_at(const struct elf_symbols *symbols, uint64_t address)
{
	size_t behind = find_behind(symbols, address);

	if (!behind || symbols->items[behind - 1].address != address)
		return NULL;
	while (behind > 1 && symbols->items[behind - 2].address == address)
		behind--;
	return &symbols->items[behind - 1];
}

const struct elf_symbol *elf_symbols_around(const struct elf_symbols *symbols, uint64_t address)
{
	const struct elf_symbol *symbol = elf_symbols_before(symbols, address);

	if (!symbol || address - symbol->address >= symbol->size)
		return NULL;
	return symbol;
}
