/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/interpreter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fbt_shared.h"
#include "inject/python_use.h"
#include "steps/image.h"
#include "steps/resolve.h"

#define RUNTIME "_PyRuntime"

/* The functions that collect, by version, and nothing else. Both have the generation second. */
static const struct {
	const char *name;
	uint32_t first; /* minor versions */
	uint32_t last;
} collectors[] = {
	{"collect", 9, 9},
	{"gc_collect_main", 10, 13},
	{"_PyGC_Collect", 14, 14},
};

/* Of x86-64, in the order of DWARF; each with its lower half. */
static const char *const registers[16][2] = {
	{"rax", "eax"},	 {"rdx", "edx"},  {"rcx", "ecx"},  {"rbx", "ebx"},
	{"rsi", "esi"},	 {"rdi", "edi"},  {"rbp", "ebp"},  {"rsp", "esp"},
	{"r8", "r8d"},	 {"r9", "r9d"},	  {"r10", "r10d"}, {"r11", "r11d"},
	{"r12", "r12d"}, {"r13", "r13d"}, {"r14", "r14d"}, {"r15", "r15d"},
};

static uint32_t find_register(const char *text, size_t size)
{
	for (uint32_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
		for (int half = 0; half < 2; half++)
			if (strlen(registers[i][half]) == size &&
			    !memcmp(registers[i][half], text, size))
				return FBT_GC_REGISTERS + i;
	return FBT_GC_NOWHERE;
}

struct python_generation python_generation_parse(const char *arguments)
{
	static const struct python_generation nowhere;
	struct python_generation found = {.where = FBT_GC_NOWHERE};
	const char *at = strchr(arguments, '@');
	size_t size = at ? strcspn(at, " ") : 0;
	char *end;
	long offset;

	if (!at || (strncmp(arguments, "-4@", 3) != 0 && strncmp(arguments, "4@", 2) != 0))
		return nowhere;
	at++, size--;
	if (*at == '%') {
		found.where = find_register(at + 1, size - 1);
		return found;
	}
	offset = strtol(at, &end, 10);
	size -= (size_t)(end - at);
	if (size < 4 || strncmp(end, "(%", 2) != 0 || end[size - 1] != ')' || offset < INT32_MIN ||
	    offset > INT32_MAX)
		return nowhere;
	found.where = find_register(end + 2, size - 3);
	found.in_memory = found.where != FBT_GC_NOWHERE;
	found.offset = found.in_memory ? (int32_t)offset : 0;
	return found;
}

static bool has_runtime(uint32_t tgid, const struct mapping *mapping)
{
	struct elf_symbol runtime;
	struct image image;
	bool has = !image_open(&image, tgid, mapping) &&
		   !elf_object_find(image.elf, RUNTIME, &runtime);

	image_close(&image);
	return has;
}

/*
 * A program that is linked with the library has next to nothing in it itself. One that has an
 * interpreter of its own may map the library beside it, for another library's sake.
 */
static const struct mapping *choose(uint32_t tgid, const mapping_vec *maps)
{
	const struct mapping *program = NULL, *library = NULL;

	vec_for_each (mapping, maps) {
		bool is_library = !strncmp(mapping_name(mapping), "lib", 3);
		const struct mapping **kind = is_library ? &library : &program;

		if (!*kind && python_use_version(tgid, mapping).minor)
			*kind = mapping;
	}
	if (!library || (program && has_runtime(tgid, program)))
		return program;
	return library;
}

bool python_mapping_find(uint32_t tgid, struct mapping *found)
{
	const struct mapping *chosen;
	mapping_vec maps = {0};

	if (!python_use_is_there(tgid) || maps_read_quietly(tgid, &maps))
		return false;
	chosen = choose(tgid, &maps);
	if (chosen) {
		*found = *chosen;
		found->path = strdup(chosen->path);
	}
	maps_free(&maps);
	return chosen && found->path;
}

static bool is_musl(const struct mapping *mapping, const void *part)
{
	const char *name = mapping->path ? strrchr(mapping->path, '/') : NULL;

	return name && !strncmp(name + 1, part, strlen(part));
}

bool python_is_musl(uint32_t tgid)
{
	/* One of the two is mapped, by the name with which the program asks for it. */
	return maps_search(tgid, "ld-musl-", is_musl, "ld-musl-") ||
	       maps_search(tgid, "libc.musl-", is_musl, "libc.musl-");
}

void python_interpreter_free(struct python_interpreter *interpreter)
{
	if (!interpreter)
		return;
	if (interpreter->fd >= 0)
		close(interpreter->fd);
	free(interpreter->path);
	vec_free(&interpreter->begins);
	vec_free(&interpreter->ends);
	free(interpreter);
}

static int take_usdt(struct python_interpreter *interpreter, struct usdt_probe *begin,
		     struct usdt_probe *end)
{
	vec_for_each (offset, &begin->offsets)
		if (vec_push(&interpreter->begins, *offset))
			return -ENOMEM;
	vec_for_each (offset, &end->offsets)
		if (vec_push(&interpreter->ends, *offset))
			return -ENOMEM;
	interpreter->begin_ref_ctr = begin->semaphore;
	interpreter->end_ref_ctr = end->semaphore;
	interpreter->generation = python_generation_parse(begin->arguments);
	interpreter->collector = FBT_COLLECTOR_USDT;
	return 0;
}

static int find_usdt(struct python_interpreter *interpreter, const struct image *image)
{
	struct usdt_probe begin = {0}, end = {0};
	int err = usdt_find(image->elf, "python", "gc__start", &begin);

	if (!err)
		err = usdt_find(image->elf, "python", "gc__done", &end);
	if (!err && begin.offsets.count && end.offsets.count)
		err = take_usdt(interpreter, &begin, &end);
	usdt_clear(&begin);
	usdt_clear(&end);
	return err == -EBADMSG ? 0 : err;
}

/* "gc_collect_main", or as GCC names it where it was optimized: "gc_collect_main.lto_priv.0". */
bool python_is_collector(const char *symbol, const char *name)
{
	static const char *const suffixes[] = {".lto_priv.", ".constprop.", ".isra.", ".llvm."};
	size_t length = strlen(name);

	if (strncmp(symbol, name, length) != 0)
		return false;
	symbol += length;
	while (*symbol) {
		size_t digits = 0;

		for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]) && !digits; i++) {
			length = strlen(suffixes[i]);
			if (!strncmp(symbol, suffixes[i], length))
				digits = strspn(symbol + length, "0123456789");
		}
		if (!digits)
			return false;
		symbol += length + digits;
	}
	return true;
}

