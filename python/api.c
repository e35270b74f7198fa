/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* tp_vectorcall_offset of a type object, see Include/cpython/object.h. */
#define VECTORCALL_OFFSET_AT 56

#define MINOR_MIN 9
#define MINOR_MAX 14

bool python_is_here(void)
{
#ifndef __x86_64__
	/* What is known of the interpreter, and of its markers, is that of x86-64. */
	return false;
#endif
	return dlsym(RTLD_DEFAULT, "Py_GetVersion") && dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
}

/* false: a name is missing, and *missing is it. */
static bool load_names(struct python *python, const char **missing)
{
#define LOAD(type, name, parameters)                                                               \
	*missing = #name;                                                                          \
	*(void **)&python->name = dlsym(RTLD_DEFAULT, #name);                                      \
	if (!python->name)                                                                         \
		return false;
	PYTHON_FUNCTIONS(LOAD)
#undef LOAD
#define LOAD(name)                                                                                 \
	*missing = #name;                                                                          \
	python->name = dlsym(RTLD_DEFAULT, #name);                                                 \
	if (!python->name)                                                                         \
		return false;
	PYTHON_OBJECTS(LOAD)
#undef LOAD
	*(void **)&python->PyGC_Disable = dlsym(RTLD_DEFAULT, "PyGC_Disable");
	*(void **)&python->PyGC_Enable = dlsym(RTLD_DEFAULT, "PyGC_Enable");
	*missing = "Py_IsFinalizing";
	*(void **)&python->is_finalizing = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
	if (!python->is_finalizing)
		*(void **)&python->is_finalizing = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
	return python->is_finalizing;
}

/*
 * Writes "3.N", and returns N; 0: it is another major version. From a constant, which 3.11 and
 * newer have: Py_GetVersion returns a text that another thread, of an interpreter that is just
 * starting, may be about to write.
 */
static int read_version(const struct python *python, char *version, size_t size)
{
	const unsigned long *number = dlsym(RTLD_DEFAULT, "Py_Version");

	if (number)
		snprintf(version, size, "%lu.%lu", *number >> 24 & 0xff, *number >> 16 & 0xff);
	else
		snprintf(version, size, "%.16s", python->Py_GetVersion());
	return strncmp(version, "3.", 2) ? 0 : atoi(version + 2);
}

bool python_api_load(struct python *python, char *text, size_t size)
{
	const char *missing;
	char version[32];

	if (!load_names(python, &missing)) {
		snprintf(text, size, "the interpreter does not export %s", missing);
		return false;
	}
	python->minor = read_version(python, version, sizeof(version));
	python->threaded = dlsym(RTLD_DEFAULT, "_Py_MergeZeroLocalRefcount");
	if (python->minor < MINOR_MIN || python->minor > MINOR_MAX) {
		snprintf(text, size, "the interpreter is Python %s, not CPython 3.%d to 3.%d",
			 version, MINOR_MIN, MINOR_MAX);
		return false;
	}
	if (python->threaded && python->minor > 13) {
		snprintf(text, size, "free-threaded Python 3.%d is not supported yet",
			 python->minor);
		return false;
	}
	python->header = python->threaded ? 16 : 0;
	python->vectorcall =
		(size_t)python_type_member(python, python->PyFunction_Type, VECTORCALL_OFFSET_AT);
	if (python->vectorcall < 64 || python->vectorcall > 256 || python->vectorcall % 8) {
		snprintf(text, size, "function objects of Python %s look different", version);
		return false;
	}
	return true;
}

py_object *python_attribute(const struct python *python, py_object *object, const char *name)
{
	py_object *key = python->PyUnicode_InternFromString(name);
	py_object *value = key ? python->PyObject_GetAttr(object, key) : NULL;

	if (key)
		python->Py_DecRef(key);
	if (!value)
		python->PyErr_Clear();
	return value;
}

py_object *python_code(const struct python *python, py_object *function)
{
	py_object *code = python->PyFunction_GetCode(function);

	python->Py_IncRef(code);
	return code;
}

long python_number(const struct python *python, py_object *object, const char *name)
{
	py_object *value = python_attribute(python, object, name);
	long number = 0;

	if (!value)
		return 0;
	number = python->PyLong_AsLong(value);
	if (number == -1)
		python->PyErr_Clear();
	python->Py_DecRef(value);
	return number;
}
