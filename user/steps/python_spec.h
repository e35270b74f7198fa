/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A step that is a Python function, as --step takes it: py:MODULE:QUALNAME, or with up to four
 * numbers to record, py:MODULE:QUALNAME(NAME=EXPR,…). EXPR is ARGUMENT, ARGUMENT.PART.PART, or
 * len(…) of either; of calls of other step functions inside of the step, INNER, the sum of their
 * numbers with that name, or TIME(QUALNAME), how many microseconds those of one took; or
 * BEFORE(NAME), another number of the same step, as it was in the step before.
 */
#ifndef FBT_STEPS_PYTHON_SPEC_H
#define FBT_STEPS_PYTHON_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "fbt_event.h"
#include "fbt_python.h"

/* Where a number comes from. */
enum step_arg_source {
	STEP_ARG_READ = 0, /* from registers and memory, when the step begins */
	/* From calls of other step functions of Python inside of the step: */
	STEP_ARG_INNER, /* the sum of their arguments with the same name */
	STEP_ARG_TIME,	/* how long those of one function took, in us */
	/* Another number of the step before, of the same thread and function. */
	STEP_ARG_BEFORE,
};

struct python_spec {
	char function[256]; /* "module:Qualified.name" */
	char names[FBT_PYTHON_ATTRIBUTES][32];
	enum step_arg_source sources[FBT_PYTHON_ATTRIBUTES];
	/* STEP_ARG_READ: what the library reads; …_TIME: "Qualified.name"; …_BEFORE: the name. */
	char expressions[FBT_PYTHON_ATTRIBUTES][96];
	size_t count;
};

/* Whether text is of this form. */
bool python_spec_is(const char *text);

/* 0, or -EINVAL with one line logged. */
int python_spec_parse(struct python_spec *spec, const char *text);

/* What the library is to read of a call: borrowed expressions of spec. Returns their number. */
size_t python_spec_list_reads(const struct python_spec *spec,
			      const char *expressions[FBT_PYTHON_ATTRIBUTES]);

/* By which bpf/ knows names of functions and numbers that belong together; never 0. */
uint32_t python_name_hash(const char *name);

#endif
