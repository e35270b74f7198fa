/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/text_users.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"

#define PLACES_MAX  256
#define CHUNK_BYTES (4u << 20)
/*
 * Most pieces of functions for which the jumps to them are looked for, each in a pass of its own.
 */
#define PIECES_MAX 8
/* The array or structure that a pointer may be in. */
#define ARRAY_BYTES 48

typedef VEC(uint64_t) address_vec;

/* What is looked for in one pass over segments. */
struct hunt {
	const struct image *image;
	const char *text;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
	address_vec targets;  /* sorted: addresses that code or a pointer may refer to */
	address_vec found;    /* places of texts, of pointers, or in code */
	struct elf_fde piece; /* of a function, into which jumps are looked for */
	/* arm64: the page that adrp put into each register, and in which it did. */
	uint64_t pages[32];
	uint32_t paged;
};

/* Called for each part of a segment, which is at address. A part overlaps the one before. */
typedef int (*look_fn)(struct hunt *hunt, uint64_t address, const uint8_t *data, size_t size);

static int compare_addresses(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static bool is_target(const struct hunt *hunt, uint64_t address)
{
	const address_vec *targets = &hunt->targets;
	size_t at;

	if (!targets->count || address < targets->items[0] ||
	    address > targets->items[targets->count - 1])
		return false;
	at = vec_lower_bound(targets, *item, address);
	return targets->items[at] == address;
}

/* Parts overlap, so the last place may be found again. */
static int add_found(struct hunt *hunt, uint64_t address)
{
	for (size_t i = hunt->found.count; i > 0 && hunt->found.count - i < 4; i--)
		if (hunt->found.items[i - 1] == address)
			return 0;
	return hunt->found.count < PLACES_MAX ? vec_push(&hunt->found, address) : -E2BIG;
}

static int look_in_segment(struct hunt *hunt, const Elf64_Phdr *segment, uint8_t *chunk,
			   look_fn look)
{
	uint64_t at = 0;
	int err = 0;

	hunt->paged = 0;
	while (at < segment->p_filesz && !err) {
		uint64_t left = segment->p_filesz - at;
		size_t size =
			left < CHUNK_BYTES + TEXT_BYTES_MAX ? left : CHUNK_BYTES + TEXT_BYTES_MAX;

		/* A file with holes may be of any size. */
		if (hunt->deadline_ns && clock_ns(CLOCK_MONOTONIC) > hunt->deadline_ns)
			return -ETIMEDOUT;
		if (elf_file__read(hunt->image->elf, segment->p_vaddr + at, chunk, size))
			return -EBADMSG;
		err = look(hunt, segment->p_vaddr + at, chunk, size);
		at += CHUNK_BYTES;
	}
	return err;
}

/* Looks in all loaded segments that have the flags. */
static int look_in_all(struct hunt *hunt, uint32_t flags, look_fn look)
{
	uint8_t *chunk = malloc(CHUNK_BYTES + TEXT_BYTES_MAX);
	Elf64_Phdr segment;
	struct stat file;
	uint64_t left;
	int err = !chunk ? -ENOMEM : fstat(hunt->image->fd, &file) ? -EBADMSG : 0;

	hunt->found.count = 0;
	left = err ? 0 : (uint64_t)file.st_size;
	for (size_t i = 0; !err && !elf_file__loaded(hunt->image->elf, i, &segment); i++) {
		if ((segment.p_flags & flags) != flags)
			continue;
		/* A malicious file has thousands of segments that overlap. */
		if (segment.p_filesz > left)
			break;
		left -= segment.p_filesz;
		err = look_in_segment(hunt, &segment, chunk, look);
	}
	free(chunk);
	return err;
}

/*
 * Whether a literal in a Rust format string has length bytes: the mark of an argument, or 0,
 * follows it.
 */
static bool is_literal(const struct hunt *hunt, const uint8_t *text, size_t left, size_t length)
{
	return length >= strlen(hunt->text) && length < left && !memchr(text, 0, length) &&
	       (!text[length] || text[length] >= 0x80);
}

/*
 * Adds the places that code may refer to for a text at data + at: its beginning, or the beginning
 * of a Rust format string. There the length of the text precedes it, as one byte or as 0x80 and two
 * bytes, perhaps after the mark of an argument.
 */
static int add_text(struct hunt *hunt, uint64_t address, const uint8_t *data, size_t size,
		    size_t at)
{
	const uint8_t *text = data + at;
	size_t left = size - at;
	int err = add_found(hunt, address + at);

	if (!err && at >= 1 && text[-1] < 0x80 && is_literal(hunt, text, left, text[-1])) {
		err = add_found(hunt, address + at - 1);
		if (!err && at >= 2 && text[-2] >= 0x80)
			err = add_found(hunt, address + at - 2);
	}
	if (!err && at >= 3 && text[-3] == 0x80 &&
	    is_literal(hunt, text, left, (size_t)(text[-2] | text[-1] << 8)))
		err = add_found(hunt, address + at - 3);
	return err;
}

static int look_for_text(struct hunt *hunt, uint64_t address, const uint8_t *data, size_t size)
{
	size_t length = strlen(hunt->text);
	const uint8_t *at = data;
	int err = 0;

	while (!err && (at = memmem(at, size - (size_t)(at - data), hunt->text, length))) {
		err = add_text(hunt, address, data, size, (size_t)(at - data));
		at++;
	}
	return err;
}

/* Pointers as they are in a file without relocations with addends: not PIE, or with RELR. */
static int look_for_pointers(struct hunt *hunt, uint64_t address, const uint8_t *data, size_t size)
{
	size_t first = (size_t)(-address & 7);
	uint64_t value;
	int err = 0;

	for (size_t at = first; at + sizeof(value) <= size && !err; at += sizeof(value)) {
		memcpy(&value, data + at, sizeof(value));
		if (is_target(hunt, value))
			err = add_found(hunt, address + at);
	}
	return err;
}

static int32_t displacement(const uint8_t *data)
{
	int32_t value;

	memcpy(&value, data, sizeof(value));
	return value;
}

/* Whether an opcode loads a word or takes an address, or copies a short text (movups, movdqu …). */
static bool is_load(const uint8_t *opcode)
{
	if (opcode[0] == 0x8d || opcode[0] == 0x8b)
		return true;
	return opcode[-1] == 0x0f && (opcode[0] == 0x10 || opcode[0] == 0x28 || opcode[0] == 0x6f);
}

/* Whether the four bytes after modrm are the distance from the next instruction. */
static bool is_relative(const uint8_t *modrm)
{
	return (modrm[0] & 0xc7) == 0x05 && is_load(modrm - 1);
}

/* Whether the four bytes at data are an address: mov $address, %reg, or address(,%reg,8). */
static bool is_absolute(const uint8_t *data)
{
	if ((data[-1] & 0xf8) == 0xb8)
		return true;
	return (data[-1] & 0x07) == 0x05 && (data[-2] & 0xc7) == 0x04 && is_load(data - 3);
}

/*
 * Instructions are not decoded one by one. Four bytes that happen to be the distance to one of a
 * few targets, after bytes that look like such an instruction, occur once in many GiB.
 */
static int look_in_x86(struct hunt *hunt, uint64_t address, const uint8_t *data, size_t size)
{
	int err = 0;

	for (size_t at = 4; at + 4 <= size && !err; at++) {
		uint64_t after = address + at + 4, target;

		if (is_relative(data + at - 1))
			target = after + (uint64_t)(int64_t)displacement(data + at);
		else if (is_absolute(data + at)) /* in a program that is not PIE */
			target = (uint32_t)displacement(data + at);
		else
			continue;
		if (is_target(hunt, target))
			err = add_found(hunt, address + at);
	}
	return err;
}

/* The target of one instruction; 0: it refers to nothing. */
static uint64_t take_arm64(struct hunt *hunt, uint64_t pc, uint32_t word)
{
	uint32_t to = word & 31, from = word >> 5 & 31, imm12 = word >> 10 & 0xfff;
	uint64_t near = (uint64_t)((int64_t)((uint64_t)(word >> 5 & 0x7ffff) << 45) >> 43) |
			(word >> 29 & 3);
	uint64_t target = 0;

	if ((word & 0x9f000000) == 0x90000000) { /* adrp */
		hunt->pages[to] = (pc & ~UINT64_C(0xfff)) + (near << 12);
		hunt->paged |= 1u << to;
		return 0;
	}
	if ((word & 0x9f000000) == 0x10000000) /* adr */
		return pc + near;
	if ((word & 0xff800000) == 0x91000000 && hunt->paged >> from & 1) /* add */
		target = hunt->pages[from] + ((uint64_t)imm12 << (word >> 22 & 1 ? 12 : 0));
	else if ((word & 0xffc00000) == 0xf9400000 && hunt->paged >> from & 1) /* ldr */
		target = hunt->pages[from] + (uint64_t)imm12 * 8;
	if (target && to == from)
		hunt->paged &= ~(1u << to);
	return target;
}

static int look_in_arm64(struct hunt *hunt, uint64_t address, const uint8_t *data, size_t size)
{
	uint32_t word;
	int err = 0;

	for (size_t at = (size_t)(-address & 3); at + sizeof(word) <= size && !err;
	     at += sizeof(word)) {
		uint64_t target;

		memcpy(&word, data + at, sizeof(word));
		target = take_arm64(hunt, address + at, word);
		if (target && is_target(hunt, target))
			err = add_found(hunt, address + at);
	}
	return err;
}

/* The address that a relocation writes; 0: it is of another kind, or refers to another file. */
static uint64_t relocated(enum fbt_arch arch, const Elf64_Rela *rela,
			  const struct elf_section *symbols)
{
	bool is_x86 = arch == FBT_ARCH_X86_64;
	uint32_t type = (uint32_t)ELF64_R_TYPE(rela->r_info);
	uint64_t index = ELF64_R_SYM(rela->r_info);
	Elf64_Sym symbol;

	if (type == (is_x86 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE))
		return (uint64_t)rela->r_addend;
	if (type != (is_x86 ? R_X86_64_GLOB_DAT : R_AARCH64_GLOB_DAT) &&
	    type != (is_x86 ? R_X86_64_64 : R_AARCH64_ABS64))
		return 0;
	if (index >= symbols->size / sizeof(symbol))
		return 0;
	memcpy(&symbol, symbols->data + index * sizeof(symbol), sizeof(symbol));
	return symbol.st_shndx == SHN_UNDEF ? 0 : symbol.st_value + (uint64_t)rela->r_addend;
}

/* Adds pointers that relocations make when the file is loaded. */
static int look_in_relocations(struct hunt *hunt)
{
	struct elf_file *elf = hunt->image->elf;
	struct elf_section section, symbols;
	Elf64_Rela rela;
	int err = elf_file__section(elf, ".rela.dyn", &section);

	if (err)
		return err == -ENOMEM ? err : 0;
	if (elf_file__section(elf, ".dynsym", &symbols))
		symbols.size = 0;
	for (size_t at = 0; at + sizeof(rela) <= section.size && !err; at += sizeof(rela)) {
		memcpy(&rela, section.data + at, sizeof(rela));
		if (is_target(hunt, relocated(elf_file__arch(elf), &rela, &symbols)))
			err = add_found(hunt, rela.r_offset);
	}
	return err;
}

/* Jumps from elsewhere into a piece of a function. */
static int look_for_jumps(struct hunt *hunt, uint64_t address, const uint8_t *data, size_t size)
{
	int err = 0;

	for (size_t at = 2; at + 4 <= size && !err; at++) {
		uint64_t to = address + at + 4 + (uint64_t)(int64_t)displacement(data + at);

		if (data[at - 1] != 0xe9 && (data[at - 2] != 0x0f || (data[at - 1] & 0xf0) != 0x80))
			continue;
		if (to - hunt->piece.start < hunt->piece.size &&
		    address + at - hunt->piece.start >= hunt->piece.size)
			err = add_found(hunt, address + at);
	}
	return err;
}

/* Makes what was found the targets of the next pass. */
static void aim_at_found(struct hunt *hunt)
{
	address_vec old = hunt->targets;

	hunt->targets = hunt->found;
	hunt->found = old;
	hunt->found.count = 0;
	vec_sort(&hunt->targets, compare_addresses);
}

static int append(address_vec *to, const address_vec *from)
{
	int err = 0;

	for (size_t i = 0; i < from->count && !err; i++)
		err = vec_push(to, from->items[i]);
	return err;
}

/* Finds what points to the targets, makes that the targets, and adds it to all. */
static int follow_pointers(struct hunt *hunt, address_vec *all)
{
	Elf64_Phdr first;
	/* At a fixed address, pointers need no relocation, so that constants may hold them too. */
	bool is_fixed = !elf_file__loaded(hunt->image->elf, 0, &first) && first.p_vaddr;
	uint32_t flags = is_fixed ? PF_R : PF_R | PF_W;
	int err = hunt->targets.count ? look_in_all(hunt, flags, look_for_pointers) : 0;

	if (!err && hunt->targets.count)
		err = look_in_relocations(hunt);
	aim_at_found(hunt);
	return err ? err : append(all, &hunt->targets);
}

static int look_in_code(struct hunt *hunt, const address_vec *targets)
{
	bool is_x86 = elf_file__arch(hunt->image->elf) == FBT_ARCH_X86_64;
	int err;

	hunt->targets.count = 0;
	err = append(&hunt->targets, targets);
	vec_sort(&hunt->targets, compare_addresses);
	return err ? err : look_in_all(hunt, PF_R | PF_X, is_x86 ? look_in_x86 : look_in_arm64);
}

/*
 * The pointers may be in an array or a structure that code refers to by its begin: the nearest
 * place before them that has references.
 */
static int find_begins(struct hunt *hunt, const address_vec *pointers)
{
	address_vec begins = {0};
	int err = 0;

	for (uint64_t back = 8; back <= ARRAY_BYTES && !err && !hunt->found.count; back += 8) {
		begins.count = hunt->targets.count = 0;
		for (size_t i = 0; i < pointers->count && !err; i++)
			err = vec_push(&begins, pointers->items[i] - back);
		if (!err)
			err = append(&hunt->targets, &begins);
		vec_sort(&hunt->targets, compare_addresses);
		if (!err)
			err = follow_pointers(hunt, &begins);
		if (!err)
			err = look_in_code(hunt, &begins);
	}
	vec_free(&begins);
	return err;
}

/* Finds the references in code to the text, to pointers to it, and to GOT entries for those. */
static int find_references(struct hunt *hunt)
{
	address_vec all = {0}, pointers = {0};
	int err = look_in_all(hunt, PF_R, look_for_text);

	aim_at_found(hunt);
	if (!err)
		err = append(&all, &hunt->targets);
	if (!err)
		err = follow_pointers(hunt, &pointers);
	if (!err)
		err = append(&all, &pointers);
	if (!err)
		err = follow_pointers(hunt, &all);
	if (!err)
		err = look_in_code(hunt, &all);
	if (!err && pointers.count && !hunt->found.count)
		err = find_begins(hunt, &pointers);
	vec_free(&all);
	vec_free(&pointers);
	return err;
}

static int add_user(text_user_vec *users, uint64_t address, uint64_t size)
{
	struct text_user user = {address, size};
	size_t at = vec_lower_bound(users, item->address, address);

	if (at < users->count && users->items[at].address == address)
		return 0;
	return vec_insert(users, at, user);
}

/* Adds the functions that contain the places in code; a piece of a function goes to pieces. */
static int add_users(text_user_vec *users, text_user_vec *pieces, const struct hunt *hunt)
{
	const struct image *image = hunt->image;
	struct code_range range;
	struct elf_fde fde;
	int err = 0;

	vec_for_each (place, &hunt->found) {
		if (err)
			break;
		if (!elf_fdes_find(&image->fdes, image->elf, *place, &fde))
			err = add_user(fde.has_frame ? pieces : users, fde.start, fde.size);
		else if (!image_extent(image, *place, &range))
			err = add_user(users, range.address, range.size);
	}
	return err;
}

/*
 * Adds the functions that jump into the pieces. It is not known which function a piece belongs to.
 */
static int add_owners(struct hunt *hunt, text_user_vec *users, const text_user_vec *pieces)
{
	text_user_vec inner = {0};
	int err = 0;

	if (elf_file__arch(hunt->image->elf) != FBT_ARCH_X86_64)
		return 0;
	for (size_t i = 0; i < pieces->count && i < PIECES_MAX && !err; i++) {
		hunt->piece.start = pieces->items[i].address;
		hunt->piece.size = pieces->items[i].size;
		err = look_in_all(hunt, PF_R | PF_X, look_for_jumps);
		if (!err)
			err = add_users(users, &inner, hunt);
	}
	vec_free(&inner);
	return err;
}

int text_users_find(text_user_vec *users, const struct image *image, const char *text,
		    uint64_t deadline_ns)
{
	struct hunt hunt = {.image = image, .text = text, .deadline_ns = deadline_ns};
	text_user_vec pieces = {0};
	int err = find_references(&hunt);

	if (!err)
		err = add_users(users, &pieces, &hunt);
	if (!err && pieces.count)
		err = add_owners(&hunt, users, &pieces);
	vec_free(&pieces);
	vec_free(&hunt.targets);
	vec_free(&hunt.found);
	return err;
}
