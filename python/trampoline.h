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

/* Gives the clone the defaults that the program has assigned to the function since. */
void trampoline_follow(const struct python *python, const struct python_own *own);

#endif
