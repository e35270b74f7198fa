/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A Python function that the library has found, as a step function: its slot's markers. */
#ifndef FBT_PYTHON_FUNCTION_H
#define FBT_PYTHON_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>
#include "steps/resolve.h"

struct fbt_python_slot;
struct python_spec;

struct python_definition {
	uint32_t tgid;
	unsigned int index; /* of the slot */
	const struct fbt_python_slot *slot;
	const struct python_spec *wish;
	bool builtin; /* the table of engines has it */
};

/*
 * Appends it. 0; -ENOMEM; or why the markers are not those of the library (python_markers_text).
 */
int python_function_add(function_vec *functions, const struct python_definition *definition);

#endif