/* The only symbol of that name: of two, neither would be all collections. */
static const struct elf_symbol *find_symbol(const struct image *image, const char *name)
{
	const struct elf_symbol *found = NULL;

	for (size_t i = 0; i < image->symbols.count; i++) {
		if (!python_is_collector(image->symbols.items[i].name, name))
			continue;
		if (found)
			return NULL;
		found = &image->symbols.items[i];
	}
	return found;
}

static int take_function(struct python_interpreter *interpreter,
			 const struct step_function *function)
{
	/* Where it leaves is not certain: an end would be missed. */
	if (!function->exit_offsets.count)
		return 0;
	vec_for_each (offset, &function->exit_offsets)
		if (vec_push(&interpreter->ends, *offset))
			return -ENOMEM;
	if (vec_push(&interpreter->begins, function->begin_offset))
		return -ENOMEM;
	interpreter->begin_sp = function->begin_sp;
	interpreter->generation.where = FBT_GC_SECOND;
	interpreter->collector = FBT_COLLECTOR_SYMBOL;
	return 0;
}

static int find_function(struct python_interpreter *interpreter, struct image *image, uint32_t tgid)
{
	const struct elf_symbol *symbol = NULL;
	struct step_function *function = NULL;
	char reason[RESOLVE_REASON_BYTES];
	int err = image_read(image, tgid, NULL, 0);

	for (size_t i = 0; !err && i < sizeof(collectors) / sizeof(collectors[0]); i++) {
		if (interpreter->minor >= collectors[i].first &&
		    interpreter->minor <= collectors[i].last)
			symbol = find_symbol(image, collectors[i].name);
	}
	if (err || !symbol)
		return err == -ENOMEM ? err : 0;
	err = resolve_function(&function, image, symbol, symbol->address, false, reason);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = take_function(interpreter, function);
	/* Arguments may be missing from what was specialised. */
	if (strstr(symbol->name, ".constprop.") || strstr(symbol->name, ".isra."))
		interpreter->generation.where = FBT_GC_NOWHERE;
	step_function_free(function);
	return err;
}

