/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stacks/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/vec.h"
#include "proc/open.h"
#include "stacks/functions.h"
#include "steps/image.h"
#include "elf/symbols.h"

#define FILES_MAX 256
/* It has 8 KiB on x86-64. */
#define VDSO_BYTES_MAX	(1u << 20)
#define BUILD_ID_DIGITS (2 * ELF_BUILD_ID_MAX + 1)

struct code_file {
	uint64_t vdso_start; /* where the vDSO of process tgid lies; 0: it is another file */
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	uint32_t tgid; /* of the process in which it was met first */
	int fd;
	struct elf_file *elf;
	/* What has the symbols, if the file itself does not; looked for when they are first needed.
	 */
	bool searched;
	int debug_fd;
	struct elf_file *debug;
	char *path;
	char build_id[BUILD_ID_DIGITS];
	struct functions functions;
};

struct code_files {
	VEC(struct code_file) items;
	struct symbol_files symbols;
};

struct code_files *code_files__new(const struct symbol_files *symbols)
{
	struct code_files *files = calloc(1, sizeof(*files));

	if (files)
		files->symbols = *symbols;
	return files;
}

static void clear_file(struct code_file *file)
{
	elf_file__free(file->elf);
	elf_file__free(file->debug);
	if (file->fd >= 0)
		close(file->fd);
	if (file->debug_fd >= 0)
		close(file->debug_fd);
	functions_clear(&file->functions);
	free(file->path);
}

void code_files__free(struct code_files *files)
{
	if (!files)
		return;
	vec_for_each (file, &files->items)
		clear_file(file);
	vec_free(&files->items);
	free(files);
}

static bool is_of(const struct code_file *file, const struct mapping *mapping)
{
	return !file->vdso_start && file->inode == mapping->inode &&
	       file->device_major == mapping->device_major &&
	       file->device_minor == mapping->device_minor;
}

static void write_build_id(struct code_file *file)
{
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t size = elf_file__build_id(file->elf, id);

	for (size_t i = 0; i < size; i++)
		snprintf(file->build_id + 2 * i, 3, "%02x", id[i]);
}

/* file has its identity; fd is that of its contents, or -errno. */
static uint32_t add_file(struct code_files *files, struct code_file *file, int fd, const char *path)
{
	file->debug_fd = -1;
	file->fd = fd;
	if (files->items.count == FILES_MAX) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	file->path = strdup(path);
	if (fd >= 0 && elf_file__open(&file->elf, fd))
		file->elf = NULL;
	if (file->elf)
		write_build_id(file);
	if (!file->path || vec_push(&files->items, *file)) {
		clear_file(file);
		return 0;
	}
	return (uint32_t)files->items.count;
}

uint32_t code_files__add(struct code_files *files, uint32_t tgid, const struct mapping *mapping)
{
	struct code_file file = {.inode = mapping->inode,
				 .device_major = mapping->device_major,
				 .device_minor = mapping->device_minor,
				 .tgid = tgid};

	for (size_t i = 0; i < files->items.count; i++)
		if (is_of(&files->items.items[i], mapping))
			return (uint32_t)i + 1;
	if (files->items.count == FILES_MAX)
		return 0;
	return add_file(files, &file, mapping_open(tgid, mapping), mapping->path);
}

/* Returns a descriptor of a copy, or -errno. */
static int copy_vdso(uint32_t tgid, const struct mapping *mapping)
{
	size_t size = mapping->end - mapping->start;
	int memory = -EFBIG, copy = -1;
	uint8_t *bytes = NULL;

	if (size <= VDSO_BYTES_MAX)
		memory = proc_open((struct proc_ref){.tgid = tgid}, "mem", O_RDONLY);
	if (memory < 0)
		return memory;
	bytes = malloc(size);
	if (bytes && pread(memory, bytes, size, (off_t)mapping->start) == (ssize_t)size)
		copy = memfd_create("vdso", MFD_CLOEXEC);
	close(memory);
	if (copy >= 0 && write(copy, bytes, size) != (ssize_t)size) {
		close(copy);
		copy = -1;
	}
	free(bytes);
	return copy < 0 ? -EIO : copy;
}

uint32_t code_files__add_vdso(struct code_files *files, uint32_t tgid,
			      const struct mapping *mapping)
{
	struct code_file file = {.vdso_start = mapping->start, .tgid = tgid};

	for (size_t i = 0; i < files->items.count; i++)
		if (files->items.items[i].vdso_start == mapping->start &&
		    files->items.items[i].tgid == tgid)
			return (uint32_t)i + 1;
	if (files->items.count == FILES_MAX)
		return 0;
	return add_file(files, &file, copy_vdso(tgid, mapping), "[vdso]");
}

struct elf_file *code_files__elf(const struct code_files *files, uint32_t number)
{
	return files->items.items[number - 1].elf;
}

const char *code_files__path(const struct code_files *files, uint32_t number)
{
	return files->items.items[number - 1].path;
}

const char *code_files__build_id(const struct code_files *files, uint32_t number)
{
	return files->items.items[number - 1].build_id;
}

static int compare_wanted(const void *left, const void *right)
{
	const struct elf_wanted *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

/* Adds the functions of these addresses to those that are kept, also those without a name: samples
 * meet the same ones again and again. */
static void read_functions(struct code_file *file, const struct symbol_files *symbols,
			   struct elf_wanted *wanted, size_t count)
{
	bool complete = false;

	qsort(wanted, count, sizeof(*wanted), compare_wanted);
	if (!file->debug)
		functions_read(&file->functions, file->elf, wanted, count, &complete);
	if (!complete && !file->searched) {
		file->searched = true;
		file->debug_fd = debug_file_find(file->elf, file->tgid, file->path, symbols->paths,
						 symbols->count, &file->debug);
	}
	if (file->debug)
		functions_read(&file->functions, file->debug, wanted, count, &complete);
	functions_keep_nameless(&file->functions, wanted, count);
}

void code_files__name(struct code_files *files, uint32_t number, struct code_name *names,
		      size_t count)
{
	struct code_file *file = &files->items.items[number - 1];
	struct elf_wanted *wanted = calloc(count, sizeof(*wanted));
	size_t unknown = 0;

	for (size_t i = 0; wanted && i < count; i++)
		if (!functions_find(&file->functions, names[i].address))
			wanted[unknown++].address = names[i].address;
	if (unknown && file->elf)
		read_functions(file, &files->symbols, wanted, unknown);
	free(wanted);
	for (size_t i = 0; i < count; i++) {
		const struct function *function =
			functions_find(&file->functions, names[i].address);

		names[i].start = function ? function->start : 0;
		names[i].name = function ? function->name : NULL;
	}
}
