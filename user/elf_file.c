/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sanity bounds: the largest real files (PyTorch's CUDA libraries) stay far below them. */
#define SEGMENTS_MAX   4096
#define NOTE_BYTES_MAX 65536

struct elf_file {
	int fd;
	uint64_t size;
	Elf64_Ehdr header;
	struct elf_sections sections;
	Elf64_Phdr *segments;
	size_t segment_count;
};

static int check_header(const struct elf_file *file, const uint8_t *ident)
{
	if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
		return -EAFNOSUPPORT;
	if (file->header.e_machine != EM_X86_64 && file->header.e_machine != EM_AARCH64)
		return -ENOSYS;
	if (file->header.e_type != ET_EXEC && file->header.e_type != ET_DYN)
		return -ENOEXEC;
	return 0;
}

static int read_segments(struct elf_file *file)
{
	uint64_t count = elf_sections_segment_count(&file->sections, &file->header);

	if (count > SEGMENTS_MAX)
		return -ENOEXEC;
	file->segments = calloc(count ? count : 1, sizeof(*file->segments));
	if (!file->segments)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++) {
		Elf64_Phdr *segment = &file->segments[file->segment_count];
		uint64_t offset = i * sizeof(*segment);

		if (file->header.e_phoff > file->size ||
		    elf_read_at(file->fd, file->header.e_phoff + offset, segment, sizeof(*segment)))
			return -ENOEXEC;
		if (segment->p_offset > file->size ||
		    segment->p_filesz > file->size - segment->p_offset ||
		    segment->p_vaddr > UINT64_MAX - segment->p_filesz)
			continue;
		file->segment_count++;
	}
	return 0;
}

static int open_elf(struct elf_file *file, int fd)
{
	const uint8_t *ident = file->header.e_ident;
	Elf64_Ehdr header = {0};
	struct stat status;
	ssize_t got;
	int err;

	file->fd = fd;
	if (fstat(fd, &status))
		return -errno;
	file->size = status.st_size;
	got = pread(fd, &header, sizeof(header), 0);
	if (got < 0)
		return -errno;
	file->header = header;
	if (got < EI_NIDENT || memcmp(ident, ELFMAG, SELFMAG))
		return -ENOEXEC;
	if (ident[EI_CLASS] == ELFCLASS32 || ident[EI_DATA] == ELFDATA2MSB)
		return -EAFNOSUPPORT;
	if (got < (ssize_t)sizeof(file->header) || ident[EI_VERSION] != EV_CURRENT)
		return -ENOEXEC;
	err = check_header(file, ident);
	return err ? err : elf_sections_read(&file->sections, fd, file->size, &file->header);
}

int elf_file__open(struct elf_file **result, int fd)
{
	struct elf_file *file = calloc(1, sizeof(*file));
	int err;

	if (!file)
		return -ENOMEM;
	err = open_elf(file, fd);
	if (!err)
		err = read_segments(file);
	if (err) {
		elf_file__free(file);
		return err;
	}
	*result = file;
	return 0;
}

void elf_file__free(struct elf_file *file)
{
	if (!file)
		return;
	elf_sections_clear(&file->sections);
	free(file->segments);
	free(file);
}

const char *elf_file_strerror(int err)
{
	switch (err) {
	case -ENOEXEC:
		return "not a whole ELF program or library";
	case -EAFNOSUPPORT:
		return "a 32-bit or big-endian ELF file; only 64-bit little-endian ones are "
		       "supported";
	case -ENOSYS:
		return "an ELF file for another processor than x86-64 and arm64";
	default:
		return strerror(-err);
	}
}

enum fbt_arch elf_file__arch(const struct elf_file *file)
{
	return file->header.e_machine == EM_X86_64 ? FBT_ARCH_X86_64 : FBT_ARCH_ARM64;
}

bool elf_file__has_interpreter(const struct elf_file *file)
{
	Elf64_Phdr header;

	return !elf_file__segment(file, PT_INTERP, &header);
}

bool elf_file__is_executable(const struct elf_file *file)
{
	return file->header.e_type == ET_EXEC || elf_file__has_interpreter(file) ||
	       file->header.e_entry;
}

bool elf_file__is_go(struct elf_file *file)
{
	struct elf_section section;

	return elf_file__section(file, ".go.buildinfo", &section) != -ENOENT ||
	       elf_file__section(file, ".note.go.buildid", &section) != -ENOENT;
}

