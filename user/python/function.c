/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/function.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "fbt_python.h"
#include "python/markers.h"
#include "steps/python_spec.h"

/* One that add_args has added. */
static struct step_arg *find_arg(struct step_function *function, const char *name)
{
	struct step_arg *arg = function->args;

	while (strcmp(arg->name, name) != 0)
		arg++;
	return arg;
}

static void add_args(struct step_function *function, const struct python_spec *wish)
{
	uint32_t base = STEP_ARG_REG0;

	for (size_t i = 0; i < wish->count; i++) {
		struct step_arg arg = {.source = wish->sources[i], .optional = true};

		if (arg.source == STEP_ARG_READ)
			arg.base = base++;
		if (arg.source == STEP_ARG_TIME)
			arg.source_name = python_name_hash(wish->expressions[i]);
		snprintf(arg.name, sizeof(arg.name), "%s", wish->names[i]);
		step_function_add_arg(function, &arg);
	}
	for (size_t i = 0; i < wish->count; i++)
		if (wish->sources[i] == STEP_ARG_BEFORE)
			find_arg(function, wish->names[i])->source_arg =
				(uint32_t)(find_arg(function, wish->expressions[i]) -
					   function->args);
}

/* "Class.method" of "module:Class.method". */
static const char *short_name(const struct python_spec *wish)
{
	const char *colon = strchr(wish->function, ':');

	return colon ? colon + 1 : wish->function;
}

static int fill(struct step_function *function, const struct python_definition *definition,
		const struct marker_offsets *offsets)
{
	const struct python_spec *wish = definition->wish;
	struct stat status;

	if (fstat(function->fd, &status))
		return -errno;
	function->device = status.st_dev;
	function->inode = status.st_ino;
	function->name = strdup(short_name(wish));
	function->path = strdup(definition->slot->file);
	if (!function->name || !function->path ||
	    asprintf(&function->alone, "py:%s", wish->function) < 0)
		return -ENOMEM;
	function->is_python = true;
	function->builtin = definition->builtin;
	function->begin_offset = offsets->begin;
	function->begin_emulated = true;
	function->raised_offset = offsets->raised;
	add_args(function, wish);
	if (vec_push(&function->exit_offsets, offsets->end) ||
	    vec_push(&function->exit_offsets, function->raised_offset))
		return -ENOMEM;
	return 0;
}

int python_function_add(function_vec *functions, const struct python_definition *definition)
{
	struct step_function *function = step_function_new();
	struct marker_offsets offsets;
	int err = function ? 0 : -ENOMEM;

	if (!err) {
		function->fd = python_markers_open(definition->tgid, definition->index,
						   definition->slot, &offsets);
		err = function->fd < 0 ? function->fd : 0;
	}
	if (!err)
		err = fill(function, definition, &offsets);
	if (!err)
		err = vec_push(functions, function);
	if (err && function)
		step_function_free(function);
	return err;
}
