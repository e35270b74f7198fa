/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sanity bounds: the largest real files (PyTorch's CUDA libraries) stay far below them. */
#define SEGMENTS_MAX	  4096
#define SECTION_BYTES_MAX (1ull << 30)
#define NOTE_BYTES_MAX	  65536

struct elf_file {
	Elf *elf;
	int fd;
	uint64_t size;
	Elf64_Ehdr header;
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
	size_t count;

	if (elf_getphdrnum(file->elf, &count) || count > SEGMENTS_MAX)
		return -ENOEXEC;
	file->segments = calloc(count ? count : 1, sizeof(*file->segments));
	if (!file->segments)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr *segment = &file->segments[file->segment_count];

		if (!gelf_getphdr(file->elf, i, segment))
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
	uint8_t ident[EI_NIDENT];
	struct stat status;
	ssize_t got;

	file->fd = fd;
	if (fstat(fd, &status))
		return -errno;
	file->size = status.st_size;
	got = pread(fd, ident, sizeof(ident), 0);
	if (got < 0)
		return -errno;
	if (got != sizeof(ident) || memcmp(ident, ELFMAG, SELFMAG))
		return -ENOEXEC;
	if (ident[EI_CLASS] == ELFCLASS32 || ident[EI_DATA] == ELFDATA2MSB)
		return -EAFNOSUPPORT;
	elf_version(EV_CURRENT);
	file->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!file->elf || elf_kind(file->elf) != ELF_K_ELF ||
	    !gelf_getehdr(file->elf, &file->header))
		return -ENOEXEC;
	return check_header(file, ident);
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
	elf_end(file->elf);
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

/* Fills section from scn; data only if load is set. */
static int fill_section(struct elf_file *file, Elf_Scn *scn, struct elf_section *section)
{
	size_t names;
	Elf_Data *data;

	memset(section, 0, sizeof(*section));
	if (!gelf_getshdr(scn, &section->header) || elf_getshdrstrndx(file->elf, &names))
		return -EBADMSG;
	section->index = elf_ndxscn(scn);
	section->name = elf_strptr(file->elf, names, section->header.sh_name);
	if (section->header.sh_type == SHT_NOBITS)
		return 0;
	if (section->header.sh_offset > file->size ||
	    section->header.sh_size > file->size - section->header.sh_offset ||
	    section->header.sh_size > SECTION_BYTES_MAX)
		return -EBADMSG;
	data = elf_rawdata(scn, NULL);
	if (!data)
		return -EBADMSG;
	section->data = data->d_buf;
	section->size = data->d_buf ? data->d_size : 0;
	return 0;
}

int elf_file__section(struct elf_file *file, const char *name, struct elf_section *section)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names))
		return -ENOENT;
	while ((scn = elf_nextscn(file->elf, scn))) {
		const char *found;

		if (!gelf_getshdr(scn, &header))
			continue;
		found = elf_strptr(file->elf, names, header.sh_name);
		if (found && !strcmp(found, name))
			return fill_section(file, scn, section);
	}
	return -ENOENT;
}

int elf_file__section_of_type(struct elf_file *file, uint32_t type, struct elf_section *section)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr header;

	while ((scn = elf_nextscn(file->elf, scn)))
		if (gelf_getshdr(scn, &header) && header.sh_type == type)
			return fill_section(file, scn, section);
	return -ENOENT;
}

int elf_file__section_at(struct elf_file *file, size_t index, struct elf_section *section)
{
	Elf_Scn *scn = elf_getscn(file->elf, index);

	return scn && index ? fill_section(file, scn, section) : -ENOENT;
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

static int read_at(const struct elf_file *file, uint64_t offset, void *data, size_t size)
{
	ssize_t got;

	while (size) {
		got = pread(file->fd, data, size, offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -EIO;
		data = (uint8_t *)data + got;
		offset += got;
		size -= got;
	}
	return 0;
}

int elf_file__read(const struct elf_file *file, uint64_t address, void *data, size_t size)
{
	uint64_t offset;
	int err;

	if (size > elf_file__available(file, address))
		return -ERANGE;
	err = elf_file__offset(file, address, false, &offset);
	return err ? err : read_at(file, offset, data, size);
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
		if (!read_at(file, segment->p_offset, notes, segment->p_filesz))
			found = find_build_id(notes, segment->p_filesz, id);
		free(notes);
	}
	return found;
}