/* Of the code that a mapping begins with: the segment may begin within its first page. */
static bool find_shift(const struct elf_file *file, uint64_t offset, uint64_t *shift)
{
	Elf64_Phdr segment;

	for (size_t i = 0; !elf_file__loaded(file, i, &segment); i++) {
		if (!(segment.p_flags & PF_X) || segment.p_offset + segment.p_filesz <= offset)
			continue;
		*shift = segment.p_vaddr - segment.p_offset;
		return true;
	}
	return false;
}

/* What is not exported stays 0. */
static void find_types(struct python_interpreter *interpreter, const struct image *image)
{
	struct python_types *types = &interpreter->types;
	const struct {
		const char *name;
		uint64_t *address;
	} wanted[] = {
		{"PyCode_Type", &types->code},
		{"PyUnicode_Type", &types->text},
		{"PyBytes_Type", &types->bytes},
		{"PyFrame_Type", &types->frame},
	};
	struct elf_symbol symbol;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!elf_object_find(image->elf, wanted[i].name, &symbol))
			*wanted[i].address = symbol.address;
}

static int fill(struct python_interpreter *interpreter, struct image *image, uint32_t tgid,
		const struct mapping *mapping)
{
	struct elf_symbol runtime;
	int err;

	interpreter->inode = mapping->inode;
	interpreter->device_major = mapping->device_major;
	interpreter->device_minor = mapping->device_minor;
	interpreter->minor = python_use_version(tgid, mapping).minor;
	interpreter->path = strdup(mapping->path);
	interpreter->fd = fcntl(image->fd, F_DUPFD_CLOEXEC, 0);
	if (!interpreter->path || interpreter->fd < 0)
		return -ENOMEM;
	if (!elf_object_find(image->elf, RUNTIME, &runtime) &&
	    find_shift(image->elf, mapping->offset, &interpreter->shift)) {
		interpreter->address = runtime.address;
		interpreter->size = runtime.size;
		find_types(interpreter, image);
	}
	err = find_usdt(interpreter, image);
	if (!err && interpreter->collector == FBT_COLLECTOR_NONE)
		err = find_function(interpreter, image, tgid);
	return err;
}

int python_interpreter_open(struct python_interpreter **result, uint32_t tgid,
			    const struct mapping *mapping)
{
	struct python_interpreter *interpreter = calloc(1, sizeof(*interpreter));
	struct image image;
	int err = interpreter ? 0 : -ENOMEM;

	if (err)
		return err;
	interpreter->fd = -1;
	err = image_open(&image, tgid, mapping);
	image.quiet = true;
	if (!err)
		err = fill(interpreter, &image, tgid, mapping);
	image_close(&image);
	if (err) {
		python_interpreter_free(interpreter);
		return err;
	}
	*result = interpreter;
	return 0;
}

bool python_interpreter_is(const struct python_interpreter *interpreter,
			   const struct mapping *mapping)
{
	return interpreter->inode == mapping->inode &&
	       interpreter->device_major == mapping->device_major &&
	       interpreter->device_minor == mapping->device_minor;
}

uint64_t python_interpreter_runtime(const struct python_interpreter *interpreter,
				    const struct mapping *mapping)
{
	if (!interpreter->size)
		return 0;
	return mapping->start - mapping->offset - interpreter->shift + interpreter->address;
}

bool python_interpreter_place(const struct python_interpreter *interpreter,
			      const struct mapping *mapping, struct python_place *place)
{
	uint64_t runtime = python_interpreter_runtime(interpreter, mapping);
	uint64_t shift = runtime - interpreter->address;
	const struct python_types *types = &interpreter->types;

	*place = (struct python_place){
		.minor = interpreter->minor,
		.runtime = runtime,
		.types = {types->code + shift, types->text + shift, types->bytes + shift,
			  types->frame + shift},
	};
	return runtime && types->code && types->text && types->bytes && types->frame;
}
