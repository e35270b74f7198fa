/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stacks/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memfd.h"
#include "base/vec.h"
#include "proc/memory.h"
#include "proc/open.h"
#include "proc/process.h"
#include "stacks/functions.h"
#include "steps/image.h"
#include "elf/symbols.h"

#define FILES_MAX 256
/* So many numbers are given again at once, if there are: finding them takes long. */
#define ROOM 32
/* It has 8 KiB on x86-64. */
#define VDSO_BYTES_MAX	(1u << 20)
#define BUILD_ID_DIGITS (2 * ELF_BUILD_ID_MAX + 1)
/* A file that could not be opened is tried again after this time, and so is making room. */
#define AGAIN_NS NS_PER_S
/* A pass over the symbols of the largest real libraries takes some 20 ms. */
#define CPU_LIMIT_NS (20 * NS_PER_S)

/* Without a path it is none: its number is to be given again. */
struct code_file {
	uint64_t vdso_start; /* where the vDSO of process tgid lies; 0: it is another file */
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	uint32_t tgid;		 /* of the process in which it was met first */
	int fd;			 /* or -errno, of the last try */
	struct file_stamp stamp; /* of fd */
	uint64_t try_ns;
	uint64_t added; /* which one it was, of all */
	bool kept;	/* while room is made: a process has it mapped */
	struct elf_file *elf;
	/* What has the symbols, if the file itself does not; looked for when they are first needed.
	 */
	bool searched;
	int debug_fd;
	struct elf_file *debug;
	char *path;
	char build_id[BUILD_ID_DIGITS];
	struct functions functions;
	uint64_t cpu_ns; /* what they took to be found */
};

struct code_files {
	VEC(struct code_file) items;
	struct symbol_files symbols;
	struct code_forgetter forgetter;
	uint64_t cpu_limit_ns; /* for each file */
	uint64_t added;	       /* files, so far */
	uint64_t room_ns;      /* when room was last made; 0: never */
	bool told;	       /* that there is none */
	uint64_t refused;      /* times that there was none */
};

struct code_files *code_files__new(const struct symbol_files *symbols)
{
	struct code_files *files = calloc(1, sizeof(*files));

	if (!files)
		return NULL;
	files->symbols = *symbols;
	files->cpu_limit_ns = CPU_LIMIT_NS;
	return files;
}

void code_files__set_cpu_limit(struct code_files *files, uint64_t limit_ns)
{
	files->cpu_limit_ns = limit_ns;
}

void code_files__set_forgetter(struct code_files *files, const struct code_forgetter *forgetter)
{
	files->forgetter = *forgetter;
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
	if (files->refused)
		log_debug("%llu times there was no room for a file with code",
			  (unsigned long long)files->refused);
	vec_for_each (file, &files->items)
		clear_file(file);
	vec_free(&files->items);
	free(files);
}

/* Then what was read is not the code that processes map from now on, which is another file to us.
 */
static bool is_rewritten(const struct code_file *file)
{
	return file->fd >= 0 && !file_stamps_are_equal(file->stamp, file_stamp_of(file->fd));
}

static bool is_of(const struct code_file *file, uint32_t tgid, const struct mapping *mapping)
{
	if (!file->path || mapping->is_vdso)
		return file->path && file->vdso_start == mapping->start && file->tgid == tgid;
	return !file->vdso_start && file->inode == mapping->inode &&
	       file->device_major == mapping->device_major &&
	       file->device_minor == mapping->device_minor && !strcmp(file->path, mapping->path) &&
	       !is_rewritten(file);
}

static void write_build_id(struct code_file *file)
{
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t size = elf_file__build_id(file->elf, id);

	for (size_t i = 0; i < size; i++)
		snprintf(file->build_id + 2 * i, 3, "%02x", id[i]);
}

/*
 * Returns a descriptor of a copy, or -errno. By now there may be other memory in that place, which
 * the process is to provide itself.
 */
static int copy_vdso(uint32_t tgid, const struct mapping *mapping)
{
	size_t size = mapping->end - mapping->start;
	struct memory_part part = {.address = mapping->start, .size = (uint32_t)size};
	struct memory *memory;
	int copy = -EIO;

	if (size > VDSO_BYTES_MAX)
		return -EFBIG;
	memory = memory__new();
	if (!memory)
		return -ENOMEM;
	if (!memory__read(memory, processes_ref(tgid), &part, 1) && part.got == size)
		copy = memfd_make("vdso");
	if (copy >= 0 && write(copy, part.data, size) != (ssize_t)size) {
		close(copy);
		copy = -EIO;
	}
	memory__free(memory);
	return copy;
}

/* The place for one more: that of no file, or after the last one. */
static size_t find_place(const struct code_files *files)
{
	size_t place = 0;

	while (place < files->items.count && files->items.items[place].path)
		place++;
	return place;
}

/* What is no ELF file will not be one later; another process may show what this one does not. */
static bool is_to_be_tried(const struct code_file *file, uint64_t now_ns)
{
	return file->fd < 0 && file->fd != -ENOEXEC && now_ns >= file->try_ns + AGAIN_NS;
}

static void try_file(struct code_file *file, uint32_t tgid, const struct mapping *mapping,
		     uint64_t now_ns)
{
	file->tgid = tgid;
	file->try_ns = now_ns;
	file->fd = mapping->is_vdso ? copy_vdso(tgid, mapping)
				    : mapping_open(processes_live_thread(tgid), mapping);
	file->stamp = file->fd >= 0 ? file_stamp_of(file->fd) : (struct file_stamp){0};
	if (file->fd >= 0 && elf_file__open(&file->elf, file->fd))
		file->elf = NULL;
	if (file->elf)
		write_build_id(file);
}

