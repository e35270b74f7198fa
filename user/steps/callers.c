/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "steps/callers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proc/memory.h"
#include "proc/process.h"
#include "steps/image.h"

/* Code is read in parts, which overlap by an instruction. */
#define PART_BYTES    (1u << 20)
#define OVERLAP_BYTES 8
/* Most data that may hold a GOT, and most entries of a PLT. */
#define GOT_BYTES_MAX (32u << 20)
#define PLT_SLOTS_MAX (1u << 16)
/* A section of nothing but stubs: each may have three beginnings. */
#define STUBS_MAX     (3 * PLT_SLOTS_MAX)
#define SLOTS_AT_ONCE 256
/* Jumps of one file that are looked at, and searches for calls of functions that are found by them.
 */
#define JUMPS_MAX  256
#define ROUNDS_MAX 4
/* Calls that are verified, per function, relative to the callers that it may have. */
#define CANDIDATES_FACTOR 2

/* An address in a file that leads to a function: its entry, a stub, or a slot of the GOT. */
struct lead {
	uint64_t address;
	uint32_t function;
};

typedef VEC(struct lead) lead_vec; /* sorted by address where it is searched */

struct subject {
	const struct step_function *function;
	uint64_t entry; /* in the process's memory; 0: its file is not mapped */
	size_t found;	/* candidates */
	bool left_out;
	bool direct; /* with the callers of thunks it has too many */
};

struct hunt {
	uint32_t tgid;
	uint32_t thread;       /* a living one */
	struct memory *memory; /* what it has mapped may not answer, so it is read with a limit */
	struct subject *subjects;
	size_t count;
	lead_vec thunks; /* by their entries in memory, not sorted */
	size_t crowds;	 /* subjects that are left out */
	const struct callers_limits *limits;
	uint64_t start_ns; /* CPU time */
	uint64_t bytes;	   /* of code that were read */
	caller_vec *callers;
	size_t first; /* of callers that is of this search */
	mapping_vec maps;
	uint8_t *part;
	/* Of the file that is looked at: */
	const struct mapping *mapping;
	struct image *image;
	uint64_t bias; /* address in memory minus that in the file */
	lead_vec slots;
	lead_vec calls; /* what a call may lead to */
	lead_vec candidates;
	lead_vec jumps; /* that lead to a function, by their own addresses */
};

