/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_libc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIBC_NAME    "libc.so.6"
#define BANNER	     "GNU C Library"
#define BANNER_MAX   256
#define VERSION_MARK "release version "

/* Of an entry of .gnu.version: an old one, kept for what was linked with it. */
#define HIDDEN 0x8000

static const char *const function_names[FBT_INJECT_FUNCTION_COUNT] = FBT_INJECT_FUNCTION_NAMES;

struct exports {
	struct elf_section symbols;
	struct elf_section names;
	struct elf_section versions; /* size 0: none */
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

/* What `libc.so.6` prints when it is run. */
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

/* Where what is at that offset of the file is in memory; 0: it is not, or not as code. */
static uint64_t find_in_memory(const struct inject_mapping *libc, const inject_mapping_vec *maps,
			       uint64_t offset)
{
	vec_for_each (mapping, maps) {
		if (mapping->file.executable && mapping->file.inode == libc->file.inode &&
		    mapping->file.device_major == libc->file.device_major &&
		    mapping->file.device_minor == libc->file.device_minor &&
		    offset >= mapping->offset &&
		    offset - mapping->offset < mapping->file.end - mapping->file.start)
			return mapping->file.start + (offset - mapping->offset);
	}
	return 0;
}

static int find_functions(struct inject_libc *libc, struct elf_file *file,
			  const inject_mapping_vec *maps)
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
static bool is_libc(const struct inject_mapping *mapping)
{
	const char *name = inject_mapping_name(mapping);

	return mapping->file.executable &&
	       (!strcmp(name, LIBC_NAME) || !strncmp(name, "libc-2.", 7));
}

/* All pieces of one loaded file are as far apart in memory as in the file. */
static int find_mapping(struct inject_libc *libc, const inject_mapping_vec *maps)
{
	vec_for_each (mapping, maps) {
		if (!is_libc(mapping))
			continue;
		if (!libc->mapping)
			libc->mapping = mapping;
		else if (mapping->file.inode != libc->mapping->file.inode ||
			 mapping->file.start - mapping->offset !=
				 libc->mapping->file.start - libc->mapping->offset)
			return -EEXIST;
	}
	return libc->mapping ? 0 : -ESRCH;
}

int inject_libc_find(struct inject_libc *libc, uint32_t thread, const inject_mapping_vec *maps)
{
	struct elf_file *file = NULL;
	int err, fd = -1;

	memset(libc, 0, sizeof(*libc));
	err = find_mapping(libc, maps);
	if (err)
		return err;
	fd = mapping_open(thread, &libc->mapping->file);
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