/* Once it is open, its places have other addresses. */
static void try_again(struct code_files *files, uint32_t number, uint32_t tgid,
		      const struct mapping *mapping, uint64_t now_ns)
{
	struct code_file *file = &files->items.items[number - 1];

	try_file(file, tgid, mapping, now_ns);
	if (file->elf && files->forgetter.forget)
		files->forgetter.forget(files->forgetter.ctx, number, NULL);
}

/* Returns its number; 0: -ENOMEM. */
static uint32_t put_file(struct code_files *files, struct code_file *file, size_t place)
{
	if (!file->path || (place == files->items.count && vec_push(&files->items, *file))) {
		clear_file(file);
		return 0;
	}
	files->items.items[place] = *file;
	return (uint32_t)place + 1;
}

/* file has its identity. */
static uint32_t add_file(struct code_files *files, struct code_file *file, uint32_t tgid,
			 const struct mapping *mapping, uint64_t now_ns)
{
	size_t place = find_place(files);
	uint32_t number;

	vec_for_each (known, &files->items) {
		if (!is_of(known, tgid, mapping))
			continue;
		number = (uint32_t)(known - files->items.items) + 1;
		if (is_to_be_tried(known, now_ns))
			try_again(files, number, tgid, mapping, now_ns);
		return number;
	}
	if (place == FILES_MAX)
		return 0;
	file->debug_fd = -1;
	file->added = ++files->added;
	file->path = strdup(mapping->is_vdso ? "[vdso]" : mapping->path);
	try_file(file, tgid, mapping, now_ns);
	return put_file(files, file, place);
}

uint32_t code_files__add(struct code_files *files, uint32_t tgid, const struct mapping *mapping,
			 uint64_t now_ns)
{
	struct code_file file = {.inode = mapping->inode,
				 .device_major = mapping->device_major,
				 .device_minor = mapping->device_minor};

	return add_file(files, &file, tgid, mapping, now_ns);
}

uint32_t code_files__add_vdso(struct code_files *files, uint32_t tgid,
			      const struct mapping *mapping, uint64_t now_ns)
{
	struct code_file file = {.vdso_start = mapping->start};

	return add_file(files, &file, tgid, mapping, now_ns);
}

bool code_files__begin_room(struct code_files *files, uint64_t now_ns)
{
	bool is_early = files->room_ns && now_ns < files->room_ns + AGAIN_NS;

	if (find_place(files) < FILES_MAX)
		return false;
	if (!files->forgetter.forget || is_early) {
		files->refused++;
		return false;
	}
	files->room_ns = now_ns;
	vec_for_each (file, &files->items)
		file->kept = false;
	return true;
}

void code_files__keep(struct code_files *files, uint32_t tgid, const struct mapping *mapping)
{
	vec_for_each (file, &files->items)
		file->kept |= is_of(file, tgid, mapping);
}

static struct code_file *find_oldest(const struct code_files *files)
{
	struct code_file *oldest = NULL;

	vec_for_each (file, &files->items) {
		if (file->path && !file->kept && (!oldest || file->added < oldest->added))
			oldest = file;
	}
	return oldest;
}

bool code_files__end_room(struct code_files *files)
{
	const struct code_forgetter *forgetter = &files->forgetter;
	struct code_file *oldest;
	int made = 0;

	while (made < ROOM && (oldest = find_oldest(files))) {
		uint32_t number = (uint32_t)(oldest - files->items.items) + 1;

		forgetter->forget(forgetter->ctx, number, oldest->elf);
		clear_file(oldest);
		*oldest = (struct code_file){.fd = -1, .debug_fd = -1};
		made++;
	}
	if (made)
		return true;
	files->refused++;
	if (!files->told)
		log_warn("the traced processes have code from more than %d files: functions of "
			 "further ones have no names in stacks",
			 FILES_MAX);
	files->told = true;
	return false;
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
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	bool complete = false;

	qsort(wanted, count, sizeof(*wanted), compare_wanted);
	if (!file->debug)
		functions_read(&file->functions, file->elf, wanted, count, &complete);
	if (!complete && !file->searched) {
		file->searched = true;
		file->debug_fd =
			debug_file_find(file->elf, processes_live_thread(file->tgid), file->path,
					symbols, DEBUG_FILE_CHECKSUM_AT_ONCE, &file->debug, NULL);
	}
	if (file->debug)
		functions_read(&file->functions, file->debug, wanted, count, &complete);
	functions_keep_nameless(&file->functions, wanted, count);
	file->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
}

/* Said once, as they are not read again. */
static void tell_spent(const struct code_file *file)
{
	log_warn("%s: its symbols took %.1f s of CPU time: further functions of it have no names "
		 "in stacks",
		 file->path, (double)file->cpu_ns / (double)NS_PER_S);
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
	if (unknown && file->elf && file->cpu_ns < files->cpu_limit_ns) {
		read_functions(file, &files->symbols, wanted, unknown);
		if (file->cpu_ns >= files->cpu_limit_ns)
			tell_spent(file);
	}
	free(wanted);
	for (size_t i = 0; i < count; i++) {
		const struct function *function =
			functions_find(&file->functions, names[i].address);

		names[i].start = function ? function->start : 0;
		names[i].name = function ? function->name : NULL;
	}
}
