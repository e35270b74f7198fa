/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Names that a mistyped one may be meant for. */
#ifndef FERRUM_PYTHON_NEAR_H
#define FERRUM_PYTHON_NEAR_H

#include <stddef.h>
#include "api.h"

/*
 * Writes a name that a dictionary does not have, with those of its keys that are like it: "stpe
 * (did you mean step?)". dict: a dictionary, or NULL. Needs the GIL; compares some 2,000 keys of
 * similar length at most, so that the GIL is held for 2 ms at most.
 */
void python_near(const struct python *python, py_object *dict, const char *wanted, char *text,
		 size_t size);

#endif
