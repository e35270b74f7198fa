/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A step that is a Python function, as --step takes it: py:MODULE:QUALNAME, or with up to four
 * numbers to record, py:MODULE:QUALNAME(NAME=EXPR,…). EXPR is ARGUMENT, ARGUMENT.PART.PART, or
 * len(…) of either.
 */
#ifndef FBT_STEPS_PYTHON_SPEC_H
#define FBT_STEPS_PYTHON_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include "fbt_event.h"
#include "fbt_python.h"

struct python_spec {
	char function[256]; /* "module:Qualified.name" */
	char names[FBT_PYTHON_ATTRIBUTES][32];
	char expressions[FBT_PYTHON_ATTRIBUTES][96];
	size_t count;
};

/* Whether text is of this form. */
bool python_spec_is(const char *text);

/* 0, or -EINVAL with one line logged. */
int python_spec_parse(struct python_spec *spec, const char *text);

#endif
