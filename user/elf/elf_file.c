/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "elf/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Sanity bounds. The largest real files, PyTorch's CUDA libraries, are far below them. Executables
 * and libraries have some dozens of sections.
 */
#define SEGMENTS_MAX	4096
#define NOTE_BYTES_MAX	65536
#define SECTIONS_MAX	65535
#define NAMES_BYTES_MAX (16u << 20)

struct elf_file {
	int fd;
	uint64_t size;
	Elf64_Ehdr header;
	struct elf_sections sections;
	Elf64_Phdr *segments;
	size_t segment_count;
};

/* Reads exactly size bytes of a file. 0 or -EIO. */
static int read_at(int fd, uint64_t offset, void *data, size_t size)
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

/* Reads all section headers. *names is the index of the section of names. 0 or -errno. */
static int read_headers(struct elf_sections *sections, const Elf64_Ehdr *header, uint64_t *names)
{
	uint64_t count = header->e_shnum;
	Elf64_Shdr first;

	if (!header->e_shoff || read_at(sections->fd, header->e_shoff, &first, sizeof(first)))
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
		if (read_at(sections->fd, header->e_shoff + i * sizeof(first), &section->header,
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
	if (read_at(sections->fd, header->sh_offset, sections->names, size))
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

/* Number of program headers; if there are too many for e_phnum, it is in the first section. */
static uint64_t count_segments(const struct elf_sections *sections, const Elf64_Ehdr *header)
{
	if (header->e_phnum != PN_XNUM)
		return header->e_phnum;
	return sections->count ? sections->items[0].header.sh_info : 0;
}

/* elf_sections_get() without loading the data: data is NULL, size is set. */
static int find_section(const struct elf_sections *sections, size_t index,
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
	if (read_at(sections->fd, header->sh_offset, data, header->sh_size)) {
		free(data);
		return -EBADMSG;
	}
	sections->loaded[index] = data;
	sections->room -= header->sh_size;
	return 0;
}

int elf_sections_get(struct elf_sections *sections, size_t index, struct elf_section *section)
{
	int err = find_section(sections, index, section);

	if (!err && section->size && !sections->loaded[index])
		err = load(sections, index);
	if (err)
		section->size = 0;
	else if (section->size)
		section->data = sections->loaded[index];
	return err;
}

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
	uint64_t count = count_segments(&file->sections, &file->header);

	if (count > SEGMENTS_MAX)
		return -ENOEXEC;
	file->segments = calloc(count ? count : 1, sizeof(*file->segments));
	if (!file->segments)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++) {
		Elf64_Phdr *segment = &file->segments[file->segment_count];
		uint64_t offset = i * sizeof(*segment);

		if (file->header.e_phoff > file->size ||
		    read_at(file->fd, file->header.e_phoff + offset, segment, sizeof(*segment)))
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
		return "not a complete ELF program or library";
	case -EAFNOSUPPORT:
		return "a 32-bit or big-endian ELF file; only 64-bit little-endian files are "
		       "supported";
	case -ENOSYS:
		return "an ELF file for a processor other than x86-64 and arm64";
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

/* The index of a section; 0: there is none of that name. */
static size_t index_of(const struct elf_file *file, const char *name)
{
	for (size_t i = 1; i < file->sections.count; i++) {
		const char *found = file->sections.items[i].name;

		if (found && !strcmp(found, name))
			return i;
	}
	return 0;
}

int elf_file__section(struct elf_file *file, const char *name, struct elf_section *section)
{
	return elf_sections_get(&file->sections, index_of(file, name), section);
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
			return find_section(&file->sections, i, section);
	return -ENOENT;
}

int elf_file__find_section_named(const struct elf_file *file, const char *name,
				 struct elf_section *section)
{
	return find_section(&file->sections, index_of(file, name), section);
}

int elf_file__find_section_at(const struct elf_file *file, size_t index,
			      struct elf_section *section)
{
	return find_section(&file->sections, index, section);
}

int elf_file__read_section(const struct elf_file *file, const struct elf_section *section,
			   size_t at, void *data, size_t size)
{
	if (at > section->size || size > section->size - at)
		return -ERANGE;
	return read_at(file->fd, section->header.sh_offset + at, data, size);
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

int elf_file__loaded(const struct elf_file *file, size_t index, Elf64_Phdr *header)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		if (file->segments[i].p_type != PT_LOAD || index--)
			continue;
		*header = file->segments[i];
		return 0;
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

int elf_file__code_address(const struct elf_file *file, uint64_t offset, uint64_t *address)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) ||
		    offset < segment->p_offset || offset - segment->p_offset >= segment->p_filesz)
			continue;
		*address = offset - segment->p_offset + segment->p_vaddr;
		return 0;
	}
	return -ERANGE;
}

int elf_file__mapped_address(const struct elf_file *file, uint64_t offset, uint64_t *address)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (!elf_file__code_address(file, offset, address))
		return 0;
	for (size_t i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];
		uint64_t skew = segment->p_offset - offset;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || offset % page ||
		    offset > segment->p_offset || skew >= page ||
		    segment->p_vaddr % page != segment->p_offset % page)
			continue;
		*address = segment->p_vaddr - skew;
		return 0;
	}
	return -ERANGE;
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
	return err ? err : read_at(file->fd, offset, data, size);
}

static size_t align4(size_t size)
{
	return (size + 3) & ~(size_t)3;
}

int elf_note_next(const uint8_t **notes, size_t *size, struct elf_note *note)
{
	Elf64_Nhdr header;
	size_t name_bytes, bytes;

	if (*size < sizeof(header))
		return 0;
	memcpy(&header, *notes, sizeof(header));
	*notes += sizeof(header);
	*size -= sizeof(header);
	name_bytes = align4(header.n_namesz);
	bytes = align4(header.n_descsz);
	if (name_bytes > *size || bytes > *size - name_bytes)
		return -EBADMSG;
	*note = (struct elf_note){header.n_type, (const char *)*notes, header.n_namesz,
				  *notes + name_bytes, header.n_descsz};
	*notes += name_bytes + bytes;
	*size -= name_bytes + bytes;
	return 1;
}

/* Finds the build-id in one segment of notes. Returns its size, 0 if it is not there. */
static size_t find_build_id(const uint8_t *notes, size_t size, uint8_t id[ELF_BUILD_ID_MAX])
{
	struct elf_note note;

	while (elf_note_next(&notes, &size, &note) > 0) {
		if (note.type != NT_GNU_BUILD_ID || note.name_size != sizeof("GNU") ||
		    memcmp(note.name, "GNU", sizeof("GNU")) || !note.size ||
		    note.size > ELF_BUILD_ID_MAX)
			continue;
		memcpy(id, note.contents, note.size);
		return note.size;
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
		if (!read_at(file->fd, segment->p_offset, notes, segment->p_filesz))
			found = find_build_id(notes, segment->p_filesz, id);
		free(notes);
	}
	return found;
}

bool elf_file__owner(const struct elf_file *file, uid_t *owner)
{
	struct stat status;

	if (fstat(file->fd, &status))
		return false;
	*owner = status.st_uid;
	return true;
}
