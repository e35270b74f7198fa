/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject/place.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inject_code.h"
#include "proc/open.h"

#define LIBC_NAME    "libc.so.6"
#define BANNER	     "GNU C Library"
#define BANNER_MAX   256
#define VERSION_MARK "release version "

/* Bit of an entry of .gnu.version: an old version of the symbol, not the default one. */
#define HIDDEN 0x8000

static const char *const function_names[FBT_INJECT_FUNCTION_COUNT] = FBT_INJECT_FUNCTION_NAMES;

struct exports {
	struct elf_section symbols;
	struct elf_section names;
	struct elf_section versions; /* size 0: there is none */
};

static int read_exports(struct exports *exports, struct elf_file *file)
{
	int err = elf_file__section_of_type(file, SHT_DYNSYM, &exports->symbols);

	if (err)
		return err;
	if (elf_file__section_at(file, exports->symbols.header.sh_link, &exports->names))
		return -EBADMSG;
	err = elf_file__section_of_type(file, SHT_GNU_versym, &exports->versions);
	if (err == -ENOENT)
		exports->versions.size = 0;
	return err == -ENOENT ? 0 : err;
}

static bool is_default(const struct exports *exports, size_t index)
{
	uint16_t version = 0;

	if (exports->versions.size / sizeof(version) > index)
		memcpy(&version, exports->versions.data + index * sizeof(version), sizeof(version));
	return !(version & HIDDEN);
}

static bool is_named(const struct exports *exports, uint32_t offset, const char *name)
{
	size_t size = strlen(name) + 1;

	return offset < exports->names.size && size <= exports->names.size - offset &&
	       !memcmp(exports->names.data + offset, name, size);
}

int inject_exports_find(struct elf_file *file, const char *const *names, size_t count,
			uint64_t *addresses)
{
	struct exports exports;
	Elf64_Sym symbol;
	int err = read_exports(&exports, file);

	memset(addresses, 0, count * sizeof(*addresses));
	for (size_t i = 0; !err && i < exports.symbols.size / sizeof(symbol); i++) {
		memcpy(&symbol, exports.symbols.data + i * sizeof(symbol), sizeof(symbol));
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
		    !is_default(&exports, i))
			continue;
		for (size_t name = 0; name < count; name++) {
			if (is_named(&exports, symbol.st_name, names[name]))
				addresses[name] = symbol.st_value;
		}
	}
	return err;
}

/* Reads the version from the banner that `libc.so.6` prints when it is run. */
static void read_version(char *version, size_t size, struct elf_file *file)
{
	struct elf_section section;
	char banner[BANNER_MAX];
	const char *found;
	size_t length;

	*version = '\0';
	if (elf_file__section(file, ".rodata", &section) || !section.data)
		return;
	found = memmem(section.data, section.size, BANNER, strlen(BANNER));
	if (!found)
		return;
	length = section.size - (size_t)(found - (const char *)section.data);
	if (length > sizeof(banner) - 1)
		length = sizeof(banner) - 1;
	memcpy(banner, found, length);
	banner[length] = '\0';
	found = strstr(banner, VERSION_MARK);
	if (!found)
		return;
	found += strlen(VERSION_MARK);
	length = strspn(found, "0123456789.");
	while (length && found[length - 1] == '.')
		length--;
	snprintf(version, size, "%.*s", (int)length, found);
}

/* The address at which a file offset is mapped as code; 0: it is not. */
static uint64_t find_in_memory(const struct mapping *libc, const mapping_vec *maps, uint64_t offset)
{
	vec_for_each (mapping, maps) {
		if (mapping->executable && mapping->inode == libc->inode &&
		    mapping->device_major == libc->device_major &&
		    mapping->device_minor == libc->device_minor && offset >= mapping->offset &&
		    offset - mapping->offset < mapping->end - mapping->start)
			return mapping->start + (offset - mapping->offset);
	}
	return 0;
}

