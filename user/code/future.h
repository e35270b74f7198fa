/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Whether a function polls the future of an async function of Rust, and where the future keeps its
 * state. The compiler turns an async function into one that is called again and again, and that
 * first reads a byte in the future: 0 not begun, 1 returned, 2 panicked, 3 and more the places
 * where it awaits something. It panics if it is called in state 1. The byte is used because the
 * return value cannot be: its form depends on the result type, which the program does not tell.
 */
#ifndef FBT_STEPS_FUTURE_H
#define FBT_STEPS_FUTURE_H

#include <stddef.h>
#include <stdint.h>
#include "code/exits.h"

enum future_kind {
	FUTURE_NONE,   /* nothing says that the function polls one */
	FUTURE_KNOWN,  /* its code proves it */
	FUTURE_UNTOLD, /* it polls one, but no instruction was found that sets the byte */
};

struct future {
	enum future_kind kind;
	/* FUTURE_KNOWN: */
	uint32_t base;	/* the argument that has the future's address, 0 or 1 */
	int32_t offset; /* of the byte in the future */
};

/*
 * Decodes the function; name is its demangled name or NULL. A name must be one that the compiler
 * gives to async functions; closures have such names too. 0 or -ENOMEM.
 */
int future_find(struct future *future, const struct exits_source *source,
		const struct code_range *body, const char *name);

#endif
