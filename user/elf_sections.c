/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "elf_sections.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sanity bounds: executables and libraries have some dozens of sections. */
#define SECTIONS_MAX	65535
#define NAMES_BYTES_MAX (16u << 20)

int elf_read_at(int fd, uint64_t offset, void *data, size_t size)
{
	ssize_t got;

	while (size) {
		got = offset > INT64_MAX ? 0 : pread(fd, data, size, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -EIO;
		data = (uint8_t *)data + got;
		offset += (uint64_t)got;
		size -= (size_t)got;
	}
	return 0;
}

static bool is_in_file(const struct elf_sections *sections, uint64_t offset, uint64_t size)
{
	return offset <= sections->file_size && size <= sections->file_size - offset;
}

/* Reads all headers; *names is the index of the section with the names. 0 or -errno. */
static int read_headers(struct elf_sections *sections, const Elf64_Ehdr *header, uint64_t *names)
{
	uint64_t count = header->e_shnum;
	Elf64_Shdr first;

	if (!header->e_shoff || elf_read_at(sections->fd, header->e_shoff, &first, sizeof(first)))
		return -ENOENT;
	if (!count)
		count = first.sh_size;
	*names = header->e_shstrndx == SHN_XINDEX ? first.sh_link : header->e_shstrndx;
	if (!count || count > SECTIONS_MAX ||
	    !is_in_file(sections, header->e_shoff, count * sizeof(first)))
		return -ENOENT;
	sections->items = calloc(count, sizeof(*sections->items));
	sections->loaded = calloc(count, sizeof(*sections->loaded));
	if (!sections->items || !sections->loaded)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++) {
		struct elf_section *section = &sections->items[i];

		section->index = i;
		if (elf_read_at(sections->fd, header->e_shoff + i * sizeof(first), &section->header,
				sizeof(section->header)))
			return -ENOENT;
	}
	sections->count = count;
	return 0;
}

static int read_names(struct elf_sections *sections, uint64_t index)
{
	const Elf64_Shdr *header;
	uint64_t size;

	if (!index || index >= sections->count)
		return 0;
	header = &sections->items[index].header;
	size = header->sh_size;
	if (header->sh_type != SHT_STRTAB || size > NAMES_BYTES_MAX ||
	    !is_in_file(sections, header->sh_offset, size))
		return 0;
	sections->names = calloc(1, size + 1);
	if (!sections->names)
		return -ENOMEM;
	if (elf_read_at(sections->fd, header->sh_offset, sections->names, size))
		return 0;
	for (size_t i = 0; i < sections->count; i++) {
		struct elf_section *section = &sections->items[i];

		if (section->header.sh_name < size)
			section->name = sections->names + section->header.sh_name;
	}
	return 0;
}

int elf_sections_read(struct elf_sections *sections, int fd, uint64_t file_size,
		      const Elf64_Ehdr *header)
{
	uint64_t names = 0;
	int err;

	*sections = (struct elf_sections){
		.fd = fd,
		.file_size = file_size,
		.room = ELF_LOADED_BYTES_MAX,
	};
	err = read_headers(sections, header, &names);
	if (!err)
		err = read_names(sections, names);
	if (err)
		elf_sections_clear(sections);
	return err == -ENOMEM ? err : 0;
}

void elf_sections_clear(struct elf_sections *sections)
{
	for (size_t i = 0; i < sections->count; i++)
		free(sections->loaded[i]);
	free(sections->loaded);
	free(sections->items);
	free(sections->names);
	*sections = (struct elf_sections){.fd = -1};
}

uint64_t elf_sections_segment_count(const struct elf_sections *sections, const Elf64_Ehdr *header)
{
	if (header->e_phnum != PN_XNUM)
		return header->e_phnum;
	return sections->count ? sections->items[0].header.sh_info : 0;
}

int elf_sections_find(const struct elf_sections *sections, size_t index,
		      struct elf_section *section)
{
	const Elf64_Shdr *header;

	if (!index || index >= sections->count)
		return -ENOENT;
	*section = sections->items[index];
	header = &section->header;
	if (header->sh_type == SHT_NOBITS || !header->sh_size)
		return 0;
	if (header->sh_size > ELF_SECTION_BYTES_MAX ||
	    !is_in_file(sections, header->sh_offset, header->sh_size))
		return -EBADMSG;
	section->size = header->sh_size;
	return 0;
}

static int load(struct elf_sections *sections, size_t index)
{
	const Elf64_Shdr *header = &sections->items[index].header;
	uint8_t *data;

	if (header->sh_size > sections->room)
		return -EFBIG;
	data = malloc(header->sh_size);
	if (!data)
		return -ENOMEM;
	if (elf_read_at(sections->fd, header->sh_offset, data, header->sh_size)) {
		free(data);
		return -EBADMSG;
	}
	sections->loaded[index] = data;
	sections->room -= header->sh_size;
	return 0;
}

int elf_sections_get(struct elf_sections *sections, size_t index, struct elf_section *section)
{
	int err = elf_sections_find(sections, index, section);

	if (!err && section->size && !sections->loaded[index])
		err = load(sections, index);
	if (err)
		section->size = 0;
	else if (section->size)
		section->data = sections->loaded[index];
	return err;
}
