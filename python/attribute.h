/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Integers that are read from the arguments of a call without running any code of the program: no
 * property, no __getattr__, no tensor. "argument", "argument.part.part" or "len(argument.part)".
 */
#ifndef FERRUM_PYTHON_ATTRIBUTE_H
#define FERRUM_PYTHON_ATTRIBUTE_H

#include "api.h"

#define PYTHON_PARTS_MAX 4

struct python_attribute {
	py_object *name; /* of the argument, interned; NULL: not used */
	py_object *parts[PYTHON_PARTS_MAX];
	size_t part_count;
	ssize_t index; /* of the argument; -1: by keyword only */
	bool is_length;
};

/*
 * Parses text for a function. 0; -ENOENT it has no such argument; -EINVAL; -ENOMEM. Needs the GIL,
 * as the other two do.
 */
int python_attribute_parse(const struct python *python, struct python_attribute *attribute,
			   const char *text, py_object *function);
void python_attribute_clear(const struct python *python, struct python_attribute *attribute);

/*
 * The attribute of an object, by a look-up that runs no code of the program and makes no dict for
 * the object: a new reference. NULL, without an error: there is none, or it takes code to get it.
 */
py_object *python_attribute_plain(const struct python *python, py_object *object, py_object *name);

/* Its value in a call; FBT_PYTHON_ABSENT: it cannot be read. names may be NULL. */
int64_t python_attribute_read(const struct python *python, const struct python_attribute *attribute,
			      py_object *const *args, ssize_t count, py_object *names);

#endif