static int compare_leads(const void *left, const void *right)
{
	const struct lead *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

/* Time and bytes are bounded for all files together. */
static int check_limits(const struct hunt *hunt)
{
	if (hunt->bytes > hunt->limits->bytes_max ||
	    clock_ns(CLOCK_THREAD_CPUTIME_ID) - hunt->start_ns > hunt->limits->cpu_ns)
		return -ETIMEDOUT;
	return 0;
}

static int add_lead(lead_vec *leads, uint64_t address, uint32_t function)
{
	struct lead lead = {address, function};

	return vec_push(leads, lead);
}

static const struct lead *find_lead(const lead_vec *leads, uint64_t address)
{
	size_t at;

	if (!leads->count || address < leads->items[0].address ||
	    address > leads->items[leads->count - 1].address)
		return NULL;
	at = vec_lower_bound(leads, item->address, address);
	return leads->items[at].address == address ? &leads->items[at] : NULL;
}

/* The function whose entry is at an address in memory; count: none. */
static size_t find_subject(const struct hunt *hunt, uint64_t address)
{
	size_t i = 0;

	while (i < hunt->count && (!address || hunt->subjects[i].entry != address))
		i++;
	return i;
}

/* The same, or the function that the one with this entry only jumps to. */
static size_t find_entry(const struct hunt *hunt, uint64_t address)
{
	size_t i = find_subject(hunt, address);

	vec_for_each (thunk, &hunt->thunks) {
		if (i == hunt->count && thunk->address == address)
			i = thunk->function;
	}
	return i;
}

static bool is_own(const struct hunt *hunt, const struct subject *subject)
{
	return subject->function->inode == hunt->image->inode &&
	       subject->function->device == hunt->image->device;
}

static int read_parts(const struct hunt *hunt, struct memory_part *parts, size_t count)
{
	struct proc_ref ref = {.tgid = hunt->thread};

	return memory__read(hunt->memory, ref, parts, count);
}

/* Adds the words of relocated data, as the process has them, that are the entry of a function. */
static int look_in_got(struct hunt *hunt)
{
	uint64_t values[512], at, end;
	struct memory_part part;
	Elf64_Phdr segment;
	int err = 0;

	if (elf_file__segment(hunt->image->elf, PT_GNU_RELRO, &segment) ||
	    segment.p_memsz > GOT_BYTES_MAX)
		return 0;
	at = (segment.p_vaddr + 7) & ~UINT64_C(7);
	end = segment.p_vaddr + segment.p_memsz;
	while (at + sizeof(values[0]) <= end && !err) {
		size_t words = (end - at) / sizeof(values[0]);

		if (words > sizeof(values) / sizeof(values[0]))
			words = sizeof(values) / sizeof(values[0]);
		part = (struct memory_part){.address = at + hunt->bias,
					    .size = (uint32_t)(words * sizeof(values[0]))};
		if (read_parts(hunt, &part, 1) || part.got != part.size)
			return 0;
		memcpy(values, part.data, part.size);
		for (size_t i = 0; i < words && !err; i++) {
			size_t index = find_entry(hunt, values[i]);

			if (index < hunt->count)
				err = add_lead(&hunt->slots, at + i * sizeof(values[0]),
					       (uint32_t)index);
		}
		at += words * sizeof(values[0]);
	}
	return err;
}

/* What the dynamic segment says of the PLT. */
struct plt {
	uint64_t symbols;
	uint64_t strings;
	uint64_t relocations;
	uint64_t count;
};

static bool read_plt(const struct hunt *hunt, struct plt *plt)
{
	Elf64_Phdr segment;
	Elf64_Dyn entry;

	*plt = (struct plt){0};
	if (elf_file__segment(hunt->image->elf, PT_DYNAMIC, &segment))
		return false;
	for (uint64_t at = 0; at + sizeof(entry) <= segment.p_filesz && at < 4096;
	     at += sizeof(entry)) {
		if (elf_file__read(hunt->image->elf, segment.p_vaddr + at, &entry, sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_SYMTAB)
			plt->symbols = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRTAB)
			plt->strings = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_JMPREL)
			plt->relocations = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_PLTRELSZ)
			plt->count = entry.d_un.d_val / sizeof(Elf64_Rela);
	}
	return plt->symbols && plt->strings && plt->relocations && plt->count &&
	       plt->count <= PLT_SLOTS_MAX;
}

/* The function that a slot is for by the name of its symbol; count: none. */
static size_t find_named(const struct hunt *hunt, const struct plt *plt, const Elf64_Rela *rela)
{
	const struct elf_file *elf = hunt->image->elf;
	char name[1024];
	Elf64_Sym symbol;

	if (elf_file__read(elf, plt->symbols + ELF64_R_SYM(rela->r_info) * sizeof(symbol), &symbol,
			   sizeof(symbol)))
		return hunt->count;
	for (size_t i = 0; i < hunt->count; i++) {
		const char *wanted = hunt->subjects[i].function->symbol;
		size_t size = wanted ? strlen(wanted) + 1 : 0;

		if (hunt->subjects[i].entry && size && size <= sizeof(name) &&
		    !elf_file__read(elf, plt->strings + symbol.st_name, name, size) &&
		    !memcmp(name, wanted, size))
			return i;
	}
	return hunt->count;
}

/*
 * A slot that has not been bound leads into the PLT of its own file, and only its name tells where
 * it will lead.
 */
static bool is_bound(const struct hunt *hunt, uint64_t value)
{
	return value && (value < hunt->mapping->start || value >= hunt->mapping->end) &&
	       value >= hunt->bias;
}

