/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Finds a Python function by its name, and the methods of subclasses that override it. Nothing is
 * imported and no code of the program runs: only dictionaries of modules and types are read. All
 * functions here need the GIL.
 */
#ifndef FERRUM_PYTHON_FIND_H
#define FERRUM_PYTHON_FIND_H

#include <stddef.h>
#include "api.h"
#include "fbt_python.h"

struct python_found {
	py_object *functions[FBT_PYTHON_OWN_MAX]; /* new references; the first one is that of the
						     name */
	size_t count;
	bool has_more; /* definitions than there is room for, or subclasses than are looked at */
};

/*
 * name: "module:Qualified.name". Decorators are followed by __wrapped__, down to the innermost
 * function. text: the part of the name that is missing, or ""; if suggests is set, with those that
 * are like it. FBT_PYTHON_FOUND, or why not.
 */
enum fbt_python_found python_find(const struct python *python, const char *name, bool suggests,
				  struct python_found *found, char *text, size_t size);

#endif
