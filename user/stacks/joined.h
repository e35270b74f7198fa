/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * One stack of a thread's functions, native ones and those of a script: where a native stack has
 * the function that runs a script, the functions that it runs take its place. Pure.
 */
#ifndef FBT_STACKS_JOINED_H
#define FBT_STACKS_JOINED_H

#include "stacks/script.h"

struct native_function {
	const char *name;  /* NULL: not known */
	bool is_generated; /* code of no file */
};

/* A place of the joined stack. */
struct joint {
	bool is_script;
	uint32_t index; /* in the script's functions or in the native ones */
};

struct script_stack {
	const struct script_frame *frames; /* the innermost first */
	size_t count;
	bool is_partial; /* there are more outside of these */
};

/*
 * Writes the places, the innermost first, and returns how many of these there are: at most as many
 * as both stacks have functions, which places must have room for. is_whole: the native stack goes
 * to the first function of the thread; else functions of the script may be left over. 0: the stacks
 * do not fit, as each call of the interpreter has to have its functions, and the other way round.
 */
uint32_t stacks_join(const struct native_function *natives, uint32_t count, bool is_whole,
		     const struct script_stack *script, struct joint *places);

#endif
