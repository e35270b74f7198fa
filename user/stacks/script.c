/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stacks/script.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define NAMES_MAX 16384

struct script_names {
	VEC(struct script_name) names; /* by line, file and function */
};

/* ".cold", ".part.0", ".llvm.1234" of compilers, and the "/1" of BOLT: parts of the function. */
bool script_is_interpreter(const char *function)
{
	static const char name[] = "_PyEval_EvalFrameDefault";
	size_t length = sizeof(name) - 1;

	return function && !strncmp(function, name, length) &&
	       (!function[length] || function[length] == '.' || function[length] == '/');
}

struct script_names *script_names__new(void)
{
	return calloc(1, sizeof(struct script_names));
}

static void clear(struct script_name *name)
{
	free(name->function);
	free(name->file);
}

void script_names__free(struct script_names *names)
{
	if (!names)
		return;
	vec_for_each (name, &names->names)
		clear(name);
	vec_free(&names->names);
	free(names);
}

static int compare(const struct script_name *name, const struct script_frame *frame)
{
	int order;

	if (name->line != frame->line)
		return name->line < frame->line ? -1 : 1;
	order = strcmp(name->file, frame->file);
	return order ? order : strcmp(name->function, frame->function);
}

struct script_name *script_names__find(struct script_names *names, const struct script_frame *frame)
{
	size_t at = first_index(i, names->names.count, compare(&names->names.items[i], frame) >= 0);
	struct script_name name;

	if (at < names->names.count && !compare(&names->names.items[at], frame))
		return &names->names.items[at];
	if (names->names.count == NAMES_MAX)
		return NULL;
	name = (struct script_name){strdup(frame->function), strdup(frame->file), frame->line, 0};
	if (!name.function || !name.file || vec_insert(&names->names, at, name)) {
		clear(&name);
		return NULL;
	}
	return &names->names.items[at];
}