int elf_file__section(struct elf_file *file, const char *name, struct elf_section *section)
{
	for (size_t i = 1; i < file->sections.count; i++) {
		const char *found = file->sections.items[i].name;

		if (found && !strcmp(found, name))
			return elf_sections_get(&file->sections, i, section);
	}
	return -ENOENT;
}

int elf_file__section_of_type(struct elf_file *file, uint32_t type, struct elf_section *section)
{
	for (size_t i = 1; i < file->sections.count; i++)
		if (file->sections.items[i].header.sh_type == type)
			return elf_sections_get(&file->sections, i, section);
	return -ENOENT;
}

int elf_file__find_section(const struct elf_file *file, uint32_t type, struct elf_section *section)
{
	for (size_t i = 1; i < file->sections.count; i++)
		if (file->sections.items[i].header.sh_type == type)
			return elf_sections_find(&file->sections, i, section);
	return -ENOENT;
}

int elf_file__read_section(const struct elf_file *file, const struct elf_section *section,
			   size_t at, void *data, size_t size)
{
	if (at > section->size || size > section->size - at)
		return -ERANGE;
	return elf_read_at(file->fd, section->header.sh_offset + at, data, size);
}

int elf_file__section_at(struct elf_file *file, size_t index, struct elf_section *section)
{
	return elf_sections_get(&file->sections, index, section);
}

int elf_file__segment(const struct elf_file *file, uint32_t type, Elf64_Phdr *header)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		if (file->segments[i].p_type == type) {
			*header = file->segments[i];
			return 0;
		}
	}
	return -ENOENT;
}

static const Elf64_Phdr *find_load(const struct elf_file *file, uint64_t address, bool code)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];

		if (segment->p_type == PT_LOAD && (!code || segment->p_flags & PF_X) &&
		    address >= segment->p_vaddr && address - segment->p_vaddr < segment->p_filesz)
			return segment;
	}
	return NULL;
}

int elf_file__offset(const struct elf_file *file, uint64_t address, bool code, uint64_t *offset)
{
	const Elf64_Phdr *segment = find_load(file, address, code);

	if (!segment)
		return -ERANGE;
	*offset = address - segment->p_vaddr + segment->p_offset;
	return 0;
}

uint64_t elf_file__available(const struct elf_file *file, uint64_t address)
{
	const Elf64_Phdr *segment = find_load(file, address, false);

	return segment ? segment->p_filesz - (address - segment->p_vaddr) : 0;
}

int elf_file__read(const struct elf_file *file, uint64_t address, void *data, size_t size)
{
	uint64_t offset;
	int err;

	if (size > elf_file__available(file, address))
		return -ERANGE;
	err = elf_file__offset(file, address, false, &offset);
	return err ? err : elf_read_at(file->fd, offset, data, size);
}

/* The build-id in one segment of notes; 0 if it is not there. Notes are 4-byte aligned. */
static size_t find_build_id(const uint8_t *notes, size_t size, uint8_t id[ELF_BUILD_ID_MAX])
{
	Elf64_Nhdr note;

	while (size >= sizeof(note)) {
		size_t name_bytes, id_bytes;

		memcpy(&note, notes, sizeof(note));
		notes += sizeof(note);
		size -= sizeof(note);
		name_bytes = ((size_t)note.n_namesz + 3) & ~(size_t)3;
		id_bytes = ((size_t)note.n_descsz + 3) & ~(size_t)3;
		if (name_bytes > size || id_bytes > size - name_bytes)
			break;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(notes, "GNU", 4) && note.n_descsz &&
		    note.n_descsz <= ELF_BUILD_ID_MAX) {
			memcpy(id, notes + name_bytes, note.n_descsz);
			return note.n_descsz;
		}
		notes += name_bytes + id_bytes;
		size -= name_bytes + id_bytes;
	}
	return 0;
}

size_t elf_file__build_id(const struct elf_file *file, uint8_t id[ELF_BUILD_ID_MAX])
{
	size_t found = 0;

	for (size_t i = 0; i < file->segment_count && !found; i++) {
		const Elf64_Phdr *segment = &file->segments[i];
		uint8_t *notes;

		if (segment->p_type != PT_NOTE || !segment->p_filesz ||
		    segment->p_filesz > NOTE_BYTES_MAX)
			continue;
		notes = malloc(segment->p_filesz);
		if (!notes)
			break;
		if (!elf_read_at(file->fd, segment->p_offset, notes, segment->p_filesz))
			found = find_build_id(notes, segment->p_filesz, id);
		free(notes);
	}
	return found;
}
