/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* --list-steps of a Python process: the known functions of its engine, and how often each is
 * called. */
#ifndef FBT_COMMANDS_LIST_PYTHON_H
#define FBT_COMMANDS_LIST_PYTHON_H

#include <stdio.h>
#include "options.h"

/*
 * Counts calls for two seconds, in all processes of the engine that have the library, which
 * --python=inject loads first. 0 or -errno, logged: -ENOENT there is none.
 */
int list_python(const struct options *options, FILE *out);

#endif
