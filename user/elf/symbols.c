/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "elf/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/demangle.h"

/*
 * Bounds for malicious files, in which names may overlap and any number of symbols may have one
 * address. Real files have few names per address, and each name once.
 */
#define FUNCTIONS_MAX	 (4u << 20)
#define ADDRESS_MAX	 256 /* names of one address */
#define BLOCK_SYMBOLS	 2048
#define IFUNCS_MAX	 4096
#define NAMES_FACTOR_MAX 8 /* size of all names, relative to their string table */

#define STAPSDT_TYPE 3
/* Places of one probe: the kernel needs memory for each, and before 6.6 time. */
#define USDT_PLACES_MAX 4096

static bool is_defined(const Elf64_Sym *symbol, unsigned char type)
{
	return ELF64_ST_TYPE(symbol->st_info) == type && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_shndx != SHN_ABS && symbol->st_value;
}

/* The name at an offset of a string table, NULL if it is empty, too long or has no end. */
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

/* Reads a symbol table block by block. */
struct reader {
	const struct elf_file *file;
	const struct elf_section *table;
	Elf64_Sym block[BLOCK_SYMBOLS];
	size_t next;  /* index in block */
	size_t count; /* symbols in block */
	size_t at;    /* offset in table, after block */
	/* Where to add IFUNCs that are met; NULL: nowhere. And the names. */
	struct elf_symbols *ifuncs;
	const struct elf_section *strings;
	size_t ifunc_count;
};

static int add_ifunc(struct reader *reader, const Elf64_Sym *symbol)
{
	struct elf_symbol ifunc = {.address = symbol->st_value, .size = symbol->st_size};

	/* Those without a name count too: to find none takes longest. */
	if (reader->ifunc_count == IFUNCS_MAX)
		return 0;
	reader->ifunc_count++;
	ifunc.name = find_name(reader->strings, symbol->st_name);
	return ifunc.name ? vec_push(&reader->ifuncs->ifuncs, ifunc) : 0;
}

/* Reads the next block. *end is set if there is none. 0 or -EBADMSG. */
static int fill_block(struct reader *reader, bool *end)
{
	size_t left = (reader->table->size - reader->at) / sizeof(*reader->block);

	reader->count = left < BLOCK_SYMBOLS ? left : BLOCK_SYMBOLS;
	reader->next = 0;
	*end = !reader->count;
	if (elf_file__read_section(reader->file, reader->table, reader->at, reader->block,
				   reader->count * sizeof(*reader->block)))
		return -EBADMSG;
	reader->at += reader->count * sizeof(*reader->block);
	return 0;
}

/* Finds the next function; *symbol is NULL after the last one. 0, -EBADMSG or -ENOMEM. */
static int next_function(struct reader *reader, const Elf64_Sym **symbol)
{
	bool end = false;
	int err;

	*symbol = NULL;
	while (!end) {
		while (reader->next < reader->count) {
			*symbol = &reader->block[reader->next++];
			if (is_defined(*symbol, STT_FUNC))
				return 0;
			if (reader->ifuncs && is_defined(*symbol, STT_GNU_IFUNC) &&
			    add_ifunc(reader, *symbol))
				return -ENOMEM;
		}
		*symbol = NULL;
		err = fill_block(reader, &end);
		if (err)
			return err;
	}
	return 0;
}

static int count_functions(struct reader *reader, size_t *count)
{
	const Elf64_Sym *symbol;
	int err;

	*count = 0;
	while (!(err = next_function(reader, &symbol)) && symbol)
		++*count;
	return err;
}

