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

struct elf_file;

struct python_version {
	unsigned int minor; /* 3.minor; 0: no interpreter */
	bool threaded;	    /* a free-threaded build */
};

/*
 * The interpreter that a mapped file is, by its name: "python3.11", "libpython3.12.so.1.0". If that
 * is only "python3" or "python", as of a copy ("python3 -m venv --copies"), by what it exports.
 */
struct python_version python_use_version(uint32_t tgid, const struct mapping *mapping);

/* The same by what a file exports: one that is linked with libpython exports nothing of it. */
struct python_version python_use_exports(struct elf_file *file);

/* Whether a process runs CPython, by the same. */
bool python_use_is_there(uint32_t tgid);

/* Versions of CPython that the library knows. */
#define PYTHON_MINOR_MIN 9
#define PYTHON_MINOR_MAX 14

/* The version, 3.*minor, by the same, and whether it is one that the library knows. */
bool python_use_is_supported(uint32_t tgid, unsigned int *minor);

/*
 * Checks the interpreter, its version and the functions that it exports. If the library is there
 * already, sets verdict->present and checks nothing else.
 */
void inject_check_python(struct inject_verdict *verdict, struct proc_ref process,
			 const mapping_vec *maps);

/* Whether the name is that of a free-threaded build: "python3.13t". */
bool python_use_is_threaded(const char *name);

/* The minor version in the name of an interpreter's file: 11 of "libpython3.11.so.1.0"; else 0. */
unsigned int python_use_minor(const char *name);

#endif
