/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Whether a process runs CPython, and whether libferrum_python.so can serve it. Reads /proc and
 * files only.
 */
#ifndef FBT_INJECT_PYTHON_USE_H
#define FBT_INJECT_PYTHON_USE_H

#include <stdbool.h>
#include <stdint.h>
#include "inject/verdict.h"
#include "proc/maps.h"

/*
 * Whether a process runs CPython, by the names of its program and libraries: "python3.11",
 * "libpython3.12.so.1.0".
 */
bool python_use_is_there(uint32_t tgid);

/*
 * Checks the interpreter, its version and the functions that it exports. If the library is there
 * already, sets verdict->present and checks nothing else.
 */
void inject_check_python(struct inject_verdict *verdict, struct proc_ref process,
			 const mapping_vec *maps);

/* The minor version in the name of an interpreter's file: 11 of "libpython3.11.so.1.0"; else 0. */
unsigned int python_use_minor(const char *name);

#endif