/* Reads at most count symbols: the file may have changed since they were counted. 0 or -EBADMSG. */
static int fill_symbols(struct elf_symbols *symbols, size_t count, struct reader *reader,
			const struct elf_section *strings)
{
	uint64_t room = (uint64_t)strings->size * NAMES_FACTOR_MAX + DEMANGLE_NAME_MAX;
	const Elf64_Sym *symbol;
	int err = 0;

	reader->ifuncs = symbols;
	reader->strings = strings;
	while (symbols->count <= count && !(err = next_function(reader, &symbol)) && symbol) {
		const char *name = find_name(strings, symbol->st_name);
		size_t size;

		if (symbols->count == count)
			break;
		/* A name without an end is paid for with the bytes that were looked at. */
		size = name ? strlen(name) : DEMANGLE_NAME_MAX;
		if (!name && (symbol->st_name >= strings->size || !strings->data[symbol->st_name]))
			continue;
		if (size > room)
			return -EBADMSG;
		room -= size;
		if (!name)
			continue;
		symbols->items[symbols->count++] = (struct elf_symbol){
			.name = name,
			.address = symbol->st_value,
			.size = symbol->st_size,
		};
	}
	return err;
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

static int find_table(const struct elf_file *file, struct elf_section *table, bool *complete)
{
	int err = elf_file__find_section(file, SHT_SYMTAB, table);

	*complete = !err && table->size;
	if (err == -ENOENT || (!err && !table->size))
		err = elf_file__find_section(file, SHT_DYNSYM, table);
	return err;
}

static int fail_section(const struct elf_section *section, int err)
{
	return err == -EBADMSG && section->header.sh_size > ELF_SECTION_BYTES_MAX ? -EFBIG : err;
}

int elf_symbols_read(struct elf_symbols *symbols, struct elf_file *file)
{
	struct elf_section table, strings;
	struct reader reader = {.file = file, .table = &table};
	size_t count;
	int err;

	memset(symbols, 0, sizeof(*symbols));
	err = find_table(file, &table, &symbols->complete);
	if (err)
		return err == -ENOENT ? 0 : fail_section(&table, err);
	err = elf_file__section_at(file, table.header.sh_link, &strings);
	if (err)
		return err == -ENOENT ? -EBADMSG
				      : fail_section(&strings, err == -EFBIG ? err : -EBADMSG);
	err = count_functions(&reader, &count);
	if (err)
		return err;
	if (!strings.size)
		return 0;
	if (count > FUNCTIONS_MAX)
		return -EFBIG;
	/* There may be IFUNCs alone. */
	symbols->items = calloc(count ? count : 1, sizeof(*symbols->items));
	if (!symbols->items)
		return -ENOMEM;
	reader.at = 0;
	err = fill_symbols(symbols, count, &reader, &strings);
	if (err) {
		elf_symbols_clear(symbols);
		return err;
	}
	qsort(symbols->items, symbols->count, sizeof(*symbols->items), compare_symbols);
	drop_crowd(symbols);
	return 0;
}

static void forget_found(struct elf_wanted *wanted, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		wanted[i].start = 0;
		wanted[i].low = 0;
		wanted[i].high = UINT64_MAX;
	}
}

/* A function begins or ends there. Only the addresses next to it are told: see spread_bounds(). */
static void bound(struct elf_wanted *wanted, size_t count, uint64_t address)
{
	size_t after = first_index(k, count, wanted[k].address >= address);

	if (after < count)
		wanted[after].low = max_u64(wanted[after].low, address);
	if (after)
		wanted[after - 1].high = min_u64(wanted[after - 1].high, address);
}

static void spread_bounds(struct elf_wanted *wanted, size_t count)
{
	for (size_t i = 1; i < count; i++)
		wanted[i].low = max_u64(wanted[i].low, wanted[i - 1].low);
	for (size_t i = count; i-- > 1;)
		wanted[i - 1].high = min_u64(wanted[i - 1].high, wanted[i].high);
}

/* Of two symbols of one function the one is taken that comes first. */
static void offer(struct elf_wanted *wanted, size_t count, const Elf64_Sym *symbol)
{
	size_t i = first_index(k, count, wanted[k].address >= symbol->st_value);

	for (; i < count && wanted[i].address - symbol->st_value < symbol->st_size; i++) {
		if (wanted[i].start >= symbol->st_value)
			continue;
		wanted[i].start = symbol->st_value;
		wanted[i].name = symbol->st_name;
	}
	bound(wanted, count, symbol->st_value);
	bound(wanted, count, add_saturating(symbol->st_value, symbol->st_size));
}

int elf_symbols_locate(const struct elf_file *file, struct elf_wanted *wanted, size_t count,
		       bool *complete)
{
	struct elf_section table;
	struct reader reader = {.file = file, .table = &table};
	const Elf64_Sym *symbol;
	int err = find_table(file, &table, complete);

	forget_found(wanted, count);
	if (err)
		return err == -ENOENT ? 0 : -EBADMSG;
	while (!(err = next_function(&reader, &symbol)) && symbol)
		offer(wanted, count, symbol);
	if (err)
		forget_found(wanted, count);
	spread_bounds(wanted, count);
	return err;
}

#define NAME_BYTES 4096

char *elf_symbols_name(const struct elf_file *file, const struct elf_wanted *wanted)
{
	struct elf_section table, strings;
	char name[NAME_BYTES];
	bool complete;
	size_t size;

	if (find_table(file, &table, &complete) ||
	    elf_file__find_section_at(file, table.header.sh_link, &strings) ||
	    wanted->name >= strings.size)
		return NULL;
	size = strings.size - wanted->name;
	if (size > sizeof(name))
		size = sizeof(name);
	if (elf_file__read_section(file, &strings, wanted->name, name, size) ||
	    !memchr(name, 0, size) || !*name)
		return NULL;
	return strdup(name);
}

int elf_object_find(struct elf_file *file, const char *name, struct elf_symbol *object)
{
	struct elf_section table, strings;
	const Elf64_Sym *symbol;
	int err = elf_file__section_of_type(file, SHT_DYNSYM, &table);

	if (!err)
		err = elf_file__section_at(file, table.header.sh_link, &strings);
	if (err)
		return err;
	for (size_t at = 0; at + sizeof(*symbol) <= table.size; at += sizeof(*symbol)) {
		const char *own;

		symbol = (const Elf64_Sym *)(table.data + at);
		own = is_defined(symbol, STT_OBJECT) ? find_name(&strings, symbol->st_name) : NULL;
		if (!own || strcmp(own, name) != 0)
			continue;
		*object = (struct elf_symbol){own, symbol->st_value, symbol->st_size};
		return 0;
	}
	return -ENOENT;
}

