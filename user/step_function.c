/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "step_function.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct step_function *target_function_new(void)
{
	struct step_function *function = calloc(1, sizeof(*function));

	if (function)
		function->fd = -1;
	return function;
}

void target_function_free(struct step_function *function)
{
	if (!function)
		return;
	if (function->fd >= 0)
		close(function->fd);
	free(function->name);
	free(function->symbol);
	free(function->path);
	vec_free(&function->exit_offsets);
	vec_free(&function->exit_targets);
	vec_free(&function->usdt_begins);
	free(function);
}

void target_function_add_arg(struct step_function *function, const struct step_arg *arg)
{
	if (function->arg_count == FBT_ARG_COUNT)
		return;
	for (uint32_t i = 0; i < function->arg_count; i++)
		if (!strcmp(function->args[i].name, arg->name))
			return;
	function->args[function->arg_count++] = *arg;
}