/* Looks at a slot of the PLT. value: what it holds; 0 if that is not known. */
static int look_at_slot(struct hunt *hunt, const struct plt *plt, const Elf64_Rela *rela,
			uint64_t value)
{
	size_t index = find_entry(hunt, value);

	if (index == hunt->count && ELF64_R_TYPE(rela->r_info) == R_X86_64_JUMP_SLOT &&
	    !is_bound(hunt, value))
		index = find_named(hunt, plt, rela);
	return index < hunt->count ? add_lead(&hunt->slots, rela->r_offset, (uint32_t)index) : 0;
}

static int look_in_plt(struct hunt *hunt)
{
	struct memory_part parts[SLOTS_AT_ONCE];
	Elf64_Rela relas[SLOTS_AT_ONCE];
	struct plt plt;
	int err = 0;

	if (!read_plt(hunt, &plt))
		return 0;
	for (uint64_t at = 0; at < plt.count && !err; at += SLOTS_AT_ONCE) {
		size_t count = plt.count - at < SLOTS_AT_ONCE ? plt.count - at : SLOTS_AT_ONCE;

		if (elf_file__read(hunt->image->elf, plt.relocations + at * sizeof(*relas), relas,
				   count * sizeof(*relas)))
			return 0;
		for (size_t i = 0; i < count; i++)
			parts[i] = (struct memory_part){.address = relas[i].r_offset + hunt->bias,
							.size = sizeof(uint64_t)};
		(void)read_parts(hunt, parts, count);
		for (size_t i = 0; i < count && !err; i++) {
			uint64_t value = 0;

			if (parts[i].got == sizeof(value))
				memcpy(&value, parts[i].data, sizeof(value));
			err = look_at_slot(hunt, &plt, &relas[i], value);
		}
		err = err ? err : check_limits(hunt);
	}
	return err;
}

static int32_t displacement(const uint8_t *data)
{
	int32_t value;

	memcpy(&value, data, sizeof(value));
	return value;
}

/* A stub may begin with a marker and with a prefix before its jump, at data + at. */
static int add_stub(struct hunt *hunt, uint64_t address, const uint8_t *data, size_t at,
		    uint32_t function)
{
	size_t prefix = at >= 1 && data[at - 1] == 0xf2 ? 1 : 0;
	size_t marker = at >= prefix + 4 && !memcmp(data + at - prefix - 4, "\xf3\x0f\x1e\xfa", 4)
				? prefix + 4
				: prefix;
	int err = add_lead(&hunt->calls, address + at, function);

	if (!err && prefix)
		err = add_lead(&hunt->calls, address + at - prefix, function);
	return !err && marker > prefix ? add_lead(&hunt->calls, address + at - marker, function)
				       : err;
}

/* Adds the stubs that jump through the slots: ff 25, and the distance. */
static int look_for_stubs(struct hunt *hunt)
{
	static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
	int err = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && hunt->slots.count; i++) {
		struct elf_section section;

		if (elf_file__section(hunt->image->elf, names[i], &section) || !section.data)
			continue;
		for (size_t at = 0; at + 6 <= section.size && !err; at++) {
			const uint8_t *data = section.data + at;
			uint64_t address = section.header.sh_addr + at;
			const struct lead *slot;

			if (data[0] != 0xff || data[1] != 0x25)
				continue;
			slot = find_lead(&hunt->slots,
					 address + 6 + (uint64_t)(int64_t)displacement(data + 2));
			if (slot && hunt->calls.count < STUBS_MAX)
				err = add_stub(hunt, section.header.sh_addr, section.data, at,
					       slot->function);
			else if (slot)
				err = -ETIMEDOUT;
		}
	}
	return err;
}

