/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trampoline.h"

#include <string.h>

#include "callers.h"

#define CO_FLAGS     0x0f /* OPTIMIZED, NEWLOCALS, VARARGS, VARKEYWORDS */
#define CO_NESTED    0x10
#define STACK_NEEDED 6

/* Forks of processes that are traced, each from the one before. */
#define GENERATIONS_MAX 8

/* Makes a function with the original's code, which the trampoline calls. A new reference. */
static py_object *make_clone(const struct python *python, py_object *function, py_object *code)
{
	py_object *clone = python->PyFunction_New(code, python->PyFunction_GetGlobals(function));
	py_object *part;

	if (!clone)
		return NULL;
	if ((part = python->PyFunction_GetDefaults(function)))
		python->PyFunction_SetDefaults(clone, part);
	if ((part = python->PyFunction_GetKwDefaults(function)))
		python->PyFunction_SetKwDefaults(clone, part);
	if ((part = python->PyFunction_GetClosure(function)))
		python->PyFunction_SetClosure(clone, part);
	return clone;
}

/*
 * The arguments of code.replace(). Names, first line and free variables stay, so a traceback shows
 * the function twice.
 */
static py_object *changes(const struct python *python, py_object *method, bool is_nested)
{
	/* RESUME; PUSH_NULL; LOAD_CONST 0; LOAD_FAST 0; LOAD_FAST 1; CALL_FUNCTION_EX 1;
	 * RETURN_VALUE */
	static const unsigned char code[] = {151, 0, 2, 0, 100, 0, 124, 0, 124, 1, 142, 1, 83, 0};
	/* All seven instructions belong to the first line, without columns. */
	static const unsigned char lines[] = {0x80 | 13 << 3 | 6, 0};

	return python->Py_BuildValue(
		"{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:N,s:(O),s:(),s:(ss),s:(),s:N,s:N}", "co_filename",
		FBT_PYTHON_FILE, "co_argcount", 0, "co_posonlyargcount", 0, "co_kwonlyargcount", 0,
		"co_nlocals", 2, "co_stacksize", STACK_NEEDED, "co_flags",
		CO_FLAGS | (is_nested ? CO_NESTED : 0), "co_code",
		python->PyBytes_FromStringAndSize((const char *)code, sizeof(code)), "co_consts",
		method, "co_names", "co_varnames", "a", "k", "co_cellvars", "co_linetable",
		python->PyBytes_FromStringAndSize((const char *)lines, sizeof(lines)),
		"co_exceptiontable", python->PyBytes_FromStringAndSize("", 0));
}

static py_object *make_trampoline(const struct python *python, const struct python_own *own,
				  unsigned int index)
{
	py_object *method =
		python->PyCFunction_NewEx(python_caller_method(index), own->clone, NULL);
	py_object *named =
		method ? changes(python, method, python->PyFunction_GetClosure(own->function))
		       : NULL;
	py_object *replace = python_attribute(python, own->code, "replace");
	py_object *none = python->PyTuple_New(0);
	py_object *trampoline = NULL;

	if (named && replace && none)
		trampoline = python->PyObject_Call(replace, none, named);
	python->PyErr_Clear();
	for (size_t i = 0; i < 4; i++) {
		py_object *used = (py_object *[]){method, named, replace, none}[i];

		if (used)
			python->Py_DecRef(used);
	}
	return trampoline;
}

static void drop(const struct python *python, struct python_own *own)
{
	if (own->trampoline)
		python->Py_DecRef(own->trampoline);
	if (own->clone)
		python->Py_DecRef(own->clone);
	if (own->code)
		python->Py_DecRef(own->code);
	own->trampoline = own->clone = own->code = NULL;
}

void trampoline_follow(const struct python *python, const struct python_own *own)
{
	py_object *now = python->PyFunction_GetDefaults(own->function);

	if (now != python->PyFunction_GetDefaults(own->clone))
		python->PyFunction_SetDefaults(own->clone, now ? now : python->_Py_NoneStruct);
	now = python->PyFunction_GetKwDefaults(own->function);
	if (now != python->PyFunction_GetKwDefaults(own->clone))
		python->PyFunction_SetKwDefaults(own->clone, now ? now : python->_Py_NoneStruct);
}

static bool is_as_expected(const struct python *python, py_object *function)
{
	return trampoline_member(function, TRAMPOLINE_CODE_AT) ==
		       python->PyFunction_GetCode(function) &&
	       trampoline_member(function, TRAMPOLINE_DEFAULTS_AT) ==
		       python->PyFunction_GetDefaults(function) &&
	       trampoline_member(function, TRAMPOLINE_KWDEFAULTS_AT) ==
		       python->PyFunction_GetKwDefaults(function) &&
	       trampoline_member(function, TRAMPOLINE_CLOSURE_AT) ==
		       python->PyFunction_GetClosure(function);
}

bool trampoline_put(const struct python *python, struct python_own *own, unsigned int index)
{
	own->code = python_code(python, own->function);
	own->clone = make_clone(python, own->function, own->code);
	/* Its own, without the detour by PyObject_Vectorcall. */
	own->old = own->clone ? *(py_vectorcall *)((char *)own->clone + python->vectorcall) : NULL;
	own->has_layout = own->clone && is_as_expected(python, own->function) &&
			  is_as_expected(python, own->clone);
	own->trampoline = own->clone ? make_trampoline(python, own, index) : NULL;
	if (own->trampoline &&
	    !python->PyObject_SetAttrString(own->function, "__code__", own->trampoline))
		return true;
	python->PyErr_Clear();
	drop(python, own);
	return false;
}

enum python_disarmed trampoline_remove(const struct python *python, struct python_own *own)
{
	enum python_disarmed result = PYTHON_REPLACED;

	if (python->PyFunction_GetCode(own->function) == own->trampoline) {
		if (python->PyObject_SetAttrString(own->function, "__code__", own->code)) {
			python->PyErr_Clear();
			return PYTHON_HELD;
		}
		result = PYTHON_DISARMED;
	}
	drop(python, own);
	return result;
}

/* A new reference to the code that one of ours calls; NULL: it is none of ours. */
static py_object *called_code(const struct python *python, py_object *code)
{
	py_object *file = python_attribute(python, code, "co_filename");
	const char *name = file ? python->PyUnicode_AsUTF8(file) : NULL;
	py_object *constants = name && !strcmp(name, FBT_PYTHON_FILE)
				       ? python_attribute(python, code, "co_consts")
				       : NULL;
	py_object *method = constants ? python->PyTuple_GetItem(constants, 0) : NULL;
	py_object *clone = method ? python_attribute(python, method, "__self__") : NULL;
	py_object *called = clone && python_is(python, clone, python->PyFunction_Type)
				    ? python_code(python, clone)
				    : NULL;

	python->PyErr_Clear();
	for (size_t i = 0; i < 3; i++) {
		py_object *used = (py_object *[]){file, constants, clone}[i];

		if (used)
			python->Py_DecRef(used);
	}
	return called;
}

py_object *trampoline_original(const struct python *python, py_object *function)
{
	py_object *code = python_code(python, function), *called;

	for (int i = 0; python->minor == 11 && i < GENERATIONS_MAX; i++) {
		called = called_code(python, code);
		if (!called)
			break;
		python->Py_DecRef(code);
		code = called;
	}
	return code;
}