static int find_functions(struct inject_libc *libc, struct elf_file *file, const mapping_vec *maps)
{
	int err = inject_exports_find(file, function_names, FBT_INJECT_FUNCTION_COUNT,
				      libc->functions);

	for (size_t i = 0; !err && i < FBT_INJECT_FUNCTION_COUNT; i++) {
		uint64_t offset;

		if (!libc->functions[i]) {
			libc->missing = function_names[i];
			return -ENOENT;
		}
		if (elf_file__offset(file, libc->functions[i], true, &offset))
			return -EBADMSG;
		libc->functions[i] = find_in_memory(libc->mapping, maps, offset);
		if (!libc->functions[i])
			return -EBADMSG;
	}
	return err == -ENOENT ? -EBADMSG : err;
}

/* Before 2.34 the file was called libc-2.33.so. */
static bool is_libc(const struct mapping *mapping)
{
	const char *name = mapping_name(mapping);

	return mapping->executable && (!strcmp(name, LIBC_NAME) || !strncmp(name, "libc-2.", 7));
}

/*
 * The mappings of one loaded libc are as far apart in memory as in the file. Otherwise two are
 * loaded.
 */
static int find_mapping(struct inject_libc *libc, const mapping_vec *maps)
{
	vec_for_each (mapping, maps) {
		if (!is_libc(mapping))
			continue;
		if (!libc->mapping)
			libc->mapping = mapping;
		else if (mapping->inode != libc->mapping->inode ||
			 mapping->start - mapping->offset !=
				 libc->mapping->start - libc->mapping->offset)
			return -EEXIST;
	}
	return libc->mapping ? 0 : -ESRCH;
}

int inject_libc_find(struct inject_libc *libc, uint32_t thread, const mapping_vec *maps)
{
	struct elf_file *file = NULL;
	int err, fd = -1;

	memset(libc, 0, sizeof(*libc));
	err = find_mapping(libc, maps);
	if (err)
		return err;
	fd = mapping_open(thread, libc->mapping);
	if (fd < 0)
		return fd;
	err = elf_file__open(&file, fd);
	if (err)
		goto out;
	read_version(libc->version, sizeof(libc->version), file);
	err = find_functions(libc, file, maps);
out:
	elf_file__free(file);
	close(fd);
	return err;
}

#define PAGE	     4096ull
#define ALIGNMENT    16ull
#define SEGMENTS_MAX 64

/* The head, with the magic, is written last: until then the bytes do not count as a stub. */
#define HEAD_BYTES offsetof(struct fbt_inject_stub, version)

/* Addresses of the unused bytes after a segment. */
struct slack {
	uint64_t start;
	uint64_t end;
};

/* What the unused bytes hold. */
enum content { FREE, OURS, FOREIGN_STUB, TAKEN };

/* Without a stub for this processor inject_code has one byte, since C has no empty arrays. */
_Static_assert(sizeof(inject_code) <= INJECT_STUB_MAX, "stub too large");

uint32_t inject_stub_build(uint8_t bytes[INJECT_STUB_MAX],
			   const uint64_t functions[FBT_INJECT_FUNCTION_COUNT])
{
	size_t size = sizeof(inject_code);

	if (size < sizeof(struct fbt_inject_stub))
		return 0;
	memcpy(bytes, inject_code, size);
	memcpy(bytes + offsetof(struct fbt_inject_stub, functions), functions,
	       FBT_INJECT_FUNCTION_COUNT * sizeof(*functions));
	return (uint32_t)size;
}

/* Reads the program headers. Returns their number; 0: not an ELF file, or an unusual one. */
static size_t read_segments(int fd, Elf64_Phdr segments[SEGMENTS_MAX])
{
	Elf64_Ehdr header;
	size_t size;

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_phentsize != sizeof(*segments) || header.e_phnum > SEGMENTS_MAX ||
	    header.e_phoff > INT64_MAX)
		return 0;
	size = header.e_phnum * sizeof(*segments);
	return pread(fd, segments, size, (off_t)header.e_phoff) == (ssize_t)size ? header.e_phnum
										 : 0;
}

