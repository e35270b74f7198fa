/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The step functions of Python engines that are known by name. An engine is recognised by its
 * loaded modules; titles of processes change.
 */
#ifndef FBT_PYTHON_ENGINES_H
#define FBT_PYTHON_ENGINES_H

#include <stddef.h>
#include "steps/python_spec.h"

/* The row at index, as --step takes it; NULL: there are no more. */
const char *python_engines_row(size_t index);

#endif
