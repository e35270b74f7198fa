/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * CPython 3.11, whose interpreter calls every Python function itself: an armed function gets a code
 * object of seven instructions that calls the caller of its slot with all arguments.
 */
#ifndef FERRUM_PYTHON_TRAMPOLINE_H
#define FERRUM_PYTHON_TRAMPOLINE_H

#include "slot.h"

/* false: the interpreter refused it, and the function is what it was. */
bool trampoline_put(const struct python *python, struct python_own *own, unsigned int index);

/*
 * Where somebody has replaced __code__ meanwhile, that stays: the only way to our caller is gone.
 * An audit hook may forbid the change.
 */
enum python_disarmed trampoline_remove(const struct python *python, struct python_own *own);

/*
 * A new reference to the code of a function as the program knows it. In a child that was forked
 * while the function was armed, its code is still the one that it had there.
 */
py_object *trampoline_original(const struct python *python, py_object *function);

/* Members of a function object of 3.11, see struct PyFunctionObject. */
#define TRAMPOLINE_CODE_AT	 48
#define TRAMPOLINE_DEFAULTS_AT	 56
#define TRAMPOLINE_KWDEFAULTS_AT 64
#define TRAMPOLINE_CLOSURE_AT	 72

static inline py_object *trampoline_member(const py_object *function, size_t offset)
{
	return *(py_object *const *)((const char *)function + offset);
}

/*
 * Whether trampoline_follow has nothing to do, for each call: four calls of the interpreter would
 * take a third of what an armed call does. false: perhaps.
 */
static inline bool trampoline_has_same_defaults(const struct python_own *own)
{
	return own->has_layout &&
	       trampoline_member(own->function, TRAMPOLINE_DEFAULTS_AT) ==
		       trampoline_member(own->clone, TRAMPOLINE_DEFAULTS_AT) &&
	       trampoline_member(own->function, TRAMPOLINE_KWDEFAULTS_AT) ==
		       trampoline_member(own->clone, TRAMPOLINE_KWDEFAULTS_AT);
}

/* Gives the clone the defaults that the program has assigned to the function since. */
void trampoline_follow(const struct python *python, const struct python_own *own);

#endif