static int add_candidate(struct hunt *hunt, uint64_t after, const struct lead *lead)
{
	struct subject *subject = &hunt->subjects[lead->function];

	if (subject->left_out)
		return 0;
	/* Too many: none of them is taken. */
	if (++subject->found > hunt->limits->each * CANDIDATES_FACTOR) {
		subject->left_out = true;
		hunt->crowds++;
		return 0;
	}
	return add_lead(&hunt->candidates, after, lead->function);
}

/* e8, and the distance: a call. */
static int scan_direct(struct hunt *hunt, uint64_t address, const uint8_t *data, size_t size)
{
	const uint8_t *at = data, *end = data + size;
	int err = 0;

	while (!err && end - at >= 5 && (at = memchr(at, 0xe8, (size_t)(end - at - 4)))) {
		uint64_t after = address + (uint64_t)(at - data) + 5;
		const struct lead *lead =
			find_lead(&hunt->calls, after + (uint64_t)(int64_t)displacement(at + 1));

		if (lead)
			err = add_candidate(hunt, after, lead);
		at++;
	}
	return err;
}

/* ff 15, and the distance: a call through a slot. 15 is rarer than ff. */
static int scan_indirect(struct hunt *hunt, uint64_t address, const uint8_t *data, size_t size)
{
	const uint8_t *at = data + 1, *end = data + size;
	int err = 0;

	while (!err && end - at >= 5 && (at = memchr(at, 0x15, (size_t)(end - at - 4)))) {
		uint64_t after = address + (uint64_t)(at - data) + 5;
		const struct lead *lead = NULL;

		if (at[-1] == 0xff)
			lead = find_lead(&hunt->slots,
					 after + (uint64_t)(int64_t)displacement(at + 1));
		if (lead)
			err = add_candidate(hunt, after, lead);
		at++;
	}
	return err;
}

/* e9, and the distance: a jump. */
static int scan_jumps(struct hunt *hunt, uint64_t address, const uint8_t *data, size_t size)
{
	const uint8_t *at = data, *end = data + size;
	int err = 0;

	while (!err && end - at >= 5 && (at = memchr(at, 0xe9, (size_t)(end - at - 4)))) {
		uint64_t from = address + (uint64_t)(at - data);
		const struct lead *lead =
			find_lead(&hunt->calls, from + 5 + (uint64_t)(int64_t)displacement(at + 1));

		if (lead && hunt->jumps.count < JUMPS_MAX)
			err = add_lead(&hunt->jumps, from, lead->function);
		at++;
	}
	return err;
}

/* eb, and a distance of one byte: a jump from nearby. */
static int scan_around(struct hunt *hunt, const struct lead *lead)
{
	uint64_t first = lead->address - 129;
	uint8_t code[129 + 127];
	int err = 0;

	if (lead->address < 129 || elf_file__read(hunt->image->elf, first, code, sizeof(code)))
		return 0;
	for (size_t at = 0; at + 2 <= sizeof(code) && !err; at++) {
		if (code[at] == 0xeb &&
		    first + at + 2 + (uint64_t)(int64_t)(int8_t)code[at + 1] == lead->address &&
		    hunt->jumps.count < JUMPS_MAX)
			err = add_lead(&hunt->jumps, first + at, lead->function);
	}
	return err;
}

static int scan_segment(struct hunt *hunt, const Elf64_Phdr *segment)
{
	uint64_t at = 0;
	int err = 0;

	while (at < segment->p_filesz && !err && hunt->crowds < hunt->count) {
		uint64_t left = segment->p_filesz - at, address = segment->p_vaddr + at;
		size_t size = left < PART_BYTES + OVERLAP_BYTES ? left : PART_BYTES + OVERLAP_BYTES;

		if (elf_file__read(hunt->image->elf, address, hunt->part, size))
			return 0;
		hunt->bytes += size;
		if (hunt->calls.count)
			err = scan_direct(hunt, address, hunt->part, size);
		if (!err && hunt->calls.count)
			err = scan_jumps(hunt, address, hunt->part, size);
		if (!err && hunt->slots.count)
			err = scan_indirect(hunt, address, hunt->part, size);
		at += PART_BYTES;
		err = err ? err : check_limits(hunt);
	}
	return err;
}

