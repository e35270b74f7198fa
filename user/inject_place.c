/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_place.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject_code.h"

#define PAGE	     4096ull
#define ALIGNMENT    16ull
#define SEGMENTS_MAX 64

/* What makes a stub one: until it is there, nothing else of it counts. */
#define HEAD_BYTES offsetof(struct fbt_inject_stub, version)

/* Free bytes behind a segment. */
struct slack {
	uint64_t start;
	uint64_t end;
};

/* What lies in one. */
enum content { FREE, OURS, FOREIGN_STUB, TAKEN };

/* An array of no bytes is none in C, where there is no stub. */
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

/* Program headers of the file behind fd: their number, 0 if it is no ELF file or an odd one. */
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

/* Whether another segment has something in the last page of this one. */
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

/* Behind the segment, if its end is in this mapping. */
static bool find_slack(const struct inject_mapping *mapping, const Elf64_Phdr *segment,
		       struct slack *slack)
{
	uint64_t size = mapping->file.end - mapping->file.start, end;

	if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) ||
	    segment->p_memsz != segment->p_filesz || !segment->p_filesz ||
	    segment->p_offset > INT64_MAX || segment->p_filesz > INT64_MAX ||
	    segment->p_vaddr > INT64_MAX || (segment->p_offset ^ segment->p_vaddr) % PAGE)
		return false;
	end = segment->p_offset + segment->p_filesz;
	if (end <= mapping->offset || end - mapping->offset > size)
		return false;
	end += mapping->file.start - mapping->offset;
	slack->start = (end + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
	slack->end = (end + PAGE - 1) & ~(PAGE - 1);
	return slack->end <= mapping->file.end;
}

/* Bytes that are ours or nothing: one of us died here. */
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

/* A stub of another version may be shorter or longer than what there is room for. */
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
 * Where to look first. A library that the process may unload, and with it what is being run, comes
 * last; libm and libstdc++ hardly ever are.
 */
static unsigned int order_of(const struct inject_mapping *mapping, ino_t exe)
{
	static const char *const names[] = {"libc.so.6", "ld-linux-x86-64.so.2", NULL, "libm.so.6",
					    "libstdc++.so.6"};
	const char *name = inject_mapping_name(mapping);

	if (mapping->file.inode == exe)
		return 2;
	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (names[i] && !strncmp(name, names[i], strlen(names[i])))
			return i;
	}
	return sizeof(names) / sizeof(*names);
}

#define ORDERS 6

/* Every segment that ends in this mapping: 0 to go on, else as inject_place_find. */
static int search_mapping(struct inject_place *place, uint32_t thread, int memory,
			  const struct inject_mapping *mapping)
{
	Elf64_Phdr segments[SEGMENTS_MAX];
	size_t count;
	int fd = mapping_open(thread, &mapping->file);

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
			snprintf(place->file, sizeof(place->file), "%s",
				 inject_mapping_name(mapping));
		}
		if (place->written)
			return 1;
	}
	return 0;
}

static int search(struct inject_place *place, uint32_t thread, int memory, ino_t exe,
		  const inject_mapping_vec *maps)
{
	int found = 0;

	/* To the end: a stub in a later one counts more than room in an earlier one. */
	for (unsigned int order = 0; order < ORDERS && !found; order++) {
		vec_for_each (mapping, maps) {
			if (mapping->file.executable && mapping->readable && !mapping->writable &&
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

static int open_memory(uint32_t tgid, uint32_t thread, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/mem", tgid, thread);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

static ino_t find_exe(uint32_t tgid, uint32_t thread)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/exe", tgid, thread);
	return stat(path, &status) ? 0 : status.st_ino;
}

int inject_place_find(struct inject_place *place, uint32_t tgid, uint32_t thread,
		      const inject_mapping_vec *maps,
		      const uint64_t functions[FBT_INJECT_FUNCTION_COUNT])
{
	int memory, err;

	memset(place, 0, sizeof(*place));
	place->size = inject_stub_build(place->bytes, functions);
	if (!place->size)
		return -ENOEXEC;
	memory = open_memory(tgid, thread, O_RDONLY);
	if (memory < 0)
		return memory;
	err = search(place, thread, memory, find_exe(tgid, thread), maps);
	close(memory);
	return err;
}

/* 0; a memory that is gone (an execve) takes no byte. */
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

int inject_place_write(struct inject_place *place, uint32_t tgid, uint32_t thread,
		       const struct inject_hook *hook)
{
	int memory = open_memory(tgid, thread, O_RDWR), err;

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