/* Whether another segment uses the last page of this one. */
static bool is_page_shared(const Elf64_Phdr *segments, size_t count, const Elf64_Phdr *segment)
{
	uint64_t page = (segment->p_vaddr + segment->p_filesz) & ~(PAGE - 1);

	for (size_t i = 0; i < count; i++) {
		const Elf64_Phdr *other = &segments[i];

		if (other != segment && other->p_type == PT_LOAD && other->p_memsz &&
		    other->p_vaddr < page + PAGE &&
		    (other->p_vaddr >= page || other->p_memsz > page - other->p_vaddr))
			return true;
	}
	return false;
}

/*
 * Finds the unused bytes after the segment. false: its end is not in this mapping, or it is
 * unusual.
 */
static bool find_slack(const struct mapping *mapping, const Elf64_Phdr *segment,
		       struct slack *slack)
{
	uint64_t size = mapping->end - mapping->start, end;

	if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) ||
	    segment->p_memsz != segment->p_filesz || !segment->p_filesz ||
	    segment->p_offset > INT64_MAX || segment->p_filesz > INT64_MAX ||
	    segment->p_vaddr > INT64_MAX || (segment->p_offset ^ segment->p_vaddr) % PAGE)
		return false;
	end = segment->p_offset + segment->p_filesz;
	if (end <= mapping->offset || end - mapping->offset > size)
		return false;
	end += mapping->start - mapping->offset;
	slack->start = (end + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
	slack->end = (end + PAGE - 1) & ~(PAGE - 1);
	return slack->end <= mapping->end;
}

/* Whether each byte is zero or equal to the stub's: free room, or a stub that was not finished. */
static bool is_part(const uint8_t *found, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (found[i] && found[i] != bytes[i])
			return false;
	}
	return true;
}

static enum content judge(const uint8_t *found, const struct inject_place *place)
{
	uint64_t magic;

	memcpy(&magic, found + offsetof(struct fbt_inject_stub, magic), sizeof(magic));
	if (magic == FBT_INJECT_MAGIC)
		return memcmp(found, place->bytes, place->size) ? FOREIGN_STUB : OURS;
	return is_part(found, place->bytes, place->size) ? FREE : TAKEN;
}

/* Also looks where the stub does not fit, because another version's stub may be shorter. */
static enum content look(int memory, const struct slack *slack, const struct inject_place *place)
{
	uint8_t found[INJECT_STUB_MAX] = {0};
	size_t room = slack->end - slack->start;

	if (room < sizeof(struct fbt_inject_stub))
		return TAKEN;
	if (room > place->size)
		room = place->size;
	if (pread(memory, found, room, (off_t)slack->start) != (ssize_t)room)
		return TAKEN;
	if (judge(found, place) == FREE && room < place->size)
		return TAKEN;
	return judge(found, place);
}

/*
 * Order of preference. A library that the process unloads takes the stub with it, so libraries that
 * may be unloaded come last. libm and libstdc++ hardly ever are. The program itself is third.
 */
static unsigned int order_of(const struct mapping *mapping, ino_t exe)
{
	static const char *const names[] = {"libc.so.6", "ld-linux-x86-64.so.2", NULL, "libm.so.6",
					    "libstdc++.so.6"};
	const char *name = mapping_name(mapping);

	if (mapping->inode == exe)
		return 2;
	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (names[i] && !strncmp(name, names[i], strlen(names[i])))
			return i;
	}
	return sizeof(names) / sizeof(*names);
}

#define ORDERS 6

/*
 * Looks at each segment that ends in this mapping. 0: go on; 1: the stub was found; -EEXIST: the
 * stub of another version was found.
 */