/* No step ends where a recursive call returns to. */
static bool is_recursive(const struct hunt *hunt, const struct lead *candidate)
{
	const struct subject *subject = &hunt->subjects[candidate->function];

	return is_own(hunt, subject) &&
	       candidate->address - 1 - subject->function->address < subject->function->size;
}

/* Verifies a candidate, and adds it if it is one. */
static int take(struct hunt *hunt, const struct lead *candidate)
{
	const struct mapping *mapping = hunt->mapping;
	uint64_t address = candidate->address + hunt->bias;
	const struct return_address at = {candidate->address, address, mapping->end - address};
	struct caller caller = {
		.function = candidate->function,
		.inode = mapping->inode,
		.device_major = mapping->device_major,
		.device_minor = mapping->device_minor,
	};
	int err;

	if (hunt->subjects[candidate->function].left_out || is_recursive(hunt, candidate) ||
	    address <= mapping->start || address >= mapping->end)
		return 0;
	caller.offset = address - mapping->start + mapping->offset;
	err = step_site_find_in(&caller.site, hunt->image, hunt->tgid, hunt->memory, &at,
				hunt->subjects[candidate->function].function->future.kind ==
					FUTURE_KNOWN);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = vec_push(hunt->callers, caller);
	if (err)
		step_site_clear(&caller.site);
	return err;
}

/* Whether every way out of a function leads to the same one. */
static bool leads_only_to(const struct hunt *hunt, const struct exits *exits, uint32_t function)
{
	for (size_t i = 0; i < exits->addresses.count; i++) {
		const struct lead *lead =
			exits->slots.items[i] ? find_lead(&hunt->slots, exits->slots.items[i])
					      : find_lead(&hunt->calls, exits->targets.items[i]);

		if (exits->kinds.items[i] == INSN_RETURN || !lead || lead->function != function)
			return false;
	}
	return exits->addresses.count > 0;
}

/*
 * A function that does nothing but jump to the step function in the end: who calls it calls that.
 * One that may return without it is left out, because what calls it may pass its call sites often.
 */
static int take_thunk(struct hunt *hunt, const struct lead *jump)
{
	struct image *image = hunt->image;
	struct code_range body;
	struct exits exits = {0};
	uint64_t entry;
	int err = image->fdes.table ? 0 : elf_fdes_read(&image->fdes, image->elf);

	if (err || hunt->subjects[jump->function].direct ||
	    image_extent(image, jump->address, &body))
		return err == -ENOMEM ? err : 0;
	entry = body.address + hunt->bias;
	if (find_entry(hunt, entry) < hunt->count)
		return 0;
	err = resolve_exits(&exits, image, &body);
	if (!err && leads_only_to(hunt, &exits, jump->function))
		err = add_lead(&hunt->thunks, entry, jump->function);
	exits_clear(&exits);
	return err == -ENOMEM ? err : 0;
}

static int scan_code(struct hunt *hunt)
{
	Elf64_Phdr segment;
	int err = 0;

	hunt->candidates.count = 0;
	hunt->jumps.count = 0;
	vec_sort(&hunt->calls, compare_leads);
	for (size_t i = 0; !err && !elf_file__loaded(hunt->image->elf, i, &segment); i++) {
		if (segment.p_flags & PF_X)
			err = scan_segment(hunt, &segment);
	}
	vec_for_each (lead, &hunt->calls) {
		if (!err)
			err = scan_around(hunt, lead);
		err = err ? err : check_limits(hunt);
	}
	/* Parts overlap, so one may be there twice. */
	vec_sort(&hunt->candidates, compare_leads);
	for (size_t i = 0; i < hunt->candidates.count && !err; i++) {
		if (i && hunt->candidates.items[i].address == hunt->candidates.items[i - 1].address)
			continue;
		err = take(hunt, &hunt->candidates.items[i]);
		err = err ? err : check_limits(hunt);
	}
	for (size_t i = 0; i < hunt->jumps.count && !err; i++) {
		err = take_thunk(hunt, &hunt->jumps.items[i]);
		err = err ? err : check_limits(hunt);
	}
	return err;
}

