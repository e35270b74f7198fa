/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Names that a mistyped one may be meant for. */
#ifndef FERRUM_PYTHON_NEAR_H
#define FERRUM_PYTHON_NEAR_H

#include <stddef.h>
#include "api.h"

/*
 * Writes a name that a dictionary does not have, with those of its keys that are like it: "stpe
 * (did you mean step?)". dict: a dictionary, or NULL. Needs the GIL, and holds it for some 1 ms at
 * most: of very many keys, as sys.modules of a server has them, not all are compared.
 */
void python_near(const struct python *python, py_object *dict, const char *wanted, char *text,
		 size_t size);

#endif
