/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What an armed function is called through: one C function for each slot, with markers of its own,
 * so that the kind of a step is the address of its marker.
 */
#ifndef FERRUM_PYTHON_CALLERS_H
#define FERRUM_PYTHON_CALLERS_H

#include "api.h"

/* The vectorcall function of a slot. */
py_vectorcall python_caller(unsigned int index);

/* 3.11: the definition of a built-in function (PyMethodDef) that does the same with its self. */
void *python_caller_method(unsigned int index);

/* The markers of a slot: at the begin of a call, at its return, and where it raised an exception.
 */
struct python_markers {
	const void *begin;
	const void *end;
	const void *raised;
};
struct python_markers python_markers(unsigned int index);

#endif
