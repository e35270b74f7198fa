/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Whether --step means a given symbol or file. Pure. */
#ifndef FBT_STEP_MATCH_H
#define FBT_STEP_MATCH_H

#include <stdbool.h>
#include "step_spec.h"

/*
 * By mangled name, with or without clone suffix, or by demangled name. Pieces of functions (.cold,
 * .part) never match. Only STEP_SPEC_SYMBOL and STEP_SPEC_REGEX.
 */
bool step_match_symbol(const struct step_spec *spec, const char *symbol);

/* Whether path is mapped, the whole of it or its last components: "bin/engine" means
 * "/opt/bin/engine". */
bool step_match_path(const char *path, const char *mapped);

#endif
