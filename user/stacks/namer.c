/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stacks/namer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/vec.h"
#include "stacks/functions.h"

/* As many files as a trace keeps. */
#define MODULES_MAX 256
/* Build-ids that a message lists. */
#define TOLD_MAX 3

/* A file that code without a name is in. */
struct module {
	char *build_id; /* in hexadecimal digits */
	char *name;	/* of the file */
	int fd;
	struct elf_file *elf; /* its symbols; NULL: none are known */
	struct functions functions;
};

struct code_namer {
	struct symbol_files symbols;
	bool *used; /* of each of them */
	VEC(struct module) modules;
};

struct code_namer *code_namer__new(const struct symbol_files *symbols)
{
	struct code_namer *namer = calloc(1, sizeof(*namer));

	if (!namer)
		return NULL;
	namer->symbols = *symbols;
	namer->used = calloc(symbols->count + 1, sizeof(*namer->used));
	if (namer->used)
		return namer;
	free(namer);
	return NULL;
}

static void clear_module(struct module *module)
{
	functions_clear(&module->functions);
	elf_file__free(module->elf);
	if (module->fd >= 0)
		close(module->fd);
	free(module->build_id);
	free(module->name);
}

void code_namer__free(struct code_namer *namer)
{
	if (!namer)
		return;
	vec_for_each (module, &namer->modules)
		clear_module(module);
	vec_free(&namer->modules);
	free(namer->used);
	free(namer);
}

static int digit_of(char letter)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = letter ? strchr(digits, letter) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Returns the size of a build-id; 0 if the text is none. */
static size_t read_build_id(const char *text, uint8_t id[ELF_BUILD_ID_MAX])
{
	size_t size = strlen(text) / 2;

	if (strlen(text) % 2 || size > ELF_BUILD_ID_MAX)
		return 0;
	for (size_t i = 0; i < size; i++) {
		int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return 0;
		id[i] = (uint8_t)(high << 4 | low);
	}
	return size;
}

/* The first of --symbols that has something of the module. */
static void open_symbols(struct code_namer *namer, struct module *module)
{
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t size = read_build_id(module->build_id, id);

	for (size_t i = 0; i < namer->symbols.count; i++) {
		module->fd = symbol_file_open(namer->symbols.paths[i], id, size, &module->elf);
		if (module->fd < 0)
			continue;
		namer->used[i] = true;
		return;
	}
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* 0 or -ENOMEM. *result: NULL if there is no room for one more. */
static int find_module(struct code_namer *namer, const char *build_id, const char *path,
		       struct module **result)
{
	struct module module = {.fd = -1};
	int err = -ENOMEM;

	*result = NULL;
	vec_for_each (known, &namer->modules)
		if (!strcmp(known->build_id, build_id))
			*result = known;
	if (*result || namer->modules.count == MODULES_MAX)
		return 0;
	module.build_id = strdup(build_id);
	module.name = strdup(file_name(path));
	if (module.build_id && module.name) {
		open_symbols(namer, &module);
		err = vec_push(&namer->modules, module);
	}
	if (err) {
		clear_module(&module);
		return err;
	}
	*result = &namer->modules.items[namer->modules.count - 1];
	return 0;
}

/* 0 or -ENOMEM. *function: NULL if the symbols have none there. */
static int find_function(struct code_namer *namer, const struct fbt_code *code,
			 const struct function **function)
{
	const char *path = decode_string(&code->header, 1);
	const char *build_id = decode_string(&code->header, 2);
	struct elf_wanted wanted = {.address = code->address};
	const struct function *found;
	struct module *module = NULL;
	bool complete;
	int err = *build_id ? find_module(namer, build_id, path, &module) : 0;

	*function = NULL;
	if (!module || !module->elf)
		return err;
	found = functions_find(&module->functions, code->address);
	if (!found) {
		functions_read(&module->functions, module->elf, &wanted, 1, &complete);
		functions_keep_nameless(&module->functions, &wanted, 1);
		found = functions_find(&module->functions, code->address);
	}
	*function = found && found->name ? found : NULL;
	return 0;
}

static int send_code(struct code_namer *namer, const struct fbt_code *code,
		     const struct record_output *output)
{
	const char *strings[] = {NULL, decode_string(&code->header, 1),
				 decode_string(&code->header, 2)};
	struct fbt_code named = *code;
	const struct function *function;
	int err = find_function(namer, code, &function);

	if (function) {
		named.offset = code->address - function->start;
		strings[0] = function->name;
		err = record_send_strings(output, &named, sizeof(named), FBT_EVENT_CODE, strings,
					  3);
	}
	if (!function || err)
		output->emit(output->ctx, code, code->header.size);
	return err;
}

static bool is_nameless(const struct fbt_header *event)
{
	return event->type == FBT_EVENT_CODE && !*decode_string(event, 0);
}

int code_namer__push(struct code_namer *namer, const void *data, size_t size,
		     const struct record_output *output)
{
	const char *passed = data, *at = data, *end = at + size;
	const struct fbt_header *event = NULL;
	int first_err = 0;

	while (at < end) {
		long taken = decode_event(at, end - at, &event);
		int err;

		/* The reader of the records says what is wrong with them. */
		if (!event)
			break;
		at += event->size;
		if (taken <= 0 || !is_nameless(event))
			continue;
		if ((const char *)event > passed)
			output->emit(output->ctx, passed, (const char *)event - passed);
		passed = at;
		err = send_code(namer, (const struct fbt_code *)event, output);
		if (err && !first_err)
			first_err = err;
	}
	if (end > passed)
		output->emit(output->ctx, passed, end - passed);
	return first_err;
}

/* "libx.so (build-id 0123…), …": the files whose functions have no names. */
static void list_wanted(const struct code_namer *namer, char *text, size_t size)
{
	size_t used = 0, told = 0, more = 0;

	*text = '\0';
	vec_for_each (module, &namer->modules) {
		if (module->elf)
			continue;
		if (told++ >= TOLD_MAX || used >= size) {
			more++;
			continue;
		}
		used += (size_t)snprintf(text + used, size - used, "%s%.64s (build-id %s)",
					 told > 1 ? ", " : "", module->name, module->build_id);
	}
	if (more && used < size)
		snprintf(text + used, size - used, ", and %zu more", more);
}

static void tell_unused(const char *path, const char *wanted)
{
	if (symbol_file_is_folder(path) && *wanted)
		log_warn("--symbols %s: has no symbols for %s", path, wanted);
	else if (!symbol_file_is_folder(path))
		log_warn("--symbols %s: not used: its build-id is that of no file that the "
			 "recording has functions without a name of%s%s",
			 path, *wanted ? "; it has " : "", wanted);
}

void code_namer__tell(const struct code_namer *namer)
{
	char wanted[TOLD_MAX * (64 + 2 * ELF_BUILD_ID_MAX + 32) + 64];

	list_wanted(namer, wanted, sizeof(wanted));
	for (size_t i = 0; i < namer->symbols.count; i++)
		if (!namer->used[i])
			tell_unused(namer->symbols.paths[i], wanted);
}
