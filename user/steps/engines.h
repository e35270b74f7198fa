/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The step functions of known engines, and names that step functions of other engines may have. */
#ifndef FBT_STEPS_ENGINES_H
#define FBT_STEPS_ENGINES_H

#include <stdbool.h>
#include "fbt_event.h"
#include "steps/spec.h"

/* Whether a known step function may be in a file. is_program: the file is not a plain library. */
bool engines_may_be_in(const char *path, bool is_program);

/* Whether a symbol of that file, mangled as in the file, is a known step function. */
bool engines_know(const char *symbol, const char *path, bool is_program);

/* A text that only the step function of a known engine refers to, and few small functions. */
struct engine_text {
	const char *text;
	const char *name; /* of that function */
};

/*
 * The text at index of those that may be in a file, to find the step function of a stripped one.
 * NULL if there are no more.
 */
const struct engine_text *engines_text(const char *path, size_t index);

/* The argument that is always recorded with a step of that function. False if there is none. */
bool engines_find_arg(const char *symbol, enum fbt_arch arch, struct step_arg *arg);

/* Whether a file cannot contain a step function: C and C++ runtime, loader, interpreters. */
bool engines_is_runtime(const char *path);

/*
 * Ranks a name by how likely it is that of a step function: 1 for known ones, higher numbers for
 * less likely ones, 0 for names that are none. Pieces of functions (.cold, .part), drop glue and
 * functions of libraries that decode or execute something else (h2, LLVM) are 0.
 */
unsigned int engines_rank(const char *symbol);

#endif
