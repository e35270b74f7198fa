/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The interpreter of this process: functions and types of CPython's C API, found by name, so that
 * one library serves CPython 3.9 to 3.14 and needs no headers of it. Layouts are those of CPython's
 * own structures; python_api_load checks what it can of them.
 */
#ifndef FERRUM_PYTHON_API_H
#define FERRUM_PYTHON_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct py_object py_object;
typedef py_object *(*py_vectorcall)(py_object *function, py_object *const *args, size_t flags,
				    py_object *names);

/* PY_VECTORCALL_ARGUMENTS_OFFSET: not part of the number of arguments. */
#define PY_OFFSET ((size_t)1 << 63)

/* type, name, parameters */
#define PYTHON_FUNCTIONS(F)                                                                        \
	F(int, PyGILState_Ensure, (void))                                                          \
	F(void, PyGILState_Release, (int))                                                         \
	F(void *, PyEval_SaveThread, (void))                                                       \
	F(void, PyEval_RestoreThread, (void *))                                                    \
	F(int, Py_IsInitialized, (void))                                                           \
	F(const char *, Py_GetVersion, (void))                                                     \
	F(py_object *, PyImport_GetModuleDict, (void))                                             \
	F(py_object *, PyDict_GetItemString, (py_object *, const char *))                          \
	F(py_object *, PyModule_GetDict, (py_object *))                                            \
	F(py_object *, PyObject_GetAttr, (py_object *, py_object *))                               \
	F(int, PyObject_SetAttrString, (py_object *, const char *, py_object *))                   \
	F(py_object *, PyObject_GenericGetAttr, (py_object *, py_object *))                        \
	F(py_object *, _PyType_Lookup, (py_object *, py_object *))                                 \
	F(py_object *, PyUnicode_InternFromString, (const char *))                                 \
	F(const char *, PyUnicode_AsUTF8, (py_object *))                                           \
	F(int, PyUnicode_Compare, (py_object *, py_object *))                                      \
	F(long long, PyLong_AsLongLongAndOverflow, (py_object *, int *))                           \
	F(long, PyLong_AsLong, (py_object *))                                                      \
	F(ssize_t, PyDict_Size, (py_object *))                                                     \
	F(int, PyDict_Next, (py_object *, ssize_t *, py_object **, py_object **))                  \
	F(ssize_t, PyList_Size, (py_object *))                                                     \
	F(py_object *, PyList_GetItem, (py_object *, ssize_t))                                     \
	F(ssize_t, PyTuple_Size, (py_object *))                                                    \
	F(py_object *, PyTuple_GetItem, (py_object *, ssize_t))                                    \
	F(py_object *, PyTuple_New, (ssize_t))                                                     \
	F(ssize_t, PySet_Size, (py_object *))                                                      \
	F(int, PyType_IsSubtype, (py_object *, py_object *))                                       \
	F(unsigned long, PyType_GetFlags, (py_object *))                                           \
	F(void, Py_IncRef, (py_object *))                                                          \
	F(void, Py_DecRef, (py_object *))                                                          \
	F(void, PyErr_Clear, (void))                                                               \
	F(void, PyErr_Fetch, (py_object **, py_object **, py_object **))                           \
	F(void, PyErr_Restore, (py_object *, py_object *, py_object *))                            \
	F(py_object *, PyObject_Str, (py_object *))                                                \
	F(int, PyObject_IsTrue, (py_object *))                                                     \
	F(py_object *, PyBool_FromLong, (long))                                                    \
	F(py_object *, PySet_New, (py_object *))                                                   \
	F(int, PySet_Add, (py_object *, py_object *))                                              \
	F(py_object *, PyObject_Call, (py_object *, py_object *, py_object *))                     \
	F(py_object *, PyObject_CallMethod, (py_object *, const char *, const char *, ...))        \
	F(py_object *, Py_BuildValue, (const char *, ...))                                         \
	F(py_object *, PyBytes_FromStringAndSize, (const char *, ssize_t))                         \
	F(py_object *, PyCFunction_NewEx, (void *, py_object *, py_object *))                      \
	F(py_object *, PyFunction_New, (py_object *, py_object *))                                 \
	F(py_object *, PyFunction_GetCode, (py_object *))                                          \
	F(py_object *, PyFunction_GetGlobals, (py_object *))                                       \
	F(py_object *, PyFunction_GetDefaults, (py_object *))                                      \
	F(int, PyFunction_SetDefaults, (py_object *, py_object *))                                 \
	F(py_object *, PyFunction_GetKwDefaults, (py_object *))                                    \
	F(int, PyFunction_SetKwDefaults, (py_object *, py_object *))                               \
	F(py_object *, PyFunction_GetClosure, (py_object *))                                       \
	F(int, PyFunction_SetClosure, (py_object *, py_object *))                                  \
	F(py_object **, _PyObject_GetDictPtr, (py_object *))

#define PYTHON_OBJECTS(F)                                                                          \
	F(_Py_NoneStruct)                                                                          \
	F(PyFunction_Type)                                                                         \
	F(PyLong_Type)                                                                             \
	F(PyDict_Type)                                                                             \
	F(PyList_Type)                                                                             \
	F(PyTuple_Type)                                                                            \
	F(PySet_Type)                                                                              \
	F(PyMemberDescr_Type)                                                                      \
	F(PyStaticMethod_Type)                                                                     \
	F(PyClassMethod_Type)                                                                      \
	F(PyType_Type)

struct python {
#define PYTHON_MEMBER(type, name, parameters) type(*name) parameters;
	PYTHON_FUNCTIONS(PYTHON_MEMBER)
#undef PYTHON_MEMBER
#define PYTHON_MEMBER(name) py_object *name;
	PYTHON_OBJECTS(PYTHON_MEMBER)
#undef PYTHON_MEMBER
	int (*is_finalizing)(void);
	int (*PyGC_Disable)(void); /* 3.10 and newer, else NULL: returns whether it was on */
	int (*PyGC_Enable)(void);
	int minor;	   /* of 3.minor */
	bool threaded;	   /* a free-threaded build: its object header is 16 bytes longer */
	size_t header;	   /* those 16 bytes, or 0 */
	size_t vectorcall; /* offset of the pointer in a function object */
};

/* Whether a CPython interpreter is in this process, by one of its symbols. Loads nothing. */
bool python_is_here(void);

/*
 * Finds the interpreter. Needs no GIL. false: it cannot be served, and text says why, as the rest
 * of a sentence.
 */
bool python_api_load(struct python *python, char *text, size_t size);

static inline py_object *python_type_of(const struct python *python, const py_object *object)
{
	return *(py_object *const *)((const char *)object + 8 + python->header);
}

/* A pointer member of a type object, by its offset in the usual build. */
static inline void *python_type_member(const struct python *python, const py_object *type,
				       size_t offset)
{
	return *(void *const *)((const char *)type + offset + python->header);
}

static inline bool python_is(const struct python *python, const py_object *object, py_object *type)
{
	py_object *own = python_type_of(python, object);

	return own == type || python->PyType_IsSubtype(own, type);
}

/*
 * A new reference to an attribute of an object of CPython's own types; NULL, without an error. The
 * name is interned: the interpreter's cache of types' attributes keeps up to 4096 of the strings
 * that it was asked with, so one that is made for each look-up would stay.
 */
py_object *python_attribute(const struct python *python, py_object *object, const char *name);

/* A new reference to a function's code. Its attribute __code__ would be an event of audit hooks. */
py_object *python_code(const struct python *python, py_object *function);

/* An int attribute of such an object; 0 if there is none. */
long python_number(const struct python *python, py_object *object, const char *name);

#endif
