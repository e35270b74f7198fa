/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * One stack of the functions of a thread, native ones and Python's: where a native stack has the
 * function that runs Python code, the Python functions that it runs take its place. Pure.
 */
#ifndef FBT_PYTHON_JOINED_H
#define FBT_PYTHON_JOINED_H

#include "python/frames.h"

struct python_native {
	const char *name;  /* of the function; NULL: not known */
	bool is_generated; /* code of no file */
};

/* A place of the joined stack. */
struct python_joint {
	bool is_python;
	uint32_t index; /* in the Python stack or in the native one */
};

/*
 * Writes the places, the innermost first, and returns how many of these there are: at most as many
 * as both stacks have functions, which places must have room for. is_whole: the native stack goes
 * to the first function of the thread; else Python functions may be left over. 0: the stacks do not
 * belong together, as each run of the interpreter has to have its Python functions, and the other
 * way round.
 */
uint32_t python_join(const struct python_native *natives, uint32_t count, bool is_whole,
		     const struct python_stack *stack, struct python_joint *places);

/* Whether a function is the one that runs Python code, or a part of it that compilers split off. */
bool python_is_interpreter(const char *name);

#endif