void elf_symbols_clear(struct elf_symbols *symbols)
{
	free(symbols->items);
	vec_free(&symbols->ifuncs);
	memset(symbols, 0, sizeof(*symbols));
}

/* Index of the first symbol after address. */
static size_t find_after(const struct elf_symbols *symbols, uint64_t address)
{
	return first_index(i, symbols->count, symbols->items[i].address > address);
}

const struct elf_symbol *elf_symbols_before(const struct elf_symbols *symbols, uint64_t address)
{
	size_t after = find_after(symbols, address);

	return after ? &symbols->items[after - 1] : NULL;
}

const struct elf_symbol *elf_symbols_at(const struct elf_symbols *symbols, uint64_t address)
{
	size_t after = find_after(symbols, address);

	if (!after || symbols->items[after - 1].address != address)
		return NULL;
	while (after > 1 && symbols->items[after - 2].address == address)
		after--;
	return &symbols->items[after - 1];
}

const struct elf_symbol *elf_symbols_around(const struct elf_symbols *symbols, uint64_t address)
{
	const struct elf_symbol *symbol = elf_symbols_before(symbols, address);

	if (!symbol || address - symbol->address >= symbol->size)
		return NULL;
	return symbol;
}

/* The contents of a note: three addresses, then the strings provider, name and arguments. */
struct note {
	uint64_t location;
	uint64_t base; /* address of .stapsdt.base at link time: prelink moves code, not notes */
	uint64_t semaphore;
	const char *provider;
	const char *name;
	const char *arguments; /* "" if there are none */
};

static int parse_note(struct note *note, const uint8_t *data, size_t size)
{
	uint64_t addresses[3];
	const char *end;

	if (size < sizeof(addresses))
		return -EBADMSG;
	memcpy(addresses, data, sizeof(addresses));
	note->location = addresses[0];
	note->base = addresses[1];
	note->semaphore = addresses[2];
	data += sizeof(addresses);
	size -= sizeof(addresses);
	note->provider = (const char *)data;
	end = memchr(data, 0, size);
	if (!end)
		return -EBADMSG;
	note->name = end + 1;
	size -= note->name - note->provider;
	end = memchr(note->name, 0, size);
	if (!end)
		return -EBADMSG;
	note->arguments = end + 1;
	size -= note->arguments - note->name;
	if (!memchr(note->arguments, 0, size))
		note->arguments = "";
	return 0;
}

static void keep_arguments(struct usdt_probe *probe, const char *arguments)
{
	size_t size = strlen(arguments) + 1;

	if (!probe->offsets.count && size <= sizeof(probe->arguments))
		memcpy(probe->arguments, arguments, size);
	else if (strcmp(probe->arguments, arguments) != 0)
		probe->arguments[0] = '\0';
}

static int add_note(struct elf_file *file, const struct note *note, uint64_t shift,
		    struct usdt_probe *probe)
{
	uint64_t offset;

	if (elf_file__offset(file, note->location + shift, true, &offset))
		return -EBADMSG;
	keep_arguments(probe, note->arguments);
	if (!probe->offsets.count)
		probe->address = note->location + shift;
	if (note->semaphore && !probe->semaphore &&
	    elf_file__offset(file, note->semaphore + shift, false, &probe->semaphore))
		return -EBADMSG;
	return probe->offsets.count < USDT_PLACES_MAX ? vec_push(&probe->offsets, offset) : -E2BIG;
}

int usdt_find(struct elf_file *file, const char *provider, const char *name,
	      struct usdt_probe *probe)
{
	struct elf_section notes, base;
	uint64_t base_address = 0;
	struct elf_note entry;
	struct note note;
	int err, got;

	memset(probe, 0, sizeof(*probe));
	err = elf_file__section(file, ".note.stapsdt", &notes);
	if (err)
		return err == -ENOENT ? 0 : err == -EFBIG ? -EBADMSG : err;
	if (!elf_file__section(file, ".stapsdt.base", &base))
		base_address = base.header.sh_addr;
	while ((got = elf_note_next(&notes.data, &notes.size, &entry)) > 0) {
		if (entry.type != STAPSDT_TYPE || entry.name_size != sizeof("stapsdt") ||
		    memcmp(entry.name, "stapsdt", sizeof("stapsdt")))
			continue;
		err = parse_note(&note, entry.contents, entry.size);
		if (!err && !strcmp(note.provider, provider) && !strcmp(note.name, name))
			err = add_note(file, &note, base_address ? base_address - note.base : 0,
				       probe);
		if (err)
			return err;
	}
	return got;
}

void usdt_clear(struct usdt_probe *probe)
{
	vec_free(&probe->offsets);
}