static int search_mapping(struct inject_place *place, uint32_t thread, int memory,
			  const struct mapping *mapping)
{
	Elf64_Phdr segments[SEGMENTS_MAX];
	size_t count;
	int fd = mapping_open(thread, mapping);

	if (fd < 0)
		return 0;
	count = read_segments(fd, segments);
	close(fd);
	for (size_t i = 0; i < count; i++) {
		enum content content;
		struct slack slack;

		if (!find_slack(mapping, &segments[i], &slack) ||
		    is_page_shared(segments, count, &segments[i]))
			continue;
		content = look(memory, &slack, place);
		if (content == FOREIGN_STUB)
			return -EEXIST;
		place->written = content == OURS;
		if (place->written || (content == FREE && !place->stub)) {
			place->stub = slack.start;
			snprintf(place->file, sizeof(place->file), "%s", mapping_name(mapping));
		}
		if (place->written)
			return 1;
	}
	return 0;
}

static int search(struct inject_place *place, uint32_t thread, int memory, ino_t exe,
		  const mapping_vec *maps)
{
	int found = 0;

	/* Search all files: a stub in a later file beats room in an earlier one. */
	for (unsigned int order = 0; order < ORDERS && !found; order++) {
		vec_for_each (mapping, maps) {
			if (mapping->executable && mapping->readable && !mapping->writable &&
			    !mapping->shared && order_of(mapping, exe) == order)
				found = search_mapping(place, thread, memory, mapping);
			if (found)
				break;
		}
	}
	if (found < 0)
		return found;
	return place->stub ? 0 : -ENOSPC;
}

int inject_place_find(struct inject_place *place, struct proc_ref process, const mapping_vec *maps,
		      const uint64_t functions[FBT_INJECT_FUNCTION_COUNT])
{
	int memory, err;

	memset(place, 0, sizeof(*place));
	place->size = inject_stub_build(place->bytes, functions);
	if (!place->size)
		return -ENOEXEC;
	memory = proc_open(process, "mem", O_RDONLY);
	if (memory < 0)
		return memory;
	err = search(place, process.thread, memory, proc_exe_inode(process), maps);
	close(memory);
	return err;
}

/*
 * 0 or -errno. After an execve /proc/PID/mem refers to the old memory and accepts no byte: -ESRCH.
 */
static int write_part(int memory, const struct inject_place *place, size_t from, size_t to)
{
	ssize_t wrote = pwrite(memory, place->bytes + from, to - from, (off_t)(place->stub + from));

	if (wrote < 0)
		return errno == EIO || errno == EPERM ? -EACCES : -errno;
	if (wrote != (ssize_t)(to - from))
		return wrote ? -EIO : -ESRCH;
	return 0;
}

static int compare(int memory, struct inject_place *place)
{
	uint8_t found[INJECT_STUB_MAX];
	ssize_t got = pread(memory, found, place->size, (off_t)place->stub);

	if (got < 0)
		return -errno;
	if (got != (ssize_t)place->size)
		return -ESRCH;
	switch (judge(found, place)) {
	case OURS:
		place->written = true;
		return 0;
	case FREE:
		return -ENOENT;
	default:
		return -EAGAIN;
	}
}

static int write_whole(int memory, const struct inject_place *place, const struct inject_hook *hook)
{
	size_t half = place->size / 2;
	int err = write_part(memory, place, HEAD_BYTES, half);

	if (err)
		return err;
	inject_reach(hook, INJECT_AT_STUB_PART);
	err = write_part(memory, place, half, place->size);
	if (!err)
		err = write_part(memory, place, 0, HEAD_BYTES);
	return err;
}

int inject_place_write(struct inject_place *place, struct proc_ref process,
		       const struct inject_hook *hook)
{
	int memory = proc_open(process, "mem", O_RDWR), err;

	if (memory < 0)
		return memory;
	err = compare(memory, place);
	if (err == -ENOENT) {
		err = write_whole(memory, place, hook);
		if (!err)
			err = compare(memory, place);
	}
	close(memory);
	return err == -ENOENT ? -EAGAIN : err;
}