/* The addresses in the current image by which the functions are called. */
static int add_entries(struct hunt *hunt)
{
	int err = 0;

	for (size_t i = 0; i < hunt->count && !err; i++) {
		if (hunt->subjects[i].entry && is_own(hunt, &hunt->subjects[i]))
			err = add_lead(&hunt->calls, hunt->subjects[i].function->address,
				       (uint32_t)i);
	}
	vec_for_each (thunk, &hunt->thunks) {
		if (!err && thunk->address >= hunt->mapping->start &&
		    thunk->address < hunt->mapping->end)
			err = add_lead(&hunt->calls, thunk->address - hunt->bias, thunk->function);
	}
	return err;
}

/* Looks in the current image if it may have callers. */
static int look_in_image(struct hunt *hunt)
{
	uint64_t start;
	int err;

	hunt->slots.count = hunt->calls.count = 0;
	if (elf_file__arch(hunt->image->elf) != FBT_ARCH_X86_64 ||
	    elf_file__mapped_address(hunt->image->elf, hunt->mapping->offset, &start))
		return 0;
	hunt->bias = hunt->mapping->start - start;
	err = look_in_got(hunt);
	err = err ? err : look_in_plt(hunt);
	vec_sort(&hunt->slots, compare_leads);
	err = err ? err : look_for_stubs(hunt);
	err = err ? err : add_entries(hunt);
	if (!err && (hunt->slots.count || hunt->calls.count))
		err = scan_code(hunt);
	return err;
}

/* Whether the file may be that of a function. */
static bool has_inode(const struct hunt *hunt, const struct mapping *mapping)
{
	for (size_t i = 0; i < hunt->count; i++) {
		if (hunt->subjects[i].function->inode == mapping->inode)
			return true;
	}
	return false;
}

/* Finds where the entries of the functions are in memory. */
static void locate(struct hunt *hunt)
{
	struct image image;
	uint64_t start;

	vec_for_each (mapping, &hunt->maps) {
		if (!has_inode(hunt, mapping))
			continue;
		hunt->image = &image;
		if (image_open(&image, hunt->thread, mapping) ||
		    elf_file__mapped_address(image.elf, mapping->offset, &start)) {
			image_close(&image);
			continue;
		}
		for (size_t i = 0; i < hunt->count; i++) {
			struct subject *subject = &hunt->subjects[i];

			if (is_own(hunt, subject))
				subject->entry =
					subject->function->address + mapping->start - start;
		}
		image_close(&image);
	}
	hunt->image = NULL;
}

/* Looks in the files of the functions, or in all others. */
static int look_in_files(struct hunt *hunt, bool own)
{
	struct image image;
	int err = 0;

	vec_for_each (mapping, &hunt->maps) {
		if (err)
			break;
		if (has_inode(hunt, mapping) != own)
			continue;
		hunt->mapping = mapping;
		hunt->image = &image;
		if (!image_open(&image, hunt->thread, mapping)) {
			image.quiet = true;
			err = look_in_image(hunt);
		}
		image_close(&image);
		err = err ? err : check_limits(hunt);
	}
	hunt->image = NULL;
	return err;
}

static bool has_crowd(const struct hunt *hunt, size_t function)
{
	size_t count = 0;

	for (size_t i = hunt->first; i < hunt->callers->count; i++)
		count += hunt->callers->items[i].function == function;
	return hunt->subjects[function].left_out || count > hunt->limits->each;
}

/* Gives up the thunks of functions that have too many callers by them. Whether there are any. */
static bool drop_thunks(struct hunt *hunt)
{
	size_t kept = 0, before = hunt->thunks.count;

	vec_for_each (thunk, &hunt->thunks) {
		if (has_crowd(hunt, thunk->function))
			hunt->subjects[thunk->function].direct = true;
	}
	vec_for_each (thunk, &hunt->thunks) {
		if (!hunt->subjects[thunk->function].direct)
			hunt->thunks.items[kept++] = *thunk;
	}
	hunt->thunks.count = kept;
	return kept < before;
}

