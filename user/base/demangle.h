/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Symbol names as people write them: Rust (legacy and v0), C++, C. */
#ifndef FBT_BASE_DEMANGLE_H
#define FBT_BASE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Longer names are not demangled, and no longer result is returned. */
#define DEMANGLE_NAME_MAX 65536

/* Length of symbol without compiler suffixes of clones: .llvm.NNN, .constprop.0, .cold, … */
size_t symbol_base_length(const char *symbol);

/* Whether it is a piece of a function: NAME.cold, NAME.cold.1, NAME.part.0. */
bool symbol_is_cold(const char *symbol);
bool symbol_is_part(const char *symbol);
bool symbol_is_mangled(const char *symbol);

/*
 * The name without arguments, without the hash of Rust's legacy mangling and without clone
 * suffixes; symbol itself, less suffixes, if it is not mangled or would become too long: a name of
 * a few hundred bytes may stand for one of 2^64. NULL: -ENOMEM or symbol is too long. The caller
 * frees.
 */
char *demangle_symbol(const char *symbol);

/* The same with the arguments of a C++ function. NULL if it has none, or becomes too long. */
char *demangle_with_arguments(const char *symbol);

#endif
