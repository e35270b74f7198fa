/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "find.h"

#include <stdio.h>
#include <string.h>
#include "attribute.h"
#include "near.h"

#define WRAPPERS_MAX 16
/* Classes that derive from the one that is named, however far. */
#define DERIVED_MAX 64

/* Py_TPFLAGS_MANAGED_DICT of 3.11 and newer: instances have a dict only once somebody asks. */
#define MANAGED_DICT (1ul << 4)

#define CO_GENERATOR	   0x20
#define CO_COROUTINE	   0x80
#define CO_ASYNC_GENERATOR 0x200

/* What a type or one of its bases has under a name: a borrowed reference, or NULL. */
static py_object *look_up(const struct python *python, py_object *type, const char *name)
{
	py_object *key = python->PyUnicode_InternFromString(name);
	py_object *value = NULL;

	if (key) {
		value = python->_PyType_Lookup(type, key);
		python->Py_DecRef(key);
	}
	python->PyErr_Clear();
	return value;
}

static py_object *wrapped_by(const struct python *python, py_object *object)
{
	py_object *name = python->PyUnicode_InternFromString("__wrapped__"), *wrapped = NULL;

	if (name) {
		wrapped = python_attribute_plain(python, object, name);
		python->Py_DecRef(name);
	}
	python->PyErr_Clear();
	return wrapped;
}

static bool has_managed_dict(const struct python *python, py_object *type)
{
	return python->minor >= 11 && python->PyType_GetFlags(type) & MANAGED_DICT;
}

/* The function that a decorator has wrapped: a new reference, or NULL. */
static py_object *unwrap(const struct python *python, py_object *object)
{
	py_object *type = python_type_of(python, object);
	py_object **dict;
	py_object *wrapped;

	if (type == python->PyStaticMethod_Type || type == python->PyClassMethod_Type)
		return python_attribute(python, object, "__func__");
	/* Asking for __dict__, or of these for its place, would make a dict that stays. */
	if (has_managed_dict(python, type))
		return wrapped_by(python, object);
	dict = python->_PyObject_GetDictPtr(object);
	wrapped = dict && *dict ? python->PyDict_GetItemString(*dict, "__wrapped__") : NULL;
	if (wrapped)
		python->Py_IncRef(wrapped);
	return wrapped;
}

static enum fbt_python_found check_code(const struct python *python, py_object *function)
{
	py_object *code = python_code(python, function);
	long flags = python_number(python, code, "co_flags");

	python->Py_DecRef(code);
	if (flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))
		return FBT_PYTHON_GENERATOR;
	return FBT_PYTHON_FOUND;
}

/* Goes from the object of a name to the innermost plain function. *function: a new reference. */
static enum fbt_python_found innermost(const struct python *python, py_object *object,
				       py_object **function)
{
	enum fbt_python_found found = FBT_PYTHON_WRAPPED;

	python->Py_IncRef(object);
	for (int i = 0; i < WRAPPERS_MAX; i++) {
		py_object *next = unwrap(python, object);
		bool is_plain = python_type_of(python, object) == python->PyFunction_Type;

		if (!next && is_plain) {
			found = check_code(python, object);
			if (found != FBT_PYTHON_FOUND)
				break;
			*function = object;
			return found;
		}
		if (!next) {
			found = FBT_PYTHON_NOT_PLAIN;
			break;
		}
		python->Py_DecRef(object);
		object = next;
	}
	python->Py_DecRef(object);
	return found;
}

static void add(const struct python *python, struct python_found *found, py_object *function)
{
	for (size_t i = 0; i < found->count; i++) {
		if (found->functions[i] == function) {
			python->Py_DecRef(function);
			return;
		}
	}
	if (found->count == FBT_PYTHON_OWN_MAX) {
		python->Py_DecRef(function);
		found->has_more = true;
		return;
	}
	found->functions[found->count++] = function;
}

/*
 * A new list, or NULL. type.__subclasses__() is a method of the type type itself, so no code of the
 * program runs.
 */
static py_object *subclasses(const struct python *python, py_object *type)
{
	py_object *method = python_attribute(python, python->PyType_Type, "__subclasses__");
	py_object *arguments = python->Py_BuildValue("(O)", type);
	py_object *list =
		method && arguments ? python->PyObject_Call(method, arguments, NULL) : NULL;

	if (!list)
		python->PyErr_Clear();
	if (arguments)
		python->Py_DecRef(arguments);
	if (method)
		python->Py_DecRef(method);
	return list;
}

static void add_derived(const struct python *python, py_object *type, const char *name,
			struct python_found *found, int *budget)
{
	py_object *list = subclasses(python, type);
	ssize_t count = list ? python->PyList_Size(list) : 0;

	for (ssize_t i = 0; i < count; i++) {
		py_object *derived = python->PyList_GetItem(list, i);
		py_object *value = derived ? look_up(python, derived, name) : NULL;
		py_object *function;

		if (!*budget) {
			found->has_more = true;
			break;
		}
		--*budget;
		if (value && innermost(python, value, &function) == FBT_PYTHON_FOUND)
			add(python, found, function);
		if (derived)
			add_derived(python, derived, name, found, budget);
	}
	if (list)
		python->Py_DecRef(list);
}

/* The dictionary of a loaded module, borrowed; or NULL. */
static py_object *module_dict(const struct python *python, const char *name)
{
	py_object *modules = python->PyImport_GetModuleDict();
	py_object *module = modules ? python->PyDict_GetItemString(modules, name) : NULL;
	py_object *dict = module ? python->PyModule_GetDict(module) : NULL;

	python->PyErr_Clear();
	return dict;
}

enum fbt_python_found python_find(const struct python *python, const char *name, bool suggests,
				  struct python_found *found, char *text, size_t size)
{
	char parts[sizeof(((struct fbt_python_slot *)NULL)->function)];
	char *part, *next, *save = NULL;
	enum fbt_python_found result;
	py_object *type = NULL, *object = NULL, *dict, **type_dict, *function;
	int budget = DERIVED_MAX;

	*found = (struct python_found){0};
	snprintf(parts, sizeof(parts), "%s", name);
	next = strchr(parts, ':');
	if (!next) {
		snprintf(text, size, "%s", parts);
		return FBT_PYTHON_NO_NAME;
	}
	*next++ = '\0';
	dict = module_dict(python, parts);
	if (!dict) {
		python_near(python, suggests ? python->PyImport_GetModuleDict() : NULL, parts, text,
			    size);
		return FBT_PYTHON_NO_MODULE;
	}
	part = strtok_r(next, ".", &save);
	for (next = NULL; part; part = next) {
		if (!object) {
			object = python->PyDict_GetItemString(dict, part);
		} else if (python_is(python, object, python->PyType_Type)) {
			/* The names of its bases are not among these. */
			type_dict = python->_PyObject_GetDictPtr(object);
			dict = type_dict ? *type_dict : NULL;
			object = look_up(python, type = object, part);
		} else {
			object = dict = NULL;
		}
		if (!object)
			break;
		next = strtok_r(NULL, ".", &save);
		if (!next)
			break;
	}
	if (!object) {
		python_near(python, suggests ? dict : NULL, part ? part : "", text, size);
		return FBT_PYTHON_NO_NAME;
	}
	result = innermost(python, object, &function);
	if (result != FBT_PYTHON_FOUND)
		return result;
	add(python, found, function);
	if (type)
		add_derived(python, type, part, found, &budget);
	return result;
}