/* Takes functions with too many callers out of the result. */
static void drop_crowds(struct hunt *hunt)
{
	caller_vec *callers = hunt->callers;
	size_t kept = hunt->first;

	for (size_t i = 0; i < hunt->count; i++)
		hunt->subjects[i].left_out = has_crowd(hunt, i);
	for (size_t j = hunt->first; j < callers->count; j++) {
		struct caller *caller = &callers->items[j];

		if (hunt->subjects[caller->function].left_out)
			step_site_clear(&caller->site);
		else
			callers->items[kept++] = *caller;
	}
	callers->count = kept;
}

/* What the last round has found: the next one finds it again, and more. */
static void forget(struct hunt *hunt)
{
	while (hunt->callers->count > hunt->first)
		step_site_clear(&hunt->callers->items[--hunt->callers->count].site);
	hunt->crowds = 0;
	for (size_t i = 0; i < hunt->count; i++) {
		hunt->subjects[i].found = 0;
		hunt->subjects[i].left_out = false;
	}
}

/* Rather what this round has found than half of what another one would find. */
static bool may_repeat(const struct hunt *hunt)
{
	uint64_t spent_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - hunt->start_ns;

	return spent_ns < hunt->limits->cpu_ns / 2 && hunt->bytes < hunt->limits->bytes_max / 2;
}

static int look(struct hunt *hunt)
{
	int err = maps_read_quietly(hunt->thread, &hunt->maps);

	if (err)
		return err;
	locate(hunt);
	for (int round = 0; round < ROUNDS_MAX && !err; round++) {
		size_t before = hunt->thunks.count;

		forget(hunt);
		err = look_in_files(hunt, true);
		err = err ? err : look_in_files(hunt, false);
		if ((!drop_thunks(hunt) && hunt->thunks.count == before) || !may_repeat(hunt))
			break;
	}
	return err;
}

static int set_up(struct hunt *hunt, const struct step_function *const *functions)
{
	hunt->subjects = calloc(hunt->count + 1, sizeof(*hunt->subjects));
	hunt->part = malloc(PART_BYTES + OVERLAP_BYTES);
	hunt->memory = memory__new();
	if (!hunt->subjects || !hunt->part || !hunt->memory)
		return -ENOMEM;
	for (size_t i = 0; i < hunt->count; i++)
		hunt->subjects[i].function = functions[i];
	return 0;
}

static void tear_down(struct hunt *hunt)
{
	memory__free(hunt->memory);
	maps_free(&hunt->maps);
	vec_free(&hunt->slots);
	vec_free(&hunt->calls);
	vec_free(&hunt->candidates);
	vec_free(&hunt->jumps);
	vec_free(&hunt->thunks);
	free(hunt->subjects);
	free(hunt->part);
}

int callers_find(caller_vec *callers, uint32_t tgid, const struct step_function *const *functions,
		 size_t count, const struct callers_limits *limits, uint64_t *left_out)
{
	struct hunt hunt = {
		.tgid = tgid,
		.thread = processes_live_thread(tgid),
		.count = count,
		.limits = limits,
		.callers = callers,
		.first = callers->count,
		.start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID),
	};
	int err = set_up(&hunt, functions);

	*left_out = 0;
	if (!err) {
		err = look(&hunt);
		drop_crowds(&hunt);
	}
	for (size_t i = 0; i < count && i < 64; i++)
		*left_out |= (uint64_t)(err || hunt.subjects[i].left_out) << i;
	tear_down(&hunt);
	return err;
}

void callers_clear(caller_vec *callers)
{
	vec_for_each (caller, callers)
		step_site_clear(&caller->site);
	vec_free(callers);
}
