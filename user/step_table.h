/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What is known of engines: the step functions of some by name, and what others may call theirs. */
#ifndef FBT_STEP_TABLE_H
#define FBT_STEP_TABLE_H

#include <stdbool.h>
#include "fbt_event.h"
#include "step_spec.h"

/* Whether one of the known functions may be in a file; is_program: it is no plain library. */
bool step_table_wants(const char *path, bool is_program);

/* Whether symbol (as in the file) of that file is a known step function. */
bool step_table_has(const char *symbol, const char *path, bool is_program);

/* The number to record with a step of that function: true with *arg set, if one is known. */
bool step_table_arg(const char *symbol, enum fbt_arch arch, struct step_arg *arg);

/* Files that do not hold an engine's step: C and C++ runtime, loader, interpreters. */
bool step_table_is_runtime(const char *path);

/*
 * How much a name looks like a step: 0 not at all, else 1 for the likeliest and more for less
 * likely ones. Pieces of functions (.cold, .part) and drop glue are 0.
 */
unsigned int step_table_rank(const char *symbol);

#endif
