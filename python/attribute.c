/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "attribute.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fbt_python.h"
#include "trampoline.h"

/* Offsets in a type object of the usual build, see Include/cpython/object.h. */
#define TP_GETATTRO_AT	144
#define TP_DESCR_GET_AT 272

/* The index of an argument of a function; -1: keyword only; -2: there is no such argument. */
static ssize_t find_argument(const struct python *python, py_object *function, const char *name)
{
	py_object *code = trampoline_original(python, function);
	py_object *names = python_attribute(python, code, "co_varnames");
	long positional = python_number(python, code, "co_argcount");
	long all = positional + python_number(python, code, "co_kwonlyargcount");
	ssize_t index = -2;

	for (long i = 0; names && i < all && i < python->PyTuple_Size(names); i++) {
		const char *own = python->PyUnicode_AsUTF8(python->PyTuple_GetItem(names, i));

		if (own && !strcmp(own, name))
			index = i < positional ? i : -1;
	}
	python->PyErr_Clear();
	if (names)
		python->Py_DecRef(names);
	python->Py_DecRef(code);
	return index;
}

int python_attribute_parse(const struct python *python, struct python_attribute *attribute,
			   const char *text, py_object *function)
{
	char copy[sizeof(((struct fbt_python_slot *)NULL)->attributes[0])];
	size_t length = (size_t)snprintf(copy, sizeof(copy), "%s", text);
	char *save = NULL, *part = copy;

	*attribute = (struct python_attribute){0};
	if (length >= sizeof(copy))
		return -EINVAL;
	if (!strncmp(copy, "len(", 4) && copy[length - 1] == ')') {
		attribute->is_length = true;
		copy[length - 1] = '\0';
		part = copy + 4;
	}
	part = strtok_r(part, ".", &save);
	if (!part)
		return -EINVAL;
	attribute->index = find_argument(python, function, part);
	if (attribute->index == -2)
		return -ENOENT;
	attribute->name = python->PyUnicode_InternFromString(part);
	while (attribute->name && (part = strtok_r(NULL, ".", &save))) {
		if (attribute->part_count == PYTHON_PARTS_MAX) {
			python_attribute_clear(python, attribute);
			return -EINVAL;
		}
		attribute->parts[attribute->part_count] = python->PyUnicode_InternFromString(part);
		if (!attribute->parts[attribute->part_count])
			break;
		attribute->part_count++;
	}
	if (attribute->name && !part)
		return 0;
	python->PyErr_Clear();
	python_attribute_clear(python, attribute);
	return -ENOMEM;
}

void python_attribute_clear(const struct python *python, struct python_attribute *attribute)
{
	for (size_t i = 0; i < attribute->part_count; i++)
		python->Py_DecRef(attribute->parts[i]);
	if (attribute->name)
		python->Py_DecRef(attribute->name);
	*attribute = (struct python_attribute){0};
}

/*
 * Whether the generic look-up of name in an object runs no code: the type has no __getattr__ or
 * __getattribute__ of its own, and nothing under that name but a slot, or a value without __get__.
 */
static bool is_plain(const struct python *python, py_object *type, py_object *name)
{
	py_object *own;

	if (python_type_member(python, type, TP_GETATTRO_AT) !=
	    (void *)python->PyObject_GenericGetAttr)
		return false;
	own = python->_PyType_Lookup(type, name);
	return !own || python_type_of(python, own) == python->PyMemberDescr_Type ||
	       !python_type_member(python, python_type_of(python, own), TP_DESCR_GET_AT);
}

static inline py_object *read_plain(const struct python *python, py_object *object, py_object *name)
{
	py_object *value;

	if (!is_plain(python, python_type_of(python, object), name))
		return NULL;
	value = python->PyObject_GenericGetAttr(object, name);
	if (!value)
		python->PyErr_Clear();
	return value;
}

py_object *python_attribute_plain(const struct python *python, py_object *object, py_object *name)
{
	return read_plain(python, object, name);
}

static int64_t length_of(const struct python *python, py_object *object)
{
	ssize_t length = -1;

	if (python_is(python, object, python->PyDict_Type))
		length = python->PyDict_Size(object);
	else if (python_is(python, object, python->PyList_Type))
		length = python->PyList_Size(object);
	else if (python_is(python, object, python->PyTuple_Type))
		length = python->PyTuple_Size(object);
	else if (python_is(python, object, python->PySet_Type))
		length = python->PySet_Size(object);
	return length < 0 ? FBT_PYTHON_ABSENT : length;
}

static int64_t number_of(const struct python *python, py_object *object)
{
	int overflow = 0;
	long long number;

	if (!python_is(python, object, python->PyLong_Type))
		return FBT_PYTHON_ABSENT;
	number = python->PyLong_AsLongLongAndOverflow(object, &overflow);
	return overflow ? FBT_PYTHON_ABSENT : number;
}

static int64_t value_of(const struct python *python, const struct python_attribute *attribute,
			py_object *object)
{
	py_object *held = NULL;
	int64_t value = FBT_PYTHON_ABSENT;
	size_t i;

	for (i = 0; i < attribute->part_count && object; i++) {
		py_object *next = read_plain(python, object, attribute->parts[i]);

		if (held)
			python->Py_DecRef(held);
		held = next;
		object = next;
	}
	if (object)
		value = attribute->is_length ? length_of(python, object)
					     : number_of(python, object);
	if (held)
		python->Py_DecRef(held);
	return value;
}

int64_t python_attribute_read(const struct python *python, const struct python_attribute *attribute,
			      py_object *const *args, ssize_t count, py_object *names)
{
	ssize_t named = names ? python->PyTuple_Size(names) : 0;

	if (attribute->index >= 0 && attribute->index < count)
		return value_of(python, attribute, args[attribute->index]);
	for (ssize_t i = 0; i < named; i++) {
		py_object *name = python->PyTuple_GetItem(names, i);

		if (name == attribute->name || !python->PyUnicode_Compare(name, attribute->name))
			return value_of(python, attribute, args[count + i]);
	}
	return FBT_PYTHON_ABSENT;
}
